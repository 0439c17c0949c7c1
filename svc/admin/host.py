"""A helper of `svc admin`'s own: the same program and protocol as the server's, for account calls.

Started by root with one pair, "admin", on which it takes calls from root alone.
It ends by itself when that pair does. Nothing here needs a running server.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from svc.helper import Helper
from svc.settings import Settings

END_WAIT_S = 5


@contextmanager
def own_helper(settings: Settings) -> Iterator[Helper]:
    """A helper for the length of the block."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            process = subprocess.Popen(
                command(settings, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={
                    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "LANG": "C.UTF-8",
                },
                cwd="/",
                start_new_session=True,  # a Ctrl-C here lets it finish the step it is at
            )
        try:
            yield Helper(ours, "admin")
        finally:
            ours.close()
            try:
                process.wait(END_WAIT_S)
            except subprocess.TimeoutExpired:
                process.terminate()


def command(settings: Settings, pair: int) -> list[str]:
    """How the helper is started: isolated, without site, its configuration as one argument."""
    packages = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    start = "from svc_helper.__main__ import main; sys.exit(main())"
    config = {
        "state_dir": settings.state_dir,
        "file_roots": settings.file_roots,
        "app_uid": os.geteuid(),
        "fds": {"admin": pair},
        "systemd": None,
        "single_user": os.geteuid() != 0,
    }
    return [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {packages!r}); {start}",
        "--config",
        json.dumps(config),
    ]
