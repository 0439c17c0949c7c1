"""Amounts of bytes as messages say them."""

from __future__ import annotations


def shown(count: int) -> str:
    """As 1.4 GiB: the largest unit that leaves a number of one or more."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
