"""`svc admin doctor` of the installed program: what is broken has a code, and its remedy mends it."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from e2e.installation import STATE, Service, run

PAGE = Path(__file__).resolve().parents[2] / "docs/doctor.md"


def test_a_remedy_mends_what_was_found(service: Service, tmp_path: Path) -> None:
    """ "Checks host prerequisites and reports what to fix": 1 when something must be mended."""
    folder = tmp_path / "backups"
    folder.mkdir(mode=0o700)
    env = service.env | {"SVC_BACKUP_DIR": str(folder)}
    rows = re.findall(r"^\| `([\w.]+)` \|", PAGE.read_text(), re.MULTILINE)
    forms = re.compile("|".join(re.sub("FILE|KIND", ".+", re.escape(row)) for row in rows))

    def doctor() -> dict[str, dict[str, str]]:
        said = run("root", "admin", "doctor", "--json", env=env)
        items = said.json()["items"]
        assert (said.code, said.err) == (1 if "fail" in {item["level"] for item in items} else 0, "")
        assert [item["code"] for item in items if not forms.fullmatch(item["code"])] == []
        assert all(bool(item["remedy"]) == (item["level"] != "ok") for item in items)
        return {item["code"]: item for item in items}

    def paste(remedy: str) -> None:
        assert remedy.startswith("sudo svc ")
        run("root", *shlex.split(remedy)[2:], env=env)

    before = doctor()
    sound = ("database", "disk", "inodes", "home", "podman_version", "helper_limits")
    assert {code: before[code]["level"] for code in sound} == dict.fromkeys(sound, "ok")
    assert before["backups"]["level"] == "warn"
    os.chmod(STATE / "audit-head", 0o666)
    loose = doctor()["state_dir.audit-head"]
    assert loose["level"] == "fail"
    for finding in (before["backups"], loose):
        paste(finding["remedy"])
    after = doctor()
    assert "state_dir.audit-head" not in after
    assert (after["backups"]["level"], len(list(folder.glob("svc-*.db")))) == ("ok", 1)
