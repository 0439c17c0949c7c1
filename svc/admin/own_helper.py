"""A provisioning helper for the length of one `svc admin` command; needs no running server.

Root starts it with one socket pair, "admin", on which it accepts calls from root
alone; it exits when that pair closes. Its log is printed only after a failed
call; a refusal is complete in its message.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from svc.errors import HostRefused, SvcError
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
        failed = False
        try:
            yield Helper(ours, "admin")
        except SvcError as error:
            failed = not isinstance(error, HostRefused)
            raise
        finally:
            ours.close()
            try:
                process.wait(END_WAIT_S)
            except subprocess.TimeoutExpired:
                process.terminate()
            if failed:  # after its exit, so that the log is complete
                log.seek(0)
                sys.stderr.write(log.read(LOG_MAX).decode("ascii", "backslashreplace"))


def _start(settings: Settings, pair: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the helper in a session of its own, so that it completes its step after a Ctrl-C here."""
    return subprocess.Popen(
        start.command(settings, PROGRAM, os.geteuid(), {"admin": pair}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        pass_fds=(pair,),
        env=start.environment(),
        cwd="/",
        start_new_session=True,
    )
