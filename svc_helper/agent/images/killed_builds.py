"""What builds have left whose program was killed, by the end of the host for instance: containers and files.

The next build of the user removes it. With secrets that is too late: a working container has a copy of
them on the disk, and after a reboot such a build does not begin again. So it is removed with the secrets.
"""

from __future__ import annotations

import fcntl
import os

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.home import Home
from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.background import Relay
from svc_helper.agent.images.store import Store
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import Process

STOP_TIMEOUT_S = 60  # the builder gives Podman half a minute after SIGTERM, kills it and cleans up
_PREFIX = "build-"  # as builder.py names the directory and the lock of a build
_REPLY_S = 3  # to reply in, of a call's time


def remove(podman: Podman, call: Call) -> None:
    """Remove what killed builds have left; raises Failure if that takes longer than the call, and goes on."""
    if not _any(podman.home):
        return
    call.log("what a killed build has left is removed")
    podman.scope.wait()
    process = _cleanup(podman, image_store.find(podman, call))
    if _reap(process, max(0.0, call.left() - _REPLY_S)):
        return
    call.afterwards.append(lambda: _reap(process, STOP_TIMEOUT_S))
    raise Failure("unavailable", "what a killed build has left is still being removed")


def remove_all(podman: Podman, store: Store) -> None:
    """Remove what killed builds have left, within a minute."""
    _reap(_cleanup(podman, store), STOP_TIMEOUT_S)


def directories(podman: Podman, store: Store) -> tuple[str, ...]:
    """The directories that the build program is told of."""
    home = podman.home
    return f"{home.own}/locks", home.builds, f"{store.root}/{store.driver}", home.podman_runtime


def _cleanup(podman: Podman, store: Store) -> Process:
    with open(os.devnull, "rb") as nothing:
        relay = Relay(podman, "builder", ("cleanup", "", *directories(podman, store)), "-", nothing.fileno())
    os.close(relay.output)
    return relay.process


def _reap(process: Process, timeout_s: float) -> bool:
    """Whether it has ended within that time."""
    if not process.wait(timeout_s):
        return False
    process.ended()
    return True


def _any(home: Home) -> bool:
    """Whether there is the directory of a build that no program works on."""
    try:
        names = [name for name in os.listdir(home.builds) if name.startswith(_PREFIX)]
    except OSError:
        return False
    return any(_is_free(f"{home.own}/locks/{name}") for name in names)


def _is_free(lock: str) -> bool:
    """Whether nobody has locked the file, also when it is gone with the former runtime directory."""
    try:
        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True
