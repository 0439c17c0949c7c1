"""Doctor checks of the service itself: files and their modes, PAM, the running server."""

from __future__ import annotations

import json
import os
import shlex
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

from svc.admin.findings import Finding, Host, fail, lines_of, ok, warn
from svc.admin.own_files import OwnFile, description, of_data, of_root, secret, strangeness
from svc.client import transport
from svc.db import secret_check
from svc.errors import SvcError
from svc.host.accounts import find_accounts
from svc.host.owner import repair_command, run_as, service_owner
from svc.host.sharing import is_private
from svc.service_commands import start_command
from svc.settings import ENV_FILE

SERVER_WAIT_S = 3.0
CA_FILE_MAX = 4 * 1024 * 1024
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
    if status.st_uid == 0 and not status.st_mode & 0o022:
        yield ok("settings_file", f"{path} is {description(status)}")
    else:
        yield fail("settings_file", f"{path} is {description(status)}; others can change it", _repair(host))


def _repair(host: Host) -> str:
    """The command that repairs the service's own files, for this database."""
    is_default = host.settings.resolved["SVC_DB"].source == ENV_FILE
    return repair_command("" if is_default else host.database)


def _is_roots(status: os.stat_result) -> bool:
    """Whether root owns a file, as far as the caller is root, and nobody else may write it."""
    return (status.st_uid == 0 or os.geteuid() != 0) and not status.st_mode & 0o022


def settings(host: Host) -> Iterator[Finding]:
    """What is wrong in the settings file and the environment, with its line."""
    for fault in host.settings.faults():
        if fault is host.settings.file.unusable and fault.hint == repair_command():
            continue  # the check above says so
        yield fail("settings", fault.text, fault.hint)
    for fault in host.settings.unknown():
        yield warn("unknown_settings", fault.text, fault.hint)


def ca_file(host: Host) -> Iterator[Finding]:
    """The private authorities, which every user's Podman reads: a file that it cannot read, it ignores."""
    path = host.settings.ca_file
    if not path:
        return
    remedy = f"sudo ls -lL {shlex.quote(path)}"
    try:
        with open(os.open(host.at(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            has_any = stat.S_ISREG(mode) and b"-----BEGIN CERTIFICATE-----" in file.read(CA_FILE_MAX)
    except OSError as error:
        yield fail("ca_file", f"{path} cannot be read: {error.strerror}", remedy)
        return
    if not has_any:
        yield fail("ca_file", f"{path} has no certificate in PEM form", remedy)
    elif not mode & 0o004:
        yield fail("ca_file", f"{path} cannot be read by users, whose pulls need it", remedy)
    else:
        yield ok("ca_file", f"{path} has certificates and is readable for users")


def state_dir(host: Host) -> Iterator[Finding]:
    """Root's directory: enrolment, registry policy, trial, head of the audit chain."""
    path = host.settings.state_dir
    if not os.path.isdir(path):
        yield fail("state_dir", f"{path} is missing", "sudo svc admin migrate")
        return
    status = os.stat(path)
    found = f"{path} is {description(status)}"
    if not _is_roots(status):
        yield fail("state_dir", f"{found}; others could enrol themselves", _repair(host))
    elif stat.S_IMODE(status.st_mode) & 0o055 != 0o055:
        yield fail("state_dir", f"{found}; the app cannot read the registry policy", _repair(host))
    else:
        yield ok("state_dir", found)
    for file in of_root(host.settings):
        if file.top == path and file.names:
            yield from _root_file(host, file)


def _root_file(host: Host, file: OwnFile) -> Iterator[Finding]:
    try:
        status = os.lstat(file.path)
    except FileNotFoundError:
        return  # each is created when it is first needed
    strange = strangeness(file, status)
    if not strange and _is_roots(status) and stat.S_IMODE(status.st_mode) & ~file.mode & 0o077:
        strange = f"is {description(status)}; others can read it"
    if strange or not _is_roots(status):
        found = strange or f"is {description(status)}; others can change it"
        yield fail(f"state_dir.{file.names[0]}", f"{file.path} {found}", _repair(host))


def data_dir(host: Host) -> Iterator[Finding]:
    """The app's own directory, readable for nobody else, and the files in it, by lstat alone."""
    path = os.path.dirname(host.database)
    if not os.path.isdir(path):
        yield fail("data_dir", f"{path} is missing", f"sudo svc admin migrate --db {host.database}")
        return
    status = os.stat(path)
    found = f"{path} is {description(status)}"
    if _is_foreign(status):
        yield fail("data_dir", f"{found}, not svc's", _repair(host))
    elif not is_private(status, 0o770):
        yield warn("data_dir", f"{found}; others may read it", _repair(host))
    else:
        yield ok("data_dir", found)
    own = secret(host.settings).path
    for file in of_data(host.settings, host.database):
        if file.names and file.path != own:
            yield from _data_file(host, file, f"data_dir.{file.names[-1]}")


def _data_file(host: Host, file: OwnFile, code: str) -> Iterator[Finding]:
    """A finding on a file of the data directory unless it is as the service makes it, or missing."""
    try:
        status = os.lstat(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return
    found = f"{file.path} is {description(status)}"
    if strange := strangeness(file, status):
        yield fail(code, f"{file.path} {strange}; the service does not use it", _repair(host))
    elif _is_foreign(status) and status.st_uid not in file.creators:
        yield fail(code, f"{found}, not svc's", _repair(host))
    elif not is_private(status, file.mode):
        yield fail(code, f"{found}; others may read it", _repair(host))


def _is_foreign(status: os.stat_result) -> bool:
    """As root: whether a file of the service's data belongs to another account."""
    service = service_owner()
    return service is not None and os.geteuid() == 0 and status.st_uid != service.uid


def service_user(_host: Host) -> Iterator[Finding]:
    """The unprivileged accounts of the app."""
    if os.geteuid() != 0:
        return
    accounts = find_accounts()
    roles = ", ".join(f"svc-{role} {uid}" for role, uid in accounts.uids.items())
    yield ok("service_user", f"svc is uid {accounts.uid}, {roles}")


def secret_key(host: Host) -> Iterator[Finding]:
    """The signing secret."""
    path = host.settings.secret_file
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        yield fail("secret_key", f"{path} is missing", f"sudo svc admin migrate --db {host.database}")
        return
    found = list(_data_file(host, secret(host.settings), "secret_key"))
    yield from found or [_secret_fits(host, path, status)]


def _secret_fits(host: Host, path: str, status: os.stat_result) -> Finding:
    """Whether the secret is that of the database, by its check value, which the owner's process compares."""
    if run_as(host.owner, partial(secret_check.compare, host.database, path)) != secret_check.FOREIGN:
        return ok("secret_key", f"{path} is {description(status)}")
    return fail(
        "secret_key",
        f"{secret_check.sentence(path)}: no password is right, and secret variables cannot be decrypted",
        f"{secret_check.ACCEPT}   (if that one is lost; else put it back: docs/backup.md)",
    )


def run_dir(host: Host) -> Iterator[Finding]:
    """The socket's directory: owned by root, writable for nobody else."""
    path = os.path.dirname(host.settings.socket)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        yield warn("run_dir", f"{path} is missing; the server creates it", start_command())
        return
    if _is_roots(status):
        yield ok("run_dir", f"{path} is {description(status)}")
    else:
        yield fail(
            "run_dir", f"{path} is {description(status)}; others can replace the socket", _repair(host)
        )


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
            "packaging/install   (from the sources; the program must be where every user may read it)",
        )
    else:
        yield ok("interpreter", f"{sys.executable}, Python {sys.version.split()[0]}")


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
    pid, uid, _gid = struct.unpack("i2I", credentials)
    return int(pid) if uid in (0, os.geteuid()) else None
