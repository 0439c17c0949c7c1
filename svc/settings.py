"""The settings of this host: one table, resolved once, each with its source.

`flag > process environment > /etc/svc/svc.env > default` ("First match wins").
A value is parsed when it is first read: a bad one stops what needs it, and nothing
else. `svc env` and `svc admin doctor` report every fault, with its line.
For every layer. Imports only errors and limits, because the quick client
commands load it too.
"""

from __future__ import annotations

import os
import stat

from svc.errors import SettingInvalid, UsageError
from svc.limits import APPS_PORT_DEFAULT, PORT_DEFAULT, UPLOAD_MAX, WEB_THREADS

TYPE_CHECKING = False  # as typing's own: saves the quick client commands these imports
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
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


class Fault:
    """What is wrong in the settings: the setting or line, what it is, and the command that leads to it."""

    __slots__ = ("hint", "line", "message", "subject")

    def __init__(self, subject: str, message: str, hint: str, line: int = 0) -> None:
        self.subject = subject
        self.message = message
        self.hint = hint
        self.line = line

    @property
    def text(self) -> str:
        """The sentence: `SVC_PORT from line 3 of /etc/svc/svc.env must be ...`."""
        return f"{self.subject} {self.message}"


def refusal(faults: list[Fault]) -> SettingInvalid:
    """One error for all of these faults; its hint leads to the first."""
    if len(faults) == 1:
        return SettingInvalid(faults[0].text, hint=faults[0].hint)
    fields = [{"field": each.subject, "code": "invalid", "message": each.message} for each in faults]
    return SettingInvalid(f"{len(faults)} settings are not valid", hint=faults[0].hint, fields=fields)


class Resolved:
    """A setting in force: its source (flag, environment, file, default), text as written, and value."""

    __slots__ = ("_fault", "_line", "_value", "setting", "source", "text")

    def __init__(self, setting: Setting, source: str, text: str, line: int, fault: Fault | None) -> None:
        self.setting = setting
        self.source = source
        self.text = text
        self._line = line
        self._fault = fault
        self._value: Any = self  # not parsed yet

    @property
    def value(self) -> Any:
        """The parsed value; raises SettingInvalid, or UsageError for an address of another host."""
        if (fault := self.fault) is None:
            return self._value
        if self.setting.name == "SVC_SOCKET" and "://" in self.text:  # "a remote server URL is a usage error"
            raise UsageError(f"{fault.text}: svc uses the service on this host only", hint=fault.hint)
        raise refusal([fault])

    @property
    def fault(self) -> Fault | None:
        """Why there is no value; None for a valid one."""
        if self._fault is None and self._value is self:
            try:
                self.text.encode()
                self._value = self.setting.parse(self.text)
            except UnicodeEncodeError:
                self._fault = self._refused("is not UTF-8 text")
            except ValueError as error:
                self._fault = self._refused(str(error))
        return self._fault

    def _refused(self, message: str) -> Fault:
        name = self.setting.name
        if self._line:
            return Fault(name, f"from {_place(self._line)} {message}", _editor(self._line), self._line)
        hints = {"environment": f"unset {name}", ENV_FILE: _editor()}
        return Fault(name, f"from {self.source} {message}", hints.get(self.source, "svc env --all"))


def _place(line: int) -> str:
    return f"line {line} of {ENV_FILE}"


def _editor(line: int = 0) -> str:
    """The command that opens the settings file, at that line."""
    return f"sudo editor {f'+{line} ' if line else ''}{ENV_FILE}"


def _absolute(value: str) -> str:
    if value and not value.startswith("/"):
        raise ValueError("must be an absolute path")
    return value


def _port(value: str) -> int:
    return _number(value, 1, 65535, "port number")


def _port_or_off(value: str) -> int:
    return 0 if value in ("0", "off") else _port(value)


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


def _store_dir(value: str) -> str:
    parent, _, name = value.rpartition("/")
    parts = parent.split("/")[1:]
    is_plain = value.isprintable() and not set(parent) & set('%:,"\\ ')
    if value and (
        name != "%u" or not value.startswith("/") or not parts or {"", ".", ".."} & set(parts) or not is_plain
    ):
        raise ValueError("must be an absolute path that ends in /%u, such as /var/lib/svc-stores/%u")
    return value


def _update_source(value: str) -> str:
    if not value or value.startswith("/"):
        return value
    host = value.removeprefix("https://").partition("/")[0]
    is_plain = value.isascii() and value.isprintable() and not set(value) & set(' ?#\\"')
    if not value.startswith("https://") or not host or not is_plain:
        raise ValueError("must be an absolute path or an https:// URL without a query")
    if "@" in host:
        raise ValueError("must not have a user or password: everybody may read the settings")
    return value


def _proxy(value: str) -> str:
    rest = value.removeprefix("http://")
    host, _, path = rest.partition("/")
    if not value:
        return value
    if "@" in rest:
        raise ValueError("must not have a user or password: the Podman of every user gets it")
    is_plain = host.isascii() and host.isprintable() and not set(host) & set(' ?#\\"%')
    if rest == value or path or not host or not is_plain:
        raise ValueError("must be the address of a proxy, such as http://proxy.example:3128")
    return f"http://{host}"


def _no_proxy(value: str) -> str:
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if not all(part.isascii() and part.isprintable() and not set(part) & set(" '\"") for part in parts):
        raise ValueError("must list host names, domains and networks, such as r.example,.lan,10.0.0.0/8")
    return ",".join(parts)


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
        "SVC_APPS_LOCAL_PORT",
        _port_or_off,
        str(APPS_PORT_DEFAULT),
        "TCP port of apps in the browser, on 127.0.0.1 and ::1 of this host; 0 is off.",
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
    Setting("SVC_UPDATE_SOURCE", _update_source, "", "Directory or https:// URL of signed releases."),
    Setting(
        "SVC_FILE_ROOTS",
        _file_roots,
        "work=%h/work",
        "File roots, name=path or name=path:ro (read-only); %h is the home directory, %u the user name.",
    ),
    Setting(
        "SVC_STORE_DIR",
        _store_dir,
        "",
        "Directory of each user's images and containers on a local disk, such as /var/lib/svc-stores/%u"
        " (default: in the home directory).",
    ),
    Setting("SVC_UPLOAD_MAX", _upload_max, "64g", "Maximum size of an uploaded file (units k, m, g, t)."),
    Setting(
        "SVC_HTTP_PROXY",
        _proxy,
        "",
        "Proxy for pulls and builds, also of https:// addresses, such as http://proxy.example:3128.",
    ),
    Setting(
        "SVC_NO_PROXY",
        _no_proxy,
        "",
        "Hosts, domains and networks that are reached without the proxy, comma-separated.",
    ),
    Setting(
        "SVC_CA_FILE",
        _absolute,
        "",
        "Certificates (PEM) of private authorities that registries have, in addition to the host's own.",
    ),
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
OF_PROGRAMS = ("SVC_SWITCHING",)  # set by programs for those that they run; no settings


class EnvFile(dict[str, str]):
    """The values of a settings file, and what is wrong with it.

    `lines` has the line of each name, `broken` the fault of a name whose last line
    has no usable value, `faults` those of other lines, `unusable` that of the whole file.
    """

    def __init__(self, values: Mapping[str, str] | None = None, unusable: Fault | None = None) -> None:
        super().__init__(values or {})
        self.lines: dict[str, int] = {}
        self.broken: dict[str, Fault] = {}
        self.faults: list[Fault] = []
        self.unusable = unusable

    def add(self, number: int, content: bytes) -> None:
        """Take over one line."""
        head, equals, _ = content.partition(b"=")
        first = head.decode("ascii", "replace").strip().removeprefix("export ").replace(":", " ").split()[:1]
        name = "".join(first)
        if not content.strip() or name.startswith(("#", ";")):
            return
        try:
            name, value = _pair(content.decode())
        except UnicodeDecodeError:
            self._note(number, name, "is not UTF-8 text")
        else:
            if not equals:
                self._note(number, "".join(first), "has no =")
            elif "\0" in value or "\0" in name:
                self._note(number, name, "contains a NUL character")
            else:
                self[name], self.lines[name] = value, number
                self.broken.pop(name, None)

    def _note(self, number: int, name: str, message: str) -> None:
        """Note the fault of a line, for its setting if it has one."""
        known = name in NAMES
        subject, text = (name, f"on {_place(number)} {message}") if known else (_place(number), message)
        fault = Fault(subject, text, _editor(number), number)
        if not known:
            self.faults.append(fault)
            return
        self.broken[name] = fault
        self.pop(name, None)
        self.lines.pop(name, None)


def read_env_file(path: str = ENV_FILE) -> EnvFile:
    """The NAME=value lines of an environment file; empty if it is missing or not readable.

    Comments and blank lines are skipped, one pair of quotes around a value is
    removed, nothing is expanded, and the last line of a name wins. Raises nothing: a
    file that users other than root and the caller may write is unusable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return EnvFile()
    except OSError as error:
        return _unusable(path, f"cannot be read: {error.strerror}")
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > ENV_FILE_MAX:
            return _unusable(path, f"is not a regular file of at most {ENV_FILE_MAX} bytes")
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            return _unusable(path, "is writable by users other than root", "sudo svc admin doctor --repair")
        content = os.read(descriptor, ENV_FILE_MAX + 1)
    except OSError as error:
        return _unusable(path, f"cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)
    file = EnvFile()
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        file.add(number, line)
    return file


def _unusable(path: str, message: str, hint: str = "") -> EnvFile:
    return EnvFile(unusable=Fault(path, message, hint or f"ls -ld {path}"))


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.strip().removeprefix("export ").partition("=")
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return name.strip(), value


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


class Settings:
    """All settings resolved for one process.

    `flags` has the values of the command line by setting name, None for absent
    flags. Attribute access drops the prefix: ``settings.port`` is SVC_PORT. It raises
    SettingInvalid for a bad value, so that a command needs only the settings that it uses.
    """

    def __init__(
        self,
        flags: Mapping[str, str | None] | None = None,
        environ: Mapping[str, str] | None = None,
        file: Mapping[str, str] | None = None,
    ) -> None:
        environ = os.environ if environ is None else environ
        file = read_env_file() if file is None else file
        self.file = file if isinstance(file, EnvFile) else EnvFile(file)
        self.resolved: dict[str, Resolved] = {}
        for setting, text, source in written(flags or {}, environ, self.file):
            self.resolved[setting.name] = self._resolved(setting, text, source)
        known = {*NAMES, *OF_PROGRAMS}
        self._names = [name for name in {*environ, *self.file} if _is_ours(name) and name not in known]

    def _resolved(self, setting: Setting, text: str, source: str) -> Resolved:
        name, fault, line = setting.name, None, 0
        if source == "default":
            fault = self.file.broken.get(name)
            if name != "SVC_SOCKET":  # clients may use the default: they check who serves it
                fault = fault or self.file.unusable
        elif source != "flag" and self.file.get(name) == text:
            line = self.file.lines.get(name, 0)  # systemd puts the file into the environment
        return Resolved(setting, source, text, line, fault)

    def __getattr__(self, name: str) -> Any:
        try:
            resolved = self.__dict__["resolved"]["SVC_" + name.upper()]
        except KeyError:
            raise AttributeError(name) from None
        return resolved.value

    def anchor_database(self, path: str) -> None:
        """Give the database this absolute path, of the same source: the working directory will change."""
        former = self.resolved["SVC_DB"]
        self.resolved["SVC_DB"] = Resolved(former.setting, former.source, path, 0, None)

    def is_valid(self, name: str) -> bool:
        """Whether the setting has a usable value."""
        return self.resolved[name].fault is None

    def require(self, names: Iterable[str]) -> None:
        """Raise SettingInvalid with all of these settings that have no valid value."""
        unusable = self.file.unusable
        found = [fault for name in names if (fault := self.resolved[name].fault) is not None]
        if found:
            raise refusal([unusable] if unusable in found else _by_line(found))

    def faults(self) -> list[Fault]:
        """Everything that is wrong: values in force, and lines of the file."""
        found = [fault for resolved in self.resolved.values() if (fault := resolved.fault) is not None]
        whole = [self.file.unusable] if self.file.unusable else []
        lines = [*self.file.broken.values(), *self.file.faults]
        return whole + _by_line(dict.fromkeys(each for each in (*found, *lines) if each not in whole))

    def unknown(self) -> list[Fault]:
        """The names that were meant as settings of svc and are none."""
        found = []
        for name in sorted(self._names):
            line = self.file.lines.get(name, 0)
            where, hint = (f"on {_place(line)}", _editor(line)) if line else ("", f"unset {name}")
            found.append(Fault(name, f"{where} is no setting of svc{_meant(name)}".lstrip(), hint, line))
        return _by_line(found)

    @property
    def secret_file(self) -> str:
        """The signing secret's path: SVC_JWT_SECRET_FILE, else secret.key beside the database."""
        return self.jwt_secret_file or os.path.join(os.path.dirname(os.path.abspath(self.db)), "secret.key")


def _is_ours(name: str) -> bool:
    return name.upper().startswith("SVC_")


def _by_line(faults: Iterable[Fault]) -> list[Fault]:
    return sorted(faults, key=lambda fault: fault.line)


def _meant(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.upper().removeprefix("SVC_"), [known[4:] for known in NAMES], 1)
    return f"; did you mean SVC_{near[0]}?" if near else ""
