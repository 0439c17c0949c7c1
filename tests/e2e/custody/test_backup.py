"""`svc admin backup` of a service that is at work, as cron calls it."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import STATE, SVC, Call, Outcome, Service, run
from e2e.surroundings import in_database, must
from waiting import until

CRON = {"HOME": "/root", "LOGNAME": "root", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
STOP = f"stop {'the service' if os.path.isdir('/run/systemd/system') else 'that process'} first"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "backups"
    path.mkdir(mode=0o700)
    return path


def cron(env: dict[str, str], folder: Path, line: str) -> Outcome:
    """Run a crontab line as cron does: /bin/sh, its few variables, no terminal, no input."""
    settings = {name: value for name, value in env.items() if name.startswith("SVC_")}
    done = subprocess.run(
        ["/bin/sh", "-c", f"{SVC} {line}"],
        env=CRON | settings | {"SVC_BACKUP_DIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd="/root",
        umask=0o077,
        start_new_session=True,
        check=False,
        timeout=60,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def writer(alice: Call, service: Service) -> Iterator[list[str]]:
    """Alice's tokens, made by HTTP one after the other as long as the test goes on; the acknowledged ids."""
    made: list[str] = []
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            name = f"written-{len(made)}"
            body = json.dumps({"display_name": name})
            if alice("api", "PATCH", "/api/users/tse-alice", "--body", body).code == 0:
                made.append(name)

    thread = threading.Thread(target=write)
    thread.start()
    until(lambda: len(made) > 2)
    yield made
    stop.set()
    thread.join()
    alice("api", "PATCH", "/api/users/tse-alice", "--body", '{"display_name": ""}')


def test_by_cron_while_the_service_writes(
    service: Service, alice: Call, folder: Path, writer: list[str]
) -> None:
    """ "Timestamped snapshot in `--dir` or the configured backup directory; then prunes to the newest N".

    Nothing is printed; a snapshot has every write that was acknowledged before it began, is one plain file
    of root's, and holds neither the signing secret nor a token in the clear.
    """
    token = must(alice("token", "create", "--name", "kept", "--json")).json()["secret"]
    for _ in range(3):
        before = len(writer)
        assert cron(service.env, folder, "admin backup --retention 2") == Outcome(0, "", "")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".db"))
    assert len(names) == 2
    assert len(os.listdir(folder)) == 6
    newest = folder / names[-1]
    assert {(one.stat().st_uid, stat.S_IMODE(one.stat().st_mode)) for one in folder.iterdir()} == {(0, 0o600)}
    with sqlite3.connect(f"file:{newest}?mode=ro", uri=True) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
        (name,) = connection.execute("SELECT display_name FROM users WHERE name = 'tse-alice'").fetchone()
    connection.close()
    assert int(name.removeprefix("written-")) >= before - 1, "acknowledged before the backup began"
    secret = (STATE / "data/secret.key").read_bytes().strip()
    for path in folder.iterdir():
        content = path.read_bytes()
        assert secret not in content, path.name
        assert token.encode() not in content, path.name
        assert b"PRIVATE KEY" not in content, path.name
    files = subprocess.run(["tar", "-tf", f"{newest}.host.tar"], capture_output=True, text=True, check=True)
    assert {"enrolled", "registries.json", "tls/cert.pem"} <= set(files.stdout.split())
    verified = must(run("root", "admin", "backup", "--verify", str(newest), "--json", env=service.env)).json()
    assert verified["restorable"]
    assert verified["host_files"]["missing"]["secret.key"] == "a secret: only with --with-secrets"


def test_what_goes_wrong_is_one_line_and_not_zero(
    service: Service, alice: Call, folder: Path, tmp_path: Path
) -> None:
    """`backup --out <path>`: "One-shot snapshot to an explicit file." """
    path = folder / "one.db"
    out = f"admin backup --out {path}"
    home = Path(pwd.getpwnam("tse-alice").pw_dir)
    assert cron(service.env, folder, out) == Outcome(0, "", "")
    for line, reason, hint in (
        (out, f"{path} already exists", f"sudo svc {out} --force"),
        (f"admin backup --out {home}/x.db", "others can change", "sudo svc admin backup --out /root/x.db"),
        ("admin backup --dir /none --retention 3", "no directory /none", "sudo install -d -m 0700 /none"),
        (f"admin backup --raw --out {folder}/raw.db", "is in use by svc server", STOP),
    ):
        outcome = cron(service.env, folder, line)
        assert (outcome.code, outcome.out) == (1, ""), outcome
        message, help_line = outcome.err.splitlines()
        assert message.startswith("svc: ")
        assert reason in message
        assert help_line.startswith(f"hint: {hint}")
    refused = alice("admin", "backup", "--out", str(tmp_path / "x.db"))
    assert refused.code == 1
    assert "hint: sudo svc admin backup --out" in refused.err
    assert sorted(os.listdir(folder)) == ["one.db", "one.db.host.tar", "one.db.json"]


def test_a_full_disk_of_backups(service: Service, tmp_path: Path) -> None:
    """It says so in numbers before it writes, keeps what is there, and works as soon as there is room."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "backups", small], check=True)
    try:
        assert cron(service.env, small, "admin backup --retention 2") == Outcome(0, "", "")
        first = sorted(os.listdir(small))
        with open(small / "filler", "wb") as filler:
            free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
            filler.write(bytes(free - 100_000))
        outcome = cron(service.env, small, "admin backup --retention 1")
        assert (outcome.code, outcome.out) == (1, "")
        assert f"not enough room in {small}: a new snapshot needs " in outcome.err
        assert f"hint: df -h {small}" in outcome.err
        assert sorted(os.listdir(small)) == ["filler", *first]
        (small / "filler").unlink()
        assert cron(service.env, small, "admin backup --retention 1") == Outcome(0, "", "")
        assert len(os.listdir(small)) == 3
        assert not set(first) & set(os.listdir(small))
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)


def save_what_can_be_read(raw: Path) -> None:
    """Run the command of docs/backup.md on a raw copy; it makes a sound database with most of the rows.

    Its exit code is 1 where damage reads as rows that break a constraint: those it leaves out.
    """
    page = (Path(__file__).parents[3] / "docs/backup.md").read_text()
    [line] = [line.strip() for line in page.splitlines() if " .dump " in line]
    folder = raw.parent / "saved"
    folder.mkdir()
    raw_copy = folder / "damaged.db"
    raw_copy.write_bytes(raw.read_bytes())
    subprocess.run(line, shell=True, cwd=folder, check=False, stderr=subprocess.DEVNULL)
    with contextlib.closing(sqlite3.connect(folder / "saved.db")) as saved:
        assert saved.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert saved.execute("SELECT count(*) FROM schema_migrations").fetchone()[0] >= 8


def test_of_a_stopped_and_of_a_damaged_database(service: Service, folder: Path) -> None:
    """Break-glass: without the service, and where nothing else is left, the files as they are."""
    database = Path(service.env["SVC_DB"])
    with service.stopped():
        in_database(service.env, "PRAGMA wal_checkpoint(TRUNCATE)")
        assert cron(service.env, folder, "admin backup --retention 3") == Outcome(0, "", "")
        assert not list(database.parent.glob("svc.db-*")), "it left the database as it was"
        whole, owner = database.read_bytes(), database.stat()
        try:
            database.write_bytes(whole[:8192] + os.urandom(4096) + whole[12288:])
            outcome = cron(service.env, folder, "admin backup --retention 1")
            assert (outcome.code, outcome.out) == (1, "")
            message, hint = outcome.err.splitlines()
            assert message.startswith("svc: the database is damaged, and no snapshot was made: ")
            command = hint.removeprefix("hint: stop the service, then: sudo svc ")
            assert cron(service.env, folder, command) == Outcome(0, "", ""), command
            raw = next(folder.glob("damaged-*.db"))
            assert raw.read_bytes() == database.read_bytes()
            save_what_can_be_read(raw)
        finally:
            for log in database.parent.glob("svc.db-*"):
                log.unlink()
            database.write_bytes(whole)
            os.chown(database, owner.st_uid, owner.st_gid)
    assert len([name for name in os.listdir(folder) if name.startswith("svc-") and name.endswith(".db")]) == 1
