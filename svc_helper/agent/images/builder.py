"""One build, as a process of its own: it outlives the agent, and holds the lock that a repetition waits for.

Argv: "build", the image, where things are, and the images that it comes from;
or "clear" and where things are.
Descriptor 3 is the archive of sources. Standard output gets one JSON line per
report and a last one, as the puller's. TERM ends it: Podman is asked to end,
then killed, and nothing of the build stays but the steps that it had finished.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import select
import signal
import sys
import time
import zlib
from typing import IO, Any, NoReturn

from svc_helper.agent.calls import Failure
from svc_helper.agent.images import build_cache, build_cleanup, sources
from svc_helper.agent.images.build_cleanup import Place
from svc_helper.agent.images.build_steps import BuildFailed, Steps
from svc_helper.agent.images.store import Store
from svc_helper.agent.podman.podman import no_space
from svc_helper.agent.process import Process

SILENCE_S = 1800  # "a build may last; half an hour without a word may not"
TERM_S = 30
REPORT_S = 0.25
_PREFIX = "build-"
_PART = 64 * 1024
# Podman's build starts the first one on its PATH, and has no option to keep it from the host's own loopback,
# where services trust whoever reaches them.
_NETWORK = """\
#!/bin/sh
PATH=${PATH#*:}
exec slirp4netns --disable-host-loopback "$@"
"""


class Cancelled(Exception):
    """TERM came."""


def lock_name(image: str) -> str:
    """The lock of an image, and its build's directory; images that share one merely wait for each other."""
    return f"{_PREFIX}{zlib.crc32(image.encode()):08x}"


def command(place: Place, image: str, *, cached: bool) -> list[str]:
    """The command line of Podman's build; `cached`: it goes on from steps that are in the store."""
    argv = ["/usr/bin/env", "podman", "build"]
    argv += ["--pull=never", "--jobs=1", "--layers", "--force-rm", "--http-proxy=false"]
    argv += [] if cached else ["--no-cache"]
    argv += ["--format=docker"]  # the only one with SHELL, HEALTHCHECK and ONBUILD
    argv += [f"--secret=id={place.mark},src=/dev/null"]
    argv += [f"--tag={image}", f"--file={place.directory}/{sources.DOCKERFILE}"]
    return [*argv, f"{place.directory}/{sources.CONTEXT}"]


def say(message: dict[str, Any]) -> None:
    """One line to whoever started the build, who may have gone."""
    rest = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    try:
        while rest:
            rest = rest[os.write(1, rest) :]
    except OSError:
        pass


class Locks:
    """The builds' locks and directories of one user."""

    def __init__(self, locks: str, builds: str, store: str, runtime: str) -> None:
        self.locks, self.builds, self.store, self.runtime = locks, builds, store, runtime

    def place(self, name: str) -> Place:
        """Where the build with this lock works."""
        return Place(f"{self.builds}/{name}", self.store, self.runtime)

    def open(self, name: str) -> int:
        """The lock's file, not locked yet."""
        return os.open(f"{self.locks}/{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def clear(self, own: str = "") -> None:
        """Remove what builds have left whose builder was killed; `own` is a lock that is ours already."""
        try:
            names = [name for name in os.listdir(self.builds) if name.startswith(_PREFIX)]
        except OSError:
            return
        for name in names:
            lock = self.open(name)
            try:
                if name == own or is_taken(lock):
                    build_cleanup.clear(self.place(name))
            finally:
                os.close(lock)


def is_taken(lock: int) -> bool:
    """Whether the lock is ours now, since nobody else had it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def build(locks: Locks, image: str, bases: list[str]) -> str:
    """Hold the lock and build: "built", or "waited" when another build of these sources did it meanwhile."""
    name = lock_name(image)
    with os.fdopen(3, "rb") as archive, os.fdopen(locks.open(name), "r+b", buffering=0) as lock:
        waited = not is_taken(lock.fileno())
        if waited:
            say({"progress": {"text": "waiting for another build of this image"}})
            fcntl.flock(lock, fcntl.LOCK_EX)
        archive.seek(0)
        digest = hashlib.file_digest(archive, "sha256").hexdigest().encode() + image.encode()
        if waited and lock.read(1024) == digest:
            return "waited"
        lock.truncate(0)
        locks.clear(own=name)
        _build_in(locks.place(name), archive, image, bases)
        lock.seek(0)
        lock.write(digest)
    return "built"


def _build_in(place: Place, archive: IO[bytes], image: str, bases: list[str]) -> None:
    """Unpack, build and leave nothing behind, however it goes."""
    try:
        place = place.begun()
        os.makedirs(os.path.dirname(place.directory), 0o700, exist_ok=True)
        os.makedirs(place.temporary, 0o700)
        archive.seek(0)
        sources.unpack(archive, place.directory)
        _write_program(place, "slirp4netns", _NETWORK)
        _run_soundly(place, image, bases)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing interrupts the clearing
        build_cleanup.clear(place)


def _run_soundly(place: Place, image: str, bases: list[str]) -> None:
    """Run Podman, which takes steps from the store only where these cannot be a stranger's."""
    store = Store(*place.store.rsplit("/", 1))
    with open(f"{place.directory}/{sources.DOCKERFILE}", "rb") as file:
        dockerfile = file.read()
    cached = build_cache.is_sound(store, bases, dockerfile)
    _run(place, image, cached=cached)
    if cached and not build_cache.is_sound(store, bases, dockerfile):  # something was pulled meanwhile
        _run(place, image, cached=False)


def _write_program(place: Place, name: str, text: str) -> None:
    """Put a program before the host's of the same name; Failure where it would be passed over."""
    os.makedirs(place.programs, 0o700, exist_ok=True)
    path = f"{place.programs}/{name}"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
    with os.fdopen(fd, "w") as file:
        file.write(text)
    if not os.access(path, os.X_OK):
        raise Failure("failed", "builds need a home directory from which programs may run (it is noexec)")


def _run(place: Place, image: str, *, cached: bool) -> None:
    """Run Podman and report what it says; Failure when it fails or falls silent."""
    said, says = os.pipe2(os.O_CLOEXEC)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, says, 1),
        (os.POSIX_SPAWN_DUP2, says, 2),
    ]
    argv = command(place, image, cached=cached)
    try:
        path = f"{place.programs}:{os.environ['PATH']}"
        environment = {**os.environ, "TMPDIR": place.temporary, "PATH": path}
        pid = os.posix_spawn(argv[0], argv, environment, file_actions=actions)
    finally:
        os.close(says)
    process = Process(pid)
    steps = Steps()
    try:
        _listen(said, process, steps)
    except BaseException:  # a cancel among them: Podman ends with its builder
        _end(process)
        raise
    finally:
        os.close(said)
    if process.ended() != 0:
        raise BuildFailed(steps)
    say({"progress": {"current": steps.total, "total": steps.total, "unit": "steps", "text": "built"}})


def _listen(said: int, process: Process, steps: Steps) -> None:
    """Pass the output on until Podman has ended and everything is read."""
    poller = select.poll()
    poller.register(said, select.POLLIN)
    poller.register(process.pidfd, select.POLLIN)
    next_report = 0.0
    unsaid = False
    silent_at = time.monotonic() + SILENCE_S
    while True:
        now = time.monotonic()
        if unsaid and now >= next_report:
            for progress in steps.reports():
                say({"progress": progress})
            unsaid, next_report = False, now + REPORT_S
        ready = {fd for fd, _ in poller.poll(((next_report if unsaid else silent_at) - now) * 1000 + 1)}
        part = os.read(said, _PART) if said in ready else b""
        if part:
            steps.take(part)
            unsaid, silent_at = True, time.monotonic() + SILENCE_S
        elif ready:  # ended, or nobody is left who could write
            break
        elif time.monotonic() >= silent_at:
            raise Failure("timeout", "the build said nothing for half an hour")
    steps.end()
    for progress in steps.reports():
        say({"progress": progress})
    process.wait(TERM_S)


def _end(process: Process) -> None:
    """Ask Podman to end, which it does between two writes to the store; kill it when it does not."""
    for number, seconds in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, TERM_S)):
        if process.ended() is not None:
            return
        os.kill(process.pid, number)
        if process.wait(seconds):
            process.ended()
            return


def _cancel(_number: int, _frame: object) -> NoReturn:
    raise Cancelled


def main() -> None:
    """Build, or clear up after builders that were killed."""
    signal.signal(signal.SIGTERM, _cancel)
    os.umask(0o022)  # what is unpacked becomes part of the image
    work, image, *places = sys.argv[1:7]
    locks = Locks(*places)
    if work == "clear":
        locks.clear()
        return
    try:
        say({"done": build(locks, image, json.loads(sys.argv[7]))})
    except Cancelled:
        say({"code": "cancelled", "message": "cancelled"})
    except Failure as failure:
        words = failure.words if isinstance(failure, BuildFailed) else ""
        say({"code": failure.code, "message": failure.message, "words": words})
    except OSError as error:
        full = no_space(str(error).lower())
        message = "there is no space left for the build" if full else "the host could not do it"
        say({"code": "storage_full" if full else "failed", "message": message, "words": repr(error)})
