"""Doctor checks of where users' images and containers are: the home directory, or SVC_STORE_DIR."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from svc.admin.checks.disks import Mount, mount_of, mounts
from svc.admin.findings import Enrolled, Finding, Host, fail, linux_account, ok, warn
from svc.errors import SvcError
from svc.host.owner import Owner, run_as

USER_STEP_S = 10  # a home directory may be on a file server that does not respond
USERS_S = 120  # for all of them
REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "lustre", "afs", "fuse.sshfs")
LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay")
EXAMPLE = "/var/lib/svc-stores/%u"
SETTING = f"sudo editor /etc/svc/svc.env   (add: SVC_STORE_DIR={EXAMPLE}; then: sudo systemctl restart svc)"
IDS = ("unshare", "--map-root-user", "--map-auto")  # as rootless Podman: root inside, and subordinate ids


class Trial(NamedTuple):
    """What a process of the user finds."""

    attributes: bool  # extended ones are kept
    ids: bool  # a file can be given to a subordinate id; also where that could not be tried
    in_use: bool  # the store directory has a store
    workspaces: bool  # some have had a container


def homes(host: Host) -> Iterator[Finding]:
    """Whether the file system of each home directory can hold containers, where it is to hold them."""
    if _pattern(host):
        yield ok("home", "images and containers are not in homes (SVC_STORE_DIR)")
        return
    mounted = mounts(host)
    unfit = False
    deadline = time.monotonic() + USERS_S
    for user in host.present:
        entry = linux_account(user.name)
        mount = mount_of(os.path.normpath(entry.pw_dir), mounted) if entry else None
        if entry is None or mount is None:
            continue
        found = _by_kind(mount, entry.pw_dir, user.name)
        if found is None and mount.kind not in LOCAL and time.monotonic() < deadline:
            found = _by_trial(user, mount, entry.pw_dir)
        found = found or _by_options(mount, entry.pw_dir, user.name)
        if found is not None:
            unfit = True
            yield found
    if not unfit:
        yield ok("home", "every enrolled user's home can hold containers")


def _by_kind(mount: Mount, home: str, name: str) -> Finding | None:
    where = f"the home of {name} ({home})"
    if mount.kind in REMOTE:
        return warn("home", f"{where} is on {mount.kind}, which keeps no ids of containers", SETTING)
    return None


def _by_options(mount: Mount, home: str, name: str) -> Finding | None:
    where = f"the home of {name} ({home})"
    if "noexec" in mount.options:
        found = f"{where} is mounted noexec: no image is built, and no program in /work runs"
        return fail("home", found, _remount("exec", mount, home))
    if "nodev" in mount.options:
        found = f"{where} is mounted nodev, with which svc is not tested"
        return warn("home", found, _remount("dev", mount, home))
    return None


def _remount(option: str, mount: Mount, home: str) -> str:
    """The command for a mount above the home; on the home itself its owner may have mounted anything."""
    if mount.path == os.path.normpath(home):
        return f"sudo editor /etc/fstab   (without no{option}, then boot again)"
    return f"sudo mount -o remount,{option} {shlex.quote(mount.path)}   (and in /etc/fstab)"


def _by_trial(user: Enrolled, mount: Mount, home: str) -> Finding | None:
    """What a trial on a file system of another kind shows."""
    trial = _trial(user, home, "")
    if trial is None or (trial.attributes and trial.ids):
        return None
    lacks = "ids of containers" if not trial.ids else "extended attributes"
    kind = mount.kind[:40]
    return warn("home", f"the home of {user.name} ({home}) is on {kind}, which keeps no {lacks}", SETTING)


def stores(host: Host) -> Iterator[Finding]:
    """With SVC_STORE_DIR: its file system, each user's directory, and stores that were not moved yet."""
    pattern = _pattern(host)
    if not pattern:
        return
    sound, parent = True, os.path.dirname(pattern)
    mount = mount_of(parent, mounts(host))
    if mount is not None and (mount.kind in REMOTE or {"noexec", "nodev"} & set(mount.options)):
        sound = False
        why = mount.kind if mount.kind in REMOTE else "a file system mounted noexec or nodev"
        yield fail("store_dir", f"{parent} is on {why}", "sudo editor /etc/svc/svc.env   (SVC_STORE_DIR)")
    deadline = time.monotonic() + USERS_S
    for user in host.present:
        found = _of_directory(host, user, pattern.replace("%u", user.name))
        if found is None and time.monotonic() < deadline:
            found = _not_moved(user, pattern.replace("%u", user.name))
        if found is not None:
            sound = False
            yield found
    if sound:
        yield ok("store_dir", f"images and containers are in {parent}")


def _of_directory(host: Host, user: Enrolled, path: str) -> Finding | None:
    """Whose directory it is; it is created when it is first needed."""
    try:
        status = os.lstat(host.at(path))
        above = os.lstat(host.at(os.path.dirname(path)))
    except OSError:
        return None
    parent = os.path.dirname(path)
    if above.st_uid != 0 or above.st_mode & 0o022:
        found = f"others than root can write {parent}: no directory is used there"
        return fail("store_dir", found, f"ls -ld {parent}   (only root may own and write it)")
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (user.uid, 0):
        found = f"{path} is not a directory of {user.name}: workspaces do not start"
        return fail("store_dir", found, f"sudo mv -T {path} {path}.former")
    return None


def _not_moved(user: Enrolled, path: str) -> Finding | None:
    entry = linux_account(user.name)
    trial = _trial(user, entry.pw_dir, path) if entry else None
    if trial is None or trial.in_use or not trial.workspaces:
        return None
    found = f"the containers of {user.name} are in the home directory still"
    return warn("store_dir", found, f"sudo svc admin move-store {user.name}")


def _pattern(host: Host) -> str:
    return str(host.settings.store_dir) if host.settings.is_valid("SVC_STORE_DIR") else ""


def _trial(user: Enrolled, home: str, store: str) -> Trial | None:
    """By a process that has become the user; None where there is no usable result."""
    entry = linux_account(user.name)
    if entry is None or os.geteuid() not in (0, entry.pw_uid):
        return None
    try:
        untrusted = run_as(Owner(entry.pw_uid, entry.pw_gid), partial(_try, home, store), USER_STEP_S)
    except SvcError:
        return None  # the check `storage` says so
    return _checked(untrusted)


def _checked(untrusted: Any) -> Trial | None:
    if not isinstance(untrusted, list | tuple) or [type(value) for value in untrusted] != [bool] * 4:
        return None
    return Trial(*untrusted)


def _try(home: str, store: str) -> Trial:
    """As the user: try what Podman's storage needs, and look where the workspaces have their containers."""
    if store:
        records = f"{home}/.local/state/svc/workspaces"
        names = os.listdir(records) if os.path.isdir(records) else []
        workspaces = any(os.path.exists(f"{records}/{name}/created.json") for name in names)
        return Trial(True, True, os.path.isdir(f"{store}/storage"), workspaces)
    with tempfile.NamedTemporaryFile(dir=home, prefix=".svc-trial-") as file:
        try:
            os.setxattr(file.name, "user.svc.trial", b"1")
            attributes = True
        except OSError:
            attributes = False
        ids = not _runs("true") or _runs("chown", "1:1", file.name)
        return Trial(attributes, ids, False, False)


def _runs(*command: str) -> bool:
    done = subprocess.run([*IDS, *command], capture_output=True, timeout=USER_STEP_S, check=False)
    return done.returncode == 0
