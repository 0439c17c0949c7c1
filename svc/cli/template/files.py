"""`svc template export` and `import`: a template as a file for another host."""

from __future__ import annotations

import os
import sys

from svc.cli import waiting
from svc.client.requests import ask, checked, quote, show_outcome
from svc.commandline import local_files, output
from svc.commandline.arguments import FORCE, TEMPLATE, Argument, Arguments, Command
from svc.errors import FileRefused
from svc.limits import BUNDLE_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

EXPORTED = (("FILE", "file", output.plain), ("SIZE", "size", output.size), ("DIGEST", "digest", output.plain))


def export(args: Arguments) -> int:
    """Write a template to a file, as a bundle.

    The bundle is a plain tar archive with manifest.json and, if there is one, the
    Dockerfile with its build context. Equal templates give equal bytes. Values of
    secret variables are never included. An existing file is replaced only with
    --force and only when the bundle is complete; in a directory the file is
    TEMPLATE.tar. With - the bundle is written to standard output.
    """
    from svc.client import fetching

    command = f"svc template export {args.template} --out"
    out = args.out
    if out == "-":
        local_files.refuse_terminal(f"{command} {args.template}.tar")
    elif out.endswith("/") or os.path.isdir(out):
        out = os.path.join(out, f"{args.template}.tar")
    forced = f"{command} {output.shell_quote(args.out)} --force"
    if out != "-":
        local_files.refuse_existing(out, args.force, forced)
    with fetching.Fetched(f"/api/templates/{quote(args.template)}/export", BUNDLE_MAX) as fetched:
        if out == "-":
            local_files.write_out(fetched.parts())
            return 0
        local_files.save(fetched.parts(), out, args.force, forced)
        digest = fetched.fields.get("x-svc-bundle-digest", "")
        record = {"file": out, "size": fetched.size, "digest": digest}
    output.outcome(f"{out} is written ({output.size(fetched.size, human=True)}).", EXPORTED, record)
    return 0


def import_(args: Arguments) -> int:
    """Create a private template of yours from a bundle or a directory.

    A directory is an unpacked bundle (manifest.json, Dockerfile, context/) or a project
    with a Dockerfile, which becomes a template of the directory's name; what its
    .dockerignore names is left out. Checksums are computed. The template is disabled,
    whoever exported it: review it, then enable it. The image of one with a Dockerfile is
    built first, unless --build-later is set. If the name is taken, a number is added.
    With - the bundle is read from standard input. --json prints the imported template.
    """
    from svc.cli.template.columns import COLUMNS, note_findings
    from svc.client import sending

    file, size = open_bundle(args.file)
    with file:
        answer = checked(args, sending.send("/api/templates/import", file, size, sending.TAR))
    show_outcome(args, answer, COLUMNS, "{name} ({id}) is imported, {status}.")
    sys.stdout.flush()
    template = answer.json()
    note_findings(template)
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
    waiting.wait(plain, ask(plain, "POST", f"/api/templates/{quote(template)}/image/build", {}))


def open_bundle(path: str) -> tuple[Any, int | None]:
    """A bundle to send and its size, None if unknown; raises FileRefused, also for a large one."""
    if os.path.isdir(path):
        from svc.cli.template import projects

        return projects.of_directory(path)
    file, size = local_files.open_to_send(path)
    if size is None or size <= BUNDLE_MAX:
        return file, size
    file.close()
    raise FileRefused(f"{path} has {size} bytes; a bundle has at most {BUNDLE_MAX}")


COMMANDS = (
    Command(
        "export",
        export,
        TEMPLATE,
        Argument(
            "--out",
            "the file to write, or a directory to write it into; - is standard output",
            metavar="FILE|-",
            required=True,
        ),
        FORCE,
        examples="svc template export python --out python.tar\n"
        "svc template export python --out - | ssh other svc template import - --build-later",
        json=False,
    ),
    Command(
        "import",
        import_,
        Argument("FILE", "the bundle, or a directory; - is standard input", metavar="FILE|DIR|-"),
        Argument("--build-later", "do not build the image now", kind="flag"),
        examples="svc template import python.tar\nsvc template import project --build-later",
    ),
)
