"""The root verbs: provisioning an account, its mark, its removal, and the registry policy.

Each runs in a forked child of the helper, as root, and answers the call itself.
Every step may be repeated; none starts Podman, whose pause process would keep
this mount namespace, and none opens a path below a user's directory as root.
"""

from __future__ import annotations

import os
import re
import signal
import time
from typing import Any

from svc_helper import registries
from svc_helper.agents import Host, resolve_roots
from svc_helper.check import login_defs, ordinary, resolve
from svc_helper.drop import Account, become
from svc_helper.enrolment import Entry, changing
from svc_helper.log import log
from svc_helper.protocol import Call

SUBIDS = 65536  # what a container image may use of user and group ids
USER_STEP_S = 15  # a home directory may be on a server that does not answer
LINGER_WAIT_S = 10
STORAGE = '# Written by svc: without it the first Podman may choose vfs.\n[storage]\ndriver = "overlay"\n'


class Refusal(Exception):
    """The answer is no, with a code of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def perform(host: Host, call: Call) -> dict[str, Any]:
    """Do one root verb; returns the answer's data, raises Refusal."""
    if call.verb.name == "registries.write":
        return registries.write(host.state_dir, call.args["registries"])
    user = call.user or ""
    if call.verb.name == "account.ensure":
        return ensure(host, user, call.args["administrator"])
    if call.verb.name == "account.mark":
        return mark(host, user, call.args["administrator"])
    return forget(host, user)


def ensure(host: Host, name: str, administrator: bool) -> dict[str, Any]:
    """Make the account whole, adopting what is there; its enrolment comes last."""
    created = ensure_linux_account(name)
    account = resolve(name)
    if account is None or not ordinary(account.uid):
        raise Refusal("refused", f"{name} is a system account or has no home directory")
    for kind in ("uid", "gid"):
        ensure_subids(name, kind)
    if host.systemd:
        ensure_lingering(account)
    ensure_files(host, account)
    with changing(host.state_dir) as entries:
        other = [entry.name for entry in entries.values() if entry.uid == account.uid and entry.name != name]
        if other:
            raise Refusal("conflict", f"uid {account.uid} is enrolled as {other[0]}")
        entries[name] = Entry(name, account.uid, administrator)
    return {"name": name, "uid": account.uid, "home": account.home, "created": created}


def mark(host: Host, name: str, administrator: bool) -> dict[str, Any]:
    """Say whether an enrolled account is an administrator's."""
    with changing(host.state_dir) as entries:
        if name not in entries:
            raise Refusal("not_found", f"{name} is not enrolled")
        entries[name] = entries[name]._replace(administrator=administrator)
    return {"name": name, "administrator": administrator}


def forget(host: Host, name: str) -> dict[str, Any]:
    """Enrol the account no more; the Linux account and its files stay."""
    with changing(host.state_dir) as entries:
        was_enrolled = entries.pop(name, None) is not None
    return {"name": name, "was_enrolled": was_enrolled}


def ensure_linux_account(name: str) -> bool:
    """Create the Linux account with a locked password if there is none; whether it was created."""
    if resolve(name) is not None:
        return False
    code = run(["useradd", "--create-home", "--shell", "/bin/bash", "--", name])
    if code == 9:  # useradd(8): the name, or a group of that name, exists
        raise Refusal("conflict", f"there is a group or an account called {name} in the way")
    if code != 0:
        raise Refusal("failed", f"useradd {name} ended with {code}; the helper's log has its words")
    return True


def read_subids(kind: str) -> list[tuple[str, int, int]]:
    """The lines of /etc/subuid or /etc/subgid: owner, first id, count."""
    try:
        with open(f"/etc/sub{kind}", encoding="utf-8", errors="replace") as file:
            found = [re.fullmatch(r"([^:]+):([0-9]+):([0-9]+)", line.strip()) for line in file]
    except FileNotFoundError:
        return []
    return [(match[1], int(match[2]), int(match[3])) for match in found if match]


def ensure_subids(name: str, kind: str) -> None:
    """See to a range of 65536 subordinate ids that nobody else has."""
    ranges = read_subids(kind)
    if not any(owner == name and count >= SUBIDS for owner, _, count in ranges):
        floor = login_defs().get(f"SUB_{kind.upper()}_MIN", 100000)
        first = max([floor, *(start + count for _, start, count in ranges)])
        if run(["usermod", f"--add-sub{kind}s", f"{first}-{first + SUBIDS - 1}", "--", name]) != 0:
            raise Refusal("failed", f"no subordinate {kind}s could be given to {name}")
        ranges = read_subids(kind)
    own = [(first, first + count) for owner, first, count in ranges if owner == name]
    for other, first, count in ranges:
        if other != name and any(start < first + count and first < end for start, end in own):
            raise Refusal("conflict", f"{name} and {other} share subordinate {kind}s in /etc/sub{kind}")


def ensure_lingering(account: Account) -> None:
    """Let the user's own service manager run without a login, and wait until it does."""
    if run(["loginctl", "enable-linger", account.name]) != 0:
        raise Refusal("failed", f"lingering could not be enabled for {account.name}")
    until = time.monotonic() + LINGER_WAIT_S
    while not os.path.exists(f"{account.runtime_dir}/bus"):
        if time.monotonic() > until:
            raise Refusal("failed", f"the service manager of {account.name} did not start")
        time.sleep(0.05)


def ensure_files(host: Host, account: Account) -> None:
    """Make the file roots and the storage driver's setting as the user, in a child without root's rights."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(USER_STEP_S)
            become(account)
            make_files(account, list(resolve_roots(host.file_roots, account).values()))
        except OSError as error:
            log("the account's files could not be made", "error", user=account.name, why=str(error))
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise Refusal("failed", f"{account.name} cannot write its home directory or a file root")


def make_files(account: Account, roots: list[str]) -> None:
    """As the user: the file roots, and overlay as the storage driver of a Podman never used before."""
    for root in roots:
        os.makedirs(root, mode=0o700, exist_ok=True)
    storage = f"{account.home}/.config/containers/storage.conf"
    if os.path.lexists(storage) or os.path.lexists(f"{account.home}/.local/share/containers/storage"):
        return
    os.makedirs(os.path.dirname(storage), mode=0o700, exist_ok=True)
    with open(storage, "x", encoding="utf-8") as file:
        file.write(STORAGE)


def run(command: list[str]) -> int:
    """Run one of the host's own programs; its exit code. What it says goes to the helper's log."""
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    pid = os.posix_spawnp(command[0], command, {"PATH": path, "LANG": "C.UTF-8"})
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
