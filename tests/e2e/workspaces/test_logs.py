"""`svc ws logs --follow` through the installed program: as it comes, and how it ends."""

from __future__ import annotations

import pwd
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.installation import SVC, Call, Service, until
from e2e.registries import REPOSITORY
from e2e.surroundings import must, new_template

COMMAND = ["sh", "-c", "echo first; while [ ! -e /go ]; do sleep 0.1; done; echo second; exec sleep infinity"]
TALKER = {"name": "talker", "command": ["sh", "-c", "echo hello; sleep 4717"]}


@pytest.fixture(scope="module")
def template(service: Service, registry: str) -> str:
    """Alice's template of a container that talks when it is told; its name."""
    source = {"type": "registry", "image_ref": f"{registry}/{REPOSITORY}:1"}
    new_template("tse-alice", service.env, "talking", source, command=COMMAND, launchers=[TALKER])
    return "talking"


class Follower:
    """One `svc ws logs --follow` of Alice's."""

    def __init__(self, env: dict[str, str], out: Path, *arguments: str) -> None:
        account = pwd.getpwnam("tse-alice")
        self.path = out
        with open(out, "wb") as file, open(f"{out}.err", "wb") as errors:
            self.process = subprocess.Popen(
                [SVC, "ws", "logs", *arguments, "--follow"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=errors,
                cwd="/",
                env=env | {"HOME": account.pw_dir, "USER": account.pw_name},
                user=account.pw_uid,
                group=account.pw_gid,
                extra_groups=[],
            )

    def out(self) -> str:
        """What it has printed."""
        return self.path.read_text()

    def err(self) -> str:
        """What it has said on standard error."""
        return Path(f"{self.path}.err").read_text()

    def code(self) -> int:
        """How it ended."""
        return self.process.wait(60)


@pytest.fixture
def follow(service: Service, tmp_path: Path) -> Iterator[Callable[..., Follower]]:
    """follow(*words) -> a follower, ended with the test."""
    created: list[Follower] = []

    def begin(*arguments: str) -> Follower:
        created.append(Follower(service.env, tmp_path / f"out-{len(created)}", *arguments))
        return created[-1]

    yield begin
    for one in created:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()


def test_it_comes_as_it_is_printed_and_ends_with_the_container(
    alice: Call, workspace: str, follow: Callable[..., Follower]
) -> None:
    follower = follow(workspace)
    until(lambda: follower.out() == "first\n", 30)
    must(alice("ws", "exec", workspace, "--", "touch", "/go"))
    until(lambda: follower.out() == "first\nsecond\n", 30)
    assert follower.process.poll() is None
    must(alice("ws", "stop", workspace))
    assert (follower.code(), follower.err()) == (0, "")
    again = alice("ws", "logs", workspace, "--follow", "--tail", "1")  # of a stopped one: what there is
    assert (again.code, again.out) == (0, "second\n")


def test_of_a_launcher(alice: Call, workspace: str, follow: Callable[..., Follower]) -> None:
    must(alice("ws", "launcher", "start", workspace, "talker"))
    follower = follow(workspace, "--launcher", "talker")
    until(lambda: "hello\n" in follower.out(), 30)
    must(alice("ws", "launcher", "stop", workspace, "talker"))
    assert (follower.code(), follower.err()) == (0, "")
    unknown = alice("ws", "logs", workspace, "--follow", "--launcher", "none")
    assert (unknown.code, f"hint: svc ws launchers {workspace}\n" in unknown.err) == (1, True)


def test_ctrl_c(workspace: str, follow: Callable[..., Follower], service: Service) -> None:
    follower = follow(workspace)
    until(lambda: follower.out() == "first\n", 30)
    follower.process.send_signal(signal.SIGINT)
    assert (follower.code(), follower.err()) == (130, "")


def test_the_end_of_the_server_ends_it_with_a_word(
    workspace: str, follow: Callable[..., Follower], service: Service
) -> None:
    followers = [follow(workspace) for _ in range(3)]
    for one in followers:
        until(lambda one=one: one.out() == "first\n", 30)
    service.stop()
    for one in followers:
        assert one.code() == 1
        assert "the service is stopping" in one.err()
    service.start()


def test_there_is_a_place_again_after_each(
    alice: Call, workspace: str, follow: Callable[..., Follower]
) -> None:
    """One user follows eight at once, and who goes gives the place back."""
    followers = [follow(workspace) for _ in range(8)]
    for one in followers:
        until(lambda one=one: one.out() == "first\n", 30)
    refused = alice("ws", "logs", workspace, "--follow")
    assert (refused.code, "long calls" in refused.err) == (1, True)
    followers[0].process.send_signal(signal.SIGKILL)
    followers[0].process.wait()

    def follows_again() -> bool:
        one = follow(workspace)
        until(lambda: one.out() or one.process.poll() is not None, 30)
        return one.out() == "first\n"

    until(follows_again, 30, 0.5)
    assert must(alice("ws", "list")).code == 0


def test_svc_api_shows_no_stream(alice: Call, workspace: str) -> None:
    refused = alice("api", "GET", f"/api/workspaces/{workspace}/logs/stream")
    assert (refused.code, "streaming_not_supported" in refused.out) == (1, True)


def test_others_follow_nothing(bob: Call, alice: Call, workspace: str) -> None:
    identity = must(alice("api", "GET", f"/api/workspaces/{workspace}")).json()["id"]
    assert "no workspace" in bob("ws", "logs", identity, "--follow").err
