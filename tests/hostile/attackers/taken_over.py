"""What a taken-over app tries, started as the supervisor starts the app: prints what it got as JSON.

usage: taken_over.py TCP-PORT
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import sys
import termios
from collections.abc import Callable
from typing import Any

KEYCTL, GET_KEYRING_ID, SESSION = 250, 0, -3


def tried(act: Callable[[], Any]) -> Any:
    """The result of an attempt; None when it is refused."""
    try:
        return act()
    except OSError:
        return None


def type_into(number: int) -> bool:
    """Type a character into a terminal's input, if the descriptor is one."""
    fcntl.ioctl(number, termios.TIOCSTI, b"!")
    return True


def connected(port: int) -> bool:
    """Connect to a listener of this host."""
    with socket.create_connection(("127.0.0.1", port), 2):
        return True


def wrote(path: str) -> bool:
    """Create a file where every user of the host may."""
    with open(path, "x", encoding="ascii"):
        return True


def main() -> None:
    """Try everything."""
    libc = ctypes.CDLL(None, use_errno=True)
    print(json.dumps({
        "typed": [bool(tried(lambda number=number: type_into(number))) for number in (0, 1, 2)],
        "terminal": tried(lambda: os.open("/dev/tty", os.O_RDWR)) is not None,
        "keyring": libc.syscall(KEYCTL, GET_KEYRING_ID, SESSION, 0),
        "buses": {
            path: tried(lambda path=path: os.listdir(path))
            for path in ("/run/dbus", "/run/systemd", "/run/user", "/home")
        },
        "connected": bool(tried(lambda: connected(int(sys.argv[1])))),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "wrote": bool(tried(lambda: wrote(f"/run/lock/tsz-{os.getpid()}"))),
        "sees_tmp": os.listdir("/tmp"),
    }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
