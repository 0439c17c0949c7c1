"""Commands run as the user, for what Podman's API lacks."""

from __future__ import annotations

import select

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.output import Output
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import start
from svc_helper.wire.quick_typing import NamedTuple

_OUTPUT_MAX = 8 * 1024 * 1024


class Done(NamedTuple):
    """Exit status and output of a command."""

    status: int
    out: bytes
    err: bytes


def run(podman: Podman, call: Call, *command: str) -> Done:
    """Run a command with the agent's environment; killed when the call fails."""
    output = Output(_OUTPUT_MAX)
    try:
        fds = dict(enumerate((None, *output.writing)))
        process = start(["/usr/bin/env", *command], podman.home.environment, fds, setsid=True)
        output.close_writing()
        try:
            while output.reading and not output.truncated:
                for fd in call.wait(dict.fromkeys(output.reading, select.POLLIN)):
                    output.take(fd)
            if output.truncated:
                raise Failure("unavailable", "the command's output is too long")
            call.wait({process.pidfd: select.POLLIN})
        except Failure:
            process.finish(0)
            raise
        return Done(process.ended() or 0, bytes(output.stdout), bytes(output.stderr))
    finally:
        output.close()
