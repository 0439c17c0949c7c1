"""Paths in the file roots, as written on the command line: `<root>/<path>`.

A path is bytes: text with surrogate escapes on the command line (os.fsencode
restores the bytes), percent-encoded in a URL. The server validates it.
"""

from __future__ import annotations

from svc.client import requests
from svc.commandline.output import shell_quote
from svc.errors import AlreadyThere, Conflict, SvcError, UsageError

FORM = "<root>/<path>, such as work/notes.txt; svc fs roots lists the roots"


def root_path(text: str) -> str:
    """The text if it starts with a root; raises ValueError."""
    root, _, _ = text.partition("/")
    if not root.isidentifier():
        raise ValueError(f"{text!r} is not {FORM}")
    return text


def directory(text: str) -> str:
    """Like root_path, without trailing slashes."""
    return root_path(text).rstrip("/")


def into(destination: str, name: str, verb: str, source: str, **flags: bool) -> str:
    """The path of a file: "A trailing `/` on the destination keeps the local file name".

    Raises UsageError for a root without it, which would hide that a file there may be replaced.
    """
    _, slash, path = destination.partition("/")
    if path and not path.endswith("/"):
        return destination
    if not name:
        raise UsageError(
            f"{destination} names no file, and the source has no name to keep", hint="svc fs --help"
        )
    if not slash:
        message = f"{destination} is a file root, a directory; a / at its end keeps the name {name}"
        raise UsageError(message, hint=command(verb, source, f"{destination}/", **flags))
    return destination + name


def name(location: str) -> str:
    """The last component of a path; empty for a root."""
    _, _, path = location.partition("/")
    return path.rpartition("/")[2]


def parts(location: str) -> tuple[str, str]:
    """The root, quoted for a URL, and the path below it, unquoted."""
    root, _, path = location.partition("/")
    return requests.quote(root), path


def url(location: str, verb: str, **more: object) -> str:
    """The URL path and query of a verb; parameters that are None or False are left out."""
    root, path = parts(location)
    set_ = {key: "true" if value is True else value for key, value in more.items() if value is not False}
    return f"/api/fs/{root}/{verb}" + requests.query(path=path, **set_)


def encoded(location: str) -> str:
    """The path below the root, percent-encoded for a request body."""
    return requests.quote(parts(location)[1]).replace("%2F", "/")


def command(verb: str, *arguments: str, force: bool = False, no_clobber: bool = False) -> str:
    """A command line of `svc fs`, quoted for a shell."""
    dashes = any(each.startswith("-") and each != "-" for each in arguments)
    flags = ["--force"] * force + ["--no-clobber"] * no_clobber
    quoted = [shell_quote(each) for each in arguments]
    return " ".join(["svc fs", verb, *([*flags, "--", *quoted] if dashes else [*quoted, *flags])])


def parent(location: str) -> str:
    """The directory that a path is in."""
    return location.rpartition("/")[0]


def hint_at_directory(error: SvcError, verb: str, *arguments: str, force: bool = False) -> None:
    """Where the error is that it is a directory: hint at the command that takes one."""
    if isinstance(error, Conflict) and "is a directory" in error.message:
        error.hint = command(verb, *arguments, force=force)


def hint_at_missing(error: SvcError, location: str, directory: str) -> None:
    """Where the error is that `location` is missing: hint at the command that creates the directory."""
    if error.message == f"{location}: no such file or directory" and parts(directory)[1]:
        error.hint = f"{command('mkdir', directory)} --parents"


def hinted(error: SvcError, again: str, replacing: str) -> SvcError:
    """The error with a hint: the command that replaces the file, or the one that tries again."""
    if isinstance(error, AlreadyThere):
        error.hint = replacing
    elif error.retryable and not error.hint:
        error.hint = again
    return error
