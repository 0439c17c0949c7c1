"""`svc env`: the settings in force, read from the environment and the settings file; the certificate.

The values are those that the programs of this host use: relative paths made
absolute, computed defaults computed. The certificate comes from the service.
"""

from __future__ import annotations

import os

from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.settings import ENV_FILE, TABLE, Settings, read_env_file, refusal, written

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.settings import Fault

COLUMNS = (("NAME", "name", output.plain), ("VALUE", "value", output.plain), ("FROM", "source", output.plain))
MASK = "********"
EXAMPLES = """\
svc env
svc env --all
svc env | cut -f1,2
svc env --certificate > svc.pem"""
CERTIFICATE = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----")


def env(args: Arguments) -> int:
    """Print the settings in force on this host and where each comes from.

    The process environment wins over /etc/svc/svc.env, which wins over the
    default. Secrets are masked, also those in a URL. An invalid value is printed
    as it is; every fault of the file and the environment is named on standard error,
    with its line, and the exit code is 1. Columns: name, value, source.

    With --certificate the certificate of the HTTPS listener in PEM form, from the
    running service, for `curl --cacert`; its fingerprint goes to standard error.
    """
    if args.certificate:
        return certificate(args)
    file = read_env_file()
    settings = Settings(file=file)
    entries = list(written({}, os.environ, settings.file))
    texts = {setting.name: text for setting, text, _ in entries}
    rows = [
        {"name": setting.name, "value": MASK if setting.secret and text else in_force(setting.name, texts),
         "source": source}
        for setting, text, source in entries
        if args.all or source != "default"
    ]  # fmt: skip
    if args.json:
        output.items_json(rows)
    else:
        output.table(COLUMNS, rows, f"All {len(TABLE)} settings have their defaults: svc env --all")
    if not may_read():
        output.note(f"{ENV_FILE} is not readable for you; its settings are missing here: sudo svc env")
    warn(settings.unknown())
    if faults := settings.faults():
        raise refusal(faults)
    return 0


def certificate(args: Arguments) -> int:
    """Print the certificate chain that the service hands to everybody, and the fingerprint of the first."""
    from binascii import Error, a2b_base64
    from hashlib import sha256

    from svc.client.requests import ask
    from svc.errors import BadAnswer
    from svc_helper.wire.quick_json import dumps

    pem = ask(args, "GET", "/api/certificate").body
    begin, end = (mark.encode() for mark in CERTIFICATE)
    try:
        der = a2b_base64(pem.partition(begin)[2].partition(end)[0])
    except Error:
        der = b""
    if not der or not pem.isascii():
        raise BadAnswer("the service's answer holds no certificate")
    fingerprint = sha256(der).hexdigest().upper()
    fingerprint = ":".join(fingerprint[at : at + 2] for at in range(0, len(fingerprint), 2))
    if args.json:
        output.raw(dumps({"certificate": pem.decode(), "sha256": fingerprint}).encode() + b"\n")
        return 0
    output.raw(pem)
    output.note(f"SHA-256 fingerprint: {fingerprint}")
    return 0


def warn(*faults: list[Fault]) -> None:
    """Print faults of the settings that do not stop the command."""
    for fault in (each for part in faults for each in part):
        output.note(f"warning: {fault.text}")


def may_read() -> bool:
    """Whether the settings file is readable for the caller, or missing."""
    try:
        os.stat(ENV_FILE)
    except OSError as error:
        return not isinstance(error, PermissionError)
    return os.access(ENV_FILE, os.R_OK)


# --- the value in force -----------------------------------------------------------------


def in_force(name: str, texts: dict[str, str]) -> str:
    """The effective value of a setting, computed from the texts of all."""
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
    """The text, with the login and query of a URL masked: either may hold a secret."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        return text
    login, at, rest = rest.rpartition("@")
    location, question, query = rest.partition("?")
    return f"{scheme}://{MASK + at if login else at}{location}{question}{MASK if query else ''}"


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:  # the working directory is gone
        return path


def _beside(database: str, name: str) -> str:
    return os.path.join(os.path.dirname(_absolute(database)), name)


def _own_names() -> list[str]:
    """The host's own names, as from socket.gethostname and socket.getfqdn."""
    import _socket  # socket itself takes 10 ms more to import

    name = _socket.gethostname()
    resolve: Any = _socket.gethostbyaddr  # with bytes, since a str makes it import a codec, 8 ms
    try:
        first, others, _ = resolve(os.fsencode(name))
    except OSError:
        first, others = name, []
    full = next((each for each in (first, *others) if "." in each), first)
    return list(dict.fromkeys(each.lower() for each in (name, full) if each))


COMMAND = Command(
    "env",
    env,
    Argument("--all", "include unset settings, with their defaults", kind="flag"),
    Argument("--certificate", "print the certificate of the HTTPS listener instead", kind="flag"),
    examples=EXAMPLES,
)
