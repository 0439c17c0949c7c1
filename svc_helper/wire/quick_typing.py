"""The names from typing that our programs use, without importing it: a quicker start of the agent.

`import typing` takes a tenth of the agent's start and half a megabyte in each of its processes. Nothing
here checks types at run time; the type checker reads typing itself.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO as IO
    from typing import Any as Any
    from typing import NamedTuple as NamedTuple
    from typing import NoReturn as NoReturn
    from typing import Protocol as Protocol
else:
    IO = Any = NoReturn = object  # for annotations and type aliases

    class Protocol:
        """Base of classes that only describe an interface."""

    class _NamedTuples(type):
        """Creates a named tuple from a class with annotated fields, as typing does."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, members)
            fields = members.pop("__annotations__", {})
            defaults = [members.pop(field) for field in fields if field in members]
            created = namedtuple(name, fields, defaults=defaults, module=members["__module__"])
            for member, value in members.items():
                setattr(created, member, value)
            return created

    class NamedTuple(metaclass=_NamedTuples):
        """Base of named tuple classes."""
