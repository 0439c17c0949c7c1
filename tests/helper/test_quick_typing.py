"""The quick names of typing do what the standard library's do, as far as programs of ours use them."""

from __future__ import annotations

import subprocess
import sys
import typing
from collections.abc import Callable

import pytest

from svc_helper import interpreter
from svc_helper.wire import quick_typing

PROGRAMS = {
    "agent": "svc_helper.agent.__main__, svc_helper.agent.serve, svc_helper.agent.containers.starts",
    "exec": "svc_helper.agent.containers.exec, svc_helper.agent.containers.piping",
    "shim": "svc_helper.shim.__main__, svc_helper.shim.run, svc_helper.shim.workspace",
}


class Plain(typing.NamedTuple):
    """A point."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        """Of both."""
        return self.x + self.y

    @classmethod
    def origin(cls) -> Plain:
        """Where everything begins."""
        return cls(0, 0)


class Quick(quick_typing.NamedTuple):
    """A point."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        """Of both."""
        return self.x + self.y

    @classmethod
    def origin(cls) -> Quick:
        """Where everything begins."""
        return cls(0, 0)


@pytest.mark.parametrize(
    "use",
    [
        lambda point: (point(1), point(1, 3), point(y=5, x=4)),
        lambda point: (point(1).sum, point.origin(), point(1)._replace(y=9), point(3)._asdict()),
        lambda point: (point._fields, point._field_defaults, point.__doc__, point.__module__),
        lambda point: (point(1) == (1, 2), hash(point(1)), sorted([point(2), point(1)]), [*point(7)]),
        lambda point: (isinstance(point(1), tuple), len({point(1), point(1)})),
        lambda point: repr(point(1)).replace(point.__name__, ""),
    ],
)
def test_a_named_tuple(use: Callable[[typing.Any], object]) -> None:
    assert use(Quick) == use(Plain)


def test_a_named_tuple_refuses_what_is_not_a_field() -> None:
    for wrong in (lambda: Quick(), lambda: Quick(1, 2, 3), lambda: Quick(1, z=1)):  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(AttributeError):
        Quick(1).x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Quick(1).other = 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("modules", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_whose_start_somebody_waits_for_load_no_typing(modules: str) -> None:
    """Nor does anything that they import."""
    code = f"import sys; sys.path.insert(0, {interpreter.SITE!r}); import {modules}; print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", code]
    loaded = subprocess.run(argv, capture_output=True, check=True, text=True).stdout.split()
    assert "typing" not in loaded
