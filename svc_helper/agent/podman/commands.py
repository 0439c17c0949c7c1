"""Commands run as the user, for what Podman's API lacks."""

from __future__ import annotations

import os
import select
from typing import NamedTuple

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import start

_OUTPUT_MAX = 8 * 1024 * 1024
_PART = 64 * 1024


class Done(NamedTuple):
    """Exit status and output of a command."""

    status: int
    out: bytes
    err: bytes


def run(podman: Podman, call: Call, *command: str) -> Done:
    """Run a command with the agent's environment; killed when the call fails."""
    outs = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
    argv = ["/usr/bin/env", *command]
    try:
        fds = {0: None, 1: outs[0][1], 2: outs[1][1]}
        process = start(argv, podman.home.environment, fds, setsid=True)
    finally:
        for _, writes in outs:
            os.close(writes)
    try:
        found = _read(call, [reads for reads, _ in outs])
        call.wait({process.pidfd: select.POLLIN})
        return Done(process.ended() or 0, *found)
    except Failure:
        process.finish(0)
        raise
    finally:
        for reads, _ in outs:
            os.close(reads)


def _read(call: Call, pipes: list[int]) -> tuple[bytes, ...]:
    """Read both pipes to their end."""
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
