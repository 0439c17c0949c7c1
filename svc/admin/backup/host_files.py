"""The small files of a host that a new one needs too, as one tar archive beside the snapshot.

Root reads its own files; those in the service's directory are read by the service's account, and their
content is bytes for root. The signing secret and the key of the generated certificate are in it only
when asked for (docs/decisions/0046-secrets-are-backed-up-when-asked-for.md).
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import stat
import tarfile
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from svc.admin.backup import linux_accounts
from svc.admin.backup.sqlite_descriptor import end_with
from svc.admin.own_files import LOGINS
from svc.errors import SvcError
from svc.host.owner import Owner, run_as
from svc.settings import ENV_FILE, Settings

FILE_MAX = 4 * 1024 * 1024
ABSENT = "there is none"
ASK = "a secret: only with --with-secrets"
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class HostFile(NamedTuple):
    """A file by its name in the archive; `secret` ones go in only when asked for."""

    name: str
    path: str
    secret: bool = False


class HostFiles(NamedTuple):
    """The archive, the names in it, and what is not in it with the reason."""

    archive: bytes
    holds: list[str]
    left_out: dict[str, str]


def of_root(settings: Settings) -> list[HostFile]:
    """The files that root owns, in directories that only root can write."""
    names = (
        "registries.json", "registries.conf", "enrolled", "trial", "clock", "audit-head", "audit-archived",
        "update.json",
    )  # fmt: skip
    logins = os.path.join(settings.state_dir, f"{LOGINS}.json")
    return [
        HostFile("svc.env", ENV_FILE),
        *(HostFile(name, os.path.join(settings.state_dir, name)) for name in names),
        HostFile(f"{LOGINS}.json", logins, secret=True),
        *([HostFile("license.json", settings.license_path)] if settings.is_valid("SVC_LICENSE_PATH") else []),
    ]


def of_service(settings: Settings) -> list[HostFile]:
    """The files in the service's own directory, or where its settings say."""
    tls = os.path.join(os.path.dirname(os.path.abspath(settings.db)), "tls")
    files = []
    if uses_own_certificate(settings):
        files.append(HostFile("tls/cert.pem", os.path.join(tls, "cert.pem")))
        files.append(HostFile("tls/key.pem", os.path.join(tls, "key.pem"), secret=True))
    if settings.is_valid("SVC_JWT_SECRET_FILE"):
        files.append(HostFile("secret.key", settings.secret_file, secret=True))
    return files


def uses_own_certificate(settings: Settings) -> bool | None:
    """Whether the service makes its certificate itself; None where SVC_TLS_CERT has no valid value."""
    return not settings.tls_cert if settings.is_valid("SVC_TLS_CERT") else None


def elsewhere(settings: Settings) -> dict[str, str]:
    """The files that are not where the service would make them, by name: why they are not read."""
    names = {
        "SVC_LICENSE_PATH": ("license.json",),
        "SVC_JWT_SECRET_FILE": ("secret.key",),
        "SVC_TLS_CERT": ("tls/cert.pem", "tls/key.pem"),
    }
    why = {name: fault.text for name in names if (fault := settings.resolved[name].fault) is not None}
    if uses_own_certificate(settings) is False:
        why["SVC_TLS_CERT"] = "the administrator's own: SVC_TLS_CERT and SVC_TLS_KEY name it"
    return {file: text for name, text in why.items() for file in names[name]}


def collect(settings: Settings, owner: Owner, *, with_secrets: bool) -> HostFiles:
    """Read the files and pack them; what cannot be read is left out with its reason."""
    found: dict[str, bytes] = {}
    left_out = elsewhere(settings)
    requested = []
    for file in of_service(settings):
        if file.secret and not with_secrets:
            left_out[file.name] = ASK
        else:
            requested.append(file)
    for file in of_root(settings):
        if file.secret and not with_secrets:
            left_out[file.name] = ASK if os.path.lexists(file.path) else ABSENT
        else:
            _sort(file.name, _content(file.path), found, left_out)
    if os.geteuid() == 0:
        found[linux_accounts.NAME] = linux_accounts.script(settings).encode()
    read = partial(_read_as_owner, [file.path for file in requested], os.getpid())
    untrusted = run_as(owner, read)
    for file, (content, why) in zip(requested, _decoded(untrusted, len(requested)), strict=True):
        _sort(file.name, content if why is None else why, found, left_out)
    if left_out.get("tls/cert.pem") == ABSENT:
        left_out["tls/key.pem"] = ABSENT  # made together, at the server's first start
    paths = {file.name: file.path for file in (*of_root(settings), *of_service(settings))}
    return HostFiles(_packed(found, paths, left_out), sorted(found), dict(sorted(left_out.items())))


def _sort(name: str, content: bytes | str, found: dict[str, bytes], left_out: dict[str, str]) -> None:
    if isinstance(content, bytes):
        found[name] = content
    else:
        left_out[name] = content


def _content(path: str) -> bytes | str:
    """The content of a regular file, else why it cannot be had."""
    try:
        descriptor = os.open(path, READ)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return "it is not a regular file"
        if status.st_size > FILE_MAX:
            return f"it has more than {FILE_MAX} bytes"
        return file.read(FILE_MAX)


def _read_as_owner(paths: list[str], parent: int) -> list[dict[str, str]]:
    """For a process of the service's account: each file as {"content"} in Base64, or {"why"}."""
    end_with(parent)
    results: list[dict[str, str]] = []
    for path in paths:
        content = _content(path)
        if isinstance(content, str):
            results.append({"why": content})
        else:
            results.append({"content": base64.b64encode(content).decode("ascii")})
    return results


def _decoded(untrusted: Any, count: int) -> Iterator[tuple[bytes, str | None]]:
    """The other process's result: the content, or why there is none; raises SvcError."""
    try:
        if len(untrusted) != count:
            raise ValueError("another number of files")
        for each in untrusted:
            if "why" in each:
                yield b"", str(each["why"])[:200]
            else:
                yield base64.b64decode(str(each["content"]), validate=True)[:FILE_MAX], None
    except (TypeError, ValueError, KeyError):
        raise SvcError("reading the service's own files returned no usable result") from None


def _packed(files: dict[str, bytes], paths: dict[str, str], left_out: dict[str, str]) -> bytes:
    """A tar archive of the files and `manifest.json`, which says where each belongs."""
    manifest = {
        "format": 1,
        "files": [
            {"name": name, "path": paths.get(name, ""), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in sorted(files.items())
        ],
        "left_out": [
            {"name": name, "path": paths.get(name, ""), "why": why} for name, why in sorted(left_out.items())
        ],
    }
    text = json.dumps(manifest, indent=1).encode() + b"\n"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in (("manifest.json", text), *sorted(files.items())):
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(content), 0o600, int(time.time())
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
