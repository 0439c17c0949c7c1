"""Secrets of builds: files in the user's runtime directory, kept from the request to the end of the build.

`RUN --mount=type=secret,id=NAME` reads them. They are in memory (tmpfs), readable for this user alone,
and in no argument, variable or log: everything else refers to them by their ids. While such a step
runs, Podman has a copy in the working container's directory of the user's store, which goes with the
container.
"""

from __future__ import annotations

import os
import shutil
import stat
from _signal import SIGTERM, pidfd_send_signal
from contextlib import suppress

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.home import Home
from svc_helper.agent.images import killed_builds
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.quick_typing import Any

_BUILDER = b"svc_helper.agent.images.builder"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def keep(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Keep the secrets of one build, or remove them if the list is empty; either may be repeated.

    The values are concatenated in the call's file; the list has their ids and sizes. With them the
    copies go that killed builds have left; raises Failure while they are not gone.
    """
    directory = _directory(podman.home, args["operation"])
    fd = call.take_fd()
    try:
        values = _values(fd, [one["size"] for one in args["sizes"]])
    finally:
        os.close(fd)
    if not values:
        _end_builds(call, directory)
    _forget(directory)
    if not values:
        killed_builds.remove(podman, call)
        return {}
    os.makedirs(os.path.dirname(directory), 0o700, exist_ok=True)
    os.mkdir(directory, 0o700)
    try:
        for one, value in zip(args["sizes"], values, strict=True):
            with open(os.open(f"{directory}/{one['id']}", _CREATE, 0o600), "wb") as file:
                file.write(value)
    except OSError:
        _forget(directory)
        raise
    return {}


def paths(home: Home, operation: str, ids: list[str]) -> dict[str, str]:
    """The paths of a build's secrets by id; raises Failure if one is gone."""
    found = {name: f"{_directory(home, operation)}/{name}" for name in ids}
    for name, path in found.items():
        if not os.path.isfile(path):  # for instance, the host was rebooted meanwhile
            raise Failure("build", f"the secret {name} of this build is no longer there: build it again")
    return found


def _directory(home: Home, operation: str) -> str:
    return f"{home.own}/secrets/{operation}"


def _values(fd: int, sizes: list[int]) -> list[bytes]:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_size != sum(sizes):
        raise Failure("protocol", "not a file of the sizes that the call names")
    content, at, values = os.pread(fd, sum(sizes), 0), 0, []
    for size in sizes:
        values.append(content[at : at + size])
        at += size
    return values


def _end_builds(call: Call, directory: str) -> None:
    """End build programs that may still read them: left by a killed agent, for a build cancelled since.

    A build program that is already cleaning up continues.
    """
    sign = os.fsencode(f'"{directory}/')
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):  # another user's process, or one that has ended
            pidfd = os.pidfd_open(int(name))  # first, so that the signal goes to the process that was read
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    arguments = file.read().split(b"\0")
                if _BUILDER in b" ".join(arguments[:6]) and any(sign in one for one in arguments):
                    pidfd_send_signal(pidfd, SIGTERM)
                    call.log("a build program that has named them is told to end")
            finally:
                os.close(pidfd)


def _forget(directory: str) -> None:
    """Remove the files; raises OSError if they cannot be removed."""
    with suppress(FileNotFoundError):
        shutil.rmtree(directory)
