"""Restores: what comes back, what does not, what is kept, and runs that end in the middle."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.admin.conftest import Svc
from unit.admin.killing import STRIDE, run_until
from unit.admin.rows import ask, change, user, workspace

from svc.__main__ import build_parser
from svc.admin.audit_heads import RootsHeads
from svc.db.connect import close_database
from svc.host import restoring


def test_what_was_ended_since_does_not_come_back(
    svc: Svc, database: str, snapshot: str, recovery: Path
) -> None:
    change(
        database,
        "UPDATE tokens SET ended_at = 'now', end_reason = 'revoked' WHERE id = 'tok-2'",
        "UPDATE users SET disabled = 1, superuser = 1, password_closed = 1 WHERE id = 20",
        "DELETE FROM tokens WHERE user_id = 21",
        "DELETE FROM users WHERE id = 21",
        "UPDATE users SET name = 'eve:5022', uid = NULL, disabled = 1, provisioning = 'incomplete'"
        " WHERE id = 22",
        "UPDATE users SET superuser = 0 WHERE id = 23",
        user(30, "new"),
        workspace(9, "stopped"),
        "INSERT OR REPLACE INTO facts VALUES ('time_seen', '2027-01-01T00:00:00.000Z')",
    )
    code, out, err = svc("restore", snapshot, "--yes")
    assert code == 0, err
    beside = sorted(path.name for path in Path(database).parent.iterdir())
    assert beside == ["secret.key", "svc.db", "svc.db.lock"]
    assert "1 workspace: w9" in out
    assert "1 session ended; 2 tokens revoked; 3 accounts closed again" in out
    assert ask(database, "SELECT id FROM tokens WHERE ended_at IS NULL") == [("tok-1",)]
    assert ask(database, "SELECT name, disabled, superuser FROM users WHERE id >= 20 ORDER BY id") == [
        ("ada", 1, 0),
        ("bob", 1, 0),
        ("eve:5022", 1, 0),
        ("root2", 0, 0),
    ]
    # Too short for a superuser, which ada was not then; of bob, who was deleted, it stays closed.
    closed = ask(database, "SELECT id, password_closed FROM users WHERE id IN (20, 21) ORDER BY id")
    assert closed == [(20, 0), (21, 1)]
    assert ask(database, "SELECT id, status, status_reason FROM workspaces ORDER BY id") == [
        ("ws-1", "failed", "restored"),  # it may run, on the GPU that it held
        ("ws-2", "stopped", "restored"),
        ("ws-3", "stopped", None),
    ]
    assert ask(database, "SELECT gpu, workspace_id, mode FROM gpu_leases") == [("GPU-1", "ws-1", "exclusive")]
    for empty in ("sessions", "operations WHERE status = 'queued'"):
        assert ask(database, f"SELECT count(*) FROM {empty}") == [(0,)], empty
    assert ask(database, "SELECT value FROM facts WHERE name = 'time_seen'") == [
        ("2027-01-01T00:00:00.000Z",)
    ]
    (kept,) = recovery.iterdir()
    assert sorted(os.listdir(kept)) == ["manifest.json", "svc.db", "svc.db.host.tar", "svc.db.json"]
    manifest = json.loads((kept / "manifest.json").read_text())
    assert (manifest["id"], manifest["why"]) == (kept.name, f"svc admin restore {snapshot}")
    assert ask(str(kept / "svc.db"), "SELECT name FROM users WHERE id = 30") == [("new",)]
    assert f"what it replaced: sudo svc admin restore {kept}/svc.db --db {database}\n" in out
    code, out, _ = svc("restore", str(kept / "svc.db"), "--yes")
    assert code == 0
    assert ask(database, "SELECT name FROM users WHERE id = 30") == [("new",)], (
        "what it replaced can be restored"
    )


def test_the_doctor_is_told_of_it(
    svc: Svc, database: str, snapshot: str, tmp_path: Path, chain_of: Callable[[str], str]
) -> None:
    """Root's memory of the audit follows a restore that root asked for, and no other."""
    for name in ("ada", "bob"):
        assert svc("revoke-tokens", name)[0] == 0
    assert chain_of(database) == "ok"
    heads = RootsHeads(str(tmp_path / "state"), "audit-head")
    before = heads.get(database)
    assert svc("restore", snapshot, "--yes")[0] == 0
    assert heads.get(database) != before
    assert chain_of(database) == "ok"
    line = json.loads((tmp_path / "state" / "restores").read_text())
    assert line["head_before"] == list(before)
    change(database, "DROP TRIGGER audit_keeps_its_values", "UPDATE audit SET action = 'x'")
    assert chain_of(database) == "fail"


def test_the_doctor_names_the_command_for_an_interrupted_one(database: str, tmp_path: Path) -> None:
    from svc.admin.checks.audit import audit_chain
    from svc.admin.checks.database import database as of_database
    from svc.admin.doctor import run
    from svc.admin.findings import Host
    from svc.host.owner import owner_of
    from svc.settings import Settings

    restoring.put(str(tmp_path / "state"), {"database": database})
    (finding,) = run([of_database, audit_chain], Host(Settings(), database, owner_of(database)))
    assert finding.level == "fail"
    assert finding.remedy == f"sudo svc admin restore --finish --db {database}"


@pytest.fixture
def chain_of(svc: Svc) -> Callable[[str], str]:
    """The level of the doctor's check of the audit."""

    def level(database: str) -> str:
        from svc.admin.checks.audit import audit_chain
        from svc.admin.findings import Host
        from svc.host.owner import owner_of
        from svc.settings import Settings

        close_database()
        (finding,) = audit_chain(Host(Settings(), database, owner_of(database)))
        return finding.level

    return level


@pytest.mark.parametrize("damage", ["halved", "changed", "text", "newer", "link", "missing", "pipe"])
def test_a_bad_snapshot_changes_nothing(
    svc: Svc, database: str, snapshot: str, recovery: Path, damage: str
) -> None:
    path, whole = Path(snapshot), Path(database).read_bytes()
    assert "Without a terminal this needs --yes" in svc("restore", snapshot)[2]
    if damage == "halved":
        os.truncate(path, path.stat().st_size // 2)
    elif damage == "changed":
        change(snapshot, "UPDATE users SET superuser = 1")
    elif damage == "text":
        path.write_text("no database")
    elif damage == "newer":
        change(
            snapshot, "INSERT INTO schema_migrations VALUES (999, 'x', 'x', 'x')", "PRAGMA user_version = 999"
        )
        Path(f"{snapshot}.json").unlink()
    else:
        path.unlink()
        if damage == "link":
            path.symlink_to(database)
        elif damage == "pipe":
            os.mkfifo(path)
    code, _, err = svc("restore", snapshot, "--yes")
    assert code == 1
    assert {"link": "symbolic link", "missing": "No such file", "pipe": "not a regular file"}.get(
        damage, "cannot be restored, and nothing was changed"
    ) in err
    assert Path(database).read_bytes() == whole
    assert not list(recovery.iterdir())


def test_without_a_place_for_the_recovery_set_nothing_is_asked(
    svc: Svc, database: str, snapshot: str, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    monkeypatch.setenv("SVC_RECOVERY_DIR", "/srv/no-such-sets")
    code, out, err = svc("restore", snapshot, "--yes")
    assert (code, out) == (1, "")
    assert err == (
        "svc: there is no directory /srv/no-such-sets\nhint: sudo install -d -m 0700 /srv/no-such-sets"
        "   (or mount the disk that belongs there)\n"
    )


def test_a_damaged_database_is_replaced_and_kept_as_it_was(
    svc: Svc, database: str, snapshot: str, recovery: Path
) -> None:
    damaged = os.urandom(50_000)
    Path(database).write_bytes(damaged)
    code, out, err = svc("restore", snapshot, "--yes")
    assert code == 0, err
    assert "all tokens end" in out
    (kept,) = recovery.iterdir()
    assert (kept / "damaged.db").read_bytes() == damaged
    assert ask(database, "SELECT count(*) FROM tokens WHERE ended_at IS NULL") == [(0,)]
    assert ask(database, "SELECT count(*) FROM users WHERE name = 'bob'") == [(1,)]


def test_on_a_new_host(
    svc: Svc, database: str, snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is there yet; each missing small file is named with its remedy."""
    new = str(tmp_path / "new" / "svc.db")
    monkeypatch.setenv("SVC_JWT_SECRET_FILE", str(tmp_path / "new" / "secret.key"))
    code, out, err = svc("restore", snapshot, "--yes", "--db", new)
    assert code == 0, err
    assert "There is no database" in out
    assert "secret.key is missing: no password is right" in err
    assert (
        "enrolled is missing: the service acts for no Linux account; sudo svc admin create-user NAME" in err
    )
    assert ask(new, "SELECT count(*) FROM users") == [(5,)]


def test_into_a_host_that_was_set_up_already(svc: Svc, database: str, snapshot: str, tmp_path: Path) -> None:
    """What a new installation does not have was not closed in it; tokens were, for all that is known."""
    new = str(tmp_path / "data" / "other.db")
    assert svc("migrate", "--db", new)[0] == 0
    code, out, err = svc("restore", snapshot, "--yes", "--db", new)
    assert code == 0, err
    assert "It is a snapshot of another installation" in out
    assert ask(new, "SELECT name FROM users WHERE disabled OR NOT superuser AND id < 20") == []
    assert ask(new, "SELECT count(*) FROM tokens WHERE ended_at IS NULL") == [(0,)]


@pytest.mark.parametrize(
    ("since", "held"),
    [
        ("UPDATE workspaces SET status = 'stopped' WHERE id = 'ws-1'", []),  # a trigger ends its lease
        (
            "INSERT INTO gpu_leases VALUES ('GPU-2', 'ws-2', 'shared', 'now')",
            [("GPU-1", "ws-1"), ("GPU-2", "ws-2")],
        ),
        ("DELETE FROM users WHERE id = 99", [("GPU-1", "ws-1")]),
        ("damaged", [("GPU-1", "ws-1")]),
        ("gone", []),
    ],
)
def test_gpus_are_held_by_what_may_still_run_on_them(
    svc: Svc, database: str, snapshot: str, recovery: Path, since: str, held: list[tuple[str, str]]
) -> None:
    """By the database that is replaced, or if it cannot be read by the snapshot; on a new host by nobody."""
    if since == "damaged":
        Path(database).write_bytes(os.urandom(50_000))
    elif since == "gone":
        Path(database).unlink()
    else:
        change(database, since, workspace(9, "running"),
               "INSERT INTO gpu_leases VALUES ('GPU-9', 'ws-9', 'exclusive', 'now')")  # fmt: skip
    assert svc("restore", snapshot, "--yes")[0] == 0
    assert ask(database, "SELECT gpu, workspace_id FROM gpu_leases ORDER BY gpu") == held
    assert ask(database, "SELECT id FROM workspaces WHERE status = 'failed' ORDER BY id") == [
        (workspace_id,) for _, workspace_id in held
    ]


@pytest.mark.allow_commands("sh")
@pytest.mark.parametrize("with_secrets", [False, True])
def test_another_hosts_secret_is_noticed(
    svc: Svc, database: str, folder: Path, recovery: Path, with_secrets: bool
) -> None:
    """ "name each missing one with its remedy": a secret that is there and does not fit is missing too."""
    snapshot, secret = f"{folder}/moved.db", Path(database).with_name("secret.key")
    assert svc("backup", "--out", snapshot, *(["--with-secrets"] if with_secrets else []))[0] == 0
    own = secret.read_text()
    assert "signing secret" not in svc("restore", snapshot, "--yes")[2]
    secret.write_text("e" * 64)
    err = svc("restore", snapshot, "--yes")[2]
    (line,) = (line for line in err.splitlines() if "is not the signing secret" in line)
    assert "no password is right, and sealed variables are unset" in line
    if not with_secrets:
        assert line.endswith("; if that one is lost: sudo svc admin migrate --new-secret")
        return
    command = line[line.index("sudo tar") :].replace("sudo ", "")
    command = re.sub(r"runuser -u \S+ -- ", "", command)  # both are the caller's here
    subprocess.run(["sh", "-c", command], check=True)
    assert secret.read_text() == own
    assert secret.with_name("secret.key.before").read_text() == "e" * 64
    assert "signing secret" not in svc("restore", snapshot, "--yes")[2]


def test_killed_at_every_step(
    svc: Svc, database: str, snapshot: str, tmp_path: Path, chain_of: Callable[[str], str]
) -> None:
    """Old or new, never mixed: whole, or nothing uses it until the one command completed it."""
    state = str(tmp_path / "state")
    change(database, user(30, "new"))
    assert svc("revoke-tokens", "ada")[0] == 0
    assert chain_of(database) == "ok"
    outcomes = set()
    step = 0
    while True:
        step += STRIDE
        code = run_until(step, lambda: svc("restore", snapshot, "--yes")[0])
        if code == 0:  # 1: one of its own processes was killed
            outcomes.add("ended")
            break
        if restoring.find(state, database) is None:
            is_new = not ask(database, "SELECT 1 FROM users WHERE name = 'new'")
            outcomes.add("new" if is_new else "old")
        else:
            code, _, err = svc("list-users")
            assert code == 1
            assert f"hint: sudo svc admin restore --finish --db {database}" in err
            assert svc("restore", "--finish")[0] == 0
            is_new = True
            outcomes.add("finished")
        assert ask(database, "PRAGMA integrity_check") == [("ok",)]
        assert ask(database, "SELECT count(*) FROM users WHERE name = 'new'") == [(0 if is_new else 1,)]
        assert chain_of(database) == "ok"
        if is_new:  # and so on from the old one
            change(database, user(30, "new"))
    assert {"old", "finished", "ended"} <= outcomes, outcomes
    assert step > 20, step
    assert not list(Path(database).parent.glob("*.restoring*"))


@pytest.mark.parametrize(
    "line",
    [
        ["x.db", "--db", "/b"],
        ["x.db", "--yes", "--db", "/b"],
        ["--db", "/b", "x.db"],
        ["--db=/b", "x.db", "--yes"],
        ["--yes", "--db", "/b", "--", "x.db"],
    ],
)
def test_the_snapshot_is_never_taken_for_the_database(line: list[str]) -> None:
    """An optional argument beside an option that has a value, in every order."""
    args = build_parser(["admin"]).parse_args(["admin", "restore", *line])
    assert (args.path, args.db) == ("x.db", "/b")
