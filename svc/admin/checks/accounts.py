"""Doctor checks of each enrolled account: its Linux account, its manager, its home, its Podman's storage."""

from __future__ import annotations

import grp
import os
import re
import shlex
import stat
import time
import tomllib
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from svc.admin.checks.prerequisites import CONTROLLERS, without_limits
from svc.admin.command import for_database
from svc.admin.findings import Enrolled, Finding, Host, fail, lines_of, linux_account, ok, warn
from svc.errors import SvcError
from svc.host.owner import Owner, run_as

USER_FILE_MAX = 64 * 1024
USER_STEP_S = 5  # a home directory may be on a file server that does not respond
USERS_S = 120  # for all of them
STORAGE = ".local/share/containers/storage"  # of Podman, below the home
RECORDS = (f"{STORAGE}/libpod/bolt_state.db", f"{STORAGE}/db.sql")  # the second of Podman 5
RECORDS_MAX = 64 * 1024 * 1024
RUN_DIRECTORY = re.compile(rb"/run/user/([0-9]{1,10})/(?:containers|libpod)")
PRIVATE_TMP = b"/systemd-private-"
REMOVED = "/userdata/.containerenv//deleted "  # as the kernel names what a container's mount came from
DELEGATE = (
    "printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | sudo install -D -m 0644 /dev/stdin"
    " /etc/systemd/system/user@.service.d/svc.conf && sudo systemctl daemon-reload"
)


def enrolment(host: Host) -> Iterator[Finding]:
    """Whether each enrolled name still has the uid that was enrolled."""
    for name, uid, _ in host.enrolled:
        account, remedy = linux_account(name), for_database(f"create-user {name}", host.settings)
        if account is None:
            gone = f"the Linux account {name} is gone; its service account is still there"
            yield warn("enrolment", gone, for_database(f"delete-user {name}", host.settings))
        elif account.pw_uid != uid:
            now = f"{name} was enrolled as uid {uid} and is now uid {account.pw_uid}"
            yield fail("enrolment", now, remedy)
    number = len(host.enrolled)
    if host.knows_enrolled:
        yield ok("enrolment", "1 account is enrolled" if number == 1 else f"{number} accounts are enrolled")


def managers(host: Host) -> Iterator[Finding]:
    """Whether each user's systemd manager runs, in which that user's containers live."""
    if not host.systemd:
        return
    without = [user for user in host.present if not os.path.isdir(host.seen(manager_of(user.uid)))]
    for user in without:
        yield warn(
            "user_manager",
            f"the manager of {user.name} does not run: containers would live in the service's own cgroup",
            f"sudo systemctl start user@{user.uid}.service",
        )
    if not without:
        yield ok("user_manager", "the manager of every enrolled user runs")


def manager_of(uid: int) -> str:
    """The cgroup of a user's manager."""
    return f"/sys/fs/cgroup/user.slice/user-{uid}.slice/user@{uid}.service"


def delegation(host: Host) -> Iterator[Finding]:
    """The controllers that each user's manager may give to containers."""
    if not host.systemd:
        return
    for user in host.present:
        lines = lines_of(host.seen(f"{manager_of(user.uid)}/cgroup.controllers"))
        missing = [name for name in CONTROLLERS if name not in " ".join(lines).split()]
        if lines and missing:
            controllers = ", ".join(missing)
            yield warn(
                "delegation",
                f"no delegation of {controllers} to the manager of {user.name}: {without_limits(host)}",
                DELEGATE,
            )


def podman_locks(host: Host) -> Iterator[Finding]:
    """Whether the memory in which Podman has a user's locks is that user's: anybody can make it first."""
    for user in host.present:
        path = f"/dev/shm/libpod_rootless_lock_{user.uid}"  # noqa: S108  Podman's name
        try:
            owner = os.lstat(host.seen(path)).st_uid
        except OSError:
            continue
        if owner != user.uid:
            found = f"{path} belongs to uid {owner}: no Podman of {user.name} starts"
            yield fail("podman_locks", found, f"sudo rm -r {path}")


class Facts(NamedTuple):
    """What a process of the user finds."""

    driver: str  # of Podman's storage; "not set" leaves the choice to Podman
    has_bus: bool
    private_mounts: bool  # of the pause process
    former_uid: int  # that Podman's records are of; 0 for none, or the user's own
    forgotten: int  # containers that run without Podman's records of that


def storage(host: Host) -> Iterator[Finding]:
    """Each enrolled user's storage driver, bus and pause process, by a process that has become that user."""
    sound, deadline = True, time.monotonic() + USERS_S
    for user in host.present:
        entry = linux_account(user.name)
        if entry is None or os.geteuid() not in (0, entry.pw_uid):
            continue
        if time.monotonic() > deadline:
            yield warn(
                "storage", f"not inspected from {user.name} on: it took too long", "sudo svc admin doctor"
            )
            return
        owner, work = Owner(entry.pw_uid, entry.pw_gid), partial(_inspect, entry.pw_dir, entry.pw_uid)
        try:
            facts = _checked(run_as(owner, work, USER_STEP_S))
        except SvcError as error:
            sound = False
            found = f"the home of {user.name} cannot be read: {error.message}"
            yield warn("storage", found, f"ls {shlex.quote(entry.pw_dir)}")
            continue
        for finding in _faults(host, user, facts):
            sound = sound and finding.code != "storage"
            yield finding
    if sound:
        yield ok("storage", "every enrolled user has the overlay driver")


def _faults(host: Host, user: Enrolled, facts: Facts) -> Iterator[Finding]:
    if facts.former_uid:
        yield fail(
            "storage",
            f"Podman's records of {user.name} are of uid {facts.former_uid}, so that it does not start",
            f"sudo -iu {user.name} rm -f {' '.join(RECORDS)}   (images and files stay)",
        )
    if facts.forgotten:
        yield fail(
            "forgotten_containers",
            f"/run/user/{user.uid} was emptied under running containers of {user.name}, which run on"
            f" without Podman; containers: {facts.forgotten}",
            f"sudo -iu {user.name} svc ws list   (and for each that ran: svc ws restart NAME)",
        )
    if facts.driver != "overlay":
        yield warn(
            "storage",
            f"the storage driver of {user.name} is {facts.driver[:20]}, which copies every layer",
            f"sudo svc admin create-user {user.name}   (while the user has no images yet)",
        )
    if host.systemd and not facts.has_bus and os.path.isdir(host.seen(manager_of(user.uid))):
        yield warn(
            "user_bus",
            f"{user.name} has no bus: containers would have no cgroups of their own, and no limits",
            f"sudo -iu {user.name} env XDG_RUNTIME_DIR=/run/user/{user.uid}"
            " systemctl --user start dbus.socket",
        )
    if facts.private_mounts:
        yield fail(
            "pause_process",
            f"Podman's pause process of {user.name} keeps the private /tmp of a service that began it",
            f"sudo -iu {user.name} env XDG_RUNTIME_DIR=/run/user/{user.uid} podman system migrate"
            "   (stops the user's containers)",
        )


def _checked(untrusted: Any) -> Facts:
    """The result of the user's process; raises SvcError for another shape."""
    try:
        facts = Facts(*untrusted)
    except TypeError:
        raise SvcError("inspecting it returned no usable result") from None
    if [type(value) for value in facts] != [str, bool, bool, int, int]:
        raise SvcError("inspecting it returned no usable result")
    return facts


def _inspect(home: str, uid: int) -> Facts:
    """As the user."""
    runtime = f"/run/user/{uid}"
    former = max(_former_uid(os.path.join(home, records), uid) for records in RECORDS)
    forgotten = _forgotten("/proc", uid)
    return Facts(_driver(home), _is_socket(f"{runtime}/bus"), _private_mounts(runtime), former, forgotten)


def _forgotten(proc: str, uid: int) -> int:
    """How many containers run whose source of a mount in /run/user the kernel calls deleted."""
    count = 0
    for pid in filter(str.isdigit, os.listdir(proc)):
        try:
            is_own = os.stat(f"{proc}/{pid}").st_uid == uid
        except OSError:
            continue  # it has ended
        if is_own and lines_of(f"{proc}/{pid}/comm") == ["conmon"]:
            children = " ".join(lines_of(f"{proc}/{pid}/task/{pid}/children")).split()
            mounts = [line for child in children for line in lines_of(f"{proc}/{child}/mountinfo")]
            count += any(REMOVED in line for line in mounts)
    return count


def _former_uid(records: str, uid: int) -> int:
    """The uid whose run directory Podman's records have, if none is of this uid: then it does not start."""
    try:
        with open(os.open(records, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = {int(number) for number in RUN_DIRECTORY.findall(file.read(RECORDS_MAX))}
    except OSError:
        return 0
    return 0 if uid in found else min(found, default=0)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _private_mounts(runtime: str) -> bool:
    """Whether the pause process has a directory of systemd's PrivateTmp= in its mounts."""
    try:
        pid = int(_read(f"{runtime}/libpod/tmp/pause.pid"))
        with open(f"/proc/{pid}/mountinfo", "rb") as file:
            return any(PRIVATE_TMP in line.split()[3] for line in file)
    except (OSError, ValueError, IndexError):
        return False


def _driver(home: str) -> str:
    try:
        content = _read(os.path.join(home, ".config/containers/storage.conf"))
        return str(tomllib.loads(content.decode()).get("storage", {}).get("driver", "not set"))
    except (OSError, ValueError, AttributeError, RecursionError):
        return "not set"


def _read(path: str) -> bytes:
    """The beginning of a file; a pipe is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, USER_FILE_MAX)
    finally:
        os.close(descriptor)


def lingering(host: Host) -> Iterator[Finding]:
    """Whether users' managers run without a login."""
    if not host.systemd:
        return
    without = [
        user for user in host.present if not os.path.exists(host.at(f"/var/lib/systemd/linger/{user.name}"))
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
        docker = grp.getgrnam("docker")
    except KeyError:
        return
    members = set(docker.gr_mem)
    for user in host.present:
        entry = linux_account(user.name)
        found = f"{user.name} is in the group docker, whose members can become root"
        if user.name in members:
            yield warn("docker_group", found, f"sudo gpasswd -d {user.name} docker")
        elif entry and entry.pw_gid == docker.gr_gid:
            yield warn("docker_group", found, f"sudo usermod --gid users {user.name}")
