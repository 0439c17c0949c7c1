"""An agent that does what the workspace id says, and tells what it was given.

Run as the user's process by the helper under test, in place of the real agent.
"""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from svc_helper.wire.protocol import Frame, receive, send, send_reply


def describe() -> dict[str, Any]:
    """Everything about this process that the helper decided."""
    return {
        "argv": sys.argv[1:],
        "status": Path("/proc/self/status").read_text(),
        "fds": {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in list_fds()},
        "environment": dict(os.environ),
        "cwd": os.getcwd(),
        "umask": os.umask(0o077),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "nofile": resource.getrlimit(resource.RLIMIT_NOFILE),
        "limits": {number: resource.getrlimit(number) for number in range(16)},
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "scheduler": os.sched_getscheduler(0),
        "affinity": sorted(os.sched_getaffinity(0)),
        "oom_score_adj": int(Path("/proc/self/oom_score_adj").read_text()),
        "lower_oom_score": lower_oom_score(),
        "sid_is_pid": os.getsid(0) == os.getpid(),
        "cgroup": Path("/proc/self/cgroup").read_text(),
        "own_group": make_group(),
    }


def lower_oom_score() -> str:
    """Ask to be killed after others; what went wrong."""
    try:
        Path("/proc/self/oom_score_adj").write_text("-400")
    except OSError as error:
        return str(error)
    return ""


def make_group() -> str:
    """Make a group beside our own, put a child in it, end it by cgroup.kill; what went wrong, if anything."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::")), "")
    group = Path("/sys/fs/cgroup" + os.path.dirname(path)) / "call"
    try:
        group.mkdir()
        child = os.posix_spawn("/bin/sleep", ["sleep", "20"], {})
        (group / "cgroup.procs").write_text(str(child))
        (group / "cgroup.kill").write_text("1")
        _, status = os.waitpid(child, 0)
        group.rmdir()
    except OSError as error:
        return str(error)
    return "" if os.WIFSIGNALED(status) else "not killed"


def list_fds() -> list[int]:
    """The open descriptors without the one that looks."""
    return [int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")]


def serve(frame: Frame, channel: socket.socket) -> None:
    """One call."""
    message = frame.message
    with socket.socket(fileno=frame.fds[0]) as reply:
        what = message["args"].get("id", "ws-echo0000")[3:7]
        if what == "dies":
            os._exit(1)
        if what == "mute":
            poll = select.poll()
            poll.register(reply, 0)
            poll.poll(20_000)
            return
        if what == "hold":
            time.sleep(1)
        data: dict[str, Any] = {"message": message, "pid": os.getpid(), "fds": len(frame.fds)}
        fds: list[int] = []
        if what == "self":
            data |= describe()
        if what == "long":
            data["text"] = "\u00fc[" * 100_000
        if what == "give":
            fds = [os.pidfd_open(os.getpid())]
        if what == "prog":
            for current in range(3):
                send(reply, {"progress": {"current": current}})
        if what == "stay":
            channel.shutdown(socket.SHUT_RD)
        send_reply(reply, {"ok": True, "data": data}, fds)
        for fd in fds:
            os.close(fd)
    if what == "ends":
        channel.shutdown(socket.SHUT_RD)
    if what == "stay":
        time.sleep(120)


def main() -> None:
    """Serve until the helper, or this agent, ends the channel."""
    json.loads(sys.argv[-1])
    with socket.socket(fileno=3) as channel:
        while True:
            try:
                frame = receive(channel)
            except EOFError:
                break
            threading.Thread(target=serve, args=(frame, channel)).start()
        if any(thread.name != "MainThread" for thread in threading.enumerate()):
            time.sleep(0.3)  # a slow ending, for calls aimed at that moment


main()
