"""The settings of this host: one table, resolved once, each with its source.

`flag > process environment > /etc/svc/svc.env > default` ("First match wins").
For every layer. Imports only errors and limits, because the quick client
commands load it too.
"""

from __future__ import annotations

import os
import stat
import sys

from svc.errors import SettingInvalid
from svc.limits import PORT_DEFAULT, UPLOAD_MAX, WEB_THREADS

TYPE_CHECKING = False  # as typing's own: saves the quick client commands these imports
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

ENV_FILE = "/etc/svc/svc.env"
ENV_FILE_MAX = 64 * 1024


class Setting:
    """One row of the table: name, parser, default and help text."""

    __slots__ = ("default", "help", "name", "parse", "secret")

    def __init__(
        self, name: str, parse: Callable[[str], Any], default: str, help: str, secret: bool = False
    ) -> None:
        self.name = name
        self.parse = parse
        self.default = default
        self.help = help
        self.secret = secret


class Resolved:
    """The value in force, its source (flag, environment, file, default) and its text as written."""

    __slots__ = ("source", "text", "value")

    def __init__(self, value: Any, source: str, text: str) -> None:
        self.value = value
        self.source = source
        self.text = text


def _absolute(value: str) -> str:
    if value and not value.startswith("/"):
        raise ValueError("must be an absolute path")
    return value


def _port(value: str) -> int:
    return _number(value, 1, 65535, "port number")


def _threads(value: str) -> int:
    return _number(value, 4, 512, "number")


def _number(value: str, least: int, most: int, noun: str) -> int:
    if not value.isascii() or not value.isdigit() or not least <= int(value) <= most:
        raise ValueError(f"must be a {noun} from {least} to {most}")
    return int(value)


def _port_range(value: str) -> tuple[int, int]:
    low, dash, high = value.partition("-")
    first, last = _port(low), _port(high)
    if not dash or first > last:
        raise ValueError("must be two port numbers, low-high")
    return first, last


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return value

    return parse


def _gpu_provider(value: str) -> str:
    if value not in ("nvml", "none") and not value.startswith("/"):
        raise ValueError("must be nvml, none or the absolute path of a file of fake GPUs")
    return value


def _names(value: str) -> list[str]:
    return [_host(name.strip().lower()) for name in value.split(",") if name.strip()]


def _host(name: str) -> str:
    # without `re` and `ipaddress`: importing them costs every client command 15 ms
    bare = name.removeprefix("[").removesuffix("]")
    plain = name.removesuffix(".")
    if ":" in bare or set(bare) <= set("0123456789."):
        from _socket import AF_INET, AF_INET6, inet_ntop, inet_pton

        family = AF_INET6 if ":" in bare else AF_INET
        try:
            return inet_ntop(family, inet_pton(family, bare))
        except (OSError, ValueError):
            pass  # refused below
    elif len(name) < 254 and all(map(_is_label, plain.split("."))):
        return plain
    raise ValueError(f"must list host names and addresses without ports; {name!r} is neither")


def _is_label(text: str) -> bool:
    allowed = set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    return allowed and 0 < len(text) < 64 and text == text.strip("-")


def _file_roots(value: str) -> dict[str, str]:
    roots: dict[str, str] = {}
    for part in value.split(","):
        name, equals, path = part.strip().partition("=")
        place = path.removesuffix(":ro")
        inside = place.startswith(("%h/", "/")) and ".." not in place.split("/")
        if not equals or not name.isidentifier() or not inside or ":" in place:
            raise ValueError("must have the form work=%h/work,data=/srv/data/%u,models=/srv/models:ro")
        roots[name] = path
    if "work" not in roots or roots["work"].endswith(":ro"):
        raise ValueError("must have a writable root named work")
    return roots


def _upload_max(value: str) -> int:
    number, unit = (value[:-1], value[-1:].lower()) if value[-1:].isalpha() else (value, "")
    if not number.isascii() or not number.isdigit() or len(number) > 16 or unit not in ("", *"kmgt"):
        raise ValueError("must be a number of bytes, optionally with the unit k, m, g or t, such as 64g")
    count = int(number) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[unit]
    if not 0 < count <= UPLOAD_MAX:
        raise ValueError(f"must be from 1 to {UPLOAD_MAX} bytes")
    return count


TABLE = (
    Setting("SVC_DB", str, "svc.db", "Path of the database file."),
    Setting("SVC_PORT", _port, str(PORT_DEFAULT), "TCP port of the HTTPS listener."),
    Setting(
        "SVC_HOST", str, "", "Address of the HTTPS listener (default: all addresses; 127.0.0.1 with --dev)."
    ),
    Setting(
        "SVC_PUBLIC_HOSTS",
        _names,
        "",
        "Names and addresses accepted in the Host header, comma-separated (default: the host's own names).",
    ),
    Setting("SVC_SOCKET", _absolute, "/run/svc/svc.sock", "Unix socket for the client commands."),
    Setting(
        "SVC_STATE_DIR",
        _absolute,
        "/var/lib/svc",
        "Root-owned directory for enrolment, registries and the trial.",
    ),
    Setting("SVC_LICENSE_PATH", _absolute, "/etc/svc/license.json", "Path of the signed licence."),
    Setting("SVC_TLS_CERT", _absolute, "", "Certificate chain of the HTTPS listener (default: generated)."),
    Setting("SVC_TLS_KEY", _absolute, "", "Private key of the HTTPS listener (default: generated)."),
    Setting(
        "SVC_JWT_SECRET_FILE",
        _absolute,
        "",
        "File with the signing secret (default: secret.key beside the database).",
    ),
    Setting("SVC_BACKUP_DIR", _absolute, "/var/backups/svc", "Directory of timestamped backups."),
    Setting("SVC_RECOVERY_DIR", _absolute, "/var/lib/svc/recovery", "Directory of recovery sets."),
    Setting("SVC_UPDATE_SOURCE", str, "", "Directory or URL of signed releases."),
    Setting(
        "SVC_FILE_ROOTS",
        _file_roots,
        "work=%h/work",
        "File roots, name=path or name=path:ro (read-only); %h is the home directory, %u the user name.",
    ),
    Setting("SVC_UPLOAD_MAX", _upload_max, "64g", "Maximum size of an uploaded file (units k, m, g, t)."),
    Setting("SVC_PORT_RANGE", _port_range, "20000-24000", "Host ports for workspace ports."),
    Setting(
        "SVC_GPU_PROVIDER",
        _gpu_provider,
        "nvml",
        "Source of GPU information: nvml, none, or a file that describes fake GPUs.",
    ),
    Setting(
        "SVC_MISSING_LIMITS",
        _one_of("auto", "refuse", "allow"),
        "auto",
        "Workspaces whose limits this host cannot apply: refuse, allow, or auto (refuse with systemd).",
    ),
    Setting("SVC_WEB_THREADS", _threads, str(WEB_THREADS), "Number of threads of each listener."),
    Setting(
        "SVC_LOG_LEVEL",
        _one_of("debug", "info", "warning", "error"),
        "info",
        "Log level: debug, info, warning or error.",
    ),
)
NAMES = {setting.name: setting for setting in TABLE}


def read_env_file(path: str = ENV_FILE) -> dict[str, str]:
    """Parse the NAME=value lines of an environment file; a missing or unreadable file is empty.

    Comments and blank lines are skipped, one pair of quotes around a value is
    removed, nothing is expanded, and the last line of a name wins. Refuses a file
    that users other than root and the caller may write.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return {}
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > ENV_FILE_MAX:
            raise SettingInvalid(
                f"{path} is not a regular file of at most {ENV_FILE_MAX} bytes", hint=f"sudo editor {path}"
            )
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            raise SettingInvalid(
                f"{path} is writable by users other than root",
                hint=f"sudo chown root:root {path} && sudo chmod 0644 {path}",
            )
        content = os.read(descriptor, ENV_FILE_MAX + 1)
    finally:
        os.close(descriptor)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise SettingInvalid(f"{path} is not UTF-8 text", hint=f"sudo editor {path}") from None
    if "\0" in text:
        raise SettingInvalid(f"{path} contains a NUL character", hint=f"sudo editor {path}")
    return _pairs(text)


def _pairs(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for line in text.removeprefix("\ufeff").split("\n"):
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if not equals or name.startswith(("#", ";")):
            continue
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        values[name.strip()] = value
    return values


def written(
    flags: Mapping[str, str | None], environ: Mapping[str, str], file: Mapping[str, str]
) -> Iterator[tuple[Setting, str, str]]:
    """Each setting with its text as written and its source: "First match wins".

    Parses nothing, so that `svc env` can print invalid values too.
    """
    for setting in TABLE:
        text, source = setting.default, "default"
        for values, name in ((file, ENV_FILE), (environ, "environment"), (flags, "flag")):
            value = values.get(setting.name)
            if value not in (None, ""):
                text, source = str(value), name
        yield setting, text, source


def unknown(environ: Mapping[str, str], file: Mapping[str, str]) -> list[str]:
    """The SVC_ names that are no settings, sorted."""
    return sorted(name for name in {*environ, *file} if name.startswith("SVC_") and name not in NAMES)


class Settings:
    """All settings resolved for one process.

    `flags` has the values of the command line by setting name, None for absent
    flags. Attribute access drops the prefix: ``settings.port`` is SVC_PORT.
    """

    def __init__(
        self,
        flags: Mapping[str, str | None] | None = None,
        environ: Mapping[str, str] | None = None,
        file: Mapping[str, str] | None = None,
    ) -> None:
        environ = os.environ if environ is None else environ
        file = read_env_file() if file is None else file
        self.resolved: dict[str, Resolved] = {}
        for setting, text, source in written(flags or {}, environ, file):
            try:
                self.resolved[setting.name] = Resolved(setting.parse(text), source, text)
            except ValueError as error:
                raise SettingInvalid(f"{setting.name} from {source} {error}", hint="svc env --all") from None
        self.unknown = unknown(environ, file)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.resolved["SVC_" + name.upper()].value
        except KeyError:
            raise AttributeError(name) from None

    def warn_unknown(self) -> None:
        """Warn on standard error about unknown SVC_ names."""
        for name in self.unknown:
            print(f"svc: warning: unknown setting {name}", file=sys.stderr)

    @property
    def secret_file(self) -> str:
        """The signing secret's path: SVC_JWT_SECRET_FILE, else secret.key beside the database."""
        return self.jwt_secret_file or os.path.join(os.path.dirname(os.path.abspath(self.db)), "secret.key")
