"""One agent per active user: started, handed its calls, never listened to.

The channel is one-way: its helper end is shut for reading, so nothing that a
user's process says can reach root. An agent that ends shuts its own end; the
call that meets this goes to a new agent.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from typing import NamedTuple, NoReturn

from svc_helper.root.children import Children
from svc_helper.root.drop import Account, execute
from svc_helper.root.log import log
from svc_helper.wire.protocol import Call, send

CHANNEL_FD = 3
CGROUP = "/sys/fs/cgroup"
SCOPE_WAIT_S = 5


class Host(NamedTuple):
    """What the agents are told of this host."""

    state_dir: str
    file_roots: dict[str, str]
    systemd: bool
    single_user: bool
    agent_command: list[str]


def resolve_roots(patterns: dict[str, str], account: Account) -> dict[str, str]:
    """The account's file roots: %h is the home, %u the name. Text only; root opens none of them."""
    return {
        name: pattern.removesuffix(":ro").replace("%h", account.home).replace("%u", account.name)
        for name, pattern in patterns.items()
    }


def read_only_roots(patterns: dict[str, str]) -> list[str]:
    """The names of the roots in which svc changes nothing."""
    return sorted(name for name, pattern in patterns.items() if pattern.endswith(":ro"))


class Agents:
    """The channels to the agents that run."""

    def __init__(self, children: Children, host: Host) -> None:
        self.children = children
        self.host = host
        self.channels: dict[Account, socket.socket] = {}  # not by uid: it may be given to somebody else

    def deliver(self, account: Account, call: Call, reply: socket.socket) -> None:
        """Hand a call and its reply path to the account's agent; raises BlockingIOError when it lags."""
        message = {"verb": call.verb.name, "args": call.args, "rid": call.rid, "timeout_s": call.timeout_s}
        channel = self.channels.get(account)
        if channel is not None:
            try:
                send(channel, message, [reply.fileno()], wait=False)
                return
            except ConnectionError:  # it is ending: its end is shut, or gone
                self._forget(account, channel)
        send(self._start(account), message, [reply.fileno()], wait=False)

    def _forget(self, account: Account, channel: socket.socket) -> None:
        if self.channels.get(account) is channel:
            del self.channels[account]
            channel.close()

    def _start(self, account: Account) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.shutdown(socket.SHUT_RD)
        with theirs:
            self.children.fork(
                lambda: self._become_agent(account, theirs.fileno()),
                lambda code: self._ended(account, ours, code),
                keep=[theirs.fileno()],
            )
        for other in [other for other in self.channels if other.uid == account.uid]:
            self._forget(other, self.channels[other])  # the agent of who had the uid before ends
        self.channels[account] = ours
        return ours

    def _ended(self, account: Account, channel: socket.socket, code: int) -> None:
        log("agent ended", "info" if code == 0 else "warning", user=account.name, exit=code)
        self._forget(account, channel)

    def _become_agent(self, account: Account, channel: int) -> NoReturn:
        """In the child: prepare what only root can, then be the user's agent for good."""
        if channel != CHANNEL_FD:
            os.dup2(channel, CHANNEL_FD, inheritable=False)
            os.close(channel)
        if self.host.systemd and not self.host.single_user:
            enter_scope(account)
        elif not self.host.single_user:
            ensure_runtime_dir(account)
            join_cgroup(account)
        os.set_inheritable(CHANNEL_FD, True)
        command = [*self.host.agent_command, json.dumps(self._config(account))]
        execute(account, command, drop=not self.host.single_user)

    def _config(self, account: Account) -> dict[str, object]:
        return {
            "user": account.name,
            "uid": account.uid,
            "home": account.home,
            "roots": resolve_roots(self.host.file_roots, account),
            "read_only": read_only_roots(self.host.file_roots),
            "systemd": self.host.systemd,
            "registries": os.path.join(self.host.state_dir, "registries.json"),
            "registries_conf": os.path.join(self.host.state_dir, "registries.conf"),
        }


def enter_scope(account: Account) -> None:
    """Move this process into a scope of the user's own slice, so that nothing of the user ends with our unit.

    What `systemd-run --scope` does, but by busctl for a process that is there
    already: no second interpreter start. Never a fixed unit name: the scope of
    an agent that is still ending would have it.
    """
    name = f"svc-agent-{account.uid}-{os.getpid()}-{time.monotonic_ns()}.scope"
    manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]
    properties = ["PIDs", "au", "1", str(os.getpid()), "Slice", "s", f"user-{account.uid}.slice"]
    properties += [
        "Description",
        "s",
        f"svc agent of {account.name}",
        "CollectMode",
        "s",
        "inactive-or-failed",
    ]
    command = ["busctl", "--quiet", "call", *manager, "StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail"]
    pid = os.posix_spawnp("busctl", [*command, "4", *properties, "0"], {"PATH": "/usr/bin:/bin"})
    if os.waitpid(pid, 0)[1] != 0:
        raise ChildProcessError("no scope could be started")
    until = time.monotonic() + SCOPE_WAIT_S
    while name not in _own_cgroups():  # the answer is that the job is queued
        if time.monotonic() > until:
            raise TimeoutError("the scope did not start")
        time.sleep(0.001)


def _own_cgroups() -> str:
    with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
        return file.read()


def ensure_runtime_dir(account: Account) -> None:
    """Make /run/user/UID where no logind does. Only root can put anything at that name."""
    os.makedirs("/run/user", mode=0o755, exist_ok=True)
    try:
        os.mkdir(account.runtime_dir, 0o700)
    except FileExistsError:
        pass
    fd = os.open(account.runtime_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if os.fstat(fd).st_uid not in (0, account.uid):
        raise PermissionError(f"{account.runtime_dir} is somebody else's")
    os.fchown(fd, account.uid, account.gid)
    os.close(fd)


def join_cgroup(account: Account) -> None:
    """Enter a fresh cgroup of the user's own, where cgroup2 can be written: as systemd's slices elsewhere.

    The user owns it, so that the agent can make groups below it and end them
    with cgroup.kill. It is root's until we are in it: a group that its user
    made could be frozen, and root's own child would wait in it.
    """
    if not os.path.exists(f"{CGROUP}/cgroup.controllers") or not os.access(CGROUP, os.W_OK):
        return
    slice_dir = f"{CGROUP}/user-{account.uid}"
    os.makedirs(slice_dir, exist_ok=True)
    _remove_empty(slice_dir)
    leaf = f"{slice_dir}/svc-agent-{os.urandom(4).hex()}"
    os.mkdir(leaf)
    for directory in (leaf, slice_dir):
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if directory == leaf:
            if os.fstat(opened).st_uid != 0:
                raise PermissionError("the agent's cgroup was exchanged")
            procs = os.open("cgroup.procs", os.O_WRONLY | os.O_CLOEXEC, dir_fd=opened)
            os.write(procs, str(os.getpid()).encode())
            os.close(procs)
        os.fchown(opened, account.uid, account.gid)
        for name in ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            os.chown(name, account.uid, account.gid, dir_fd=opened)
        os.close(opened)


def _remove_empty(slice_dir: str) -> None:
    """Take away the groups of agents that have ended; one that is in use stays."""
    for name in os.listdir(slice_dir):
        if name.startswith("svc-agent"):
            with contextlib.suppress(OSError):
                os.rmdir(f"{slice_dir}/{name}")
