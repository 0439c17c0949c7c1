"""Types shared by the measurement and the removal of trees: the caller, and the size measured."""

from __future__ import annotations

from svc_helper.wire.quick_typing import Any, NamedTuple, Protocol


class Size(NamedTuple):
    """Bytes on the disk, number of names, and whether everything was counted."""

    bytes: int
    files: int
    complete: bool


class Caller(Protocol):
    """The part of a Call that a long walk uses; namespace_program.py implements it too."""

    def check(self) -> None:
        """Raise an exception if nobody waits for the reply any more."""

    def progress(self, facts: dict[str, Any]) -> None:
        """Send a progress message."""
