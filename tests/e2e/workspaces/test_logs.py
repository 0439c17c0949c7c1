"""`svc ws logs` through the installed program: all that was written, as it comes, and how it ends."""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.installation import SVC, Call, Service, processes
from e2e.registries import REPOSITORY
from e2e.surroundings import must, new_template
from waiting import until

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


# --- all of it ---------------------------------------------------------------------------------

MIB = 1 << 20
EVERY_BYTE = bytes(range(256))
LOUD = "; ".join(
    (
        f"printf '{''.join(f'{chr(92)}{byte:03o}' for byte in EVERY_BYTE)}'",
        "echo",
        "echo oops >&2",
        f"head -c {5 * MIB} /dev/zero | tr '\\0' x",
        "echo",
        f"head -c {45 * MIB} /dev/zero | tr '\\0' y | fold -w 1023",
        "printf 'no newline at the end'",
        "exec sleep infinity",
    )
)


def written() -> bytes:
    """What LOUD writes, without what goes to its standard error."""
    lines = -(-45 * MIB // 1023)
    folded = b"".join([b"y" * 1023 + b"\n"] * (lines - 1)) + b"y" * (45 * MIB - 1023 * (lines - 1))
    return EVERY_BYTE + b"\n" + b"x" * 5 * MIB + b"\n" + folded + b"no newline at the end"


@pytest.fixture
def loud(service: Service, registry: str, alice: Call) -> Iterator[str]:
    """A running workspace of Alice's that writes 50 MiB; its name."""
    source = {"type": "registry", "image_ref": f"{registry}/{REPOSITORY}:1"}
    new_template("tse-alice", service.env, "loud", source, command=["sh", "-c", LOUD])
    must(alice("ws", "setup", "--template", "loud", "--name", "loud"))
    must(alice("ws", "start", "loud"))
    yield "loud"
    alice("ws", "stop", "loud")
    must(alice("ws", "delete", "loud", "--yes"))
    must(alice("template", "delete", "loud", "--yes"))


def shell(env: dict[str, str], line: str) -> subprocess.CompletedProcess[bytes]:
    """A line of shell of Alice's, with its output as bytes; `$svc` is the program."""
    account = pwd.getpwnam("tse-alice")
    return subprocess.run(
        ["bash", "-c", line], env=env | {"HOME": account.pw_dir, "svc": str(SVC)}, capture_output=True,
        user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd="/", timeout=90, check=False,
    )  # fmt: skip


def peaks() -> dict[int, int]:
    """The most memory, in KiB, that each process of svc has had."""
    found = [one for one in processes() if "svc" in one.args and one.pid != os.getpid()]
    return {one.pid: int(one.status["VmHWM"].split()[0]) for one in found if "VmHWM" in one.status}


def test_all_of_it_byte_for_byte(service: Service, alice: Call, loud: str) -> None:
    """ "the container's raw stdout/stderr": any bytes, both streams, a long line, no newline at the end."""
    until(lambda: alice("ws", "logs", loud, "--tail", "1").out.endswith("at the end"), 60)
    before = peaks()
    done = shell(service.env, f"$svc ws logs {loud}")
    assert max(after - before[pid] for pid, after in peaks().items() if pid in before) < 16 * MIB // 1024
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"oops\n") == 1
    assert done.stdout.replace(b"oops\n", b"") == written()
    last = shell(service.env, f"$svc ws logs {loud} --tail 40000")
    assert last.stdout == b"".join(done.stdout.splitlines(keepends=True)[-40000:])

    bounded = shell(service.env, f"(ulimit -v {64 * 1024}; $svc ws logs {loud} | wc -c)")
    assert int(bounded.stdout) == len(done.stdout), bounded.stderr

    first = shell(service.env, f"$svc ws logs {loud} | head -c 256; echo ${{PIPESTATUS[0]}}")
    assert (first.stdout, first.stderr) == (EVERY_BYTE + b"141\n", b""), "as after SIGPIPE"

    newest = must(alice("ws", "logs", loud, "--json")).json()
    assert (newest["truncated"], newest["older_gone"], newest["markers"]) == (True, False, [])
    assert len(newest["text"]) <= MIB and done.stdout.endswith(newest["text"].encode())
    few = must(alice("ws", "logs", loud, "--json", "--tail", "3")).json()
    assert (few["truncated"], len(few["text"].splitlines())) == (False, 3)


# --- as it comes -------------------------------------------------------------------------------


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
    assert follower.code() == 0
    assert re.fullmatch("svc: talker: started [-:0-9TZ]+\n", follower.err())
    assert follower.out() == "hello\n"
    unknown = alice("ws", "logs", workspace, "--follow", "--launcher", "none")
    assert (unknown.code, f"hint: svc ws launchers {workspace}\n" in unknown.err) == (1, True)


def test_ctrl_c(workspace: str, follow: Callable[..., Follower], service: Service) -> None:
    follower = follow(workspace)
    until(lambda: follower.out() == "first\n", 30)
    follower.process.send_signal(signal.SIGINT)
    assert (follower.code(), follower.err()) == (130, "")


def test_a_restart_of_the_service_does_not_end_it(
    alice: Call, workspace: str, follow: Callable[..., Follower], service: Service
) -> None:
    followers = [follow(workspace), follow(workspace, "--timestamps"), follow(workspace, "--json")]
    for one in followers:
        until(lambda one=one: "first" in one.out(), 30)
    with service.stopped():
        pass
    must(alice("ws", "exec", workspace, "--", "touch", "/go"))
    for one in followers:
        until(lambda one=one: "second" in one.out(), 60)
    must(alice("ws", "stop", workspace))
    assert [(one.code(), one.err()) for one in followers] == [(0, "")] * 3
    assert followers[0].out() == "first\nsecond\n"
    assert re.fullmatch(r"[-:.+0-9T]{35} first\n[-:.+0-9T]{35} second\n", followers[1].out())
    assert followers[2].out() == '{"text": "first\\n"}\n{"text": "second\\n"}\n'


def test_followers_hold_no_thread_and_leave_room(
    alice: Call, workspace: str, follow: Callable[..., Follower]
) -> None:
    """More than a user's long calls, and who goes leaves nothing behind."""
    followers = [follow(workspace) for _ in range(20)]
    for one in followers:
        until(lambda one=one: one.out() == "first\n", 60)
    assert must(alice("ws", "list")).code == 0
    assert must(alice("ws", "exec", workspace, "--", "true")).code == 0
    followers[0].process.send_signal(signal.SIGKILL)
    followers[0].process.wait()
    must(alice("ws", "exec", workspace, "--", "touch", "/go"))
    for one in followers[1:]:
        until(lambda one=one: one.out() == "first\nsecond\n", 60)


def test_svc_api_shows_no_stream(alice: Call, workspace: str) -> None:
    refused = alice("api", "GET", f"/api/workspaces/{workspace}/logs/stream")
    assert (refused.code, "streaming_not_supported" in refused.out) == (1, True)


def test_others_follow_nothing(bob: Call, alice: Call, workspace: str) -> None:
    identity = must(alice("api", "GET", f"/api/workspaces/{workspace}")).json()["id"]
    assert "no workspace" in bob("ws", "logs", identity, "--follow").err
