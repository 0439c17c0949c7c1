"""A provisioning helper for the length of one `svc admin` command; needs no running server.

Root starts it with one socket pair, "admin", on which it accepts calls from root
alone; it exits when that pair closes. Its replies say why a call failed; only
for a helper that sent none, the end of its log is put into the message.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from svc.errors import EngineTimeout, EngineUnavailable, SvcError
from svc.helper import start
from svc.helper.helper import Helper
from svc.settings import Settings

PROGRAM = "svc_helper.provision.__main__"
END_WAIT_S = 5
LOG_MAX = 16 * 1024


@contextmanager
def own_helper(settings: Settings) -> Iterator[Helper]:
    """A running helper for the length of the block."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, tempfile.TemporaryFile() as log:
        with theirs:
            process = _start(settings, theirs.fileno(), log)
        unanswered: SvcError | None = None
        try:
            yield Helper(ours, "admin")
        except (EngineUnavailable, EngineTimeout) as error:
            unanswered = error
        finally:
            ours.close()
            try:
                process.wait(END_WAIT_S)
            except subprocess.TimeoutExpired:
                process.terminate()
        if unanswered is not None:  # after its exit, so that the log is complete
            log.seek(0)
            why = final_reason(log.read(LOG_MAX).decode("ascii", "backslashreplace"))
            known = not why or why in unanswered.message
            message = unanswered.message if known else f"{unanswered.message}: {why}"
            raise type(unanswered)(message, hint=unanswered.hint)


def final_reason(log: str) -> str:
    """The reason on the last line of the helper's log; of a traceback the error."""
    line = (log.splitlines() or [""])[-1]
    try:
        facts = json.loads(line)
        return str(facts.get("why") or facts.get("message", ""))
    except (ValueError, AttributeError):
        return line.strip()


def _start(settings: Settings, pair: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the helper in a session of its own, so that it completes its step after a Ctrl-C here."""
    return subprocess.Popen(
        start.command(settings, PROGRAM, {"admin": pair}, {"admin": os.geteuid()}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        pass_fds=(pair,),
        env=start.environment(),
        cwd="/",
        start_new_session=True,
    )
