"""Timing two commands in turn: A B A B ..., so that a drift of the machine hits both."""

from __future__ import annotations

import os
import pwd
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table: ours and theirs in a unit, the ratio pair by pair, and its bar."""

    name: str
    ours: float
    theirs: float
    ratio: float
    bar: float | None
    unit: str = "ms"
    reach: float | None = None
    higher_is_better: bool = False
    slack: float = 0.0  # in the unit: ours may be slower by so much, whatever the ratio

    @property
    def met(self) -> bool:
        """Whether the bar is met (rows without one always are)."""
        return self._holds(self.bar) or 0 < self.slack >= self.ours - self.theirs

    @property
    def reached(self) -> bool:
        """Whether the reach is met (rows without one always are)."""
        return self._holds(self.reach)

    def _holds(self, limit: float | None) -> bool:
        if limit is None:
            return True
        return self.ratio >= limit if self.higher_is_better else self.ratio <= limit


def nothing() -> None:
    """What most programs need before them."""


class Side(NamedTuple):
    """One side of a pair: what is timed, and what must be done before each time (not timed)."""

    run: Callable[[], object]
    before: Callable[[], object] = nothing


class Shell:
    """Runs whole programs as one Linux user, with nothing read from them but their exit code."""

    def __init__(self, user: str, env: Mapping[str, str]) -> None:
        self.account = pwd.getpwnam(user)
        home = self.account.pw_dir
        self.env = dict(env) | {
            "HOME": home,
            "USER": user,
            "XDG_RUNTIME_DIR": f"/run/user/{self.account.pw_uid}",
        }
        self.groups = os.getgrouplist(user, self.account.pw_gid)

    def __call__(self, *argv: str) -> None:
        """Run to the end; raises RuntimeError with the program's words when it fails."""
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=self.env,
            cwd=self.account.pw_dir,
            user=self.account.pw_uid,
            group=self.account.pw_gid,
            extra_groups=self.groups,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(argv)}: {(done.stderr or done.stdout).decode(errors='replace')}")

    def side(self, *argv: str, before: Callable[[], object] = nothing) -> Side:
        """A side that runs this program."""
        return Side(lambda: self(*argv), before)


RESOLVE_S = 0.3  # after what comes before: the end of a container goes on for a while after its stop


def timed(side: Side) -> float:
    """Milliseconds of one run, wall clock."""
    if side.before is not nothing:
        side.before()
        time.sleep(RESOLVE_S)
    began = time.perf_counter()
    side.run()
    return (time.perf_counter() - began) * 1000


def pair(
    name: str,
    ours: Side,
    theirs: Side,
    *,
    bar: float | None = None,
    reach: float | None = None,
    rounds: int = 15,
    slack: float = 0.0,
) -> Row:
    """Medians of both sides and of the ratios of `rounds` pairs, after one unmeasured pair."""
    timed(ours), timed(theirs)
    pairs: Sequence[tuple[float, float]] = [(timed(ours), timed(theirs)) for _ in range(rounds)]
    return Row(
        name,
        statistics.median(mine for mine, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(mine / other for mine, other in pairs),
        bar,
        reach=reach,
        slack=slack,
    )


def show(rows: Sequence[Row]) -> str:
    """The table, one row a line, `!` where a bar is not met."""
    lines = [f"{'what':<44}{'svc':>10}{'other':>10}  unit   ratio        bar  reach"]
    for row in rows:
        sign = ">=" if row.higher_is_better else "<="
        slack = f"+{row.slack:g}" if row.slack else ""
        bar = f"{sign}{row.bar:g}{slack}" if row.bar is not None else ""
        reach = f"{sign}{row.reach:g}" if row.reach is not None else ""
        mark = "" if row.met else "  !"
        figures = f"{row.ours:>10.1f}{row.theirs:>10.1f}  {row.unit:<6}{row.ratio:>6.2f}"
        lines.append(f"{row.name:<44}{figures} {bar:>10} {reach:>6}{mark}")
    return "\n".join(lines)
