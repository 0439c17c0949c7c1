"""A provisioning helper for the length of one `svc admin` command; needs no running server.

Root starts it with one socket pair, "admin", on which it accepts calls from root
alone; it exits when that pair closes. Its log is printed only after a failed
call; a refusal is complete in its message.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from svc.errors import HostRefused, SvcError
from svc.helper.helper import Helper
from svc.settings import Settings
from svc_helper import interpreter

END_WAIT_S = 5
LOG_MAX = 16 * 1024


@contextmanager
def own_helper(settings: Settings) -> Iterator[Helper]:
    """A running helper for the length of the block."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, tempfile.TemporaryFile() as log:
        with theirs:
            process = start(settings, theirs.fileno(), log)
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


def start(settings: Settings, pair: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the helper in a session of its own, so that it completes its step after a Ctrl-C here."""
    return subprocess.Popen(
        command(settings, pair),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        pass_fds=(pair,),
        env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
        cwd="/",
        start_new_session=True,
    )


def command(settings: Settings, pair: int) -> list[str]:
    """The helper's command line: isolated, without site, its configuration as one argument."""
    config = {
        "state_dir": settings.state_dir,
        "file_roots": settings.file_roots,
        "app_uid": os.geteuid(),
        "fds": {"admin": pair},
        "systemd": None,
        "single_user": os.geteuid() != 0,
    }
    return interpreter.command("svc_helper.provision.__main__", "--config", json.dumps(config))
