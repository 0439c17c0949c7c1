"""Removal of what the service has of a user in the user's own account; the account and its files stay.

A program of the agent's side does it as the user. Root reads nothing from it but its exit status.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from typing import Any, NoReturn

from svc_helper import interpreter
from svc_helper.provision import linux_account
from svc_helper.provision.verbs import Refusal
from svc_helper.root import runtime_dir, store_dir
from svc_helper.root.agents import LOCKS, Host, agent_config, enter_scope, join_cgroup
from svc_helper.root.drop import Account, execute
from svc_helper.root.log import log

PROGRAM = "svc_helper.agent.leave"
CLEAR_S = 580  # within the call's own time
MOVE_PROGRAM = "svc_helper.agent.move_store"
MOVE_S = 86300
RUNNING = 3  # the exit status of that program for a workspace that runs


def clear(host: Host, name: str, uid: int, images: list[str]) -> dict[str, Any]:
    """End the service's processes of a user, remove containers and these images; raises Refusal.

    The account need not be enrolled any more. `uid` is that of the enrolment: another Linux account
    of the same name is left alone.
    """
    account = linux_account.get(name)
    if account.uid != uid:
        raise Refusal("conflict", f"the Linux account {name} has uid {account.uid}, not {uid}")
    status = run_as_user(host, account, PROGRAM, images, CLEAR_S)
    if status in (-signal.SIGKILL, -signal.SIGALRM):
        raise Refusal(
            "failed",
            f"a process of {name} has stopped, or holds up, the program that removes its containers;"
            f" sudo pkill -KILL --uid {uid}",
        )
    if status != 0:
        raise Refusal("failed", f"containers of {name} could not be removed; {log_of(host, account)}")
    if host.store_dir:
        remove_store(host.store_dir.replace("%u", name))
    return {"name": name, "uid": uid}


def move(host: Host, name: str, uid: int) -> dict[str, Any]:
    """Move a user's store to the store directory; raises Refusal."""
    account = linux_account.get(name)
    if account.uid != uid:
        raise Refusal("conflict", f"the Linux account {name} has uid {account.uid}, not {uid}")
    if not host.store_dir:
        raise Refusal("conflict", "SVC_STORE_DIR is not set")
    store_dir.ensure(host.store_dir, account)
    status = run_as_user(host, account, MOVE_PROGRAM, [], MOVE_S)
    if status == RUNNING:
        raise Refusal("conflict", f"a workspace of {name} is running")
    if status != 0:
        raise Refusal(
            "failed", f"the store of {name} could not be moved, and is where it was; {log_of(host, account)}"
        )
    return {"name": name, "store": host.store_dir.replace("%u", name)}


def run_as_user(host: Host, account: Account, program: str, arguments: list[str], within_s: int) -> int:
    """Run a program of the agent's side as the user; its exit status, not 0 for one that was killed."""
    pid = os.fork()
    if pid == 0:
        _become_user(host, account, program, arguments, within_s)
    return linux_account.outcome(pid, within_s)


def log_of(host: Host, account: Account) -> str:
    """Where the program's output is."""
    where = "journalctl -t svc-agent" if host.systemd else f"{account.runtime_dir}/svc/agent.log"
    return f"the reason is in {where}"


def remove_store(path: str) -> None:
    """Remove the store directory, which the user's program has emptied; raises Refusal."""
    os.close(store_dir.opened(path, 0o700))  # so that nobody exchanges a name of the path
    try:
        os.rmdir(path)
    except OSError as error:
        raise Refusal("failed", f"{path}: {error.strerror}; remove what is in it, as root") from None


def _become_user(host: Host, account: Account, program: str, arguments: list[str], within_s: int) -> NoReturn:
    """In the child: become the user's program, as an agent is started."""
    try:
        signal.alarm(within_s)  # also when the helper ends
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        with contextlib.suppress(OSError):  # as for an agent
            if os.lstat(lock := f"{LOCKS}{account.uid}").st_uid != account.uid:
                os.rename(lock, f"{lock}.{os.urandom(4).hex()}")
        if host.store_dir:
            store_dir.ensure(host.store_dir, account)
        if host.systemd:
            enter_scope(account)
        else:
            runtime_dir.ensure(account)
            join_cgroup(account)
        command = [*interpreter.command(program), json.dumps(agent_config(host, account)), *arguments]
        execute(account, command, host.pam_service)
    except Exception as error:  # noqa: BLE001  the process ends here; the log gets the reason
        log(
            "a program of the account failed",
            "error",
            user=account.name,
            why=f"{type(error).__name__}: {error}",
        )
    finally:
        os._exit(1)
