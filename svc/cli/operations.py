"""Waiting for an operation (pull, build, setup): progress on standard error, the outcome at the end."""

from __future__ import annotations

import sys
import time

from svc.cli import output, transport
from svc.cli.client import quote, show_raw
from svc.cli.progress import Progress
from svc.errors import BadAnswer, SvcError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.cli.arguments import Arguments

POLL_FIRST_S, POLL_LAST_S = 0.05, 1.0
POLL_SHARE = 0.03  # of the time waited so far: a quick operation is not slowed by the waiting for it
PATIENCE_S = 60  # an operation outlives a restart of the service; so does waiting for it
LOG_END = 15  # lines of a failed build's log that are shown

STARTED = (
    ("OPERATION", "operation.id", output.plain),
    ("KIND", "operation.kind", output.plain),
    ("STATUS", "operation.status", output.plain),
)


def wait(args: Arguments, started: transport.Answer) -> transport.Answer:
    """Follow the operation of a 202 answer to its end; returns the answer that tells of it.

    Raises the operation's own error when it failed. Ctrl-C ends the waiting only.
    """
    operation = output.text(started.json(), "operation.id")
    if not operation:
        raise BadAnswer("the service's answer names no operation")
    progress = Progress()
    try:
        answer = _follow(f"/api/operations/{quote(operation)}", progress)
    except KeyboardInterrupt:
        progress.end()
        output.note(f"operation {operation} goes on")
        print(f"hint: svc api GET /api/operations/{quote(operation)}", file=sys.stderr)
        raise
    finally:
        progress.end()
    state = answer.json()
    if output.text(state, "status") == "succeeded":
        return answer
    if args.json:
        show_raw(answer)
    elif output.text(state, "error.code") == "build_failed":
        _show_log_end(operation, output.text(state, "error.message"))
    otherwise = f"operation {operation} was {output.text(state, 'status')}"
    raise transport.error_of(state.get("error"), otherwise)


def _show_log_end(operation: str, told: str) -> None:
    """What a build said last, on standard error, but for what is told anyway; nothing depends on it."""
    try:
        answer = transport.request("GET", f"/api/operations/{quote(operation)}/log")
        lines = answer.json().get("lines") if answer.ok else None
    except SvcError:
        return
    texts = [output.text(line, "text") for line in lines] if isinstance(lines, list) else []
    for text in texts[-LOG_END:]:
        if text != told:
            print("  " + output.visible(text), file=sys.stderr)


def result(finished: transport.Answer, key: str) -> str:
    """A value of a finished operation's result, as a segment of a path."""
    value = output.text(finished.json(), f"result.{key}")
    if not value:
        raise BadAnswer(f"the operation's result has no {key}")
    return quote(value)


def _follow(path: str, progress: Progress) -> transport.Answer:
    begun_at = heard_at = time.monotonic()
    while True:
        try:
            answer = transport.request("GET", path)
            if not answer.ok:
                raise answer.error()
        except SvcError as error:
            if not error.retryable or time.monotonic() - heard_at > PATIENCE_S:
                raise
        else:
            heard_at = time.monotonic()
            state = answer.json()
            if output.text(state, "status") not in ("queued", "running"):
                return answer
            progress.show(state)
        waited_s = time.monotonic() - begun_at
        time.sleep(min(max(POLL_FIRST_S, waited_s * POLL_SHARE), POLL_LAST_S))
