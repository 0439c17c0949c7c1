"""Doctor checks of the unit: whether systemd starts it as installed, and what it takes from the helper."""

from __future__ import annotations

import os
from collections.abc import Iterator

from svc.admin.checks.confinement import status_of
from svc.admin.findings import Finding, Host, fail, ok, warn
from svc.admin.release.service_unit import SYSTEMCTL, UNIT, properties

RELOAD = "sudo systemctl daemon-reload"
REVERT = "sudo systemctl revert svc && sudo systemctl restart svc"


def unit(host: Host) -> Iterator[Finding]:
    """Whether svc.service is loaded as its file says, and starts at boot."""
    if not host.systemd or not os.path.exists(host.at(SYSTEMCTL)):
        return
    found = properties(host.at(SYSTEMCTL))
    if found.get("LoadState") != "loaded":
        state = found.get("LoadState", "unknown")
        yield warn("unit", f"{UNIT} is {state} to systemd", "packaging/install   (from the sources)")
        return
    sound = True
    if found.get("NeedDaemonReload") == "yes":
        sound = False
        yield warn("unit_changed", f"the file of {UNIT} was changed since it was loaded", RELOAD)
    if found.get("UnitFileState") != "enabled":
        sound = False
        yield warn("unit_disabled", f"{UNIT} does not start at boot", "sudo systemctl enable svc")
    if found.get("ActiveState") == "failed":
        sound = False
        yield fail("unit_failed", f"{UNIT} has failed", "journalctl -u svc -n 50; sudo systemctl restart svc")
    if sound:
        yield ok("unit", f"{UNIT} is loaded and starts at boot")


def helper_limits(host: Host) -> Iterator[Finding]:
    """What a drop-in of the unit may have taken from the helper, whose children run users' Podman."""
    if host.server is None or os.geteuid() != 0:
        return
    faults = []
    if status_of(host.server).get("NoNewPrivs") == "1":
        faults.append("has no_new_privs, so that newuidmap gives users no ids (NoNewPrivileges=)")
    if host.systemd and namespace_of(host.server) != namespace_of(1):
        faults.append("has a mount namespace of its own, which users' Podman would keep (PrivateTmp=, ...)")
    yield from (fail("helper_limits", f"the server (pid {host.server}) {fault}", REVERT) for fault in faults)
    if not faults:
        yield ok("helper_limits", "the unit takes nothing from users' Podman")


def namespace_of(pid: int) -> str:
    """The mount namespace of a process, as root."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""
