"""Removal of what the service has of a user in the user's own account; the account and its files stay.

A program of the agent's side does it as the user. Root reads nothing from it but its exit status.
"""

from __future__ import annotations

import json
import os
import select
import signal
from typing import Any, NoReturn

from svc_helper import interpreter
from svc_helper.provision import linux_account
from svc_helper.provision.verbs import Refusal
from svc_helper.root import runtime_dir
from svc_helper.root.agents import Host, agent_config, enter_scope, join_cgroup
from svc_helper.root.drop import Account, execute
from svc_helper.root.log import log

PROGRAM = "svc_helper.agent.leave"
CLEAR_S = 580  # within the call's own time


def clear(host: Host, name: str, uid: int, images: list[str]) -> dict[str, Any]:
    """End the service's processes of a user, remove containers and these images; raises Refusal.

    The account need not be enrolled any more. `uid` is that of the enrolment: another Linux account
    of the same name is left alone.
    """
    account = linux_account.get(name)
    if account.uid != uid:
        raise Refusal("conflict", f"the Linux account {name} has uid {account.uid}, not {uid}")
    pid = os.fork()
    if pid == 0:
        _leave(host, account, images)
    pidfd = os.pidfd_open(pid)
    if not select.select([pidfd], [], [], CLEAR_S)[0]:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)  # its user may have stopped it
    os.close(pidfd)
    if os.waitpid(pid, 0)[1] != 0:
        where = "journalctl -t svc-agent" if host.systemd else f"{account.runtime_dir}/svc/agent.log"
        raise Refusal("failed", f"containers of {name} could not be removed; the reason is in {where}")
    return {"name": name, "uid": uid}


def _leave(host: Host, account: Account, images: list[str]) -> NoReturn:
    """In the child: become the user's program, as an agent is started."""
    try:
        signal.alarm(CLEAR_S)  # also when the helper ends
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        if host.systemd:
            enter_scope(account)
        else:
            runtime_dir.ensure(account)
            join_cgroup(account)
        command = [*interpreter.command(PROGRAM), json.dumps(agent_config(host, account)), *images]
        execute(account, command, host.pam_service)
    except Exception as error:  # noqa: BLE001  the process ends here; the log gets the reason
        log("clearing an account failed", "error", user=account.name, why=f"{type(error).__name__}: {error}")
    finally:
        os._exit(1)
