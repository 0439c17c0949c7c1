"""svc.service as a switch between versions needs it: stopped, started, and asked whether it is healthy."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time

from svc.admin.backup.package import run
from svc.client import transport
from svc.errors import HostRefused, SvcError

UNIT = "svc.service"
SYSTEMCTL = "/usr/bin/systemctl"
PROPERTIES = ("LoadState", "UnitFileState", "NeedDaemonReload", "ActiveState")
REPLY_S = 10
SYSTEMD = "/run/systemd/system"
STOPPED_BY_UPGRADE = "/run/svc-package/was-active"  # of the package's scripts: it ran, and should again
STOP_S = 120
HEALTHY_WITHIN_S = 60.0
EVERY_S = 0.5
ANSWER_S = 5.0
DOWN = ("inactive", "")


def properties(program: str) -> dict[str, str]:
    """The unit's properties, by systemd; none where it does not respond."""
    argv = [program, "show", f"--property={','.join(PROPERTIES)}", UNIT]
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    try:
        reply = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=REPLY_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(line.split("=", 1) for line in reply.stdout.splitlines() if "=" in line)


def is_running() -> bool:
    """Whether systemd runs the service or should: a failed one, or one that a failed upgrade stopped."""
    if not is_managed():
        return False
    return properties(SYSTEMCTL).get("ActiveState", "") not in DOWN or os.path.exists(STOPPED_BY_UPGRADE)


def forget_upgrade() -> None:
    """The upgrade that has stopped the service, and failed, is over: the next one looks for itself."""
    with contextlib.suppress(OSError):
        os.unlink(STOPPED_BY_UPGRADE)


def is_managed() -> bool:
    """Whether systemd has the unit."""
    return os.path.isdir(SYSTEMD) and properties(SYSTEMCTL).get("LoadState") == "loaded"


def stop() -> None:
    """Stop the service and wait for its end; raises HostRefused."""
    if is_managed():
        run([SYSTEMCTL, "stop", UNIT], STOP_S)


def start() -> None:
    """Begin to start the service, also where systemd has given it up; raises HostRefused."""
    run([SYSTEMCTL, "daemon-reload"], STOP_S)  # its file may be the other version's
    run([SYSTEMCTL, "reset-failed", UNIT], STOP_S)
    run([SYSTEMCTL, "start", "--no-block", UNIT], STOP_S)


def require_healthy(socket: str) -> None:
    """Ask the service for its health until it is well; raises HostRefused with what it said last."""
    deadline = time.monotonic() + HEALTHY_WITHIN_S
    while True:
        said = health(socket)
        if not said:
            return
        if time.monotonic() > deadline:
            raise HostRefused(f"the service was not healthy within {HEALTHY_WITHIN_S:.0f} s: {said}")
        time.sleep(EVERY_S)


def health(socket: str) -> str:
    """What is wrong with the service, in its own words; empty when it is well."""
    try:
        untrusted = transport.request("GET", "/api/health", wait_s=ANSWER_S, socket=socket).json()
    except SvcError as error:
        return error.message
    if untrusted.get("status") == "ok":
        return ""
    return ", ".join(f"{key} {value}" for key, value in untrusted.items())[:200]
