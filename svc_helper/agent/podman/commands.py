"""Commands run as the user, for what Podman's API does not offer."""

from __future__ import annotations

import os
import select
import signal
from typing import NamedTuple

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import Process

_OUTPUT_MAX = 8 * 1024 * 1024
_PART = 64 * 1024


class Done(NamedTuple):
    """Exit status, standard output and standard error of a command."""

    status: int
    out: bytes
    err: bytes


def run(podman: Podman, call: Call, *command: str) -> Done:
    """Run a command with the agent's environment until it exits; a Failure of the call kills it."""
    outs = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
    actions = [(os.POSIX_SPAWN_DUP2, writes, number) for number, (_, writes) in enumerate(outs, 1)]
    null = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)
    argv = ["/usr/bin/env", *command]
    try:
        pid = os.posix_spawn(
            argv[0], argv, podman.home.environment, file_actions=[null, *actions], setsid=True
        )
        process = Process(pid)
    finally:
        for _, writes in outs:
            os.close(writes)
    try:
        found = _read(call, [reads for reads, _ in outs])
        call.wait({process.pidfd: select.POLLIN})
        return Done(process.ended() or 0, *found)
    except Failure:
        os.kill(pid, signal.SIGKILL)
        process.wait(1)
        process.ended()
        raise
    finally:
        for reads, _ in outs:
            os.close(reads)


def _read(call: Call, pipes: list[int]) -> tuple[bytes, ...]:
    """Read the pipes until both reach EOF."""
    found = {pipe: bytearray() for pipe in pipes}
    still = set(pipes)
    while still:
        for pipe in call.wait(dict.fromkeys(still, select.POLLIN)):
            part = os.read(pipe, _PART)
            found[pipe] += part
            if not part:
                still.discard(pipe)
            if len(found[pipe]) > _OUTPUT_MAX:
                raise Failure("unavailable", "the command's output is too long")
    return tuple(bytes(text) for text in found.values())
