"""Names that are unique for each owner, by constraints of the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import peewee

from svc.db.connect import write
from svc.errors import NameTaken


@contextmanager
def taking(noun: str, name: str) -> Iterator[None]:
    """A write transaction in which a violated unique name raises NameTaken."""
    try:
        with write():
            yield
    except peewee.IntegrityError as error:
        if "UNIQUE" not in str(error):
            raise
        raise taken(noun, name) from None


def taken(noun: str, name: str) -> NameTaken:
    """The error for a name that is in use."""
    return NameTaken(
        f"there is already a {noun} {name}",
        hint=f"svc {'ws' if noun == 'workspace' else noun} list",
        fields=[{"field": "name", "code": "taken", "message": f"there is a {noun} of this name"}],
    )
