"""Logins for private registries: root's own list, and a copy for each enrolled account.

`registry-logins.json` is root's alone. A copy is a file that only root writes and only its account (and
root) reads, in the form of containers-auth.json(5): whoever pulls as a user needs the password, so every
enrolled user can read it. The app's accounts cannot.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
from collections.abc import Iterable
from typing import Any

from svc_helper import atomic_file
from svc_helper.provision.enrolment import changing
from svc_helper.provision.verbs import Refusal
from svc_helper.root.check import resolve
from svc_helper.root.enrolment import Entry
from svc_helper.wire.limits import FILE_NAME_MAX

OWN, COPIES = "registry-logins.json", "registry-logins"
BYTES_MAX = 256 * 1024


def login(state_dir: str, host: str, username: str, password: str) -> dict[str, Any]:
    """Store the login for a host, in place of another one."""
    if not username or ":" in username or not password:
        raise Refusal("refused", "a user name without a colon and a password are needed")
    auth = base64.b64encode(f"{username}:{password}".encode()).decode()
    _change(state_dir, read(state_dir) | {host: {"auth": auth}})
    return {"host": host}


def logout(state_dir: str, host: str) -> dict[str, Any]:
    """Forget the login for a host; whether there was one."""
    logins = read(state_dir)
    was_there = logins.pop(host, None) is not None
    if was_there:
        _change(state_dir, logins)
    return {"host": host, "was_there": was_there}


def read(state_dir: str) -> dict[str, Any]:
    """Root's own list; raises OSError for a damaged one, or one that others may write or read."""
    path = os.path.join(state_dir, OWN)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise PermissionError(f"{path} must be a file that only root may read")
        return _parsed(path, file.read(BYTES_MAX))


def _parsed(path: str, content: bytes) -> dict[str, Any]:
    try:
        logins: dict[str, Any] = json.loads(content)["auths"]
        for one in logins.values():
            base64.b64decode(one["auth"], validate=True).decode().index(":")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise OSError(f"{path} is damaged; remove it, and give each login again") from None
    return logins


def share(state_dir: str, entries: Iterable[Entry]) -> None:
    """Write the copy of each enrolled account, and remove all others; may be repeated."""
    folder = os.path.join(state_dir, COPIES)
    logins = read(state_dir)
    found = [(entry, resolve(entry.name)) for entry in (entries if logins else ())]
    accounts = [account for entry, account in found if account is not None and account.uid == entry.uid]
    accounts = [account for account in accounts if len(account.name) <= FILE_NAME_MAX]
    names = {account.name for account in accounts}
    with contextlib.suppress(FileNotFoundError):
        for name in set(os.listdir(folder)) - names:
            os.unlink(os.path.join(folder, name))
    if not names:
        return
    os.makedirs(folder, 0o711, exist_ok=True)
    os.chmod(folder, 0o711)  # noqa: S103  each account opens its own copy, nobody lists the others
    for account in accounts:
        path = os.path.join(folder, account.name)
        draft = os.path.join(folder, f".{account.uid}")
        atomic_file.write(draft, _document(logins), 0o400)
        os.chown(draft, account.uid, 0)
        os.rename(draft, path)
    atomic_file.sync_directory(folder)


def _change(state_dir: str, logins: dict[str, Any]) -> None:
    """Replace root's list and the copies, while nobody is enrolled."""
    with changing(state_dir) as entries:
        atomic_file.replace(os.path.join(state_dir, OWN), _document(logins), 0o600)
        share(state_dir, entries.values())


def _document(logins: dict[str, Any]) -> bytes:
    return (json.dumps({"auths": logins}, indent=1) + "\n").encode()
