"""Detach keys, as podman's: a sequence such as ctrl-p,ctrl-q that leaves a terminal, and lets it run on."""

from __future__ import annotations

DEFAULT = "ctrl-p,ctrl-q"
CONTROLS = {"@": 0, "[": 27, "\\": 28, "]": 29, "^": 30, "_": 31}


def keys(text: str) -> bytes:
    """The bytes of a sequence: single characters and ctrl-KEY, with commas between; empty: none."""
    found = bytearray()
    for key in text.split(",") if text else ():
        name = key.lower().removeprefix("ctrl-")
        if key.lower().startswith("ctrl-") and len(name) == 1 and ("a" <= name <= "z" or name in CONTROLS):
            found.append(CONTROLS[name] if name in CONTROLS else ord(name) - ord("a") + 1)
        elif len(key) == 1 and key.isascii() and key.isprintable():
            found.append(ord(key))
        else:
            raise ValueError(
                f"{key!r} is no key: write one character, or ctrl- and a letter or one of @[\\]^_"
            )
    return bytes(found)


class Detector:
    """Finds the sequence in what is typed, however it comes in parts."""

    def __init__(self, sequence: bytes) -> None:
        self.sequence = sequence
        self.found = False
        self._held = b""  # the beginning of the sequence, until the next key

    def pass_on(self, typed: bytes) -> bytes:
        """What the terminal gets of it; `found` tells whether the sequence was in it."""
        if not self.sequence:
            return typed
        data = self._held + typed
        at = data.find(self.sequence)
        if at >= 0:
            self.found, self._held = True, b""
            return data[:at]
        held = next(
            (count for count in range(len(self.sequence) - 1, 0, -1) if data.endswith(self.sequence[:count])),
            0,
        )
        self._held = data[len(data) - held :]
        return data[: len(data) - held]
