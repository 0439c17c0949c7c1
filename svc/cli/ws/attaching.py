"""The request for a terminal, with the size of the user's window; light, since it is sent before all else."""

from __future__ import annotations

import os

from svc.client import transport
from svc.client.requests import query
from svc_helper.wire import quick_json

PROTOCOL = "svc-terminal.1"


def attach(path: str, terminal: str, command: list[str] | None = None) -> transport.Upgrade:
    """Ask for a terminal, or for a new one if none is named."""
    cols, rows = size()
    line = quick_json.dumps(command) if command and not terminal else None
    return transport.Upgrade(path + query(id=terminal or None, cols=cols, rows=rows, command=line), PROTOCOL)


def require() -> str:
    """Which of standard input and output is no terminal, in words; empty if both are one."""
    missing = [name for number, name in ((0, "input"), (1, "output")) if not os.isatty(number)]
    return " and ".join(missing)


def size() -> tuple[int, int]:
    """Columns and rows of the window; 80 x 24 if it does not tell."""
    try:
        cols, rows = os.get_terminal_size(0)
    except OSError:
        cols, rows = 0, 0
    return (cols, rows) if cols > 0 and rows > 0 else (80, 24)
