"""Run `rollback apply` or `update apply` again and again, each time with another call that fails.

usage: failing_switches.py POINTS PLACE PART JSON   with the library preloaded (failing_calls.c)

PLACE has everything: the root of dpkg `host`, `data`, `state` and `recovery`; it is put back before each run.
PART is the directory below PLACE whose files fail. JSON: {argv, target (the version), keys (of releases)}.
Each run is a forked process; afterwards, if a note is left, the one command that it names completes or undoes
it. A run takes a second: with a single POINT only errors are tried. Prints what failing_calls.py does.
"""

from __future__ import annotations

import json
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import failing_calls
from failing_calls import NONE, WAYS, forked, numbers, rows, sound, svc_main

import svc.host.owner
import svc.settings
from svc.admin.backup import package
from svc.admin.release import apply, fetch, rehearsal, rollback, service_unit, signed, switch, update
from svc.db import migrate
from svc.host import switching as note_of

BEFORE_THE_FORKS = (failing_calls, rollback, switch, apply, fetch, rehearsal, signed, update)
KEPT = ("host", "data", "state", "recovery")


def pretend(root: str, keys: list[str]) -> None:
    """This program is the installed package of the place."""
    svc.settings.read_env_file = dict  # type: ignore[assignment]  # no settings of this host
    svc.host.owner.SERVICE_USER = "no-such-account"
    package.ROOT, package.__file__ = root, f"{root}/usr/lib/svc/python/svc/package.py"
    package.LOCK_S = 0.1
    service_unit.SYSTEMD, service_unit.SYSTEMCTL = root, f"{root}/systemctl"
    service_unit.STOPPED_BY_UPGRADE = f"{root}/was-active"
    service_unit.HEALTHY_WITHIN_S, service_unit.EVERY_S = 0.05, 0.02
    migrate.folder = lambda: f"{root}/usr/lib/svc/python/migrations"
    facts: Any = types.SimpleNamespace(COMMIT="1" * 40, LICENSE_KEYS=[], RELEASE_KEYS=keys)
    sys.modules["svc._build"] = facts


class Place:
    """The place, its copy, and what a run has made of it."""

    def __init__(self, path: Path, wanted: dict[str, Any]) -> None:
        self.path = path
        self.wanted = wanted
        self.copy = path / "copy"
        for name in KEPT:
            self._replace(path / name, self.copy / name)

    def put_back(self) -> None:
        """As before the first run."""
        for name in KEPT:
            self._replace(self.copy / name, self.path / name)

    @staticmethod
    def _replace(source: Path, target: Path) -> None:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True)

    def judge(self, code: int, output: str) -> str:
        """`old` or `new`, with `finished` before it where a note was left; `wrong: ...` for anything else."""
        state, database = str(self.path / "state"), str(self.path / "data/svc.db")
        noted = note_of.find(state) is not None
        if noted:
            finished = ["admin", "rollback", "apply", "--finish"]
            _, _, said = forked(0, NONE, "", lambda: svc_main(finished))
            output += said
            if note_of.find(state) is not None:
                return "wrong: it could not be finished"
        version = (self.path / "host/usr/lib/svc/python/version").read_text()
        recorded = (self.path / "host/var/lib/dpkg/status").read_text()
        is_new = version == self.wanted["target"]
        table = bool(rows(database, "SELECT 1 FROM sqlite_master WHERE name = 'of_version_2'"))
        faults = {
            "the database is damaged": not sound(database),
            "a row is lost": rows(database, "SELECT name FROM users WHERE id = 30") != [("before",)],
            "program and database do not fit": table != (version == "2"),
            "dpkg says otherwise": f"Version: {version}\n" not in recorded,
            "success, and the old program": code == 0 and not is_new,
            "the service is stopped": not self._active() and "service is stopped" not in output,
            "a draft was left": any((self.path / "recovery").glob("*.partial")),
        }
        wrong = [text for text, is_so in faults.items() if is_so]
        if wrong:
            return f"wrong: {', '.join(wrong)} (version {version})"
        return f"{'finished ' if noted else ''}{'new' if is_new else 'old'}"

    def _active(self) -> bool:
        return (self.path / "host/unit-state").read_text() == "active\n"


def main(points: int, path: str, part: str, wanted: dict[str, Any]) -> int:
    """Print what each run came to."""
    pretend(f"{path}/host", wanted["keys"])
    place = Place(Path(path), wanted)
    argv = ["admin", *wanted["argv"]]
    sys.argv = ["svc", *argv]
    part = f"{path}/{part}"
    found: list[list[Any]] = []

    def run(way: str, how: int, number: int) -> int:
        code, total, output = forked(how, number, part, lambda: svc_main(argv))
        found.append([way, number, code, place.judge(code, output), output])
        place.put_back()
        return total

    total = run("none", WAYS["error"], NONE)
    ways = {way: WAYS[way] for way in ("error", "errors from then on")} if points == 1 else WAYS
    for way, how in ways.items():
        for number in numbers(total, points):
            run(way, how, number)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:4], json.loads(sys.argv[4])))
