"""Doctor checks of the service itself: files and their modes, database, running server."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import stat
import struct
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

from svc.admin.doctor_audit import HEADS, audit_chain
from svc.admin.doctor_tls import tls_certificate
from svc.admin.findings import Finding, Host, fail, lines_of, linux_account, ok, warn
from svc.cli import transport
from svc.db.owner import Owner, run_as, service_owner
from svc.errors import SvcError
from svc.limits import USER_NAME
from svc.settings import ENV_FILE

ONE_CHECKPOINTER = (3, 51, 3)  # the first SQLite whose WAL survives several checkpointers
SERVER_WAIT_S = 3.0
PAM_RULES = (
    "auth sufficient pam_rootok.so",
    "auth required pam_deny.so",
    "account required pam_nologin.so",
    "account required pam_unix.so",
)


def settings_file(host: Host) -> Iterator[Finding]:
    """The environment file: owned by root, writable for nobody else."""
    path = host.at(ENV_FILE)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        yield warn("settings_file", f"{path} is missing; the defaults apply", f"sudo editor {path}")
        return
    sound = status.st_uid == 0 and not status.st_mode & 0o022
    yield _access("settings_file", path, status, sound, "root:root", "0644")


def _access(code: str, path: str, status: os.stat_result, sound: bool, owner: str, mode: str) -> Finding:
    """A finding on the owner and mode of a file; the remedy sets the right ones."""
    found = f"{path} is {_mode(status)}"
    if sound:
        return ok(code, found)
    return fail(code, found, f"sudo chown {owner} {path} && sudo chmod {mode} {path}")


def _is_roots(status: os.stat_result) -> bool:
    """Whether root owns a file, as far as the caller is root, and nobody else may write it."""
    return (status.st_uid == 0 or os.geteuid() != 0) and not status.st_mode & 0o022


def _mode(status: os.stat_result) -> str:
    return f"{Owner(status.st_uid, status.st_gid).name} {stat.S_IMODE(status.st_mode):04o}"


def unknown_settings(host: Host) -> Iterator[Finding]:
    """Names of the environment and the settings file that are no setting."""
    for name in host.settings.unknown:
        yield warn("unknown_settings", f"{name} is no setting of svc", "svc env --all")


def state_dir(host: Host) -> Iterator[Finding]:
    """Root's directory: enrolment, registry policy, trial, head of the audit chain."""
    path = host.settings.state_dir
    if not os.path.isdir(path):
        yield fail("state_dir", f"{path} is missing", "sudo svc admin migrate")
        return
    status = os.stat(path)
    remedy = f"sudo chown root:root {path} && sudo chmod 0755 {path}"
    if not _is_roots(status):
        yield fail("state_dir", f"{path} is {_mode(status)}; others could enrol themselves", remedy)
    elif stat.S_IMODE(status.st_mode) & 0o055 != 0o055:
        yield fail("state_dir", f"{path} is {_mode(status)}; the app cannot read the registry policy", remedy)
    else:
        yield ok("state_dir", f"{path} is {_mode(status)}")
    for name in ("enrolled", "registries.json", "registries.conf", "trial", HEADS):
        yield from _root_file(os.path.join(path, name), name)


def _root_file(path: str, name: str) -> Iterator[Finding]:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return  # each is created when it is first needed
    if not (stat.S_ISREG(status.st_mode) and _is_roots(status)):
        yield _access(f"state_dir.{name}", path, status, False, "root:root", "0644")


def data_dir(host: Host) -> Iterator[Finding]:
    """The app's own directory: readable for nobody else."""
    path = os.path.dirname(host.database)
    if not os.path.isdir(path):
        yield fail("data_dir", f"{path} is missing", f"sudo svc admin migrate --db {host.database}")
        return
    status = os.stat(path)
    service = service_owner()
    if service and os.geteuid() == 0 and status.st_uid != service.uid:
        yield fail("data_dir", f"{path} is {_mode(status)}, not svc's", f"sudo chown -R svc:svc {path}")
    elif status.st_mode & 0o077:
        yield warn("data_dir", f"{path} is {_mode(status)}; others may read it", f"sudo chmod 0700 {path}")
    else:
        yield ok("data_dir", f"{path} is {_mode(status)}")


def service_user(_host: Host) -> Iterator[Finding]:
    """The unprivileged account of the app."""
    if os.geteuid() != 0:
        return
    service = service_owner()
    if service is None:
        yield fail(
            "service_user",
            "there is no system user svc",
            "sudo useradd --system --shell /usr/sbin/nologin --home-dir /var/lib/svc/data svc",
        )
    elif service.uid == 0:
        yield fail("service_user", "the user svc has uid 0", "sudo userdel svc, then: packaging/install")
    else:
        yield ok("service_user", f"svc is uid {service.uid}")


def secret_key(host: Host) -> Iterator[Finding]:
    """The signing secret."""
    path = host.settings.secret_file
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        yield fail("secret_key", f"{path} is missing", f"sudo svc admin migrate --db {host.database}")
        return
    sound = stat.S_ISREG(status.st_mode) and not status.st_mode & 0o077 and status.st_uid == host.owner.uid
    yield _access("secret_key", path, status, sound, host.owner.name, "0600")


def database(host: Host) -> Iterator[Finding]:
    """The database, opened as its owner: schema, damage, incomplete accounts."""
    found = run_as(host.owner, partial(_inspect_database, host.database))
    yield ok("database", f"{host.database} (of {host.owner.name}), schema {found['schema']}, intact")
    for name, status, note in found["unfinished"]:
        # from the database, hence untrusted: no command for root to paste with an invalid name
        remedy = f"svc admin create-user {name}" if re.fullmatch(USER_NAME, name) else "svc admin list-users"
        yield warn("accounts", f"{name} is {status}: {note}", f"sudo {remedy}")
    if not found["root_password"]:
        yield warn(
            "root_password", "the superuser root has no service password", "sudo svc admin set-password root"
        )


def _inspect_database(path: str) -> dict[str, Any]:
    from svc.db.connect import close_database, database, open_database
    from svc.domain.accounts import retirement, users
    from svc.errors import DatabaseRefused

    open_database(path)
    verdict = database.execute_sql("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise DatabaseRefused(f"{path} is damaged: {verdict}", hint="restore a backup: svc admin restore")
    accounts = users.every()
    found = {
        "schema": database.execute_sql("PRAGMA user_version").fetchone()[0],
        "unfinished": [
            (user.name, users.status_name(user), user.provisioning_note)
            for user in accounts
            if user.provisioning != users.READY and not retirement.is_retired(user.name)
        ],
        "root_password": any(user.uid == 0 and user.password_hash for user in accounts),
    }
    close_database()
    return found


def enrolment(host: Host) -> Iterator[Finding]:
    """Whether each enrolled name still has the uid that was enrolled."""
    for name, uid, _ in host.enrolled:
        account, remedy = linux_account(name), f"sudo svc admin create-user {name}"
        if account is None:
            yield warn("enrolment", f"the Linux account {name} is gone", remedy)
        elif account.pw_uid != uid:
            now = f"{name} was enrolled as uid {uid} and is now uid {account.pw_uid}"
            yield fail("enrolment", now, remedy)
    number = len(host.enrolled)
    yield ok("enrolment", "1 account is enrolled" if number == 1 else f"{number} accounts are enrolled")


def run_dir(host: Host) -> Iterator[Finding]:
    """The socket's directory: owned by root, writable for nobody else."""
    path = os.path.dirname(host.settings.socket)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        yield warn("run_dir", f"{path} is missing; the server creates it", "sudo systemctl start svc")
        return
    yield _access("run_dir", path, status, _is_roots(status), "root:root", "0755")


def pam_service(host: Host) -> Iterator[Finding]:
    """The PAM service that decides whether an account is active."""
    path = host.at("/etc/pam.d/svc")
    if any(line.split()[:1] == ["account"] for line in lines_of(path)):
        yield ok("pam_service", f"{path} has account rules")
    else:
        yield fail(
            "pam_service",
            f"{path} is missing or has no account rules; every account counts as locked",
            f"printf '%s\\n' {' '.join(map(repr, PAM_RULES))} | sudo tee {path}",
        )


def interpreter(_host: Host) -> Iterator[Finding]:
    """The program's own files: readable by the account that runs them."""
    service = service_owner()
    specs = [find_spec(name) for name in ("svc", "svc_helper", "flask", "peewee")]
    files = [os.path.realpath(sys.executable), *(spec.origin for spec in specs if spec and spec.origin)]
    unreadable = []
    if service and os.geteuid() == 0:
        unreadable = run_as(service, lambda: [path for path in files if not os.access(path, os.R_OK)])
    if unreadable:
        yield fail(
            "interpreter",
            f"the user svc cannot read {unreadable[0]}",
            f"sudo chmod -R go+rX {os.path.dirname(unreadable[0])} (and the directories above it)",
        )
    else:
        yield ok("interpreter", f"{sys.executable}, Python {sys.version.split()[0]}")


def sqlite_version(_host: Host) -> Iterator[Finding]:
    """Whether this SQLite is safe with several processes that checkpoint."""
    if sqlite3.sqlite_version_info < ONE_CHECKPOINTER:
        yield warn(
            "sqlite_version",
            f"SQLite {sqlite3.sqlite_version} can lose pages when two processes checkpoint (svc has one)",
            "do not open the database with another program while the service runs",
        )
    else:
        yield ok("sqlite_version", f"SQLite {sqlite3.sqlite_version}")


def server(host: Host) -> Iterator[Finding]:
    """The running server's health, requested as any user may."""
    path = host.settings.socket
    if server_of(path) is None:
        yield warn(
            "server", f"no server responds on {path}", "sudo systemctl start svc   (or: sudo svc server)"
        )
        return
    try:
        health = transport.request("GET", "/api/health", wait_s=SERVER_WAIT_S, socket=path).json()
    except SvcError as error:
        health = {"status": error.message}
    if health.get("status") == "ok":
        parts = ", ".join(f"{name} {state}" for name, state in health.items() if name != "status")
        yield ok("server", f"responds on {path}: {parts}"[:200])
    else:
        yield fail("server", f"reports a fault: {json.dumps(health)[:200]}", "journalctl -u svc -n 50")


def server_of(path: str) -> int | None:
    """The pid of the server that listens on the socket, from SO_PEERCRED; None when there is none."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SERVER_WAIT_S)
        try:
            connection.connect(path)
        except OSError:
            return None
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, _gid = struct.unpack("3i", credentials)
    return int(pid) if uid in (0, os.geteuid()) else None


CHECKS = (
    settings_file,
    unknown_settings,
    service_user,
    state_dir,
    data_dir,
    secret_key,
    tls_certificate,
    database,
    audit_chain,
    enrolment,
    run_dir,
    pam_service,
    interpreter,
    sqlite_version,
    server,
)
