"""How a command asks the service: one call, its answer or its error, all pages of a list."""

from __future__ import annotations

from svc.cli import output, transport
from svc.cli.arguments import query
from svc.errors import BadAnswer
from svc.limits import ANSWER_WAIT_S, LIST_LIMIT_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from typing import Any

    from svc.cli.output import Column


def ask(
    args: argparse.Namespace,
    method: str,
    path: str,
    body: dict[str, Any] | bytes | None = None,
    wait_s: float = ANSWER_WAIT_S,
) -> transport.Answer:
    """One request; raises the answer's error, whose raw body `--json` prints first, as `svc api` does."""
    if isinstance(body, dict):
        from json import dumps

        body = dumps(body).encode("ascii")
    answer = transport.request(method, path, body, wait_s=wait_s)
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


def show_list(
    args: argparse.Namespace, path: str, columns: Iterable[Column], empty: str, **filters: Any
) -> int:
    """Print a list: as a table all of it, page after page; with --json the first page's answer as it came."""
    records: list[Any] = []
    offset: int | None = None
    while True:
        answer = ask(args, "GET", path + query(limit=LIST_LIMIT_MAX, offset=offset, **filters))
        if args.json:
            return show_raw(answer)
        page = answer.json()
        records += items(page)
        following = page.get("next_offset")
        if not page["items"] or not isinstance(following, int) or following <= (offset or 0):
            break
        offset = following
    output.table(columns, records, empty)
    return 0


def show_raw(answer: transport.Answer) -> int:
    """What `--json` prints: the API's answer as it came, once it has proved to be JSON."""
    if answer.body:
        answer.json()
    output.raw(answer.body)
    return 0


def show_record(args: argparse.Namespace, answer: transport.Answer, columns: Iterable[Column]) -> int:
    """Print one record whole."""
    if args.json:
        return show_raw(answer)
    output.details(columns, answer.json())
    return 0


def show_outcome(
    args: argparse.Namespace, answer: transport.Answer, columns: Iterable[Column], sentence: str
) -> int:
    """Print what a change has led to; `{path}` in the sentence stands for the record's value there."""
    if args.json:
        return show_raw(answer)
    record = answer.json()
    for _, path, _ in columns:
        sentence = sentence.replace("{" + path + "}", output.text(record, path))
    output.say(sentence, columns, record)
    return 0


def show_deleted(args: argparse.Namespace, answer: transport.Answer, name: str) -> int:
    """Print that something is gone; a program is told by the exit code alone."""
    if args.json:
        return show_raw(answer)
    if output.on_terminal():
        print(output.visible(f"{name} is deleted."))
    return 0
