"""A helper of `svc admin`'s own: the same program and protocol as the server's, for account calls.

Started by root with one pair, "admin", on which it takes calls from root alone.
It ends by itself when that pair does. Nothing here needs a running server. What
it logs is shown only when a call failed; a refusal says all there is to say.
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
    """A helper for the length of the block."""
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
            if failed:  # only now has it written all it had to say
                log.seek(0)
                sys.stderr.write(log.read(LOG_MAX).decode("ascii", "backslashreplace"))


def start(settings: Settings, pair: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """The helper's process; a session of its own, so that a Ctrl-C here lets it finish its step."""
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
    """How the helper is started: isolated, without site, its configuration as one argument."""
    config = {
        "state_dir": settings.state_dir,
        "file_roots": settings.file_roots,
        "app_uid": os.geteuid(),
        "fds": {"admin": pair},
        "systemd": None,
        "single_user": os.geteuid() != 0,
    }
    return interpreter.command("svc_helper.provision.__main__", "--config", json.dumps(config))
