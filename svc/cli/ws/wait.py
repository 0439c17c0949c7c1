"""`svc ws wait`: until a workspace is stopped or running, or one of its launchers has ended."""

from __future__ import annotations

import time

from svc.cli.ws.columns import COLUMNS, path_of
from svc.client import transport
from svc.client.requests import checked, items, show_outcome, show_raw
from svc.commandline import output
from svc.commandline.arguments import WORKSPACE, Argument, Arguments, Command, reference, whole
from svc.commandline.output import pick, text
from svc.errors import NotFound, SvcError, WorkspaceNotRunning

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

EXIT_TIMED_OUT = 124  # as that of timeout(1), and of `svc ws exec`
POLL_FIRST_S, POLL_LAST_S = 0.05, 2.0
POLL_SHARE = 0.03  # of the time waited so far
PATIENCE_S = 60  # without an answer: waiting survives a restart of the service
TIMEOUT_MAX_S = 30 * 24 * 3600
STOPPED, RUNNING, LAUNCHER = "stopped", "running", "launcher="
ENDED = ("stopped", "failed")
EXAMPLES = """\
svc ws wait train
svc ws wait train --timeout 3600 --exit-status
svc ws wait lab --for running --timeout 60
svc ws wait lab --for launcher=etl --exit-status"""


def condition(value: str) -> str:
    """stopped, running or launcher=NAME; raises ValueError."""
    if value in (STOPPED, RUNNING) or (value.startswith(LAUNCHER) and reference(value[len(LAUNCHER) :])):
        return value
    raise ValueError(f"{value!r} is none of stopped, running, launcher=NAME")


def wait(args: Arguments) -> int:
    """Wait until a workspace is stopped, or --for something else; a restart of the service does not end it.

    --for running: until it runs. --for launcher=NAME: until that launcher, which may
    not have been started yet, has ended. What cannot come any more is an error: a
    workspace that has failed or was deleted, a launcher of one that does not run.
    Exit code 0 when it has come, 1 after --timeout; with --exit-status that of the
    workspace's command or of the launcher, and 124 after the timeout. --json prints
    the record.
    """
    waiting = Waiting(args.workspace, args.timeout)
    try:
        if (args.condition or STOPPED).startswith(LAUNCHER):
            return _launcher(args, waiting, args.condition[len(LAUNCHER) :])
        found = waiting.until(path_of(args.workspace), _reached(args))
    except TimedOut:
        requested = args.condition or STOPPED
        output.note(f"{args.workspace} was not {requested} within {args.timeout} seconds")
        return EXIT_TIMED_OUT if args.exit_status else 1
    show_outcome(args, checked(args, found), COLUMNS, "{name} is {status}.")
    return exit_code(found.json()) if args.exit_status and args.condition != RUNNING else 0


def _reached(args: Arguments) -> Any:
    requested = args.condition or STOPPED

    def reached(record: Any) -> bool:
        status = text(record, "status")
        if requested == RUNNING and status == "failed":
            raise WorkspaceNotRunning(
                f"{args.workspace} has failed: {text(record, 'status_reason')}",
                hint=f"svc ws get {args.workspace}",
            )
        return status == RUNNING if requested == RUNNING else status in ENDED

    return reached


def _launcher(args: Arguments, waiting: Waiting, name: str) -> int:
    """Wait for the end of a launcher's run."""

    def one(page: Any) -> Any:
        return next((each for each in items(page) if text(each, "name") == name), None)

    def ended(page: Any) -> bool:
        record = one(page)
        if record is None:
            raise NotFound(
                f"{args.workspace} has no launcher {name}", hint=f"svc ws launchers {args.workspace}"
            )
        if text(record, "state") != "started" and pick(record, "started_at"):
            return True
        if text(record, "state") != "started" and not waiting.may_run():
            raise WorkspaceNotRunning(
                f"{name} was not started, and {args.workspace} does not run",
                hint=f"svc ws start {args.workspace}",
            )
        return False

    answer = waiting.until(path_of(args.workspace, "/launchers"), ended)
    record = one(answer.json())
    if args.json:
        show_raw(answer)
    elif output.on_terminal():
        print(output.visible(f"{name} is {text(record, 'state')}."))
    return exit_code(record) if args.exit_status else 0


def exit_code(record: Any) -> int:
    """The exit code that a record has of what has ended; 1 where it has none."""
    code = pick(record, "exit_code")
    return code if type(code) is int and 0 <= code < 256 else 1


class TimedOut(Exception):
    """The time is over, and it has not come."""


class Waiting:
    """Polls, at first often; raises TimedOut at the end of the time, if that was limited."""

    def __init__(self, workspace: str, timeout_s: int | None = None) -> None:
        self.workspace = workspace
        self.began = self.answered = time.monotonic()
        self.timeout_s = timeout_s

    def until(self, path: str, reached: Any) -> transport.Answer:
        """The first answer of which `reached` says so."""
        while True:
            answer = self._ask(path)
            if answer is not None and reached(answer.json()):
                return answer
            self._pause()

    def may_run(self) -> bool:
        """Whether the workspace runs or is about to."""
        answer = self._ask(path_of(self.workspace))
        return answer is None or text(answer.json(), "status") in (
            "creating",
            "starting",
            RUNNING,
            "stopping",
        )

    def _ask(self, path: str) -> transport.Answer | None:
        """The answer; None after an error that may be over soon."""
        try:
            answer = transport.request("GET", path)
            if not answer.ok:
                raise answer.error()
        except SvcError as error:
            if not error.retryable or time.monotonic() - self.answered > PATIENCE_S:
                raise
            return None
        self.answered = time.monotonic()
        return answer

    def _pause(self) -> None:
        waited_s = time.monotonic() - self.began
        pause_s = min(max(POLL_FIRST_S, waited_s * POLL_SHARE), POLL_LAST_S)
        if self.timeout_s is not None:
            if waited_s >= self.timeout_s:
                raise TimedOut
            pause_s = min(pause_s, self.timeout_s - waited_s)
        time.sleep(pause_s)


COMMANDS = (
    Command(
        "wait",
        wait,
        WORKSPACE,
        Argument(
            "--for",
            "stopped (the default), running, or launcher=NAME",
            metavar="CONDITION",
            type=condition,
            dest="condition",
        ),
        Argument(
            "--timeout",
            "give up after this time (default: never)",
            metavar="SECONDS",
            type=whole(1, TIMEOUT_MAX_S),
        ),
        Argument("--exit-status", "exit with the code of what has ended", kind="flag"),
        examples=EXAMPLES,
    ),
)
