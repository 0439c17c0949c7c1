"""Frames of followed output, from an agent to the app: messages of a SOCK_SEQPACKET pair.

A byte says what a frame is. ROWS has a line with a position, the number of a file, the
offset of the first row in it and the bytes of that row's output that were sent before,
and then rows as they are in the files: `TIME STREAM FLAG TEXT`, each with its newline.
"""

from __future__ import annotations

ROWS_MAX = 32 * 1024  # bytes of the rows in one frame
FRAME_MAX = ROWS_MAX + 64

ROWS = b"o"
MISSING = b"k"  # what comes next is not what came after the last row: output between is no longer kept
END = b"e"  # the container or launcher has ended, and all is sent

# A row, as conmon and the shims write it
TIME = slice(0, 35)
STREAM = slice(36, 42)
FLAG = slice(43, 45)
HEAD = 45  # bytes before the text
WHOLE, PARTIAL = b"F ", b"P "  # PARTIAL: without a newline after the text
MARKER = b"marker"  # the stream of what the service noted of a launcher, no output of it


def rows(number: int, offset: int, sent: int, content: bytes) -> bytes:
    """The frame of some rows."""
    return b"%b%d %d %d\n%b" % (ROWS, number, offset, sent, content)
