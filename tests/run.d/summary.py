"""Add up the suites' JUnit files: each skip with its reason, what each took, and one closing line.

usage: summary.py DIRECTORY DEPTH SECONDS SUITE=EXIT...   (exit 1 when anything failed)

Processor time over a limit is a failure. Wall time is printed only: machines differ, and may be busy.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

LIMITS_S = {"all suites": 20 * 60}  # wall time, on two processors
# User and system time of a suite and its children, the browser's too. With a margin for a machine whose
# processors are shared: where both threads of a core are busy, a second of each does less.
PROCESSOR_LIMITS_S = {"unit": 420, "all suites": 50 * 60}


class Suite(NamedTuple):
    """What one suite's report and exit status came to."""

    tests: int
    failed: int
    skipped: int
    seconds: float


def read(report: Path, code: str) -> Suite:
    """Count one report, of which a suite without one is a single test; print its skips, and what broke."""
    root = ElementTree.parse(report).getroot() if report.exists() else ElementTree.Element("testsuites")
    cases = list(root.iter("testcase"))
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skips = [(case, skip) for case in cases if (skip := case.find("skipped")) is not None]
    for case, skip in skips:
        print(f"skipped: {case.get('classname')}::{case.get('name')}: {skip.get('message')}")
    if code != "0" and not failed:  # the suite itself broke: no report, a crash, a timeout
        print(f"failed: the suite {report.stem} ended with exit status {code}")
        failed = 1
    seconds = sum(float(suite.get("time", 0)) for suite in root.iter("testsuite"))
    tests = len(cases) if report.exists() else 1
    return Suite(max(tests, failed), failed, len(skips), seconds)


def slow(name: str, seconds: float) -> str:
    """The note on a wall time over its limit."""
    limit_s = LIMITS_S.get(name)
    return f", over its limit of {limit_s} s" if limit_s and seconds > limit_s else ""


def costly(name: str, depth: str, seconds: float) -> bool:
    """Whether processor time is over its limit, which is said."""
    limit_s = PROCESSOR_LIMITS_S.get(name)
    if depth != "change" or limit_s is None or seconds <= limit_s:
        return False
    print(f"failed: {name} took {seconds:.0f} s of processor time, more than its limit of {limit_s} s")
    return True


def processor_s(directory: Path, suite: str) -> float:
    """User and system time of a suite and its children; 0 where it was not measured."""
    noted = directory / f"{suite}.processor"
    return int(noted.read_text()) / 1000 if noted.exists() else 0


def left_out(directory: Path, depth: str, suites: list[str]) -> str:
    """How many tests of which suites the depth has left out, and how they run; empty when there are none."""
    counts: dict[str, dict[str, int]] = {}
    for suite in suites:
        noted = directory / f"{suite}.left-out"
        for deeper, count in (json.loads(noted.read_text()) if noted.exists() else {}).items():
            counts.setdefault(deeper, {})[suite] = count
    rows = [
        f"--depth {deeper} adds {', '.join(f'{suite} {count}' for suite, count in by_suite.items())}"
        for deeper, by_suite in sorted(counts.items())
    ]
    return f"left out at depth {depth}: {'; '.join(rows)}" if rows else ""


def main(folder: str, depth: str, seconds: str, *suites: str) -> int:
    """Print the summary of the suites that ran."""
    directory = Path(folder)
    total = Suite(0, 0, 0, float(seconds))
    names, processor, over = [], 0.0, 0
    for argument in suites:
        name, _, code = argument.partition("=")
        names.append(name)
        suite, used = read(directory / f"{name}.xml", code), processor_s(directory, name)
        processor += used
        time = f"{suite.seconds:.0f} s{slow(name, suite.seconds)}, {used:.0f} s of processor time"
        print(f"{name}: {suite.tests} tests, {suite.failed} failed, {suite.skipped} skipped, {time}")
        over += costly(name, depth, used)
        total = total._replace(
            tests=total.tests + suite.tests,
            failed=total.failed + suite.failed,
            skipped=total.skipped + suite.skipped,
        )
    if {"unit", "e2e"} <= set(names):  # a run without names
        wall = f"{total.seconds:.0f} s{slow('all suites', total.seconds)}"
        print(f"all suites: {wall}, {processor:.0f} s of processor time")
        over += costly("all suites", depth, processor)
    if row := left_out(directory, depth, names):
        print(row)
    passed = total.tests - total.failed - total.skipped
    print(f"{passed} passed, {total.failed + over} failed, {total.skipped} skipped")
    return 1 if total.failed + over else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
