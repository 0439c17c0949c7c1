"""Builds in a real user's store: what comes out, how they fail, and that nothing of an ended one stays."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import signal
import stat
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent.priv_ns import Agent, Answer, Pending, User, wait_for
from agent.registry import Registry

from svc_helper.wire import protocol

pytestmark = pytest.mark.root
REF = "localhost/svc/tpl-test:0123456789abcdef"
SLOW = "RUN i=0; while [ $i -lt 600 ]; do echo tick $i; sleep 0.1; i=$((i+1)); done"


def archive(dockerfile: str, **context: bytes) -> bytes:
    """The sources of a build; a name that ends in _x is executable."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        files = {"Dockerfile": dockerfile.encode()} | {
            f"context/{key}": value for key, value in context.items()
        }
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if name.endswith("_x") else 0o644
            tar.addfile(member, io.BytesIO(content))
    return written.getvalue()


class Builder:
    """Builds of one test; what they left is looked for afterwards."""

    def __init__(self, agent: Agent, user: User, image: str) -> None:
        self.agent, self.user, self.image = agent, user, image

    def begin(
        self,
        *lines: str,
        ref: str = REF,
        agent: Agent | None = None,
        triggers: bool = False,
        build_args: dict[str, str] | None = None,
        secrets: dict[str, object] | None = None,
        **context: bytes,
    ) -> Pending:
        """Start a build from the base image."""
        text = "\n".join((f"FROM {self.image}", *lines, ""))
        return (agent or self.agent).begin(
            "image.build",
            deadline_s=600,
            give=archive(text, **context),
            image=ref,
            bases=[self.image],
            triggers=triggers,
            build_args=build_args,
            secrets=secrets,
        )

    def run(self, *lines: str, **more: object) -> Answer:
        """Build to the end."""
        return self.begin(*lines, **more).answer(90)  # type: ignore[arg-type]

    def running(self) -> list[int]:
        """The processes that build, those in containers included."""
        signs = ("images.builder", "podman build", "buildah", "tick $i")
        return [
            pid
            for pid, arguments in self.user.processes().items()
            if any(sign in arguments for sign in signs)
        ]

    def wait_for_output(self, call: Pending, sign: str) -> list[str]:
        """Read progress until a line with the sign has come."""
        lines: list[str] = []
        end = time.monotonic() + 60
        while not any(sign in line for line in lines):
            assert time.monotonic() < end, lines
            message = protocol.receive(call.sock).message
            assert "progress" in message, message
            lines += message["progress"].get("lines", [])
        return lines

    def left_files(self) -> dict[str, list[str]]:
        """What no build may leave."""
        home, runtime = self.user.home, self.user.runtime
        script = f"""
            find {home}/.cache/svc/builds -mindepth 1; echo ---
            find /var/tmp {runtime}/crun -mindepth 1 -maxdepth 1 -user {self.user.name} ! -name .cache
            echo ---
            podman ps --all --external --noheading --format "{{{{.Names}}}}" | grep working; echo ---
            podman unshare cat /proc/self/mountinfo | grep -i buildah
        """
        done = self.user.run("sh", "-c", script, check=False)
        names = ("files", "temporary", "containers", "mounts")
        parts = [part.split() for part in done.stdout.split("---")]
        return {name: part for name, part in zip(names, parts, strict=True) if part}


@pytest.fixture
def builder(agent: Agent, user: User, image: str) -> Iterator[Builder]:
    created = Builder(agent, user, image)
    yield created
    wait_for(lambda: not created.running())
    assert created.left_files() == {}
    user.podman("rmi", "-f", REF, check=False)
    user.podman("run", "--rm", "--pull=never", image, "true")  # by its exit code: an attach may lose words


def lines_of(answer: Answer) -> list[str]:
    """Everything that a build said."""
    return [line for progress in answer.progress for line in progress.get("lines", [])]


# --- what comes out ---------------------------------------------------------------------


def test_a_build_and_its_progress(builder: Builder, user: User) -> None:
    answer = builder.run(
        "COPY . /files/", "RUN ls -l /files; id; echo told >/made", "CMD sleep 7",
        plain=b"one", run_x=b"#!/bin/sh\necho ran\n"
    )  # fmt: skip
    found = user.podman("inspect", "--type=image", REF).stdout
    (image,) = json.loads(found)
    assert answer.data == {
        "image_id": image["Id"],
        "digest": image["Digest"],
        "size_bytes": answer.data["size_bytes"],
        "user": None,
        "platform": None,
    }
    assert builder.agent.call("image.inspect", image=REF).data == {"present": True} | answer.data
    ran = user.podman("run", "--rm", "--pull=never", REF, "sh", "-c", "/files/run_x; cat /files/plain /made")
    assert ran.stdout == "ran\nonetold\n"
    lines = lines_of(answer)
    assert [line for line in lines if line.startswith("STEP ")][1:2] == ["STEP 2/4: COPY . /files/"]
    assert any(line.startswith("uid=0(root)") for line in lines)
    steps = [progress for progress in answer.progress if progress.get("unit") == "steps"]
    assert [one["current"] for one in steps] == sorted(one["current"] for one in steps)
    assert (steps[-1]["current"], steps[-1]["total"], steps[-1]["text"]) == (4, 4, "built")


def test_steps_that_are_done_are_not_done_again(builder: Builder) -> None:
    first = builder.run("COPY plain /", "RUN date +%N > /when", plain=b"same")
    again = builder.run("COPY plain /", "RUN date +%N > /when", plain=b"same")
    assert again.data["image_id"] == first.data["image_id"]
    assert sum("Using cache" in line for line in lines_of(again)) == 2
    other = builder.run("COPY plain /", "RUN date +%N > /when", plain=b"other")
    assert other.data["image_id"] != first.data["image_id"]


def test_arguments(builder: Builder) -> None:
    lines = ("ARG WHO=nobody", "ARG MORE", 'RUN echo "hello $WHO $MORE"')
    assert "hello nobody " in [f"{line} " for line in lines_of(builder.run(*lines))]
    given = {"WHO": "you; exit 3", "MORE": "--x=$WHO"}
    assert "hello you; exit 3 --x=$WHO" in lines_of(builder.run(*lines, build_args=given))


def test_stages_and_other_users(builder: Builder, user: User) -> None:
    answer = builder.run(
        "RUN echo made >/made; chown 1234:77 /made", f"FROM {builder.image}", "COPY --from=0 /made /",
        "HEALTHCHECK CMD true", "USER worker", "RUN id -u; ls -ln /made",
    )  # fmt: skip
    lines = lines_of(answer)
    assert "1234" in lines
    assert any(line.startswith("[2/2] STEP 5/5: RUN id") for line in lines)
    steps = [one["current"] / one["total"] for one in answer.progress if one.get("total")]
    assert steps == sorted(steps) and steps[-1] == 1
    assert '"Healthcheck": {' in user.podman("inspect", "--type=image", REF).stdout


def test_the_base_is_pulled_first(builder: Builder, registry: Registry) -> None:
    base = registry.put("team/base:7", Env=["PATH=/bin"])
    call = builder.agent.begin(
        "image.build", give=archive(f"FROM {base}\nRUN true\n"), image=REF, bases=[base], triggers=False
    )
    answer = call.answer(60)
    assert answer.data["image_id"]
    assert {progress.get("unit") for progress in answer.progress} >= {"bytes", "steps"}
    missing = f"{registry.host}/team/none:1"
    call = builder.agent.begin(
        "image.build", give=archive(f"FROM {missing}\n"), image=REF, bases=[missing], triggers=False
    )
    refused = call.answer(30)
    assert (refused.code, refused.message["message"]) == (
        "image_not_in_registry",
        f"{missing}: the registry has no such image",
    )
    builder.user.podman("rmi", "-f", REF, base)
    off_list = builder.agent.begin(
        "image.build", give=archive("FROM quay.io/x/y\n"), image=REF, bases=["quay.io/x/y"], triggers=False
    )
    assert off_list.answer(30).code == "registry"


def test_nothing_is_pulled_that_was_not_named(builder: Builder, registry: Registry) -> None:
    """ "--pull=never": an image in the Dockerfile that the list of bases lacks is not fetched."""
    answer = builder.run(f"COPY --from={registry.host}/team/none:9 /x /")
    assert answer.code == "build"


def test_triggers_of_a_base(builder: Builder, user: User) -> None:
    ref = "localhost/svc/tpl-onbuild:1"
    assert builder.run("ONBUILD RUN echo triggered; touch /triggered", ref=ref).data
    base, builder.image = builder.image, ref
    try:
        refused = builder.run("RUN ls /triggered")
        assert (refused.code, ref in refused.message["message"]) == ("build", True)
        allowed = builder.run("RUN ls /triggered", triggers=True)
        assert "triggered" in lines_of(allowed) and allowed.data
    finally:
        builder.image = base
        user.podman("rmi", "-f", REF, ref)


# --- how it fails -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("RUN exit 3", "step 2 of 3 (RUN exit 3) failed: exit 3"),
        ("RUN echo why >&2; false", "step 2 of 3 (RUN echo why >&2; false) failed: exit 1"),
        ("COPY nothing /", "step 2 of 3 (COPY nothing /) failed; the log has why"),
        ("FETCH all", "step 2 of 3 (FETCH all) failed; the log has why"),
    ],
)
def test_an_instruction_that_fails(builder: Builder, line: str, message: str) -> None:
    answer = builder.run(line, "RUN echo never")
    assert (answer.code, answer.message["message"]) == ("build", message)
    lines = lines_of(answer)
    assert lines[-1].startswith("Error: ") and not any("never" in line for line in lines)
    assert not builder.agent.call("image.inspect", image=REF).data["present"]


def test_a_heredoc_is_not_the_same_to_all_podmans(builder: Builder) -> None:
    """Podman 4.3 runs its lines as instructions, Podman 5 reads it: why svc refuses a Dockerfile with one."""
    answer = builder.run("RUN cat <<EOF >/made", "RUN echo never", "EOF")
    if answer.message["ok"]:
        made = builder.user.podman("run", "--rm", "--pull=never", REF, "cat", "/made").stdout
        assert made == "RUN echo never\n"
    else:
        assert answer.code == "build", lines_of(answer)


@pytest.mark.parametrize("text", ["", "FROM\n", "RUN true\n", 'FROM x\nENV "\n'])
def test_a_dockerfile_that_is_none(builder: Builder, text: str) -> None:
    call = builder.agent.begin("image.build", give=archive(text), image=REF, bases=[], triggers=True)
    answer = call.answer(20)
    assert answer.code == "build"
    assert lines_of(answer)[-1].startswith("Error: ")


@pytest.mark.parametrize("sources", [b"", b"x" * 5000, archive("FROM x")[:600], None])
def test_sources_that_are_none(builder: Builder, sources: bytes | None) -> None:
    call = builder.agent.begin("image.build", give=sources, image=REF, bases=[], triggers=True)
    assert call.answer(20).code == ("protocol" if sources is None else "failed")


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    """A member of an archive."""
    created = tarfile.TarInfo(name)
    created.type, created.linkname, created.mode = kind, link, mode
    return created


@pytest.mark.parametrize(
    "hostile",
    [
        member("../x"), member("/etc/x"), member("context/../../x"), member("context/./x"), member("other"),
        member("context//x"), member("context/x", tarfile.SYMTYPE, "/etc"), member("Dockerfile/x"),
        member("context/x", tarfile.LNKTYPE, "Dockerfile"), member("context/x", tarfile.FIFOTYPE),
        member("context/x", tarfile.CHRTYPE), member("Dockerfile", tarfile.SYMTYPE, "/etc/passwd"),
        member("Dockerfile"), member("context", tarfile.REGTYPE),
    ],
    ids=lambda found: f"{found.name} {found.type!r}",
)  # fmt: skip
def test_members_that_no_context_has(builder: Builder, user: User, hostile: tarfile.TarInfo) -> None:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        text = f"FROM {builder.image}\n".encode()
        dockerfile = member("Dockerfile")
        dockerfile.size = len(text)
        tar.addfile(dockerfile, io.BytesIO(text))
        tar.addfile(hostile)
    call = builder.agent.begin("image.build", give=written.getvalue(), image=REF, bases=[], triggers=True)
    assert call.answer(20).code == "failed"


def test_modes_are_a_contexts_own(builder: Builder, user: User) -> None:
    """A set-uid bit in the archive does not arrive, and the agent's own umask does not either."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        text = f"FROM {builder.image}\nCOPY . /files\nRUN ls -ln /files\n".encode()
        dockerfile = member("Dockerfile")
        dockerfile.size = len(text)
        tar.addfile(dockerfile, io.BytesIO(text))
        tar.addfile(member("context/directory", tarfile.DIRTYPE, mode=0o1777))
        tar.addfile(member("context/program", mode=stat.S_ISUID | 0o711))
        tar.addfile(member("context/text", mode=0o600))
    call = builder.agent.begin("image.build", give=written.getvalue(), image=REF, bases=[], triggers=True)
    modes = {
        line.split()[-1]: line.split()[0] for line in lines_of(call.answer(60)) if line[:2] in ("-r", "dr")
    }
    assert modes == {"directory": "drwxr-xr-x", "program": "-rwxr-xr-x", "text": "-rw-r--r--"}


def test_much_output(builder: Builder) -> None:
    answer = builder.run(
        "RUN yes line | head -n 300000; printf 'a\\rlast\\033[31m red\\033[0m\\n'",
        "RUN head -c 200000 /dev/zero | tr '\\0' x",
    )
    lines = lines_of(answer)
    assert answer.data and len(lines) < 100_000
    assert any(line.endswith("lines are left out)") for line in lines)
    assert "last red" in lines, lines[-20:]
    assert max(len(line) for line in lines) <= 500
    assert len(answer.progress) < 2000


# --- how it is ended --------------------------------------------------------------------


@pytest.mark.parametrize("as_user", ["root", "worker"])
def test_a_cancelled_build_leaves_nothing(builder: Builder, as_user: str) -> None:
    call = builder.begin("RUN echo first > /first", f"USER {as_user}", SLOW)
    builder.wait_for_output(call, "tick 2")
    began = time.monotonic()
    call.cancel()
    assert call.answer(40).code == "cancelled"
    assert time.monotonic() - began < 10
    assert not builder.running() and builder.left_files() == {}
    assert any("Using cache" in line for line in lines_of(builder.run("RUN echo first > /first")))


def test_cancelled_at_any_time(builder: Builder) -> None:
    for number, pause in enumerate((0, 0.02, 0.1, 0.2, 0.3, 0.4, 0.6, 0.9, 1.3)):
        call = builder.begin(f"COPY big /{number}", f"RUN echo {number}{time.time()} > /x; {SLOW[4:]}",
                             big=os.urandom(4 << 20))  # fmt: skip
        time.sleep(pause)
        call.cancel()
        assert call.answer(40).code == "cancelled"
        assert not builder.running() and builder.left_files() == {}
    assert builder.run("RUN true").data


def test_a_podman_that_does_not_end_is_killed(builder: Builder, user: User) -> None:
    hasty = user.start_agent(sooner=("agent.images.builder", "TERM_S = 30", "TERM_S = 3"))
    call = builder.begin(SLOW, agent=hasty)
    builder.wait_for_output(call, "tick 2")
    (podman,) = [
        pid for pid, arguments in builder.user.processes().items() if arguments.startswith("podman build")
    ]
    os.kill(podman, signal.SIGSTOP)
    call.cancel()
    answer = call.answer(70)
    assert answer.code == "cancelled"
    assert not builder.running() and builder.left_files() == {}
    hasty.close()


def test_a_podman_that_was_killed(builder: Builder) -> None:
    call = builder.begin(SLOW)
    builder.wait_for_output(call, "tick 2")
    (podman,) = [
        pid for pid, arguments in builder.user.processes().items() if arguments.startswith("podman build")
    ]
    os.kill(podman, signal.SIGKILL)
    assert call.answer(20).code == "build"
    assert not builder.running()


def kill_a_build(builder: Builder) -> None:
    """Builder and Podman at once, so that neither clears up."""
    call = builder.begin(SLOW)
    builder.wait_for_output(call, "tick 2")
    for signs in ("images.builder", "podman build"):
        for pid, arguments in builder.user.processes().items():
            if signs in arguments:
                os.kill(pid, signal.SIGKILL)
    assert call.answer(20).code == "unavailable"


def test_a_container_that_was_not_marked_yet(builder: Builder, user: User) -> None:
    """The build was killed between the store's row and the record that has its mark."""
    store = Path(user.home, ".local/share/containers/storage/overlay-containers")
    kill_a_build(builder)
    (record,) = store.glob("*/userdata/buildah.json")
    record.unlink()
    user.podman("create", "--name=mine-working-container", "--pull=never", builder.image)
    assert builder.run("RUN echo after").data
    assert not store.joinpath(record.parent.parent.name).exists()
    user.podman("rm", "mine-working-container")


def test_what_a_killed_build_left_goes_with_its_secrets(builder: Builder, user: User, agent: Agent) -> None:
    """After a reboot a build that had secrets does not begin again, so no next build removes the copy."""
    operation = "op-secret00"
    secret = b"s3cr3t-" + os.urandom(16).hex().encode()
    sizes = [{"id": "pip", "size": len(secret)}]
    assert agent.call("image.secrets", give=secret, operation=operation, sizes=sizes).message["ok"]
    call = builder.begin(
        "RUN --mount=type=secret,id=pip cat /run/secrets/pip >/dev/null; " + SLOW[4:],
        secrets={"operation": operation, "ids": ["pip"]},
    )
    builder.wait_for_output(call, "tick 2")
    store = Path(user.home, ".local/share/containers/storage/overlay-containers")

    def copies() -> list[Path]:
        found = []
        for path in store.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and secret in path.read_bytes():
                    found.append(path)
        return found

    assert copies(), "Podman has a copy while the step runs"
    for signs in ("images.builder", "podman build"):
        for pid, arguments in builder.user.processes().items():
            if signs in arguments:
                os.kill(pid, signal.SIGKILL)
    assert call.answer(20).code == "unavailable"
    for lock in Path(user.runtime, "svc/locks").glob("build-*"):
        lock.unlink()  # as the runtime directory is after a reboot
    end = time.monotonic() + 60
    while not agent.call("image.secrets", give=b"", operation=operation, sizes=[]).message["ok"]:
        assert time.monotonic() < end  # as the worker repeats it
        time.sleep(1)
    assert copies() == []
    assert builder.left_files() == {}


UNFINISHED = """
import json, shutil, sys
images, image_id = sys.argv[1:]
with open(f"{images}/images.json") as file:
    rows = json.load(file)
for row in rows:
    if row["id"] == image_id:
        for key in ("digest", "metadata", "big-data-names", "big-data-sizes", "big-data-digests"):
            row.pop(key, None)
with open(f"{images}/images.json", "w") as file:
    json.dump(rows, file)
shutil.rmtree(f"{images}/{image_id}")
"""


def test_an_image_that_was_not_finished(builder: Builder, user: User, agent: Agent) -> None:
    """The build was killed between the store's row and the manifest: Podman's list of images fails then."""
    images = Path(user.home, ".local/share/containers/storage/overlay-images")
    kill_a_build(builder)
    layer = Path(user.home, "layer.tar")
    layer.write_bytes(archive("", file=b"x"))
    imported = user.podman("import", "--quiet", str(layer), "localhost/unfinished:1")
    unfinished = imported.stdout.strip().removeprefix("sha256:")
    layer.unlink()
    user.run("/usr/bin/python3", "-c", UNFINISHED, str(images), unfinished)
    user.podman("tag", builder.image, "localhost/seen:1")  # a change, for which the service reads it anew
    user.podman("untag", builder.image, "localhost/seen:1")
    assert user.podman("images", check=False).returncode != 0
    assert agent.call("image.list").data["images"]
    assert builder.run("RUN echo after").data
    assert user.podman("images").stdout
    assert unfinished not in (images / "images.json").read_text()


def test_a_builder_that_was_killed_is_cleared_up_after(builder: Builder) -> None:
    other = builder.begin(SLOW, ref=f"{REF}0")
    builder.wait_for_output(other, "tick 1")
    call = builder.begin(SLOW.replace("tick", "tack"))
    builder.wait_for_output(call, "tack 2")
    mine = [
        pid
        for pid, arguments in builder.user.processes().items()
        if "images.builder" in arguments and f"{REF} " in arguments
    ]
    assert len(mine) == 1
    os.kill(mine[0], signal.SIGKILL)
    assert call.answer(20).code == "unavailable"
    assert any("tack $i" in arguments for arguments in builder.user.processes().values()), "Podman goes on"
    assert builder.run("RUN echo after").data
    assert not any("tack $i" in arguments for arguments in builder.user.processes().values())
    builder.wait_for_output(other, "tick 9")
    other.cancel()
    assert other.answer(40).code == "cancelled"


def services(user: User) -> set[int]:
    """The Podmans that serve agents."""
    return {pid for pid, arguments in user.processes().items() if "system service" in arguments}


# --- what it survives -------------------------------------------------------------------


def test_a_build_outlives_its_caller(builder: Builder) -> None:
    call = builder.begin("RUN sleep 1; echo done")
    builder.wait_for_output(call, "STEP 2/2")
    call.hang_up()
    wait_for(lambda: builder.agent.call("image.inspect", image=REF).data["present"])


def test_a_build_outlives_the_agent_and_a_second_waits_for_it(builder: Builder, user: User) -> None:
    before = services(user)
    first = user.start_agent()
    lines = ("RUN sleep 2; date +%N > /when",)
    call = builder.begin(*lines, agent=first)
    builder.wait_for_output(call, "STEP 2/2")
    first.kill()
    for pid in services(user) - before:
        os.kill(pid, signal.SIGTERM)  # the killed agent's Podman would wait for its idle end
    second = builder.run(*lines)
    assert second.progress[0]["text"] == "waiting for another build of this image"
    assert second.data["image_id"] and not lines_of(second), "it was built once"
    third = builder.run("RUN echo other")
    assert third.data["image_id"] != second.data["image_id"]


def test_a_waiting_build_of_other_sources_is_made(builder: Builder) -> None:
    first = builder.begin("RUN sleep 1; echo one")
    builder.wait_for_output(first, "STEP 2/2")
    second = builder.begin("RUN echo two")
    third = builder.begin("RUN echo three")
    time.sleep(0.3)
    third.cancel()
    assert third.answer(10).code == "cancelled"
    answer = second.answer(60)
    assert answer.progress[0]["text"] == "waiting for another build of this image"
    assert first.answer(5).data["image_id"] != answer.data["image_id"]
    assert "two" in lines_of(answer)


def test_what_was_built_before_the_waiting_is_built_again(builder: Builder, user: User) -> None:
    """A build holds its lock until all is cleaned up, after its answer; the base may have changed since."""
    name = f"build-{zlib.crc32(REF.encode()):08x}"
    assert builder.run("RUN echo one").data["image_id"]
    wait_for(lambda: not builder.running())
    with open(f"/proc/{builder.agent.pid()}/root{user.runtime}/svc/locks/{name}", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = builder.begin("RUN echo one")
        message = protocol.receive(second.sock).message
        assert message["progress"]["text"] == "waiting for another build of this image"
    assert any(line.startswith("STEP 2/2") for line in lines_of(second.answer(60)))


def test_a_store_of_subordinate_files(builder: Builder, user: User) -> None:
    """Files that only root of the user's namespace may remove."""
    line = (
        "RUN --mount=type=cache,target=/cache,uid=1234,mode=0700 touch /cache/x; chown -R 1234 /cache; exit 4"
    )
    assert builder.run(line).code == "build"


def test_the_directory_is_on_disk(builder: Builder, user: User) -> None:
    call = builder.begin(SLOW)
    builder.wait_for_output(call, "tick 1")
    (place,) = Path(user.home, ".cache/svc/builds").iterdir()
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    (temporary,) = place.glob("temporary-*")
    assert {entry.name for entry in place.iterdir()} == {
        "Dockerfile",
        "context",
        "programs",
        temporary.name,
    }
    call.cancel()
    assert call.answer(40).code == "cancelled"


def test_no_image_passes_for_a_part_of_a_build(
    builder: Builder, user: User, make: Callable[..., str]
) -> None:
    """What an image says of itself gets into the same records and environments as a build's own marks."""
    name = f"build-{zlib.crc32(REF.encode()):08x}"
    mimic, derived = (f"localhost/svc/tpl-other:{number:016x}" for number in (1, 2))
    label = f'"id=svc-build-{name},src=/dev/null"'
    lines = [f"ENV TMPDIR={user.home}/.cache/svc/builds/{name}/temporary", f"LABEL a='{label}'"]
    assert builder.run(*lines, ref=mimic).data
    workspace = make(image=mimic)
    other = Builder(builder.agent, user, mimic).begin(
        "RUN i=0; while [ $i -lt 60 ]; do echo tick $i; sleep 0.1; i=$((i+1)); done", ref=derived
    )
    builder.wait_for_output(other, "tick 1")
    assert builder.run("RUN true").data
    containers = builder.agent.call("ctr.list").data["containers"]
    assert [one["status"] for one in containers if one["id"] == workspace] == ["running"]
    assert other.answer(60).data
    assert builder.agent.call("ctr.remove", id=workspace).data == {}
    user.podman("rmi", derived, mimic)
