"""`svc admin template import`: imports a bundle file of this host into the database.

Root only opens the file; a process that has irrevocably become the database's
owner reads and checks it.
"""

from __future__ import annotations

import os
import sys
from typing import Any, BinaryIO

from svc.actions.table import ADMIN_TEMPLATE_IMPORT
from svc.admin.actor import note
from svc.admin.command import settings_of, wrap_db_errors
from svc.admin.database import active_account, as_owner
from svc.cli.template.columns import note_findings
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command, CommandGroup
from svc.commandline.local_files import open_regular
from svc.db.connect import write
from svc.domain import configuration, registries
from svc.domain.accounts import users
from svc.domain.accounts.users import Account
from svc.domain.files import spool
from svc.domain.templates import bundles, import_export
from svc.domain.templates.bundle_manifests import require_within
from svc.errors import BuildRequired, FileRefused, RootNotAllowed, UsageError
from svc.limits import BUNDLE_MAX
from svc.settings import Settings
from svc.tls import host_names
from svc.web.schemas.loading import load
from svc.web.schemas.templates import TemplateCreate

PART = 256 * 1024
EXAMPLES = """\
sudo svc admin template import python.tar --global
sudo svc admin template import python.tar --owner demo"""


@wrap_db_errors
def template_import(args: Arguments) -> int:
    """Import a template from a bundle on this host; it is disabled, for review.

    With --global it is visible to everyone after review, with --owner it is a
    private template of that user. A bundle with a Dockerfile is refused: it
    needs a build, and root builds no images. A superuser imports it in the
    browser, at /admin/templates.
    """
    if args.is_global == (args.owner is not None):
        raise UsageError(
            "exactly one of --owner and --global is required", hint="svc admin template import --help"
        )
    settings = settings_of(args, ("SVC_DB", "SVC_STATE_DIR", "SVC_FILE_ROOTS", "SVC_STORE_DIR"))
    needed = configuration.for_templates(settings)
    schema, scope = TemplateCreate(), "global" if args.is_global else "private"

    def add() -> dict[str, Any]:
        configuration.configure_only(**needed)
        owner = None if args.is_global else owner_of(args.owner)
        with spool.unnamed_file() as file:
            copy(bundle_file, file)
            spool.ended(file)
            bundle = bundles.read(file)
            require_no_build(bundle.dockerfile() is not None, settings)
            checked = load(schema, import_export.create_request(bundle, scope), "template")
            with write():
                imported = import_export.add(owner and owner.id, bundle, checked)
                note(
                    ADMIN_TEMPLATE_IMPORT,
                    imported.id,
                    "ok",
                    owner=owner.name if owner else "",
                    **imported.facts(),
                )
        findings = registries.findings([checked["source"]["image_ref"]])
        return imported._asdict() | {"owner": owner.name if owner else "", "findings": findings}

    with opened(args.path) as bundle_file:
        untrusted = as_owner(settings, add)
    print_outcome(str(untrusted["id"]), str(untrusted["name"]), str(untrusted["owner"]))
    note_findings(untrusted)
    return 0


def opened(path: str) -> BinaryIO:
    """The bundle's file, `-` for standard input; raises FileRefused."""
    if path == "-":
        return open(
            os.dup(sys.stdin.fileno()), "rb", buffering=0
        )  # the owner's process has no standard input
    return open_regular(path, os.O_NOFOLLOW | os.O_NOCTTY)[0]


def copy(source: BinaryIO, target: BinaryIO) -> None:
    """Copy the bundle to where nobody changes it any more; raises TooLarge, FileRefused."""

    def part() -> bytes:
        try:
            return source.read(PART)
        except OSError as error:
            raise FileRefused(f"cannot read the bundle: {error.strerror}") from None

    size = 0
    while content := part():
        size += len(content)
        require_within("the archive is too large", size, BUNDLE_MAX)
        target.write(content)


def owner_of(reference: str) -> Account:
    """The future owner, by name or user id; raises NotFound, RootNotAllowed, Conflict."""
    found = users.find_owner(reference)
    user = active_account(found.name if found else reference)
    if user.uid == 0:
        raise RootNotAllowed("root has no templates of its own", hint="use --global instead of root")
    return user


def require_no_build(has_dockerfile: bool, settings: Settings) -> None:
    """Raise BuildRequired for a bundle with a Dockerfile."""
    if has_dockerfile:
        address = f"https://{host_names.of_service(settings.public_hosts)[0]}:{settings.port}/admin/templates"
        raise BuildRequired(
            "a bundle with a Dockerfile needs a build, and root builds no images: a superuser imports it at"
            f" {address}",
            hint="use the browser, as a superuser",
        )


def print_outcome(untrusted_id: str, name: str, owner: str | None) -> None:
    """Print what was imported, and the next command if the id is one."""
    whose = f"as {owner}'s" if owner else "for everyone"
    print(output.visible(f"the template {name} ({untrusted_id}) is imported {whose}, disabled"))
    if not (untrusted_id.isascii() and untrusted_id.replace("-", "").isalnum()):
        return
    if owner:
        output.note(f"{owner} enables it: svc template enable {untrusted_id}")
    else:
        output.note(f"to review it: sudo svc template get {untrusted_id}")
        output.note(f"to enable it then: sudo svc template enable {untrusted_id}")


COMMANDS = (
    CommandGroup(
        "template",
        "Import templates.",
        Command(
            "import",
            template_import,
            Argument(
                "PATH",
                "the bundle, as `svc template export` writes it; - is standard input",
                metavar="PATH|-",
            ),
            Argument("--owner", "a private template of this user (name or id)", metavar="USER"),
            Argument("--global", "everybody's template", kind="flag", dest="is_global"),
            examples=EXAMPLES,
            usage="svc admin template import [-h] [--db PATH] (--owner USER | --global) PATH|-",
            json=False,
        ),
    ),
)
