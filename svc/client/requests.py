"""Requests of the commands: send one, raise its error, read all pages of a list, print the result."""

from __future__ import annotations

import os
import sys

from svc.client import transport
from svc.commandline import output
from svc.errors import BadAnswer, FileRefused, OperationInProgress, SvcError, Unreachable
from svc.limits import ANSWER_WAIT_S, DOCUMENT_BODY_MAX, LIST_LIMIT_MAX
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from svc.commandline.arguments import Arguments
    from svc.commandline.output import Column

FREE_WAIT_S, FREE_RETRY_S = 60, 0.5  # for the end of another request, as long as a start may last
BODY = "the body "  # begins the message about a request's JSON
BOM = b"\xef\xbb\xbf"
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")


def ask(
    args: Arguments,
    method: str,
    path: str,
    body: dict[str, Any] | bytes | None = None,
    wait_s: float = ANSWER_WAIT_S,
    if_match: str = "",
) -> transport.Answer:
    """Send one request and return its successful answer; raises the service's error.

    `if_match` is the ETag of what was read before: the change is refused if that has changed since.
    """
    if isinstance(body, dict):
        body = quick_json.dumps(body).encode()
    return checked(args, transport.request(method, path, body, wait_s=wait_s, if_match=if_match))


def checked(args: Arguments, answer: transport.Answer) -> transport.Answer:
    """The answer if successful; else raises its error, after printing the raw body for `--json`."""
    if answer.ok:
        return answer
    error = answer.error()
    path = getattr(args, "file", None)
    if isinstance(path, str) and error.message.startswith(BODY):  # which the caller has as a file
        error.message = f"{'standard input' if path == '-' else path} {error.message.removeprefix(BODY)}"
    if args.json:
        show_raw(answer)
    raise error


def ask_when_free(
    args: Arguments, method: str, path: str, of: str, body: dict[str, Any] | None = None
) -> transport.Answer:
    """As ask(); while another request changes the object, wait, at most FREE_WAIT_S, and ask again."""
    import time

    deadline = time.monotonic() + FREE_WAIT_S
    content = None if body is None else quick_json.dumps(body).encode()
    waited = False
    while True:
        answer = transport.request(method, path, content)
        left_s = deadline - time.monotonic()
        if answer.ok or left_s <= 0 or not isinstance(answer.error(), OperationInProgress):
            return checked(args, answer)
        if not waited and output.on_terminal():
            output.note(f"{of} is being changed by another request; waiting for its end")
        waited = True
        time.sleep(min(FREE_RETRY_S, left_s))


def for_each(args: Arguments, names: Iterable[str], action: Callable[[str], int]) -> int:
    """Run an action for each name; after an error the others have their turn. Returns the exit code."""
    names = list(dict.fromkeys(names))
    code = 0
    for name in names:
        try:
            code = action(name) or code
        except SvcError as error:
            if len(names) == 1 or error.exit_code != 1 or isinstance(error, Unreachable):
                raise  # the same for every other name
            code = output.error(error)
    return code


def items(page: dict[str, Any]) -> list[Any]:
    """The records of one page of a list."""
    found = page.get("items")
    if not isinstance(found, list):
        raise BadAnswer("the service's answer has no list of items")
    return found


def pages(
    args: Arguments, path: str, /, limit: int = LIST_LIMIT_MAX, offset: int | None = None, **filters: Any
) -> Iterator[dict[str, Any]]:
    """The pages of a list; with --json none, the first answer is printed unchanged instead."""
    while True:
        answer = ask(args, "GET", path + query(limit=limit, offset=offset, **filters))
        if args.json:
            show_raw(answer)
            return
        page = answer.json()
        found = items(page)
        yield page
        following = page.get("next_offset")
        if not found or not isinstance(following, int) or following <= (offset or 0):
            return
        offset = following


def show_items(args: Arguments, answer: transport.Answer, columns: Iterable[Column], empty: str) -> int:
    """Print a list that has a single page."""
    if args.json:
        return show_raw(answer)
    output.listing(args, columns, items(answer.json()), empty)
    return 0


def show_list(args: Arguments, path: str, columns: Iterable[Column], empty: str, **filters: Any) -> int:
    """Print all pages of a list as one table; with --json the first page's answer unchanged."""
    records = [record for page in pages(args, path, **filters) for record in page["items"]]
    if not args.json:
        output.listing(args, columns, records, empty)
    return 0


def show_raw(answer: transport.Answer) -> int:
    """Print an answer unchanged but for a newline at its end, as `--json` does; raises BadAnswer."""
    answer.json()
    output.raw(answer.body.rstrip(b"\n") + b"\n")
    return 0


def show_record(args: Arguments, answer: transport.Answer, columns: Iterable[Column]) -> int:
    """Print one record, one line per field."""
    if args.json:
        return show_raw(answer)
    output.details(columns, answer.json())
    return 0


def show_outcome(args: Arguments, answer: transport.Answer, columns: Iterable[Column], sentence: str) -> int:
    """Print the outcome of a change; `{path}` in the sentence stands for the record's value at that path."""
    if args.json:
        return show_raw(answer)
    record = answer.json()
    for _, path, _ in columns:
        sentence = sentence.replace("{" + path + "}", output.text(record, path))
    output.outcome(sentence, columns, record)
    return 0


def note_warnings(record: Any) -> None:
    """Print the warnings of a record to standard error, each with its next command."""
    found = output.pick(record, "warnings")
    for warning in found if isinstance(found, list) else []:
        output.note(f"warning: {output.text(warning, 'message')}")
        if hint := output.text(warning, "hint"):
            output.remark(f"hint: {output.visible(hint)}")


def show_ended(args: Arguments, sentence: str, **what: str) -> int:
    """Print that something is gone: on a terminal a sentence, with --json `what` as an object, else nothing.

    The API's answer to a deletion is empty, and a program that parses each answer has something to parse.
    """
    if args.json:
        output.json_object(what)
    elif output.on_terminal():
        print(output.visible(sentence))
    return 0


# --- request parts --------------------------------------------------------------------


def quote(text: str) -> str:
    """One segment of a path or one value of a query, percent-encoded (urllib.parse costs 3 ms)."""
    if text in (".", ".."):
        return text.replace(".", "%2E")
    return "".join(chr(byte) if chr(byte) in UNRESERVED else f"%{byte:02X}" for byte in os.fsencode(text))


def query(**values: object) -> str:
    """`?name=value&...` of the values that are not None; empty if all are."""
    pairs = [f"{name}={quote(str(value))}" for name, value in values.items() if value is not None]
    return "?" + "&".join(pairs) if pairs else ""


def read_document(path: str, most: int = DOCUMENT_BODY_MAX) -> bytes:
    """The JSON in a file, without the mark at its begin with which editors of Windows write; as read_file."""
    return read_file(path, most).removeprefix(BOM)


def read_file(path: str, most: int = DOCUMENT_BODY_MAX) -> bytes:
    """The content of a file of at most `most` bytes, `-` for standard input; raises FileRefused."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(most + 1)
        else:
            with open(path, "rb") as file:
                content = file.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        from svc.commandline.local_files import unreadable

        raise unreadable(path, error) from None
    if len(content) > most:
        raise FileRefused(f"{path} is larger than {most} bytes, the limit for a request")
    return content
