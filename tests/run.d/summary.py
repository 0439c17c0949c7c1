"""Add up the suites' JUnit files: each skip with its reason, then one closing line.

usage: summary.py DIRECTORY SUITE=EXIT...   (exit 1 when anything failed)
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def main(directory: str, *suites: str) -> int:
    """Print the summary of the suites that ran."""
    passed = failed = skipped = 0
    for suite in suites:
        name, _, code = suite.partition("=")
        report = Path(directory, f"{name}.xml")
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
        bad = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
        skips = [(case, skip) for case in cases if (skip := case.find("skipped")) is not None]
        for case, skip in skips:
            print(f"skipped: {case.get('classname')}::{case.get('name')}: {skip.get('message')}")
        if code != "0" and not bad:  # the suite itself broke: no report, a crash, a time-out
            print(f"failed: the suite {name} ended with exit status {code}")
            bad = 1
        failed += bad
        skipped += len(skips)
        passed += (
            len(cases)
            - len(skips)
            - sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
        )
        seconds = sum(float(case.get("time", 0)) for case in cases)
        print(f"{name}: {len(cases)} tests, {bad} failed, {len(skips)} skipped, {seconds:.0f} s")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
