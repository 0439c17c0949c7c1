"""The program that removes what the service has of a user: run as the user, when the account is deleted.

Argv: the agent's configuration, then references of images. It ends the service's other processes of
this user, removes the containers of workspaces and the images, and ends the Podman that it and the
agents have started. What the user made with Podman by hand stays. Every step may be repeated. The
exit status is 0 when no container of the service is left; output goes to the agent's log.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from svc_helper.agent.containers.spec import LABEL
from svc_helper.agent.home import Home
from svc_helper.agent.runtime.kill_marked import carries, kill
from svc_helper.wire import quick_json

END_S = 10.0  # from TERM to KILL: a pull stops in good order, a killed one leaves its temporary files
SCAN_S = 0.05
COMMAND_S = 300
LIST_S = 60
TIMED_OUT = 124
STOP_S = 10  # for a container's own end
OURS = b"from svc_helper."  # in the command line of each of the service's processes


def main() -> int:
    """Remove everything; returns the exit status."""
    home = Home(**quick_json.loads(sys.argv[1]))
    home.prepare()
    mark = mark_of(home)
    end(is_ours)
    end(lambda pid: carries(pid, mark) and is_service(pid))  # under SIGSTOP it may hold a lock of the store
    resume(mark)
    is_done = remove_containers(home)
    for image in sys.argv[2:] if is_done else ():
        podman(home, "rmi", "--", image)  # one that the user's own container needs stays
    if is_done:
        if home.store:  # whatever is in it has been put there by the service
            inside = (f"{home.store}/{name}" for name in os.listdir(home.store))
            podman(home, "unshare", "rm", "-rf", "--", *inside)  # also what belongs to subordinate ids
        end_podman(home)
        if home.store:
            for name in os.listdir(home.store):  # the last commands have begun an empty store
                shutil.rmtree(f"{home.store}/{name}", ignore_errors=True)
        shutil.rmtree(home.own, ignore_errors=True)
    return 0 if is_done else 1


def is_ours(pid: int) -> bool:
    """Whether it is an agent, shim, pull or build of this user, and not this process."""
    try:
        if pid == os.getpid() or os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return False
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            argv = file.read().split(b"\0")
    except OSError:
        return False  # it has ended
    return argv[1:4] == [b"-I", b"-S", b"-c"] and len(argv) > 4 and OURS in argv[4]


def end(belongs: Callable[[int], bool]) -> None:
    """Send TERM to each of the processes, and KILL to those that are left after END_S."""
    terminated: set[int] = set()
    deadline = time.monotonic() + END_S
    while found := [int(name) for name in os.listdir("/proc") if name.isdecimal() and belongs(int(name))]:
        is_late = time.monotonic() > deadline
        if time.monotonic() > deadline + END_S:
            return  # killed, and still in the kernel
        for pid in found:
            if is_late or pid not in terminated:
                kill(pid, belongs, signal.SIGKILL if is_late else signal.SIGTERM)
                kill(pid, belongs, signal.SIGCONT)  # one under SIGSTOP gets no TERM
        terminated.update(found)
        time.sleep(SCAN_S)


def resume(mark: bytes) -> None:
    """Let go on what somebody has stopped: without its conmon, Podman can end no container."""
    for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
        kill(pid, lambda pid: carries(pid, mark), signal.SIGCONT)


def remove_containers(home: Home) -> bool:
    """Remove the containers of workspaces; whether none is left, False where they cannot be listed."""
    found = containers(home)
    if found:
        for container in found:
            podman(home, "rm", "--force", "--volumes", "--time", str(STOP_S), "--", container)
        found = containers(home)
    return found == []


def containers(home: Home) -> list[str] | None:
    """The ids of the user's containers that are workspaces; None for a store that cannot be read."""
    status, out = podman(
        home, "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL}", timeout_s=LIST_S
    )
    return out.split() if status == 0 else None


def mark_of(home: Home) -> bytes:
    """The variable that Podman has from the service, and all that it has started."""
    return f"CONTAINERS_CONF={home.environment['CONTAINERS_CONF']}".encode()


def end_podman(home: Home) -> None:
    """End the Podman processes of the service, and the namespaces if nothing else runs in them."""
    mark = mark_of(home)
    status, running = podman(home, "ps", "--quiet", timeout_s=LIST_S)
    if status == 0 and not running.split():
        podman(home, "system", "migrate")  # ends the pause process
        end(lambda pid: carries(pid, mark))
    else:
        end(lambda pid: carries(pid, mark) and is_service(pid))


def is_service(pid: int) -> bool:
    """Whether it is Podman's API process, not the one that holds the namespaces of running containers."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"system\0service" in file.read()
    except OSError:
        return False


def podman(home: Home, *arguments: str, timeout_s: int | None = COMMAND_S) -> tuple[int, str]:
    """Exit status and output of one command, TIMED_OUT for one that was killed; its errors go to the log."""
    try:
        done = subprocess.run(
            ["/usr/bin/env", "podman", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True, errors="replace", timeout=timeout_s, env=home.environment, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:  # something of the user's has a lock of the store
        sys.stderr.write(f"{late}\n")
        return TIMED_OUT, ""
    return done.returncode, done.stdout
