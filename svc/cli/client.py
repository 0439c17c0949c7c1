"""How a command asks the service: one call, its answer or its error, all pages of a list."""

from __future__ import annotations

import os
import sys

from svc.cli import output, transport
from svc.errors import BadAnswer, FileRefused
from svc.limits import ANSWER_WAIT_S, BODY_MAX, LIST_LIMIT_MAX
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from svc.cli.arguments import Arguments
    from svc.cli.output import Column

UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")


def ask(
    args: Arguments,
    method: str,
    path: str,
    body: dict[str, Any] | bytes | None = None,
    wait_s: float = ANSWER_WAIT_S,
) -> transport.Answer:
    """One request that has to be done, as `svc api` sends one."""
    if isinstance(body, dict):
        body = quick_json.dumps(body).encode()
    return done(args, transport.request(method, path, body, wait_s=wait_s))


def done(args: Arguments, answer: transport.Answer) -> transport.Answer:
    """The answer to what was done; raises the error of what was not, whose raw body `--json` prints first."""
    if answer.ok:
        return answer
    error = answer.error()
    if args.json:
        show_raw(answer)
    raise error


def items(page: dict[str, Any]) -> list[Any]:
    """The records of one page of a list."""
    found = page.get("items")
    if not isinstance(found, list):
        raise BadAnswer("the service's answer is not a list")
    return found


def pages(
    args: Arguments, path: str, /, limit: int = LIST_LIMIT_MAX, **filters: Any
) -> Iterator[dict[str, Any]]:
    """The pages of a list, one after the other; with --json none: the first answer is printed as it came."""
    offset: int | None = None
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


def show_list(args: Arguments, path: str, columns: Iterable[Column], empty: str, **filters: Any) -> int:
    """Print a list: as a table all of it, page after page; with --json the first page's answer as it came."""
    records = [record for page in pages(args, path, **filters) for record in page["items"]]
    if not args.json:
        output.table(columns, records, empty)
    return 0


def show_raw(answer: transport.Answer) -> int:
    """What `--json` prints: the API's answer as it came, once it has proved to be JSON."""
    if answer.body:
        answer.json()
    output.raw(answer.body)
    return 0


def show_record(args: Arguments, answer: transport.Answer, columns: Iterable[Column]) -> int:
    """Print one record whole."""
    if args.json:
        return show_raw(answer)
    output.details(columns, answer.json())
    return 0


def show_outcome(args: Arguments, answer: transport.Answer, columns: Iterable[Column], sentence: str) -> int:
    """Print what a change has led to; `{path}` in the sentence stands for the record's value there."""
    if args.json:
        return show_raw(answer)
    record = answer.json()
    for _, path, _ in columns:
        sentence = sentence.replace("{" + path + "}", output.text(record, path))
    output.say(sentence, columns, record)
    return 0


def show_deleted(args: Arguments, answer: transport.Answer, name: str) -> int:
    """Print that something is gone; a program is told by the exit code alone."""
    if args.json:
        return show_raw(answer)
    if output.on_terminal():
        print(output.visible(f"{name} is deleted."))
    return 0


# --- what is sent ---------------------------------------------------------------------


def quote(text: str) -> str:
    """One segment of a path or one value of a query, percent-encoded (urllib.parse costs 3 ms)."""
    if text in (".", ".."):
        return text.replace(".", "%2E")
    return "".join(chr(byte) if chr(byte) in UNRESERVED else f"%{byte:02X}" for byte in os.fsencode(text))


def query(**values: object) -> str:
    """`?name=value&...` of the values that are set; empty when none is."""
    pairs = [f"{name}={quote(str(value))}" for name, value in values.items() if value is not None]
    return "?" + "&".join(pairs) if pairs else ""


def read_file(path: str) -> bytes:
    """The bytes of a file given on the command line; `-` reads standard input."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(BODY_MAX + 1)
        else:
            with open(path, "rb") as file:
                content = file.read(BODY_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise FileRefused(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > BODY_MAX:
        raise FileRefused(f"{path} is larger than {BODY_MAX} bytes, the most that a request may carry")
    return content
