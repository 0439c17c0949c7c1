"""What measuring and removing a tree need of their caller, and what a measurement gives."""

from __future__ import annotations

from svc_helper.wire.quick_typing import Any, NamedTuple, Protocol


class Size(NamedTuple):
    """Bytes on the disk, names, and whether everything was counted."""

    bytes: int
    files: int
    complete: bool


class Caller(Protocol):
    """What a long walk needs of its Call; namespace_program.py has another."""

    def check(self) -> None:
        """Raise an exception if nobody waits for the reply."""

    def progress(self, facts: dict[str, Any]) -> None:
        """Send a progress message."""
