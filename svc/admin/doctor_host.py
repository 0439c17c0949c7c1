"""Doctor checks of rootless Podman's prerequisites: programs, kernel, id ranges, each user's set-up."""

from __future__ import annotations

import grp
import os
import pwd
import re
import shutil
import stat
import tomllib
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from svc.admin.findings import Finding, Host, fail, lines_of, linux_account, ok, warn
from svc.db.owner import Owner, run_as
from svc.errors import SvcError

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SUBIDS = 65536  # the user and group ids that a container image may use
SUBID_FIRST = 100000
CONTROLLERS = ("cpu", "memory", "pids")
USER_FILE_MAX = 64 * 1024
USER_STEP_S = 5  # a home directory may be on a file server that does not respond
PACKAGES = {
    "podman": "podman",
    "crun": "crun",
    "newuidmap": "uidmap",
    "newgidmap": "uidmap",
    "skopeo": "skopeo",
    "slirp4netns": "slirp4netns",
    "setpriv": "util-linux",
}


class Range(NamedTuple):
    """A line of /etc/subuid or /etc/subgid."""

    start: int
    end: int  # one past the last
    owner: str


def podman_way(host: Host) -> Iterator[Finding]:
    """How users' containers run, by the helper's criterion."""
    if host.systemd:
        yield ok("podman_way", "systemd: containers live in each user's own slice and manager")
    else:
        yield ok(
            "podman_way", "cgroupfs: no systemd here; resource limits need controllers delegated by hand"
        )


def programs(_host: Host) -> Iterator[Finding]:
    """Podman and the programs that it runs."""
    for name, package in PACKAGES.items():
        path = shutil.which(name, path=PATH)
        if path is None:
            level = warn if name == "crun" else fail
            yield level(name, f"{name} is not installed", f"sudo apt-get install {package}")
        elif name in ("newuidmap", "newgidmap") and not _raises_rights(path):
            yield fail(
                name, f"{path} is not set-uid root and has no file capabilities", f"sudo chmod 4755 {path}"
            )
        else:
            yield ok(name, path)


def _raises_rights(path: str) -> bool:
    status = os.stat(path)
    if status.st_uid == 0 and status.st_mode & stat.S_ISUID:
        return True
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def cgroups(host: Host) -> Iterator[Finding]:
    """The unified hierarchy, and the controllers that resource limits need."""
    root = host.seen("/sys/fs/cgroup")
    path = os.path.join(root, "cgroup.controllers")
    if not os.path.exists(path):
        yield fail(
            "cgroup2",
            "/sys/fs/cgroup is not the unified hierarchy (cgroup2); containers cannot start",
            "boot with systemd.unified_cgroup_hierarchy=1",
        )
        return
    yield ok("cgroup2", "/sys/fs/cgroup is the unified hierarchy")
    present = set(" ".join(lines_of(path)).split())
    missing = [name for name in CONTROLLERS if name not in present]
    if missing:
        yield warn(
            "controllers",
            f"no controller for {', '.join(missing)}: {_without_limits(host)}",
            "boot with cgroup_no_v1=all",
        )
        return
    yield ok("controllers", f"{', '.join(CONTROLLERS)} are available")
    if host.systemd:
        yield from _delegation(host)


def _without_limits(host: Host) -> str:
    """The effect on workspaces that have such limits."""
    policy = host.settings.missing_limits
    if policy == "refuse" or (policy == "auto" and host.systemd):
        return "workspaces with such limits do not start (SVC_MISSING_LIMITS)"
    return "such limits of workspaces have no effect"


def _delegation(host: Host) -> Iterator[Finding]:
    for user in host.enrolled:
        manager = (
            f"/sys/fs/cgroup/user.slice/user-{user.uid}.slice/user@{user.uid}.service/cgroup.controllers"
        )
        lines = lines_of(host.seen(manager))
        missing = [name for name in CONTROLLERS if name not in " ".join(lines).split()]
        if lines and missing:
            controllers = ", ".join(missing)
            yield warn(
                "delegation",
                f"no delegation of {controllers} to the manager of {user.name}: {_without_limits(host)}",
                "sudo systemctl edit user@.service: [Service] Delegate=cpu cpuset io memory pids",
            )


def devices(host: Host) -> Iterator[Finding]:
    """The two devices that every user's Podman opens."""
    for name, level, why in (
        ("net/tun", fail, "no network in containers"),
        ("fuse", warn, "no fuse-overlayfs"),
    ):
        path = host.seen(f"/dev/{name}")
        code = f"dev_{name.replace('/', '_')}"
        try:
            status = os.stat(path)
        except OSError:
            yield level(code, f"/dev/{name} is missing: {why}", f"sudo modprobe {name.rpartition('/')[2]}")
            continue
        if not stat.S_ISCHR(status.st_mode) or status.st_mode & 0o006 != 0o006:
            yield level(
                code, f"/dev/{name} is not accessible to users: {why}", f"sudo chmod 0666 /dev/{name}"
            )
        else:
            yield ok(code, f"/dev/{name} is accessible to users")


# --- subordinate ids ------------------------------------------------------------------


def subids(host: Host) -> Iterator[Finding]:
    """Ranges of every enrolled user, without overlap among them or with real accounts."""
    for kind in ("uid", "gid"):
        path = host.at(f"/etc/sub{kind}")
        ranges = sorted(read_ranges(path))
        yield from _missing(host, kind, ranges)
        yield from _overlaps(path, kind, ranges)


def read_ranges(path: str) -> Iterator[Range]:
    """The valid lines of the file."""
    for line in lines_of(path):
        match = re.fullmatch(r"([^:\s]+):([0-9]{1,10}):([0-9]{1,10})", line.strip())
        if match:
            yield Range(int(match[2]), int(match[2]) + int(match[3]), match[1])


def _missing(host: Host, kind: str, ranges: list[Range]) -> Iterator[Finding]:
    free = max([SUBID_FIRST, *(entry.end for entry in ranges)])
    short = []
    for user in host.enrolled:
        count = sum(entry.end - entry.start for entry in ranges if entry.owner in (user.name, str(user.uid)))
        if count < SUBIDS:
            short.append(user.name)
            yield fail(
                f"sub{kind}",
                f"{user.name} has {count} subordinate {kind}s of {SUBIDS}",
                f"sudo usermod --add-sub{kind}s {free}-{free + SUBIDS - 1} {user.name}",
            )
            free += SUBIDS
    if not short:
        yield ok(f"sub{kind}", f"every enrolled user has {SUBIDS} subordinate {kind}s")


def _overlaps(path: str, kind: str, ranges: list[Range]) -> Iterator[Finding]:
    """Overlaps; sorted by start, a range can only overlap the one before it that ends last."""
    widest: Range | None = None
    real = sorted(
        {entry.pw_uid for entry in pwd.getpwall()} if kind == "uid" else {g.gr_gid for g in grp.getgrall()}
    )
    for entry in ranges:
        if widest and entry.start < widest.end and entry.owner != widest.owner:
            yield fail(
                f"sub{kind}_overlap",
                f"{widest.owner} and {entry.owner} both have {kind}s from {entry.start} in {path}",
                f"sudo usermod --del-sub{kind}s {entry.start}-{entry.end - 1} {entry.owner}"
                "   (then svc admin create-user gives another range)",
            )
        place = bisect_left(real, entry.start)
        if place < len(real) and real[place] < entry.end:
            yield fail(
                f"sub{kind}_overlap",
                f"the range of {entry.owner} in {path} contains {kind} {real[place]} of a real account",
                f"sudo usermod --del-sub{kind}s {entry.start}-{entry.end - 1} {entry.owner}",
            )
        if widest is None or entry.end > widest.end:
            widest = entry


# --- each user's own set-up -------------------------------------------------------------


def storage(host: Host) -> Iterator[Finding]:
    """The storage driver of each enrolled user, read by a process that has become that user."""
    without_overlay = 0
    for user in host.enrolled:
        entry = linux_account(user.name)  # if missing, reported by the check of the enrolment
        if entry is None or os.geteuid() not in (0, entry.pw_uid):
            continue
        try:
            driver = run_as(Owner(entry.pw_uid, entry.pw_gid), partial(_driver, entry.pw_dir), USER_STEP_S)
        except SvcError as error:
            yield warn(
                "storage", f"the home of {user.name} cannot be read: {error.message}", f"ls {entry.pw_dir}"
            )
            continue
        if driver != "overlay":
            without_overlay += 1
            yield warn(
                "storage",
                f"the storage driver of {user.name} is {str(driver)[:20]}, which copies every layer",
                f"sudo svc admin create-user {user.name}   (while the user has no images yet)",
            )
    if not without_overlay:
        yield ok("storage", "every enrolled user has the overlay driver")


def _driver(home: str) -> str:
    """As the user: the driver in the user's storage.conf; "not set" leaves the choice to Podman."""
    try:
        descriptor = os.open(
            os.path.join(home, ".config/containers/storage.conf"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )
        try:
            content = os.read(descriptor, USER_FILE_MAX)
        finally:
            os.close(descriptor)
        return str(tomllib.loads(content.decode()).get("storage", {}).get("driver", "not set"))
    except (OSError, ValueError, AttributeError, RecursionError):
        return "not set"


def lingering(host: Host) -> Iterator[Finding]:
    """Whether users' managers run without a login."""
    if not host.systemd:
        return
    without = [
        user for user in host.enrolled if not os.path.exists(host.at(f"/var/lib/systemd/linger/{user.name}"))
    ]
    for user in without:
        yield fail(
            "lingering",
            f"lingering is off for {user.name}: containers end at logout",
            f"sudo loginctl enable-linger {user.name}",
        )
    if not without:
        yield ok("lingering", "lingering is on for every enrolled user")


def docker_group(host: Host) -> Iterator[Finding]:
    """Enrolled members of the group docker, whose members can become root."""
    try:
        members = set(grp.getgrnam("docker").gr_mem)
    except KeyError:
        return
    for user in host.enrolled:
        if user.name not in members:
            continue
        yield warn(
            "docker_group",
            f"{user.name} is in the group docker, whose members can become root",
            f"sudo gpasswd -d {user.name} docker",
        )


CHECKS = (podman_way, programs, cgroups, devices, subids, storage, lingering, docker_group)
