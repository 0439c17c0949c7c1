"""`svc env`: the settings in force, read on the spot; asks no server.

The values are those that the programs of this host work with: a path where a
relative one leads to, a default that is computed as it comes out here.
"""

from __future__ import annotations

import os

from svc.cli import output
from svc.cli.arguments import Argument, Arguments, Command
from svc.errors import SettingInvalid
from svc.settings import ENV_FILE, TABLE, read_env_file, unknown, written
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.settings import Setting

COLUMNS = (("NAME", "name", output.plain), ("VALUE", "value", output.plain), ("FROM", "source", output.plain))
MASK = "********"
EXAMPLES = """\
svc env
svc env --all
svc env | cut -f1,2"""


def env(args: Arguments) -> int:
    """Print the settings in force on this host and where each comes from.

    The process environment wins over /etc/svc/svc.env, which wins over the
    default. Secrets are masked, also those in a URL. A bad value is shown as it
    is written and named on standard error; the exit code is then 1.
    Columns: name, value, source.
    """
    file = read_env_file()
    given = list(written({}, os.environ, file))
    texts = {setting.name: text for setting, text, _ in given}
    rows = [
        {"name": setting.name, "value": MASK if setting.secret and text else in_force(setting.name, texts),
         "source": source}
        for setting, text, source in given
        if args.all or source != "default"
    ]  # fmt: skip
    if args.json:
        output.raw(quick_json.dumps({"items": rows, "total": len(rows)}).encode() + b"\n")
    else:
        output.table(COLUMNS, rows, f"All {len(TABLE)} settings have their defaults: svc env --all")
    if not may_read():
        output.note(f"{ENV_FILE} is not yours to read, and what it sets is not in this list: sudo svc env")
    for name in unknown(os.environ, file):
        output.note(f"warning: unknown setting {name}")
    _refuse_bad(given)
    return 0


def _refuse_bad(given: list[tuple[Setting, str, str]]) -> None:
    """Raise SettingInvalid that names every setting in force that the programs refuse to work with."""
    bad = []
    for setting, text, source in given:
        try:
            setting.parse(text)
        except ValueError as error:
            bad.append((setting.name, source, f"from {source} {error}"))
    if not bad:
        return
    name, source, complaint = bad[0]
    hint = f"sudo editor {ENV_FILE}" if source == ENV_FILE else f"unset {name}"
    if len(bad) == 1:
        raise SettingInvalid(f"{name} {complaint}", hint=hint)
    fields = [{"field": name, "code": "invalid", "message": complaint} for name, _, complaint in bad]
    raise SettingInvalid(f"{len(bad)} settings have values that cannot be used", hint=hint, fields=fields)


def may_read() -> bool:
    """Whether the settings file, if there is one, may be read by who asks."""
    try:
        os.stat(ENV_FILE)
    except OSError as error:
        return not isinstance(error, PermissionError)
    return os.access(ENV_FILE, os.R_OK)


# --- the value in force -----------------------------------------------------------------


def in_force(name: str, texts: dict[str, str]) -> str:
    """What a setting comes to, given the texts of all."""
    text = texts[name]
    if name == "SVC_DB":
        return _absolute(text)
    if text:
        return without_secrets(text)
    if name == "SVC_HOST":
        return "all addresses"
    if name == "SVC_PUBLIC_HOSTS":
        return ",".join(_own_names())
    if name == "SVC_JWT_SECRET_FILE":
        return _beside(texts["SVC_DB"], "secret.key")
    if name in ("SVC_TLS_CERT", "SVC_TLS_KEY") and not texts["SVC_TLS_CERT"] + texts["SVC_TLS_KEY"]:
        return _beside(texts["SVC_DB"], "tls/cert.pem" if name == "SVC_TLS_CERT" else "tls/key.pem")
    return ""


def without_secrets(text: str) -> str:
    """The text, without the login and the query of a URL: either may hold a password or a key."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        return text
    login, at, rest = rest.rpartition("@")
    place, question, query = rest.partition("?")
    return f"{scheme}://{MASK + at if login else at}{place}{question}{MASK if query else ''}"


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:  # the working directory is gone
        return path


def _beside(database: str, name: str) -> str:
    return os.path.join(os.path.dirname(_absolute(database)), name)


def _own_names() -> list[str]:
    """The names that the host has for itself, as socket.gethostname and socket.getfqdn find them."""
    import _socket  # the C half of socket, which needs 10 ms more to load

    name = _socket.gethostname()
    resolve: Any = _socket.gethostbyaddr  # bytes, because for a text it loads a codec of another 8 ms
    try:
        first, others, _ = resolve(os.fsencode(name))
    except OSError:
        first, others = name, []
    full = next((each for each in (first, *others) if "." in each), first)
    return list(dict.fromkeys(each.lower() for each in (name, full) if each))


COMMAND = Command(
    "env",
    env,
    Argument("--all", "add the settings that nobody has set, with their defaults", kind="flag"),
    examples=EXAMPLES,
)
