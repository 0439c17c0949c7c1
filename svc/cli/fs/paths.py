"""Places in the file roots, as they are written on the command line: `<root>/<path>`.

A path is bytes; in a command line it is text in which the interpreter keeps
bytes that are no UTF-8 (os.fsencode gives them back), in a URL it is
percent-encoded. Whether it may be is the server's to judge.
"""

from __future__ import annotations

from svc.cli import client
from svc.cli.output import shell_word
from svc.errors import AlreadyThere, SvcError, UsageError

FORM = "<root>/<path>, such as work/notes.txt; svc fs roots lists the roots"


def place(text: str) -> str:
    """A place as it was given; raises ValueError where no root begins it."""
    root, _, _ = text.partition("/")
    if not root.isidentifier():
        raise ValueError(f"{text!r} is not {FORM}")
    return text


def directory(text: str) -> str:
    """A place of which a slash at the end says nothing but that it is a directory."""
    return place(text).removesuffix("/")


def into(destination: str, name: str) -> str:
    """The place of a file: "A trailing `/` on the destination keeps the local file name"."""
    _, slash, path = destination.partition("/")
    if path and not path.endswith("/"):
        return destination
    if not name:
        raise UsageError(f"{destination} names no file, and there is no name to keep", hint="svc fs --help")
    return destination + name if slash else f"{destination}/{name}"


def name(place: str) -> str:
    """The last part of a place's path; empty for a root."""
    _, _, path = place.partition("/")
    return path.rpartition("/")[2]


def parts(place: str) -> tuple[str, str]:
    """A place's root, as a segment of a URL, and its path below that, as it was given."""
    root, _, path = place.partition("/")
    return client.quote(root), path


def url(place: str, verb: str, **more: object) -> str:
    """The path and query of one verb at a place; what is None or False of `more` is not asked for."""
    root, path = parts(place)
    asked = {key: "true" if value is True else value for key, value in more.items() if value is not False}
    return f"/api/fs/{root}/{verb}" + client.query(path=path, **asked)


def encoded(place: str) -> str:
    """The path below the root as the body of a request has it, percent-encoded."""
    return client.quote(parts(place)[1]).replace("%2F", "/")


def command(verb: str, *arguments: str, force: bool = False) -> str:
    """A command as a shell takes it, to be run again."""
    dashes = any(each.startswith("-") and each != "-" for each in arguments)
    flag = ["--force"] if force else []
    words = [shell_word(each) for each in arguments]
    return " ".join(["svc fs", verb, *([*flag, "--", *words] if dashes else [*words, *flag])])


def hinted(error: SvcError, again: str, forced: str) -> SvcError:
    """The error, with the command that leads on: to replace what is there, or to try once more."""
    if isinstance(error, AlreadyThere):
        error.hint = forced
    elif error.retryable and not error.hint:
        error.hint = again
    return error
