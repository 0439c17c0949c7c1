"""The build program: builds one image, outlives the agent, holds the lock that a repeated call waits for.

Argv: "build", the image, the four directories of Locks, and as JSON the base images, the
arguments and the paths of secrets (Sources); or "cleanup", "", and the directories. Descriptor 3
is the archive of sources. Reports go to standard output (background.py). On SIGTERM Podman is
terminated, if need be killed, and only the finished steps of the build stay.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import select
import signal
import sys
import time
import zlib
from collections.abc import Callable

from svc_helper.agent import user_files
from svc_helper.agent.calls import Failure
from svc_helper.agent.images import build_cache, build_cleanup, build_steps, sources
from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.background import report, report_failure
from svc_helper.agent.images.build_cleanup import BuildPaths
from svc_helper.agent.images.build_steps import Steps
from svc_helper.agent.images.store import Store
from svc_helper.agent.podman.causes import no_space
from svc_helper.agent.process import Process, start
from svc_helper.wire.quick_typing import IO, NamedTuple, NoReturn

SILENCE_S = 1800  # "a build may last; half an hour without a word may not"
TERM_S = 30
REPORT_S = 0.25
AUTHORITIES = "ca"  # the id of the host's private ones, for RUN --mount=type=secret
_PREFIX = "build-"
_DIGEST_MAX = 1024
_GOGC = "400"  # Podman, which starts itself a dozen times for a build, collects garbage less often
_PART = 64 * 1024
# Podman's build starts the first slirp4netns on its PATH, and has no option that blocks the host's loopback,
# where services trust every client.
_NETWORK = """\
#!/bin/sh
PATH=${PATH#*:}
exec slirp4netns --disable-host-loopback "$@"
"""


class Cancelled(Exception):
    """SIGTERM was received."""


def lock_name(image: str) -> str:
    """The name of an image's lock and build directory; images that share one wait for each other."""
    return f"{_PREFIX}{zlib.crc32(image.encode()):08x}"


class Sources(NamedTuple):
    """What a build has besides its archive: base images, values of ARGs, and the files of secrets by id."""

    bases: list[str]
    build_args: dict[str, str]
    secrets: dict[str, str]


def command(paths: BuildPaths, image: str, build_sources: Sources, *, cached: bool) -> list[str]:
    """The command line of Podman's build; `cached`: it reuses steps from the store."""
    argv = ["/usr/bin/env", "podman", "build"]
    argv += ["--pull=never", "--jobs=1", "--layers", "--force-rm"]
    argv += [
        f"--http-proxy={'true' if 'http_proxy' in os.environ else 'false'}"
    ]  # in the steps, not the image
    argv += [] if cached else ["--no-cache"]
    argv += ["--format=docker"]  # the only one with SHELL, HEALTHCHECK and ONBUILD
    argv += [f"--secret=id={paths.mark},src=/dev/null"]
    ca_file = os.environ.get("SSL_CERT_FILE", "")
    if os.access(ca_file, os.R_OK):
        argv += [f"--secret=id={AUTHORITIES},src={ca_file}"]
    argv += [f"--secret=id={name},src={path}" for name, path in sorted(build_sources.secrets.items())]
    argv += [f"--build-arg={name}={value}" for name, value in sorted(build_sources.build_args.items())]
    argv += [
        f"--iidfile={paths.image_id}",
        f"--tag={image}",
        f"--file={paths.directory}/{sources.DOCKERFILE}",
    ]
    return [*argv, f"{paths.directory}/{sources.CONTEXT}"]


class Locks:
    """One user's build locks and build directories."""

    def __init__(self, locks: str, builds: str, store: str, runtime: str) -> None:
        self.locks, self.builds, self.store, self.runtime = locks, builds, store, runtime

    def paths(self, name: str) -> BuildPaths:
        """The paths of the build with this lock."""
        return BuildPaths(f"{self.builds}/{name}", self.store, self.runtime)

    def open(self, name: str) -> int:
        """Open the lock file, without locking it."""
        return os.open(f"{self.locks}/{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def clean_up(self, own: str = "") -> None:
        """Remove what killed build programs left; `own` is a lock that this process holds."""
        try:
            names = [name for name in os.listdir(self.builds) if name.startswith(_PREFIX)]
        except OSError:
            return
        for name in names:
            lock = self.open(name)
            try:
                if name == own or try_lock(lock):
                    build_cleanup.clean_up(self.paths(name))
            finally:
                os.close(lock)


def try_lock(lock: int) -> bool:
    """Take the lock without waiting; False if another process holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def build(locks: Locks, image: str, build_sources: Sources) -> None:
    """Take the lock and build: reports "built", or "waited" if a running build of the same sources did it.

    The lock's file has the digest of these sources from the end of the build on, and the lock is held
    until all is cleaned up: who comes between the two builds again.
    """
    name = lock_name(image)
    with os.fdopen(3, "rb") as archive, os.fdopen(locks.open(name), "r+b", buffering=0) as lock:
        waited, before = not try_lock(lock.fileno()), b""
        if waited:
            before = os.pread(lock.fileno(), _DIGEST_MAX, 0)
            report({"progress": {"text": "waiting for another build of this image"}})
            fcntl.flock(lock, fcntl.LOCK_EX)
        archive.seek(0)
        digest = hashlib.file_digest(archive, "sha256").hexdigest().encode() + image.encode()
        digest += hashlib.sha256(json.dumps(build_sources).encode()).digest()
        if waited and os.pread(lock.fileno(), _DIGEST_MAX, 0) == digest != before:
            report({"done": "waited"})
            return
        lock.truncate(0)
        locks.clean_up(own=name)

        def done() -> None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it can no longer be cancelled
            os.pwrite(lock.fileno(), digest, 0)
            report({"done": "built"})

        _build_in(locks.paths(name), archive, image, build_sources, done)


def _build_in(
    paths: BuildPaths, archive: IO[bytes], image: str, build_sources: Sources, done: Callable[[], None]
) -> None:
    """Unpack, build, and say so; then remove all temporary files and processes, in any case."""
    try:
        paths = paths.new_run()
        os.makedirs(os.path.dirname(paths.directory), 0o700, exist_ok=True)
        os.makedirs(paths.temporary, 0o700)
        archive.seek(0)
        sources.unpack(archive, paths.directory)
        _write_program(paths, "slirp4netns", _NETWORK)
        _run_soundly(paths, image, build_sources)
        done()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the cleanup is not interrupted
        build_cleanup.clean_up(paths)


def _run_soundly(paths: BuildPaths, image: str, build_sources: Sources) -> None:
    """Run Podman, with cached steps only where all of them are from builds of this user."""
    store = Store(*paths.store.rsplit("/", 1))
    with open(f"{paths.directory}/{sources.DOCKERFILE}", "rb") as file:
        dockerfile = file.read()
    replaced = {image_store.find_named(store, image)}
    built = build_cache.built_here(paths.built_images)
    why = build_cache.obstacle(store, build_sources.bases, dockerfile, built)
    if why:
        _report_line(f"steps of earlier builds are not reused: {why}")
    _run(paths, image, build_sources, cached=not why)
    if not why and (why := build_cache.obstacle(store, build_sources.bases, dockerfile, built)):
        _report_line(f"building again, without steps of earlier builds: meanwhile {why}")
        replaced.add(_read_id(paths.image_id))
        _run(paths, image, build_sources, cached=False)
    new_id = _read_id(paths.image_id)
    if new_id:
        build_cache.record(paths.built_images, new_id)
        for image_id in replaced - {new_id, ""}:
            build_cleanup.remove_nameless(store, image_id)


def _report_line(text: str) -> None:
    report({"progress": {"lines": [text]}})


def _read_id(path: str) -> str:
    """The id of the built image, which Podman wrote there; empty if it did not."""
    try:
        image_id = user_files.read(path, 128).decode(errors="replace").strip().removeprefix("sha256:")
    except OSError:
        return ""
    return image_id if re.fullmatch("[0-9a-f]{64}", image_id) else ""


def _write_program(paths: BuildPaths, name: str, text: str) -> None:
    """Shadow the host's program of this name; raises Failure where it could not be executed."""
    os.makedirs(paths.programs, 0o700, exist_ok=True)
    path = f"{paths.programs}/{name}"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
    with os.fdopen(fd, "w") as file:
        file.write(text)
    if not os.access(path, os.X_OK):
        raise Failure("failed", "builds need a home directory from which programs may run (it is noexec)")


def _run(paths: BuildPaths, image: str, build_sources: Sources, *, cached: bool) -> None:
    """Run Podman and report its progress; raises Failure when it fails or stops writing."""
    output, write_end = os.pipe2(os.O_CLOEXEC)
    argv = command(paths, image, build_sources, cached=cached)
    path = f"{paths.programs}:{os.environ['PATH']}"
    environment = {**os.environ, "TMPDIR": paths.temporary, "PATH": path, "GOGC": _GOGC}
    try:
        process = start(argv, environment, {0: None, 1: write_end, 2: write_end})
    finally:
        os.close(write_end)
    steps = Steps()
    try:
        _relay(output, process, steps)
    except BaseException:  # Cancelled among them: Podman ends with its build program
        _stop(process)
        raise
    finally:
        os.close(output)
    if process.ended() != 0:
        raise build_steps.failure(steps)
    report({"progress": {"current": steps.total, "total": steps.total, "unit": "steps", "text": "built"}})


def _relay(output: int, process: Process, steps: Steps) -> None:
    """Report the output until Podman has exited and all of it is read."""
    poller = select.poll()
    poller.register(output, select.POLLIN)
    poller.register(process.pidfd, select.POLLIN)
    next_report = 0.0
    pending = False
    silent_at = time.monotonic() + SILENCE_S
    while True:
        now = time.monotonic()
        if pending and now >= next_report:
            _report_steps(steps)
            pending, next_report = False, now + REPORT_S
        ready = {fd for fd, _ in poller.poll(((next_report if pending else silent_at) - now) * 1000 + 1)}
        part = os.read(output, _PART) if output in ready else b""
        if part:
            steps.take(part)
            pending, silent_at = True, time.monotonic() + SILENCE_S
        elif ready:  # Podman exited, or every writer has closed the pipe
            break
        elif time.monotonic() >= silent_at:
            raise Failure("timeout", "the build wrote nothing for half an hour")
    steps.end()
    _report_steps(steps)
    process.wait(TERM_S)


def _report_steps(steps: Steps) -> None:
    for progress in steps.reports():
        report({"progress": progress})


def _stop(process: Process) -> None:
    """Terminate Podman, which stops between two writes to the store; kill it if it does not stop."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.ended() is not None:
            return
        os.kill(process.pid, number)
        if process.wait(TERM_S):
            process.ended()
            return


def _cancel(_number: int, _frame: object) -> NoReturn:
    raise Cancelled


def main() -> None:
    """Build, or clean up after killed build programs."""
    signal.signal(signal.SIGTERM, _cancel)
    os.umask(0o022)  # the unpacked files become part of the image
    action, image, *directories = sys.argv[1:7]
    locks = Locks(*directories)
    if action == "cleanup":
        locks.clean_up()
        return
    try:
        build(locks, image, Sources(**json.loads(sys.argv[7])))
    except Cancelled:
        report_failure(Failure("cancelled", "cancelled"))
    except Failure as failure:
        report_failure(failure)
    except OSError as error:
        full = no_space(str(error).lower())
        message = "there is no space left for the build" if full else "the host could not do it"
        report_failure(Failure("storage_full" if full else "failed", message, repr(error)))
