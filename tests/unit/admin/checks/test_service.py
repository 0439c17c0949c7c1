"""The checks of the service itself: files, database, server."""

from __future__ import annotations

import os
import pwd
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc.admin import doctor
from svc.admin.checks import accounts, database, order, service
from svc.admin.findings import Enrolled, Finding, Host
from svc.db import migrate, secret_check
from svc.db.connect import close_database, open_database
from svc.db.connect import database as db
from svc.domain.accounts import users
from svc.domain.audit import audit
from svc.errors import DatabaseRefused
from svc.host.owner import Owner
from svc.settings import Settings


@pytest.fixture
def host(tmp_path: Path, needs_root: None) -> Host:
    """A host where all is well but that no server runs."""
    for name, mode in (
        ("state", 0o755),
        ("data", 0o700),
        ("run", 0o755),
        ("root/etc/svc", 0o755),
        ("root/etc/pam.d", 0o755),
    ):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name).chmod(mode)
    path = str(tmp_path / "data" / "svc.db")
    (tmp_path / "data" / "secret.key").touch(0o600)
    (tmp_path / "data" / "secret.key").write_text("7" * 64)
    (tmp_path / "root/etc/svc/svc.env").touch(0o644)
    (tmp_path / "root/etc/pam.d/svc").write_text(
        "auth sufficient pam_rootok.so\naccount required pam_unix.so\n"
    )
    settings = Settings(
        environ={
            "SVC_DB": path,
            "SVC_STATE_DIR": f"{tmp_path}/state",
            "SVC_SOCKET": f"{tmp_path}/run/svc.sock",
        },
        file={},
    )
    open_database(path, create=True)
    migrate.apply(db.connection())
    users.create("root", uid=0, superuser=True, provisioning=users.READY)
    users.set_password(users.get("root"), "v1$x", 12)
    close_database()
    return Host(settings, path, Owner(os.geteuid(), os.getegid()), str(tmp_path / "root"))


CHECKS = {check.__name__: check for check in order.CHECKS}


def test_the_private_authorities(host: Host, tmp_path: Path) -> None:
    assert list(service.ca_file(host)) == []
    host.settings = Settings(environ={"SVC_CA_FILE": "/etc/ca.pem"}, file={})
    file = tmp_path / "root/etc/ca.pem"
    assert only(service.ca_file, host)[:2] == ("ca_file", "fail")
    file.write_text("no certificate")
    assert "no certificate in PEM form" in only(service.ca_file, host).found
    file.write_text("-----BEGIN CERTIFICATE-----\n")
    file.chmod(0o640)
    assert "cannot be read by users" in only(service.ca_file, host).found
    file.chmod(0o644)
    assert only(service.ca_file, host).level == "ok"


def only(check: Callable[[Host], Iterator[Finding]], host: Host) -> Finding:
    found = list(check(host))
    assert len(found) == 1, found
    assert bool(found[0].remedy) == (found[0].level != "ok")
    return found[0]


@pytest.mark.parametrize(
    "check",
    [
        "settings_file",
        "state_dir",
        "data_dir",
        "secret_key",
        "database",
        "enrolment",
        "run_dir",
        "pam_service",
    ],
)
def test_a_sound_host_is_sound(host: Host, check: str) -> None:
    assert only(CHECKS[check], host).level == "ok"


def loosen(path: str, mode: int) -> Callable[[Path], None]:
    return lambda base: (base / path).chmod(mode)


@pytest.mark.parametrize(
    ("check", "spoil", "level"),
    [
        ("settings_file", loosen("root/etc/svc/svc.env", 0o666), "fail"),
        ("settings_file", lambda base: (base / "root/etc/svc/svc.env").unlink(), "warn"),
        ("state_dir", loosen("state", 0o777), "fail"),
        ("state_dir", loosen("state", 0o700), "fail"),
        ("state_dir", lambda base: (base / "state").rmdir(), "fail"),
        ("data_dir", loosen("data", 0o755), "warn"),
        ("secret_key", loosen("data/secret.key", 0o640), "fail"),
        ("secret_key", lambda base: (base / "data/secret.key").unlink(), "fail"),
        ("run_dir", loosen("run", 0o777), "fail"),
        ("run_dir", lambda base: (base / "run").rmdir(), "warn"),
        ("pam_service", lambda base: (base / "root/etc/pam.d/svc").unlink(), "fail"),
        ("pam_service", lambda base: (base / "root/etc/pam.d/svc").write_text("# account\n"), "fail"),
    ],
)
def test_what_is_wrong_is_found(
    host: Host, tmp_path: Path, check: str, spoil: Callable[[Path], None], level: str
) -> None:
    spoil(tmp_path)
    assert only(CHECKS[check], host).level == level


def test_a_secret_of_another_database(host: Host, tmp_path: Path) -> None:
    """It is there, whole and private, and no password is right with it."""
    path = tmp_path / "data/secret.key"
    open_database(host.database)
    secret_check.ensure(path.read_bytes())
    close_database()
    assert only(service.secret_key, host).level == "ok"
    path.write_text("8" * 64)
    found = only(service.secret_key, host)
    assert (found.level, "is not the signing secret" in found.found) == ("fail", True)
    assert found.remedy.startswith("sudo svc admin migrate --new-secret   (")


def link(path: str) -> Callable[[Path], None]:
    def replace(base: Path) -> None:
        (base / path).unlink(missing_ok=True)
        (base / path).symlink_to("/etc/hostname")

    return replace


def other_name(base: Path) -> None:
    os.link(base / "data/svc.db", base / "other")


def generated_key(base: Path) -> None:
    (base / "data/tls").mkdir(0o700)
    (base / "data/tls/key.pem").touch()
    (base / "data/tls/key.pem").chmod(0o644)


@pytest.mark.parametrize(
    ("spoil", "code", "what"),
    [
        (link("data/secret.key"), "secret_key", "is a symbolic link"),
        (link("data/svc.db.lock"), "data_dir.svc.db.lock", "is a symbolic link"),
        (link("data/svc.db-wal"), "data_dir.svc.db-wal", "is a symbolic link"),
        (link("data/tls"), "data_dir.tls", "is a symbolic link"),
        (link("state/enrolled"), "state_dir.enrolled", "is a symbolic link"),
        (other_name, "data_dir.svc.db", "has 2 names (hard links)"),
        (loosen("data/svc.db", 0o644), "data_dir.svc.db", "others may read it"),
        (generated_key, "data_dir.key.pem", "others may read it"),
    ],
)
def test_what_the_service_did_not_make_is_named(
    host: Host, tmp_path: Path, spoil: Callable[[Path], None], code: str, what: str
) -> None:
    spoil(tmp_path)
    checks = (service.state_dir, service.data_dir, service.secret_key)
    found = {item.code: item for check in checks for item in check(host)}
    assert (found[code].level, what in found[code].found) == ("fail", True)
    assert found[code].remedy == f"sudo svc admin doctor --repair --db {host.database}"


@pytest.mark.parametrize("name", ["enrolled", "registries.json", "trial"])
def test_roots_files_that_others_may_write(host: Host, tmp_path: Path, name: str) -> None:
    (tmp_path / "state" / name).touch()
    (tmp_path / "state" / name).chmod(0o666)
    found = list(service.state_dir(host))
    assert [(finding.code, finding.level) for finding in found[1:]] == [(f"state_dir.{name}", "fail")]


def test_unfinished_accounts_and_a_missing_root_password_are_told(host: Host) -> None:
    open_database(host.database)
    users.update(users.create("ada"), provisioning=users.CLEANUP, provisioning_note="useradd failed")
    users.update(users.get("root"), password_hash=None)
    close_database()
    found = list(database.database(host))
    assert [(finding.code, finding.level) for finding in found] == [
        ("database", "ok"),
        ("accounts", "warn"),
        ("root_password", "warn"),
    ]
    host.settings.file["SVC_DB"] = host.settings.db
    assert [finding.remedy for finding in list(database.database(host))[1:]] == [
        "sudo svc admin create-user ada",
        "sudo svc admin set-password root",
    ]
    host.settings.resolved["SVC_DB"].source = "flag"
    assert [finding.remedy for finding in list(database.database(host))[1:]] == [
        f"sudo svc admin create-user ada --db {host.database}",
        f"sudo svc admin set-password root --db {host.database}",
    ]


def test_a_growing_audit_is_told_with_who_makes_it_grow(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    open_database(host.database)
    for name, count in (("ada", 3), ("bob", 5)):
        for _ in range(count):
            audit.append(audit.Actor(None, name, "socket"), "fs.move", "work/a", "ok", "", {})
    close_database()
    assert [finding.code for finding in database.database(host)] == ["database"]
    monkeypatch.setattr(database, "GROWTH_MAX", 7)
    _, found = database.database(host)
    assert (found.code, found.level) == ("audit_growth", "warn")
    assert "8 new rows" in found.found
    assert "5 of them of bob" in found.found
    assert found.remedy.startswith("sudo svc admin audit archive --before 20")


def test_a_damaged_database_is_told(host: Host) -> None:
    content = bytearray(Path(host.database).read_bytes())
    content[4096 * 3 : 4096 * 6] = os.urandom(4096 * 3)
    Path(host.database).write_bytes(content)
    with pytest.raises(DatabaseRefused):
        list(database.database(host))


def test_enrolled_names_must_still_mean_their_uid(host: Host) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    host.enrolled = [Enrolled("nobody", nobody), Enrolled("nobody", 4001), Enrolled("gone-account", 4002)]
    assert [finding.level for finding in accounts.enrolment(host)] == ["fail", "warn", "ok"]


def test_sqlite_with_the_checkpoint_fault_is_told(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 40, 1))
    assert only(database.sqlite_version, host).level == "warn"
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 51, 3))
    assert only(database.sqlite_version, host).level == "ok"


def test_the_interpreter_must_be_readable_by_the_service(
    host: Host, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    monkeypatch.setattr(service, "service_owner", lambda: Owner(65534, 65534))
    monkeypatch.setattr(service, "run_as", lambda _owner, work: work())
    assert only(service.interpreter, host).level == "ok"
    monkeypatch.setattr(os, "access", lambda path, _mode: "peewee" not in path)
    found = only(service.interpreter, host)
    assert (found.code, found.level) == ("interpreter", "fail")
    assert "packaging/install" in found.remedy


def test_the_accounts_of_the_app(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc.host.accounts.APP", "no-such-account")
    (found,) = doctor.run([service.service_user], host)
    assert (found.code, found.level, bool(found.remedy)) == ("service_user", "fail", True)


@pytest.mark.parametrize(
    ("environ", "code", "level"),
    [({"SVC_PORT": "many"}, "settings", "fail"), ({"SVC_NONE": "1"}, "unknown_settings", "warn")],
)
def test_settings_that_are_wrong(host: Host, environ: dict[str, str], code: str, level: str) -> None:
    host.settings = Settings(environ=environ, file={})
    found = only(service.settings, host)
    assert (found.code, found.level) == (code, level)


@pytest.fixture
def serve(host: Host) -> Iterator[Callable[[bytes], None]]:
    """Answer each connection on the server's socket with these bytes."""
    listener = socket.socket(socket.AF_UNIX)
    threads: list[threading.Thread] = []

    def start(answer: bytes) -> None:
        listener.bind(host.settings.socket)
        listener.listen()

        def work() -> None:
            for _ in range(2):  # the first one is closed at once: whether a server is there
                connection, _ = listener.accept()
                with connection:
                    if connection.recv(4096):
                        connection.sendall(answer)

        threads.append(threading.Thread(target=work))
        threads[0].start()

    yield start
    for thread in threads:
        thread.join(5)
    listener.close()


@pytest.mark.parametrize(
    ("answer", "level"),
    [
        (b'HTTP/1.1 200 OK\r\n\r\n{"status":"ok","database":"ok","helper":"ok"}', "ok"),
        (b'HTTP/1.1 503 X\r\n\r\n{"status":"degraded","database":"ok","helper":"down"}', "fail"),
        (b"HTTP/1.1 200 OK\r\n\r\n\x1b[2Jhello", "fail"),
        (b"", "fail"),
    ],
)
def test_the_running_server_is_asked(
    host: Host, serve: Callable[[bytes], None], answer: bytes, level: str
) -> None:
    serve(answer)
    found = only(service.server, host)
    assert (found.code, found.level) == ("server", level)


def test_no_server_is_a_warning(host: Host) -> None:
    assert only(service.server, host).level == "warn"
    assert service.server_of(host.settings.socket) is None


def test_the_servers_process_is_the_kernels_word(host: Host) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(host.settings.socket)
        listener.listen()
        assert service.server_of(host.settings.socket) == os.getpid()
