"""`svc admin license`: what is in force, the request code, checking and installing a licence.

Root reads the licence's bytes and never parses them: a process of the database's owner does. The file
that root writes is the one that was checked, byte for byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# Read here, which svc.domain.licence.documents does late: the database's owner may lack access to its files.
import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401  see above

from svc.actions.table import ADMIN_LICENSE_INSTALL
from svc.admin.actor import note
from svc.admin.command import print_json, require_owner, settings_of, wrap_db_errors
from svc.admin.database import as_owner
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command, CommandGroup
from svc.commandline.local_files import open_regular
from svc.db import facts
from svc.db.location import database_path
from svc.domain import configuration
from svc.domain.licence import documents, entitlement, fingerprint, reports
from svc.domain.licence.documents import FILE_MAX, Licence
from svc.errors import (
    DatabaseDamaged,
    DatabaseRefused,
    FileRefused,
    HostRefused,
    LicenseInvalid,
    Maintenance,
    StorageFailed,
    StorageFull,
    SvcError,
)
from svc.host import clock
from svc.host.owner import owner_of, run_as
from svc.host.root_file import checked as checked_time
from svc.settings import Settings
from svc_helper import atomic_file

FIELDS = (
    ("KIND", "kind", output.plain),
    ("STATE", "state", output.plain),
    ("STARTS", "starts_at", output.plain),
    ("ENDS", "ends_at", output.plain),
    ("DAYS LEFT", "days_left", output.plain),
    ("LICENCE", "id", output.plain),
    ("HOLDER", "holder", output.plain),
    ("USERS", "users", output.plain),
    ("GPUS", "gpus", output.plain),
    ("REQUEST CODE", "request_code", output.plain),
    ("KEYS", "keys", output.plain),
)
LICENCE_FIELDS = (
    ("LICENCE", "id", output.plain),
    ("HOLDER", "holder", output.plain),
    ("HOST", "host", output.plain),
    ("ISSUED", "issued", output.plain),
    ("STARTS", "not_before", output.plain),
    ("ENDS", "not_after", output.plain),
    ("USERS", "users", output.plain),
    ("GPUS", "gpus", output.plain),
)


# --- show and request ------------------------------------------------------------------


@wrap_db_errors
def license_show(args: Arguments) -> int:
    """Show the resolved trial or signed entitlement.

    Also its limits with their use, this host's request code, the vendor's keys of this build, and what
    should be done, on standard error. Works without a database, by root's files alone.
    Exit code 0 also when the licence has lapsed; see the state: active, ending (within 14 days), lapsed.
    """
    settings = configured(args)

    def resolve() -> dict[str, Any]:
        return reports.current()

    def resolve_without() -> dict[str, Any]:
        found = entitlement.resolve(with_database=False)
        return reports.record(found, {"users": None, "gpus": None})

    record = with_or_without_database(settings, resolve, resolve_without)
    if args.json:
        print_json(record)
        return 0
    output.details(FIELDS, record | described_limits(record))
    for notice in record["notices"]:
        advise(notice["message"], notice["hint"])
    return 0


@wrap_db_errors
def license_request(args: Arguments) -> int:
    """Print the host activation request code.

    The vendor signs a licence for it. It is a fingerprint of this host, from which nothing of the
    host can be computed: docs/licence.md says what goes in, and what changes it.
    """
    require_owner(database_path(settings_of(args)))  # another account's code would be another one
    code = fingerprint.request_code()
    if args.json:
        print_json({"request_code": code})
    else:
        print(code)
    return 0


# --- verify and install ------------------------------------------------------------------


@wrap_db_errors
def license_verify(args: Arguments) -> int:
    """Validate a license file without installing it.

    Checks what `svc admin license install` checks: the signature by a key of this build, that it is
    for this host, and that it is valid now. Exit code 0 when it could be installed, else 1.
    """
    settings = configured(args)
    licence = check(settings, read(args.file))
    if args.json:
        print_json(licence)
        return 0
    output.details(LICENCE_FIELDS, licence | unlimited(licence))
    if args.file == "-":
        output.note("to install it, the same again with: sudo svc admin license install -")
    else:
        output.note(f"to install it: sudo svc admin license install {output.shell_quote(args.file)}")
    return 0


@wrap_db_errors
def license_install(args: Arguments) -> int:
    """Verify the file and install it to SVC_LICENSE_PATH.

    The running service goes by it at once, without a restart. The file that was there is replaced;
    one that is damaged, for another host or not valid now changes nothing.
    """
    settings = configured(args)
    content = read(args.file)
    licence = check(settings, content)
    detail = {name: licence[name] for name in ("id", "holder", "not_after", "users", "gpus")}

    def begin() -> None:
        note(ADMIN_LICENSE_INSTALL, str(licence["id"]), "begun", **detail)

    def end() -> None:
        record = clock.of_facts(facts.find(*clock.FACTS))
        facts.put(clock.facts_of(clock.after_issue(record, str(licence["issued"]))))
        note(ADMIN_LICENSE_INSTALL, str(licence["id"]), "ok", **detail)

    with_or_without_database(settings, begin, lambda: None)
    path = settings.license_path
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        atomic_file.replace(path, content, 0o644)
        if os.geteuid() == 0:
            record = clock.after_issue(clock.read_file(settings.state_dir), str(licence["issued"]))
            clock.write_file(settings.state_dir, record)
    except OSError as error:
        raise HostRefused(f"{path} cannot be written: {error.strerror}") from None
    with_or_without_database(settings, end, lambda: None)
    if args.json:
        print_json(licence | {"path": path})
        return 0
    limits = unlimited(licence)
    print(output.visible(f"{licence['id']} of {licence['holder']} is installed in {path}"))
    print(f"valid until {licence['not_after']}; users: {limits['users']}, GPUs: {limits['gpus']}")
    return 0


def check(settings: Settings, content: bytes) -> dict[str, Any]:
    """The licence in these bytes, by a process of the database's owner; raises LicenseInvalid."""

    def opened(in_database: clock.Record) -> dict[str, Any]:
        licence = entitlement.for_this_host(documents.read(content, configuration.current.license_keys))
        entitlement.require_in_time(licence, in_database)
        return licence._asdict()

    def with_database() -> dict[str, Any]:
        return opened(clock.of_facts(facts.find(*clock.FACTS)))

    untrusted = with_or_without_database(settings, with_database, lambda: opened(clock.Record()))
    return checked(untrusted)


def read(path: str) -> bytes:
    """The content of a licence file, `-` for standard input; raises FileRefused, LicenseInvalid."""
    with open(os.dup(0), "rb") if path == "-" else open_regular(path, os.O_NOCTTY)[0] as file:
        try:
            content = file.read(FILE_MAX + 1) or b""
        except OSError as error:
            raise FileRefused(f"cannot read {path}: {error.strerror}") from None
    if len(content) > FILE_MAX:
        name = "standard input" if path == "-" else path
        raise LicenseInvalid(f"{name} is no licence: it has more than {FILE_MAX} bytes")
    return content


# --- the process of the database's owner -----------------------------------------------------


def configured(args: Arguments) -> Settings:
    """The settings, also in force for the domain's rules; with this host's request code."""
    settings = settings_of(args)
    configuration.configure_only(**configuration.for_licence(settings))
    try:
        configuration.set_request_code(fingerprint.request_code())
    except HostRefused as error:
        advise(error.message, error.hint)
    return settings


def with_or_without_database(settings: Settings, work: Callable[[], Any], without: Callable[[], Any]) -> Any:
    """The result of `work` on the database, else of `without` when it cannot be used; both untrusted."""
    path = database_path(settings)
    require_owner(path)
    try:
        return as_owner(settings, work)
    except (DatabaseDamaged, DatabaseRefused, Maintenance, StorageFailed, StorageFull) as error:
        output.note(f"the database is left out: {error.message}")
        return run_as(owner_of(path), without)


def checked(untrusted: Any) -> dict[str, Any]:
    """A licence that the owner's process returned; raises SvcError for another shape."""
    if isinstance(untrusted, dict) and set(untrusted) == set(Licence._fields):
        texts = [untrusted[name] for name in ("id", "holder", "host")]
        times = [untrusted[name] for name in ("issued", "not_before", "not_after")]
        numbers = [untrusted[name] for name in ("users", "gpus")]
        if (
            all(isinstance(text, str) for text in texts)
            and all(isinstance(moment, str) and checked_time(moment) for moment in times)
            and all(count is None or type(count) is int for count in numbers)
        ):
            return untrusted
    raise SvcError("checking the licence returned no usable result")


# --- output ------------------------------------------------------------------------------------


def advise(message: str, hint: str) -> None:
    """Print what should be done to standard error, as errors are printed."""
    output.note(message)
    output.remark(f"hint: {output.visible(hint)}")


def unlimited(licence: dict[str, Any]) -> dict[str, Any]:
    """The limits of a licence for people."""
    return {name: "unlimited" if licence[name] is None else licence[name] for name in ("users", "gpus")}


def described_limits(record: dict[str, Any]) -> dict[str, str]:
    """The use of each limit: `3 of 50`, or `3 of unlimited`."""
    limits = unlimited(record["limits"])
    return {name: f"{output.plain(record['used'][name], True)} of {limits[name]}" for name in limits}


FILE = Argument("FILE", "the licence, as the vendor has sent it; - is standard input", metavar="FILE|-")
AS_JSON = Argument("--json", "print the record as JSON", kind="flag")
COMMANDS = (
    CommandGroup(
        "license",
        "Show, request, check and install the licence.",
        Command(
            "show",
            license_show,
            AS_JSON,
            examples="sudo svc admin license show\nsudo svc admin license show --json",
            json=False,
        ),
        Command("request", license_request, AS_JSON, examples="sudo svc admin license request", json=False),
        Command(
            "verify",
            license_verify,
            FILE,
            AS_JSON,
            examples="sudo svc admin license verify svc.json",
            json=False,
        ),
        Command(
            "install",
            license_install,
            FILE,
            AS_JSON,
            examples="sudo svc admin license install svc.json",
            json=False,
        ),
    ),
)
