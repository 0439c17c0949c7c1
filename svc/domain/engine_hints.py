"""The next command after an engine's failure, with the names of what was tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from svc.errors import SvcError

if TYPE_CHECKING:
    from svc.errors import Form


@contextmanager
def completing(**names: str) -> Iterator[None]:
    """The block's errors get the hint of their code, the first form for which all names are known."""
    try:
        yield
    except SvcError as error:
        complete(error, **names)
        raise


def complete(error: SvcError, **names: str) -> None:
    """Give an error the hint of its code, unless it has one of its own."""
    if error.hint != error.default_hint:
        return
    for form in error.next_commands:
        if (hint := _filled(form, names)) is not None:
            error.hint = hint
            return


def _filled(form: Form, names: dict[str, str]) -> str | None:
    try:
        return form.format(**names) if isinstance(form, str) else form(names)
    except KeyError:
        return None
