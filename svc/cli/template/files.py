"""`svc template export` and `import`: a template as a file for another host."""

from __future__ import annotations

import sys

from svc.cli import local_files, operations, output
from svc.cli.arguments import FORCE, TEMPLATE, Argument, Arguments, Command
from svc.cli.client import ask, checked, quote, show_outcome
from svc.errors import FileRefused
from svc.limits import BUNDLE_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from io import FileIO

TAR = "application/x-tar"
EXPORTED = (("FILE", "file", output.plain), ("SIZE", "size", output.size), ("DIGEST", "digest", output.plain))


def export(args: Arguments) -> int:
    """Write a template to a file, as a bundle.

    The bundle is a plain tar archive with manifest.json and, if there is one, the
    Dockerfile with its build context. Equal templates give equal bytes. Values of
    secret variables are never included. An existing file is replaced only with
    --force and only when the bundle is complete.
    """
    from svc.cli import streams

    forced = f"svc template export {args.template} --out {output.shell_quote(args.out)} --force"
    local_files.refuse_existing(args.out, args.force, forced)
    with streams.fetch(f"/api/templates/{quote(args.template)}/export", BUNDLE_MAX) as fetched:
        local_files.save(fetched.parts(), args.out, args.force, forced)
        digest = fetched.fields.get("x-svc-bundle-digest", "")
        record = {"file": args.out, "size": fetched.size, "digest": digest}
    output.outcome(f"{args.out} is written ({output.size(fetched.size, human=True)}).", EXPORTED, record)
    return 0


def import_(args: Arguments) -> int:
    """Create a private template of yours from a bundle.

    It is disabled, whoever exported it: review it, then enable it. The image of one
    with a Dockerfile is built first, unless --build-later is set. If the name is
    taken, a number is added. --json prints the imported template.
    """
    from svc.cli import streams
    from svc.cli.template.columns import COLUMNS

    file, size = open_bundle(args.file)
    with file:
        answer = checked(args, streams.send("/api/templates/import", file, size, TAR))
    show_outcome(args, answer, COLUMNS, "{name} ({id}) is imported, {status}.")
    sys.stdout.flush()
    template = answer.json()
    ref = output.text(template, "id")
    to_build = output.text(template, "source.type") == "dockerfile"
    if to_build and not args.build_later:
        build(ref)
    if output.on_terminal():
        again = f"svc image build {ref} --wait, then " if to_build and args.build_later else ""
        output.note(f"after a review (svc template get {ref}): {again}svc template enable {ref}")
    return 0


def build(template: str) -> None:
    """Build an imported template's image and wait for it, with progress."""
    plain = Arguments()
    plain.json = False  # standard output already has the template
    operations.wait(plain, ask(plain, "POST", f"/api/templates/{quote(template)}/image/build", {}))


def open_bundle(path: str) -> tuple[FileIO, int]:
    """A bundle to send and its size; raises FileRefused, also for one that is too large."""
    file, size = local_files.open_regular(path)
    if size <= BUNDLE_MAX:
        return file, size
    file.close()
    raise FileRefused(f"{path} has {size} bytes; a bundle has at most {BUNDLE_MAX}")


COMMANDS = (
    Command(
        "export",
        export,
        TEMPLATE,
        Argument("--out", "the file to write", metavar="FILE", required=True),
        FORCE,
        examples="svc template export python --out python.tar",
        json=False,
    ),
    Command(
        "import",
        import_,
        Argument("FILE", "the bundle"),
        Argument("--build-later", "do not build the image now", kind="flag"),
        examples="svc template import python.tar\nsvc template import python.tar --build-later",
    ),
)
