"""Reports of what root keeps: administrators read them in the API, nobody but root changes them."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from pathlib import Path

from e2e.installation import STATE, Call, Service, run
from e2e.surroundings import must

PATHS = ("backups", "recovery-sets", "host")
REPORTS = STATE / "reports"


def test_administrators_read_what_root_reports(service: Service, svc: Call, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir(mode=0o700)
    env = service.env | {"SVC_BACKUP_DIR": str(folder), "SVC_RECOVERY_DIR": str(tmp_path / "recovery")}
    (tmp_path / "recovery").mkdir(mode=0o700)
    must(run("root", "admin", "backup", "--retention", "3", env=env))
    said = run("root", "admin", "report", env=env)
    assert (said.code, said.out, said.err) == (0, "", "")
    for path in PATHS:
        page = must(svc("root", "api", "GET", f"/api/admin/{path}?limit=200")).json()
        assert (page["report"]["old"], page["report"]["age_s"] < 3600) == (False, True), path
        assert svc("tse-alice", "api", "GET", f"/api/admin/{path}").code == 1
        if path == "backups":
            [item] = page["items"]
            assert (folder / item["name"]).stat().st_size == item["size_bytes"]
    updates = must(svc("root", "api", "GET", "/api/admin/updates")).json()["updates"]
    assert updates["installed_by"] in ("checkout", "package")
    chain = must(svc("root", "api", "GET", "/api/admin/audit/chain")).json()
    assert chain["level"] == "ok" and chain["head"]["id"] > 0
    names = {item["name"] for item in must(svc("root", "api", "GET", "/api/admin/users")).json()["items"]}
    assert {"root", "tse-alice", "tse-bob"} <= names


def may(user: str, how: str, path: Path) -> bool:
    """What the kernel says to a process of that user; the app's accounts have no home to begin in."""
    account = pwd.getpwnam(user)
    done = subprocess.run(
        ["/usr/bin/test", how, str(path)],
        cwd="/",
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        check=False,
    )
    return done.returncode == 0


def test_only_root_changes_them_and_only_the_app_reads_them(service: Service) -> None:
    must(run("root", "admin", "report", env=service.env))
    files = [REPORTS, *sorted(REPORTS.iterdir())]
    assert len(files) == 5
    for path in files:
        status = os.stat(path)
        assert (status.st_uid, stat.S_IMODE(status.st_mode) & 0o027) == (0, 0), path
        for user in ("svc-unix", "svc-tls", "tse-alice", "nobody"):
            assert may(user, "-r", path) == user.startswith("svc-"), (user, path)
            assert not may(user, "-w", path), (user, path)
    doctor = run("root", "admin", "doctor", "--json", env=service.env).json()["items"]
    assert not [item for item in doctor if "reports" in item["code"]]
