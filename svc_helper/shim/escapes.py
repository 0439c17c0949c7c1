"""Reads along with a terminal's output: the window's title, the modes, and where a reader may begin.

It knows just enough of ECMA-48 and xterm for that: string sequences (OSC, DCS and
their kin), which may be long, and the private modes that outlive their program's
output. Everything is bounded, whatever is printed.
"""

from __future__ import annotations

import re

TITLE_MAX = 256  # characters
_STRING_MAX = 4 * TITLE_MAX + 16  # bytes of a string sequence that are kept
_CARRIED_MAX = 128  # bytes of an incomplete sequence; a longer one is none
_BEGIN = re.compile(rb"\x1b[\]PX^_]")
_END_OSC = re.compile(rb"[\x07\x18\x1a\x1b]")
_END = re.compile(rb"[\x18\x1a\x1b]")
_MODES = re.compile(rb"\x1b(?:\[\?([0-9;]{1,64})([hl])|(c))")
_INCOMPLETE = re.compile(rb"\x1b(?:[ -/]*|\[[0-?]*[ -/]*)\Z")
# Cursor keys, wrapping, cursor, mouse, focus, alternate screen, bracketed paste: with what a terminal begins.
_DEFAULTS = {1: False, 7: True, 25: True, 47: False, 1000: False, 1002: False, 1003: False, 1004: False,
             1005: False, 1006: False, 1015: False, 1047: False, 1049: False, 2004: False}  # fmt: skip
_ESC = 0x1B

Modes = tuple[tuple[int, bool], ...]


class Reader:
    """The state of a terminal's output after what was fed."""

    def __init__(self) -> None:
        self.title = ""
        self._modes: dict[int, bool] = {}
        self._string: bytearray | None = None  # the kept part of a string sequence that has not ended
        self._is_osc = False
        self._carried = b""
        self._last = b""  # for a character that is incomplete

    def feed(self, part: bytes) -> None:
        """Read on."""
        self._last = (self._last + part[-3:])[-3:]
        if self._string is None and not self._carried and _ESC not in part:
            return
        data, at = self._carried + part, 0
        while True:
            if self._string is not None:
                end = (_END_OSC if self._is_osc else _END).search(data, at)
                room = max(0, _STRING_MAX - len(self._string))
                until = end.start() if end else len(data)
                self._string += data[at : min(until, at + room)]
                if end is None:
                    self._carried = b""
                    return
                self._end_string()
                at = until if data[until] == _ESC else until + 1
            begin = _BEGIN.search(data, at)
            self._read_modes(data[at : begin.start() if begin else len(data)])
            if begin is None:
                break
            self._string, self._is_osc, at = bytearray(), data[begin.end() - 1] == ord("]"), begin.end()
        found = _INCOMPLETE.search(data, max(at, len(data) - _CARRIED_MAX))
        self._carried = found[0] if found else b""

    def incomplete(self) -> int | None:
        """How many bytes at the end are an incomplete sequence or character; None within a string sequence.

        A reader may begin before them.
        """
        if self._string is not None:
            return None
        return len(self._carried) or _cut(self._last)

    def modes(self) -> Modes:
        """The private modes that are not as in a new terminal."""
        return tuple(sorted(self._modes.items()))

    def _read_modes(self, data: bytes) -> None:
        for match in _MODES.finditer(data):
            if match[3]:  # a full reset
                self._modes = {}
                continue
            for number in match[1].split(b";"):
                mode, is_set = int(number or b"0"), match[2] == b"h"
                if mode not in _DEFAULTS:
                    continue
                if _DEFAULTS[mode] == is_set:
                    self._modes.pop(mode, None)
                else:
                    self._modes[mode] = is_set

    def _end_string(self) -> None:
        number, _, text = bytes(self._string or b"").partition(b";")
        if self._is_osc and number in (b"0", b"2"):
            self.title = _printable(text)
        self._string = None


def setting(modes: Modes) -> bytes:
    """The sequences that set these modes in a new terminal."""
    return b"".join(b"\x1b[?%d%s" % (mode, b"h" if is_set else b"l") for mode, is_set in modes)


def _printable(text: bytes) -> str:
    clean = (char if char.isprintable() else " " for char in text.decode(errors="replace")[:TITLE_MAX])
    return "".join(clean).strip()


def _cut(last: bytes) -> int:
    """The bytes of an incomplete UTF-8 character at the end."""
    for back, byte in enumerate(reversed(last), 1):
        if 0xC0 <= byte < 0xF8:
            return back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            return 0
    return 0
