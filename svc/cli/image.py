"""`svc image`: the templates' images in the caller's own store."""

from __future__ import annotations

import sys

from svc.cli.operation import LOG_OPTIONS, OPEN, show_log
from svc.client import transport
from svc.client.requests import (
    ask,
    checked,
    items,
    note_warnings,
    pages,
    query,
    quote,
    read_file,
    show_ended,
    show_items,
    show_list,
    show_outcome,
    show_raw,
    show_record,
)
from svc.commandline import output
from svc.commandline.arguments import (
    QUIET,
    TEMPLATE,
    YES_REMOVE,
    Argument,
    Arguments,
    Command,
    CommandGroup,
    variable,
)
from svc.commandline.output import pick, plain, size, state, when
from svc.errors import Conflict, NotFound, StorageFull, UsageError
from svc_helper.wire import quick_json
from svc_helper.wire.limits import BUILD_SECRETS_BYTES_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

DESCRIPTION = """\
The templates' images in your own store.

Every user has a separate store: an image is pulled or built once per user, and
starting a workspace never does either."""
COLUMNS = (
    ("TEMPLATE", "template.name", plain),
    ("STATUS", "status", state),
    ("SIZE", "size_bytes", size),
    ("IMAGE", "ref", plain),
    ("USED BY", "used_by", plain),
    ("UPDATED", "updated_at", when),
)
FIELDS = (
    *COLUMNS[:4],
    ("DIGEST", "digest", plain),
    ("UNDER WAY", "operation.kind", plain),
    ("PHASE", "operation.phase", plain),
    ("OPERATION", "operation.id", plain),
    ("ERROR", "error", plain),
    *COLUMNS[4:],
)
BUILDS = (
    ("OPERATION", "id", plain),
    ("TEMPLATE", "template.name", plain),
    ("STATUS", "status", state),
    ("PHASE", "phase", plain),
    ("CREATED", "created_at", when),
    ("FINISHED", "finished_at", when),
    ("IMAGE", "subject.id", plain),
    ("ERROR", "error.message", plain),
)
STORED = (
    ("ID", "image_id", plain),
    ("NAMES", "names", plain),
    ("SIZE", "size_bytes", size),
    ("ALONE", "unique_bytes", size),
    ("SHARED", "shared_bytes", size),
    ("RECLAIMABLE", "reclaimable_bytes", size),
    ("USED BY", "used_by", plain),
    ("CONTAINERS", "containers", plain),
    ("CREATED", "created_at", when),
)
REMOVED = STORED[:3]
TOTALS = (
    ("in all", "total_bytes"),
    ("reclaimable", "reclaimable_bytes"),
    ("free on the disk", "free_bytes"),
    ("allowed by your quota", "quota_bytes"),
)
DRY_RUN_FIELDS = (
    ("IMAGE", "ref", plain),
    ("TO DOWNLOAD", "download_bytes", size),
    ("THERE ALREADY", "present_bytes", size),
    ("NEEDED ON DISK", "needed_bytes", size),
    ("FREE ON DISK", "free_bytes", size),
    ("ALL IMAGES", "used_bytes", size),
    ("QUOTA", "quota_bytes", size),
    ("FITS", "fits", plain),
)
SHORT_ID = 12  # characters of an image's id, for people
BUILT = "localhost/svc/"  # prefix of the images that the service has built
ALLOWLIST = (("HOST", "host", plain), ("PATH PREFIX", "path_prefix", plain), ("INSECURE", "insecure", plain))


def list_(args: Arguments) -> int:
    """List the image of each template that you can see, and your other images.

    One line per template, also where several have the same image. Columns: template
    (with its id, where two have the same name), status, size, image, used by (your
    workspaces), updated, in a pipe also the template's id.
    """
    found = [record for page in pages(args, "/api/images") for record in page["items"]]
    if args.json:
        return 0
    for_people = output.on_terminal() and not args.quiet
    if for_people:
        found = _distinguished(found)
    columns = COLUMNS if for_people else (*COLUMNS, ("ID", "template.id", plain))
    output.listing(args, columns, found, "No images yet: svc image pull TEMPLATE --wait")
    return 0


def _distinguished(records: list[Any]) -> list[Any]:
    """The records; the id stands behind a template's name that another template has too."""
    ids: dict[str, set[str]] = {}
    for one in records:
        ids.setdefault(output.text(one, "template.name"), set()).add(output.text(one, "template.id"))

    def named(record: Any) -> Any:
        name = output.text(record, "template.name")
        if len(ids[name]) < 2:
            return record
        return record | {"template": {"name": f"{name} ({output.text(record, 'template.id')})"}}

    return [named(one) for one in records]


def status(args: Arguments) -> int:
    """Show whether a template's image is in your store, and the operation in progress."""
    answer = ask(args, "GET", _path(args))
    code = show_record(args, answer, FIELDS)
    if not args.json:
        note_warnings(answer.json())
    if not args.json and output.on_terminal():
        record = answer.json()
        if output.text(record, "status") in ("missing", "failed"):
            verb = "build" if output.text(record, "ref").startswith(BUILT) else "pull"
            output.note(f"to get it: svc image {verb} {args.template} --wait")
    return code


def pull(args: Arguments) -> int:
    """Pull a template's image into your own store.

    The expected size is compared with the free disk and your quota before the
    download. Without --wait it returns at once; the service continues, and `svc
    operation watch` shows the progress. While a pull of it is already in progress,
    --wait waits for the end of that one; --quiet prints no progress. Ctrl-C ends the
    waiting only. --json prints {"operation": ...}: with --wait the finished one, else
    the new one.
    --dry-run prints what would be downloaded, what is there already and whether it
    fits; it fails as the pull would, and downloads nothing.
    """
    return _dry_run(args, "pull") if args.dry_run else _begin(args, "pull")


def build(args: Arguments) -> int:
    """Build a template's image from its Dockerfile, in your own store.

    For your own templates, also disabled ones: a template made from a Dockerfile
    is built before it is enabled. A global template with a registry image and a
    Dockerfile can be built only after your pull has failed. --wait prints the output
    of the steps as they run, unless --quiet is given; `svc image log` prints it later.
    --build-arg sets an ARG for this build; it stays in the image's history, so it is
    nothing for secrets. A set-up that has to build takes those of your last build.
    --secret is for those: RUN --mount=type=secret,id=ID reads the content of FILE at
    /run/secrets/ID. It stays in no layer, no history and no log, and is forgotten at the
    end of the build; a set-up that has to build has no secrets.
    --dry-run, Ctrl-C and --json as in `svc image pull`; `svc image builds` lists your
    builds.
    """
    if args.dry_run and (args.build_args or args.secrets):
        option = "--build-arg" if args.build_args else "--secret"
        raise UsageError(f"--dry-run looks at the Dockerfile's own values, without {option}")
    return _dry_run(args, "build") if args.dry_run else _begin(args, "build")


def _dry_run(args: Arguments, verb: str) -> int:
    """Print what a pull or build would download; exit code 1 if it does not fit."""
    answer = ask(args, "GET", _path(args, "/preflight"))
    found = answer.json()
    is_other = output.text(found, "verb") != verb
    message = output.text(found, "message")
    if is_other:
        message = f"the image of {args.template} is not made by a {verb}"
    if args.json or not is_other:
        show_record(args, answer, DRY_RUN_FIELDS)
    if is_other:
        raise Conflict(message, hint=f"svc image {output.text(found, 'verb')} {args.template} --dry-run")
    if pick(found, "fits") is not True:
        raise StorageFull(message, hint=output.text(found, "hint"))
    return 0


def _begin(args: Arguments, verb: str) -> int:
    from svc.cli import waiting  # here, because `image status` must stay quick

    request: dict[str, object] = {}
    if verb == "build" and args.build_args:
        request["build_args"] = args.build_args
    if verb == "build" and args.secrets:
        request["secrets"] = [_read_secret(*one) for one in args.secrets]
    answer = transport.request("POST", _path(args, f"/{verb}"), quick_json.dumps(request).encode())
    joined = waiting.under_way(answer, verb) if args.wait else ""
    if joined:
        output.note(f"a {verb} of this image is already in progress; waiting for its end")
        finished = waiting.follow(args, joined)
    else:
        checked(args, answer)
        if not args.wait:
            sentence = f"The {verb} has started; to wait for its end: svc operation watch {{operation.id}}"
            return show_outcome(args, answer, waiting.STARTED, sentence)
        finished = waiting.wait(args, answer)
    if args.json:
        return waiting.show(finished)
    answer = ask(args, "GET", _path(args))
    note_warnings(answer.json())
    return show_outcome(args, answer, COLUMNS, "The image {ref} is {status}.")


def _secret(text: str) -> tuple[str, str]:
    """id=ID,src=FILE as the id and the path; raises ValueError."""
    first, _, rest = text.partition(",")
    (key, _, name), (source, _, path) = first.partition("="), rest.partition("=")
    if (key, source) not in (("id", "src"), ("id", "source")) or not (name and path):
        raise ValueError(f"{text!r} is not id=ID,src=FILE")
    return name, path


def _read_secret(name: str, path: str) -> dict[str, str]:
    """A secret as an object of the API; raises FileRefused."""
    from binascii import b2a_base64

    content = read_file(path, BUILD_SECRETS_BYTES_MAX)
    return {"id": name, "value": b2a_base64(content, newline=False).decode()}


def builds(args: Arguments) -> int:
    """List your builds, newest first.

    Columns: operation, template, status, phase, created, finished, image, error.
    """
    return show_list(args, "/api/images/builds", BUILDS, "No builds yet: svc image build TEMPLATE --wait")


def log(args: Arguments) -> int:
    """Print the log of the newest build or pull of a template's image.

    A set-up that built or pulled it counts too. --follow continues until the end of
    one that still runs; --after and --json as in `svc operation log`.
    """
    template = ask(args, "GET", f"/api/templates/{quote(args.template)}").json()
    filters = query(subject=output.text(template, "id"), kind="build,pull,setup")
    found = items(ask(args, "GET", f"/api/operations{filters}").json())
    newest = _newest(found, output.text(template, "source.image_ref"))
    if not newest:
        verb = "build" if output.text(template, "source.type") == "dockerfile" else "pull"
        message = f"you have neither built nor pulled the image of {args.template}"
        raise NotFound(message, hint=f"svc image {verb} {args.template} --wait")
    return show_log(args, newest)


def _newest(operations: list[object], image: str) -> str:
    """The id of the open operation, else of this image's newest, else of the newest; empty for none."""
    found = (
        *(each for each in operations if output.text(each, "status") in OPEN),
        *(each for each in operations if output.text(each, "subject.id") == image),
        *operations,
    )
    return output.text(found[0], "id") if found else ""


def overview(args: Arguments) -> int:
    """Show the size of every image in your store, its own and shared, and who uses it.

    Columns: id, names, size, alone, shared, reclaimable, used by, containers,
    created. Reclaimable is the least that `svc image prune` frees by an image.
    """
    answer = ask(args, "GET", "/api/images/overview")
    if args.json:
        return show_raw(answer)
    found = answer.json()
    images = items(found)
    if output.on_terminal():
        images = [_with_short_id(image) for image in images]
    output.table(STORED, images, "No images in your store: svc image pull TEMPLATE --wait")
    if output.on_terminal():
        sums = [(label, output.pick(found, path)) for label, path in TOTALS]
        print(", ".join(f"{size(bytes_, True)} {label}" for label, bytes_ in sums if bytes_ is not None))
    return 0


def prune(args: Arguments) -> int:
    """Remove the unused images of your store.

    An image is unused when no workspace, container or running operation of yours
    uses it; images that you pulled yourself are included. Anonymous volumes (of an
    image's VOLUME) that no container has any more are removed too, with what is in them.
    Lists the images and asks for confirmation on a terminal; elsewhere --yes is required.
    """
    if not args.yes and not _show_unused(args) and not args.json:
        return 0
    answer = ask(args, "POST", "/api/images/prune", {})
    if args.json:
        return show_raw(answer)
    found = answer.json()
    removed = found.get("removed")
    if not output.on_terminal():
        output.table(REMOVED, removed if isinstance(removed, list) else [], "")
    else:
        freed = f", {size(output.pick(found, 'freed_bytes'), True)} freed" if removed else ""
        print(f"{_what(removed, output.pick(found, 'removed_volumes'))} removed{freed}.")
    return 0


def _show_unused(args: Arguments) -> bool:
    """List what a prune would remove and ask; False if a terminal's user has nothing to confirm."""
    found = ask(args, "GET", "/api/images/overview").json()
    unused = [image for image in items(found) if output.pick(image, "unused") is True]
    volumes = output.pick(found, "unused_volumes")
    if not unused and not volumes and sys.stdin.isatty() and sys.stderr.isatty():
        output.note("no image in your store is unused")
        return False
    for image in unused:
        name = output.text(image, "names") or output.text(image, "image_id")[:SHORT_ID]
        output.remark(f"  {output.visible(name)}  {size(output.pick(image, 'size_bytes'), True)}")
    gain = f", at least {size(output.pick(found, 'reclaimable_bytes'), True)}" if unused else ""
    output.confirm(
        f"Remove {_what(unused, volumes)}{gain}?", False, output.again(args, "svc", "image", "prune")
    )
    return True


def _what(found: object, volumes: object) -> str:
    counts = {"image": len(found) if isinstance(found, list) else 0, "anonymous volume": volumes or 0}
    some = {name: count for name, count in counts.items() if count} or {"image": 0}
    return " and ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in some.items())


def _with_short_id(image: object) -> object:
    short = {"image_id": output.text(image, "image_id")[:SHORT_ID]}
    return image | short if isinstance(image, dict) else image


def delete(args: Arguments) -> int:
    """Delete an image from your store: a template's, or one by its own name or id.

    As `svc image remove`, but what is the name of a template is taken for that. Refused
    while one of your workspaces needs it. Asks for confirmation on a terminal; elsewhere
    --yes is required.
    """
    if not _may_be_template(args.template):
        return _remove_stored(args, args.template)
    refused = _delete_of_template(args)
    if refused is not None and _stored(args, args.template):
        return _remove_stored(args, args.template)
    if refused is not None:
        checked(args, refused)
    return 0


def _delete_of_template(args: Arguments) -> transport.Answer | None:
    """Delete the image of a template; the refusal where there is no such template."""
    if not args.yes:
        found = transport.request("GET", _path(args))
        if not found.ok and isinstance(found.error(), NotFound):
            return found
        record = checked(args, found).json()
        amount = size(output.pick(record, "size_bytes"), True)
        question = f"Delete the image {output.text(record, 'ref')} ({amount}) from your store?"
        output.confirm(question, False, output.again(args, "svc", "image", "delete", args.template))
    done = transport.request("DELETE", _path(args))
    if not done.ok and isinstance(done.error(), NotFound):
        return done
    checked(args, done)
    show_ended(args, f"The image of {args.template} is deleted.", deleted=args.template)
    return None


def remove(args: Arguments) -> int:
    """Remove one image of your store that nothing uses.

    IMAGE is a name, or an id as in `svc image overview` or the beginning of one, at
    least 12 digits; a template's name stands for its image, as of `svc image delete`.
    Refused, with the reason, while a workspace, a container, a running operation or a
    template has it. Asks for confirmation on a terminal; elsewhere --yes is required.
    """
    args.template = args.image
    if not _may_be_template(args.image) or _stored(args, args.image):
        return _remove_stored(args, args.image)
    if _delete_of_template(args) is None:
        return 0
    return _remove_stored(args, args.image)  # whose refusal speaks of images


def _may_be_template(typed: str) -> bool:
    return not set("/:@.") & set(typed)


def _stored(args: Arguments, typed: str) -> list[object]:
    """The images of the store that have this name or id."""
    stored = items(ask(args, "GET", "/api/images/overview").json())
    return [image for image in stored if _is(image, typed)]


def _remove_stored(args: Arguments, typed: str) -> int:
    """Remove the image of this name or id."""
    found = _stored(args, typed)
    identity = output.text(found[0], "image_id") if len(found) == 1 else typed
    if "/" in identity or not identity:
        raise NotFound(f"there is no image {typed} in your store", hint="svc image overview")
    if not args.yes:
        amount = size(output.pick(found[0], "size_bytes") if found else None, True)
        question = f"Remove the image {typed}{f' ({amount})' if amount else ''} from your store?"
        output.confirm(question, False, output.again(args, "svc", "image", "remove", typed))
    ask(args, "DELETE", f"/api/images/{quote(identity)}")
    return show_ended(args, f"The image {typed} is removed.", removed=identity)


def _is(image: object, typed: str) -> bool:
    """Whether an image has this name, with or without its tag, or an id that begins so."""
    names = output.pick(image, "names")
    named = isinstance(names, list) and (typed in names or f"{typed}:latest" in names)
    return named or (len(typed) >= SHORT_ID and output.text(image, "image_id").startswith(typed))


def allowlist(args: Arguments) -> int:
    """List the registries that images may come from; the administrator sets them.

    Columns: host, path prefix, insecure.
    """
    empty = "No registry is allowed yet; root sets them: sudo svc admin registry add HOST"
    return show_items(args, ask(args, "GET", "/api/images/allowlist"), ALLOWLIST, empty)


def _path(args: Arguments, verb: str = "") -> str:
    return f"/api/templates/{quote(args.template)}/image{verb}"


WAIT = Argument("--wait", "wait for the end, with progress", kind="flag")
DRY_RUN = Argument("--dry-run", "only print what would be downloaded, and whether it fits", kind="flag")
BUILD_ARG = Argument(
    "--build-arg",
    "the value of an ARG of the Dockerfile (repeatable)",
    kind="list",
    type=variable,
    metavar="NAME=VALUE",
    dest="build_args",
)
SECRET = Argument(
    "--secret",
    "a file for RUN --mount=type=secret,id=ID, in no layer (repeatable)",
    kind="list",
    type=_secret,
    metavar="id=ID,src=FILE",
    dest="secrets",
)

COMMAND = CommandGroup(
    "image",
    DESCRIPTION,
    Command("list", list_, examples="svc image list\nsvc image list --json"),
    Command("status", status, TEMPLATE, examples="svc image status python"),
    Command(
        "pull",
        pull,
        TEMPLATE,
        WAIT,
        QUIET,
        DRY_RUN,
        examples="svc image pull python --wait\nsvc image pull tpl-4k2m9x7p\nsvc image pull python --dry-run",
    ),
    Command(
        "build",
        build,
        TEMPLATE,
        WAIT,
        BUILD_ARG,
        SECRET,
        QUIET,
        DRY_RUN,
        examples="svc image build my-python --wait\nsvc image build my-python --build-arg VERSION=3.12\n"
        "svc image build my-python --secret id=pip,src=pip.conf --wait",
    ),
    Command("builds", builds, examples="svc image builds\nsvc image builds --json"),
    Command(
        "log",
        log,
        TEMPLATE,
        *LOG_OPTIONS,
        examples="svc image log my-python\nsvc image log my-python --follow",
    ),
    Command("overview", overview, examples="svc image overview\nsvc image overview | sort -n -k3"),
    Command("prune", prune, YES_REMOVE, examples="svc image prune\nsvc image prune --yes"),
    Command(
        "delete",
        delete,
        Argument("TEMPLATE", "the template's id or name, or an image", metavar="TEMPLATE|IMAGE"),
        YES_REMOVE,
        examples="svc image delete python\nsvc image delete registry.example/team/old:1 --yes",
    ),
    Command(
        "remove",
        remove,
        Argument("IMAGE", "its name, its id or the beginning of it, or a template"),
        YES_REMOVE,
        examples="svc image remove registry.example/team/old:1\nsvc image remove 8f5a1c0b7d2e --yes",
    ),
    Command("allowlist", allowlist, examples="svc image allowlist"),
)
