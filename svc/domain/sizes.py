"""Amounts of bytes in messages."""

from __future__ import annotations


def format_bytes(count: int) -> str:
    """Such as 1.4 GiB: in the largest unit in which the number is at least one."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
