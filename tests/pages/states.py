"""What a screen can look like: each area lists its states, and all are looked at in each width and scheme."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pages.canned import Canned


class State(NamedTuple):
    """One screen in one state, before the canned service.

    `prepare` changes its answers; `shows` is a selector that is there when the state is; `script`, run then,
    opens what a person would (a menu, a dialog).
    """

    path: str
    shows: str
    prepare: Callable[[Canned], None] = lambda _: None
    script: str = ""
    signed_in: bool = True


def every_state() -> dict[str, State]:
    """All states by "area: name"."""
    return {
        f"{file.parent.name}: {name}": state
        for file in sorted(Path(__file__).parent.glob("*/states.py"))
        for name, state in importlib.import_module(f"pages.{file.parent.name}.states").STATES.items()
    }
