"""Frames between a viewer of a terminal and the workspace's shim, and those of `ctr.pipe`.

One message of a SOCK_SEQPACKET pair is one frame: a byte that says what it is, and
its content. The app makes the pair, so that no descriptor ever comes from the
user's side; docs/helper-protocol.md has the whole conversation.
"""

from __future__ import annotations

import json

from svc_helper.wire import strict_json
from svc_helper.wire.arguments import ProtocolError as ProtocolError
from svc_helper.wire.limits import TERMINAL_SIDE_MAX
from svc_helper.wire.quick_typing import Any

DATA_MAX = 32 * 1024  # bytes of one frame's content
FRAME_MAX = DATA_MAX + 1
FACTS_MAX = 4096  # of one whose content is JSON

# From the viewer
INPUT = b"i"  # bytes typed, or of the standard input
SIZE = b"r"  # {"cols", "rows"}: of the viewer's window
INPUT_END = b"z"  # of `ctr.pipe`: the end of the standard input
# To the viewer
OUTPUT = b"o"  # bytes of the terminal, or of the standard output
ERRORS = b"f"  # of `ctr.pipe`: bytes of the standard error
STATE = b"s"  # {"title", "cols", "rows"}: at first, and whenever one has changed
SKIPPED = b"k"  # {"bytes"}: the viewer did not keep up; the screen begins anew with what follows
END = b"e"  # {"reason", "exit_code"}: last

REASONS = ("exited", "closed", "idle", "stopped")


def facts(kind: bytes, content: dict[str, Any]) -> bytes:
    """The frame of a JSON object."""
    return kind + json.dumps(content, separators=(",", ":")).encode()


def read_facts(untrusted: bytes) -> dict[str, Any]:
    """The JSON object of a frame's content; raises ProtocolError."""
    if len(untrusted) > FACTS_MAX:
        raise ProtocolError("over-long frame")
    try:
        return strict_json.load_object(untrusted, depth_max=2, brackets_max=8)
    except strict_json.Malformed as error:
        raise ProtocolError(f"the frame {error}") from None


def read_size(untrusted: dict[str, Any]) -> tuple[int, int]:
    """(columns, rows); raises ProtocolError."""
    cols, rows = untrusted.get("cols"), untrusted.get("rows")
    for side in (cols, rows):
        if type(side) is not int or not 1 <= side <= TERMINAL_SIDE_MAX:
            raise ProtocolError("not the size of a window")
    return cols, rows  # type: ignore[return-value]  # checked in the loop
