"""Waits for an operation (pull, build, setup) with progress and a build's output on standard error."""

from __future__ import annotations

import time

from svc.client import transport
from svc.client.requests import query, quote
from svc.commandline import output
from svc.commandline.progress import Progress
from svc.errors import BadAnswer, OperationInProgress, SvcError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.commandline.arguments import Arguments

POLL_FIRST_S, POLL_LAST_S = 0.05, 1.0
POLL_SHARE = 0.03  # of the time waited so far, so that polling adds little to a quick operation
EVENTS = "/api/events?type=operation.progress,operation.finished"
EACH_S = 0.5  # between two looks beside the events: what a build prints has none
OPEN_S = 2.0  # for the beginning of the events
PATIENCE_S = 60  # without an answer: operations, and waiting for them, survive a restart of the service
LOG_END = 15  # printed lines of a failed build's log
BUILDING = "building"  # the phase, and its line in the log

STARTED = (
    ("OPERATION", "operation.id", output.plain),
    ("KIND", "operation.kind", output.plain),
    ("STATUS", "operation.status", output.plain),
)


def wait(args: Arguments, started: transport.Answer, *, goes_on: bool = True) -> transport.Answer:
    """Follow the operation of a 202 answer to its end and return the last answer.

    Raises the operation's own error if it failed. Ctrl-C ends the waiting only, and says so unless the
    caller ends the operation then (`goes_on`). With `args.quiet` only the end of a failed build's log is
    printed.
    """
    operation = output.text(started.json(), "operation.id")
    if not operation:
        raise BadAnswer("the service's answer names no operation")
    return follow(args, operation, goes_on=goes_on)


def under_way(refused: transport.Answer, kind: str) -> str:
    """The id of the operation of this kind for which another one was refused; empty for other answers."""
    if refused.ok:
        return ""
    error = refused.error()
    running = error.details["operation"] if isinstance(error, OperationInProgress) else {}
    return output.text(running, "id") if output.text(running, "kind") == kind else ""


def follow(args: Arguments, operation: str, *, goes_on: bool = True) -> transport.Answer:
    """Follow the operation of this id, as `wait` does."""
    path = f"/api/operations/{quote(operation)}"
    progress = Progress()
    steps = None if vars(args).get("quiet") else StepOutput(path, progress)
    changes = Changes()
    try:
        answer = _follow(path, progress, steps, changes)
    except KeyboardInterrupt:
        progress.end()
        if goes_on:
            output.note(f"operation {operation} continues in the service")
            output.remark(f"hint: svc operation watch {output.visible(operation)}")
        raise
    finally:
        changes.close()
        progress.end()
    state = answer.json()
    if output.text(state, "status") == "succeeded":
        return answer
    if args.json:
        show(answer)
    elif output.text(state, "error.code") == "build_failed" and not (steps and steps.printed):
        _show_log_end(operation, output.text(state, "error.message"))
    otherwise = f"operation {operation} was {output.text(state, 'status')}"
    raise transport.error_of(state.get("error"), otherwise)


def show(finished: transport.Answer) -> int:
    """Print a finished operation as JSON, in the form of the answer that started it."""
    output.raw(b'{"operation":' + finished.body.strip() + b"}\n")
    return 0


def _show_log_end(operation: str, message: str) -> None:
    """Print the end of a build's log to standard error, if available, without the error's own message."""
    try:
        answer = transport.request("GET", f"/api/operations/{quote(operation)}/log")
        lines = answer.json().get("lines") if answer.ok else None
    except SvcError:
        return
    texts = [output.text(line, "text") for line in lines] if isinstance(lines, list) else []
    for text in texts[-LOG_END:]:
        if text != message:
            output.remark("  " + output.visible(text))


def result(finished: transport.Answer, key: str) -> str:
    """A value of a finished operation's result, as a path segment."""
    value = output.text(finished.json(), f"result.{key}")
    if not value:
        raise BadAnswer(f"the operation's result has no {key}")
    return quote(value)


class StepOutput:
    """Prints the output of a build's steps as it comes: the operation's log from the build on."""

    def __init__(self, path: str, progress: Progress) -> None:
        self.path = path
        self.progress = progress
        self.after = 0
        self.building = self.printed = False

    def show(self, state: dict[str, Any]) -> None:
        """Print the lines since the last time, if the operation builds; raises SvcError."""
        if not self.building and output.text(state, "phase") != BUILDING:
            return
        answer = transport.request("GET", f"{self.path}/log{query(after=self.after or None)}")
        found = answer.json() if answer.ok else {}
        lines, following = found.get("lines"), found.get("next")
        if not isinstance(lines, list) or type(following) is not int or following <= self.after:
            return
        self.after = following
        message = output.text(state, "error.message")  # which is printed as the error
        texts = [text for line in lines if (text := output.text(line, "text")) != message]
        if not self.building and BUILDING in texts:
            self.building, texts = True, texts[texts.index(BUILDING) + 1 :]
        if self.building and texts:
            self.printed = True
            self.progress.interrupt([f"  {output.visible(text)}" for text in texts])


class Changes:
    """Waits until an operation may have changed: for the service's events, without them for a while."""

    def __init__(self) -> None:
        self.stream: transport.Download | None = None

    def wait(self, waited_s: float) -> None:
        """Wait for the next event, or until it is time for a look after so long a wait altogether.

        The first call may return at once: what changed before the events began is found by a look after it.
        """
        pause_s = min(max(POLL_FIRST_S, waited_s * POLL_SHARE), POLL_LAST_S)
        try:
            if self.stream is None:
                self.stream = transport.Download(EVENTS, OPEN_S)
                self.stream.comes(OPEN_S)
            else:
                self.stream.comes(max(pause_s, EACH_S))
        except SvcError:  # refused, or the service restarts
            self.close()
            time.sleep(pause_s)

    def close(self) -> None:
        """End the events."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None


def _follow(path: str, progress: Progress, steps: StepOutput | None, changes: Changes) -> transport.Answer:
    started_at = answered_at = time.monotonic()
    while True:
        try:
            answer = transport.request("GET", path)
            if not answer.ok:
                raise answer.error()
            state = answer.json()
            if steps:
                steps.show(state)
        except SvcError as error:
            if not error.retryable or time.monotonic() - answered_at > PATIENCE_S:
                raise
        else:
            answered_at = time.monotonic()
            if output.text(state, "status") not in ("queued", "running"):
                return answer
            if steps:
                progress.show(state)
        changes.wait(time.monotonic() - started_at)
