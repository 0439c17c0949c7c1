"""`svc admin registry`: the registries that images may come from, a file of root's.

Root itself reads and parses nothing: a process of the database's owner checks the policy in force and
what is asked for, and the helper checks each value again before it writes the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from svc.actions.table import (
    ADMIN_REGISTRIES,
    ADMIN_REGISTRIES_LOGIN,
    ADMIN_REGISTRIES_LOGOUT,
    Action,
)
from svc.admin.actor import REQUEST_ID, note
from svc.admin.command import (
    FOR_HELPER,
    for_database,
    require_owner,
    settings_of,
    sudo_command,
    wrap_db_errors,
)
from svc.admin.database import as_owner
from svc.admin.own_helper import own_helper
from svc.admin.people.password_input import read_login
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command, CommandGroup
from svc.db.location import database_path
from svc.domain import configuration, registries
from svc.errors import Conflict, HostRefused, NotFound, SvcError, UsageError, ValidationFailed
from svc.helper.helper import Helper
from svc.settings import Settings
from svc.web.schemas.images import Registries
from svc.web.schemas.loading import load
from svc_helper.provision.logins import read as read_logins

Entries = list[dict[str, Any]]
BYTES_MAX = 256 * 1024
COLUMNS = (
    ("HOST", "host", output.plain),
    ("PATH PREFIX", "path_prefix", output.plain),
    ("INSECURE", "insecure", output.plain),
    ("LOGIN", "login", output.plain),
)
REGISTRY = Argument("REGISTRY", "host[:port], or host[:port]/path for a part of it")
EXAMPLES_LIST = "sudo svc admin registry list"
EXAMPLES_ADD = """\
sudo svc admin registry add quay.io
sudo svc admin registry add docker.io/library
sudo svc admin registry add registry.example:5000/team --insecure
sudo svc admin registry add registry.example --login robot < password.txt"""
EXAMPLES_REMOVE = "sudo svc admin registry remove quay.io"
EXAMPLES_SET = """\
sudo svc admin registry set registries.json
echo '{"registries": [{"host": "quay.io", "path_prefix": "team/"}]}' | sudo svc admin registry set -"""


@wrap_db_errors
def registry_list(args: Arguments) -> int:
    """List the registries that images may come from.

    Users see them with `svc image allowlist`. Columns: host, path prefix, insecure,
    login (the account of the host's login; root alone sees it).
    """
    settings = settings_of(args, ("SVC_DB", "SVC_STATE_DIR"))
    users = logins(settings)
    path = configuration.registries_path(settings)

    def read_list() -> dict[str, Any]:
        configuration.configure_only(registries_path=path)
        found, faulty = registries.seen()
        return {"entries": found, "faulty": faulty}

    found = as_owner(settings, read_list)
    entries = [entry | {"login": users.get(entry["host"])} for entry in found["entries"]]
    for number in found["faulty"]:
        output.note(f"entry {number} of {path} is not valid: it allows nothing")
    if args.json:
        output.items_json(entries)
    else:
        output.listing(args, COLUMNS, entries, "No registry is allowed: sudo svc admin registry add HOST")
    return 0


@wrap_db_errors
def registry_add(args: Arguments) -> int:
    """Allow images of a registry, or of a path in it, from now on.

    --insecure is for plain HTTP or a certificate that nobody signed. Adding one
    that is allowed already changes only that. With --login all users of the
    service pull with this account of the host; its password is asked for on a
    terminal, else read from standard input. Every user can read it: take an
    account that may only pull. A user's own `podman login` goes first, and needs no
    login of the host.
    """
    host, prefix = split(args.registry)
    entry = {"host": host, "path_prefix": prefix, "insecure": args.insecure}
    require_login(args.login, args.no_login)
    settings = settings_of(args, FOR_HELPER)
    password = read_login(host, args.login) if args.login else ""

    def added(entries: Entries) -> Entries:
        if any(key(other) == key(entry) for other in entries):
            return [entry if key(other) == key(entry) else other for other in entries]
        return [*entries, entry]

    change(settings, added)
    mark = " (insecure)" if args.insecure else ""
    print(output.visible(f"images of {name(entry)}{mark} are allowed"))
    if args.login:
        ask_helper(settings, ADMIN_REGISTRIES_LOGIN, host=host, username=args.login, password=password)
        print(output.visible(f"users pull from {host} as {args.login}"))
        if args.insecure:
            output.note("its password goes over the network as it is")
    elif args.no_login:
        ask_helper(settings, ADMIN_REGISTRIES_LOGOUT, host=host)
        print(output.visible(f"users pull from {host} without a login of the host"))
    return 0


def require_login(username: str | None, is_ended: bool) -> None:
    """Raise UsageError for what is no login, HostRefused unless root gives it."""
    if username is None and not is_ended:
        return
    if username is not None and (is_ended or not username or ":" in username):
        raise UsageError("--login takes a user name without a colon", hint="svc admin registry add --help")
    if os.geteuid() != 0:
        raise HostRefused(
            "the host's logins are root's; your own: podman login REGISTRY", hint=sudo_command()
        )


def ask_helper(settings: Settings, action: Action, **arguments: object) -> None:
    """One call of a helper of our own; the audit has that it was made, and for which host."""
    verb, host = action.removeprefix("admin."), arguments["host"]
    as_owner(settings, lambda: note(action, str(host), "begun"))
    with own_helper(settings) as helper:
        helper.call(verb, None, arguments, rid=REQUEST_ID)
    as_owner(settings, lambda: note(action, str(host), "ok"))


@wrap_db_errors
def registry_remove(args: Arguments) -> int:
    """Allow no further images of a registry, or of a path in it.

    Images that users have stay, and so do workspaces made from them. The host's
    login goes with the last entry of its registry.
    """
    host, prefix = split(args.registry)
    entry = {"host": host, "path_prefix": prefix}

    def removed(entries: Entries) -> Entries:
        left = [other for other in entries if key(other) != key(entry)]
        is_completed = has_login and host not in hosts(entries)  # the list was changed, and its login stayed
        if len(left) == len(entries) and not is_completed:
            others = ", ".join(name(other) for other in entries if other["host"] == host)
            message = f"{name(entry)} is not on the list" + (f"; of this host: {others}" if others else "")
            raise NotFound(message, hint="sudo svc admin registry list")
        return left

    settings = settings_of(args, FOR_HELPER)
    has_login = _may_have_login(settings, host)
    left = change(settings, removed, forget=host)
    print(output.visible(f"images of {name(entry)} are not allowed any more"))
    if not left:
        output.note("no registry is allowed now: nobody can pull or build")
    return 0


@wrap_db_errors
def registry_set(args: Arguments) -> int:
    """Replace the whole list.

    FILE has one JSON object, {"registries": [{"host", "path_prefix", "insecure"}, ...]};
    - is standard input. An empty path_prefix allows all of a host; an empty list
    allows nothing. `svc admin registry list --json` prints the present entries.
    """
    content = read(args.file)
    entries = change(settings_of(args, FOR_HELPER), lambda _: parsed(content)["registries"], replace=True)
    count = f"{len(entries)} registries are" if len(entries) != 1 else "1 registry is"
    print(f"{count} allowed; to list them: sudo svc admin registry list")
    return 0


def change(
    settings: Settings, edit: Callable[[Entries], Entries], *, replace: bool = False, forget: str = ""
) -> Entries:
    """Put the edited list in force; returns it.

    The logins of hosts that are not on it any more go too, `forget` also of a host that was not on it before.
    """
    present = present_of(settings)

    def check() -> dict[str, Any]:
        try:
            before = present()
        except Conflict:
            if not replace:
                raise
            before = []
        request = {"registries": edit(before)}
        entries: Entries = load(Registries(), request)["registries"]
        note(ADMIN_REGISTRIES, "registries", "begun", policy=registries.check_policy(entries))
        return {"entries": entries, "dropped": sorted(hosts(before) - hosts(entries))}

    require_owner(database_path(settings))
    with alone(settings):
        untrusted = as_owner(settings, check)  # the helper checks each value again
        entries: Entries = untrusted["entries"]
        with own_helper(settings) as helper:
            helper.call("registries.write", None, {"registries": entries}, rid=REQUEST_ID)
            as_owner(settings, lambda: note(ADMIN_REGISTRIES, "registries", "ok"))
            for host in sorted({*untrusted["dropped"], forget} - {""} - hosts(entries)):
                _forget_login(helper, host, settings)
    return entries


def _forget_login(helper: Helper, host: str, settings: Settings) -> None:
    """Remove the login of a host that left the list; the error says what is done."""
    if os.geteuid() != 0:  # the logins are root's
        return
    try:
        helper.call("registries.logout", None, {"host": host}, rid=REQUEST_ID)
    except SvcError as error:
        message = f"no image of {host} is allowed any more, but the login for {host} stays: {error.message}"
        again = for_database(f"registry remove {host}", settings)
        raise type(error)(message, hint=f"sudo svc admin doctor, then: {again}") from None


def _may_have_login(settings: Settings, host: str) -> bool:
    """Whether root has a login for the host, or cannot tell."""
    try:
        return os.geteuid() == 0 and host in read_logins(settings.state_dir)
    except OSError:
        return True


def present_of(settings: Settings) -> Callable[[], Entries]:
    """Reads the list in force; Conflict for a file that cannot be read, of which nothing would be kept."""

    def present() -> Entries:
        configuration.configure_only(registries_path=configuration.registries_path(settings))
        return registries.readable()

    return present


def logins(settings: Settings) -> dict[str, str]:
    """The user name of each host's login, from root's own file; none where it cannot be read."""
    if os.geteuid() != 0:
        return {}
    try:
        found = read_logins(settings.state_dir)
    except OSError as error:
        output.note(f"the logins cannot be read: {error}")
        return {}
    return {host: b64decode(one["auth"]).decode().partition(":")[0] for host, one in found.items()}


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """One change of the list at a time: each begins with what the last one wrote."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(os.path.join(settings.state_dir, "registries.json.lock"), flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def split(text: str) -> tuple[str, str]:
    """Host and path prefix of a registry as it is written in a reference."""
    host, _, prefix = text.partition("/")
    return host, prefix.strip("/")


def hosts(entries: Entries) -> set[str]:
    """The hosts of a list, each of which may have a login."""
    return {str(entry["host"]) for entry in entries}


def key(entry: dict[str, Any]) -> tuple[str, str]:
    """What tells entries apart."""
    return entry["host"], entry["path_prefix"].strip("/")


def name(entry: dict[str, Any]) -> str:
    """The entry as one word: `quay.io/team`."""
    return "/".join(filter(None, key(entry)))


def read(path: str) -> bytes:
    """The content of the file; raises ValidationFailed for too much of it."""
    if path == "-":
        content = sys.stdin.buffer.read(BYTES_MAX + 1) if sys.stdin else b""
    else:
        try:
            with open(path, "rb") as file:
                content = file.read(BYTES_MAX + 1)
        except OSError as error:
            raise ValidationFailed(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > BYTES_MAX:
        raise ValidationFailed(f"{path} has more than {BYTES_MAX} bytes")
    return content


def parsed(content: bytes) -> dict[str, Any]:
    """The JSON object of the file, with its entries; raises ValidationFailed."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or set(value) != {"registries"}:
        raise ValidationFailed(
            'the file is no JSON object {"registries": [...]}', hint="svc admin registry set --help"
        )
    return value


COMMANDS = (
    CommandGroup(
        "registry",
        "The registries that images may come from.",
        Command(
            "list",
            registry_list,
            Argument("--json", "print the entries as JSON", kind="flag"),
            examples=EXAMPLES_LIST,
            json=False,
        ),
        Command(
            "add",
            registry_add,
            REGISTRY,
            Argument("--insecure", "plain HTTP, or a certificate that nobody signed", kind="flag"),
            Argument("--login", "all users pull with this account of the registry", metavar="USER"),
            Argument("--no-login", "forget the host's login", kind="flag"),
            examples=EXAMPLES_ADD,
            json=False,
        ),
        Command("remove", registry_remove, REGISTRY, examples=EXAMPLES_REMOVE, json=False),
        Command(
            "set",
            registry_set,
            Argument("FILE", "the list as JSON; - is standard input"),
            examples=EXAMPLES_SET,
            json=False,
        ),
    ),
)
