"""Add up the suites' JUnit files: each skip with its reason, times beside their limits, one closing line.

usage: summary.py DIRECTORY SECONDS SUITE=EXIT...   (exit 1 when anything failed)

A time over its limit is printed, never a failure: machines differ.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ALL = 7  # suites of a full run, besides those on the other Debian
LIMITS_S = {"unit": 60, "all suites": 20 * 60}  # on two processors


class Suite(NamedTuple):
    """What one suite's report and exit status came to."""

    tests: int
    failed: int
    skipped: int
    seconds: float


def read(report: Path, code: str) -> Suite:
    """Count one report; prints its skips, and what broke without a report."""
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
    return Suite(max(len(cases), failed), failed, len(skips), seconds)


def slow(name: str, seconds: float) -> str:
    """The note on a time over its limit."""
    limit_s = LIMITS_S.get(name)
    return f", over its limit of {limit_s} s" if limit_s and seconds > limit_s else ""


def main(directory: str, seconds: str, *suites: str) -> int:
    """Print the summary of the suites that ran."""
    total = Suite(0, 0, 0, float(seconds))
    for argument in suites:
        name, _, code = argument.partition("=")
        suite = read(Path(directory, f"{name}.xml"), code)
        time = f"{suite.seconds:.0f} s{slow(name, suite.seconds)}"
        print(f"{name}: {suite.tests} tests, {suite.failed} failed, {suite.skipped} skipped, {time}")
        total = total._replace(
            tests=total.tests + suite.tests,
            failed=total.failed + suite.failed,
            skipped=total.skipped + suite.skipped,
        )
    if len(suites) >= ALL:
        print(f"all suites: {total.seconds:.0f} s{slow('all suites', total.seconds)}")
    print(
        f"{total.tests - total.failed - total.skipped} passed, {total.failed} failed, {total.skipped} skipped"
    )
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
