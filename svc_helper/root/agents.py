"""One agent per active user: the helper starts it and sends it calls, and receives nothing from it.

The channel is one-way: its helper end is shut down for reading, so that no bytes of a user's
process reach root. An agent shuts down its own end before it exits; a call that finds it so
goes to a new agent. An agent may do so and run on: an account has a few at most.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import time
from collections import Counter
from typing import NamedTuple, NoReturn

from svc_helper.root import runtime_dir, store_dir
from svc_helper.root.children import Children
from svc_helper.root.drop import Account, execute
from svc_helper.wire.protocol import Call, send

CHANNEL_FD = 3
CGROUP = "/sys/fs/cgroup"
SCOPE_WAIT_S = 5
LOCKS = "/dev/shm/libpod_rootless_lock_"  # noqa: S108  and the uid; anybody may make it before Podman does
AGENTS_MAX = 8  # of one account: the one that takes calls, and those that finish what they have


class Host(NamedTuple):
    """The host's configuration, as far as agents need it."""

    state_dir: str
    file_roots: dict[str, str]
    systemd: bool
    single_user: bool
    agent_command: list[str]
    pam_service: str = "svc"
    store_dir: str = ""


def resolve_roots(patterns: dict[str, str], account: Account) -> dict[str, str]:
    """The account's file roots: %h is the home, %u the name. Root opens none of them."""
    return {
        name: pattern.removesuffix(":ro").replace("%h", account.home).replace("%u", account.name)
        for name, pattern in patterns.items()
    }


def read_only_roots(patterns: dict[str, str]) -> list[str]:
    """The names of the read-only roots."""
    return sorted(name for name, pattern in patterns.items() if pattern.endswith(":ro"))


class Agents:
    """The channels to the running agents."""

    def __init__(self, children: Children, host: Host) -> None:
        self.children = children
        self.host = host
        self.channels: dict[Account, socket.socket] = {}  # not by uid: uids are reused
        self.running: Counter[int] = Counter()  # agents that have not ended, by uid

    def deliver(self, account: Account, call: Call, reply: socket.socket) -> None:
        """Send a call with its reply path to an account's agent; raises OSError, ProtocolError: too long."""
        message = {"verb": call.verb.name, "args": call.args, "rid": call.rid, "timeout_s": call.timeout_s}
        channel = self.channels.get(account)
        if channel is not None:
            try:
                send(channel, message, [reply.fileno()], wait=False)
                return
            except ConnectionError:  # it is exiting or has exited
                self._forget(account, channel)
        send(self._start(account), message, [reply.fileno()], wait=False)

    def _forget(self, account: Account, channel: socket.socket) -> None:
        if self.channels.get(account) is channel:
            del self.channels[account]
            channel.close()

    def _start(self, account: Account) -> socket.socket:
        if self.running[account.uid] >= AGENTS_MAX:
            raise OSError(errno.EUSERS, f"{AGENTS_MAX} agents of this account have not ended yet")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.shutdown(socket.SHUT_RD)
        with theirs:
            self.children.fork(
                lambda: self._become_agent(account, theirs.fileno()),
                lambda code: self._ended(account, ours, code),
                source=account.name,
                keep=[theirs.fileno()],
            )
        self.running[account.uid] += 1
        for other in [other for other in self.channels if other.uid == account.uid]:
            self._forget(other, self.channels[other])  # of the account that had this uid before
        self.channels[account] = ours
        return ours

    def _ended(self, account: Account, channel: socket.socket, code: int) -> None:
        self.running[account.uid] -= 1
        level = "info" if code == 0 else "warning"
        self.children.log.log(account.name, "agent ended", level, user=account.name, exit=code)
        self._forget(account, channel)

    def _become_agent(self, account: Account, channel: int) -> NoReturn:
        """In the child: do what only root can, then become the user's agent."""
        if channel != CHANNEL_FD:
            os.dup2(channel, CHANNEL_FD, inheritable=False)
            os.close(channel)
        with contextlib.suppress(OSError):  # another owner's would keep the account's Podman from starting
            if os.lstat(lock := f"{LOCKS}{account.uid}").st_uid != account.uid:
                os.rename(lock, f"{lock}.{os.urandom(4).hex()}")
        if self.host.store_dir and not self.host.single_user:
            with contextlib.suppress(OSError):  # the agent says that it cannot be used, and the doctor why
                store_dir.ensure(self.host.store_dir, account)
        if self.host.systemd and not self.host.single_user:
            enter_scope(account)
        elif not self.host.single_user:
            runtime_dir.ensure(account)
            join_cgroup(account)
        os.set_inheritable(CHANNEL_FD, True)
        command = [*self.host.agent_command, json.dumps(agent_config(self.host, account))]
        execute(account, command, self.host.pam_service, drop=not self.host.single_user)


def agent_config(host: Host, account: Account) -> dict[str, object]:
    """The configuration of an account's agent."""
    return {
        "user": account.name,
        "uid": account.uid,
        "home": account.home,
        "roots": resolve_roots(host.file_roots, account),
        "read_only": read_only_roots(host.file_roots),
        "store": host.store_dir.replace("%u", account.name),
        "systemd": host.systemd,
        "registries": os.path.join(host.state_dir, "registries.json"),
        "registries_conf": os.path.join(host.state_dir, "registries.conf"),
    }


def enter_scope(account: Account) -> None:
    """Move this process into a scope of the user's slice, so that it outlives our unit.

    As `systemd-run --scope`, but for a running process: no second interpreter start. The unit's
    name is unique, since the scope of an agent that is exiting may still exist.
    """
    name = f"svc-agent-{account.uid}-{os.getpid()}-{time.monotonic_ns()}.scope"
    manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]
    settings = ["PIDs", "au", "1", str(os.getpid()), "Slice", "s", f"user-{account.uid}.slice"]
    settings += ["Description", "s", f"svc agent of {account.name}", "CollectMode", "s", "inactive-or-failed"]
    command = ["busctl", "--quiet", "call", *manager, "StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail"]
    pid = os.posix_spawnp("busctl", [*command, "4", *settings, "0"], {"PATH": "/usr/bin:/bin"})
    if os.waitpid(pid, 0)[1] != 0:
        raise ChildProcessError("systemd refused the scope of the agent")
    deadline = time.monotonic() + SCOPE_WAIT_S
    while name not in _own_cgroups():  # the reply only means that the job is queued
        if time.monotonic() > deadline:
            raise TimeoutError("the scope of the agent did not start in time")
        time.sleep(0.001)


def _own_cgroups() -> str:
    with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
        return file.read()


def join_cgroup(account: Account) -> None:
    """Without systemd: enter a new cgroup that the user owns, where cgroup2 is writable.

    The agent creates groups below it and ends them with cgroup.kill. Root owns it until this
    process is in it: in a group that its user froze, root's own child would hang.
    """
    if not os.path.exists(f"{CGROUP}/cgroup.controllers") or not os.access(CGROUP, os.W_OK):
        return
    slice_dir = f"{CGROUP}/user-{account.uid}"
    os.makedirs(slice_dir, exist_ok=True)
    for name in os.listdir(slice_dir):
        if name.startswith("svc-agent"):
            with contextlib.suppress(OSError):  # in use; otherwise of an agent that has exited
                os.rmdir(f"{slice_dir}/{name}")
    leaf = f"{slice_dir}/svc-agent-{os.urandom(4).hex()}"
    os.mkdir(leaf)
    for directory in (leaf, slice_dir):
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if directory == leaf:
            if os.fstat(opened).st_uid != 0:
                raise PermissionError("the agent's cgroup was replaced by another")
            procs = os.open("cgroup.procs", os.O_WRONLY | os.O_CLOEXEC, dir_fd=opened)
            os.write(procs, str(os.getpid()).encode())
            os.close(procs)
        os.fchown(opened, account.uid, account.gid)
        for name in ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            os.chown(name, account.uid, account.gid, dir_fd=opened)
        os.close(opened)
