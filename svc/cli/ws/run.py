"""`svc ws run`: a command in a new workspace, from the set-up to the deletion.

Standard output is the command's alone: everything else is printed to standard error. The client
composes what the single commands do; the service knows only that the workspace of --rm must not stay.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

from svc.cli import waiting
from svc.cli.ws import create, piping
from svc.cli.ws import exec as exec_command
from svc.cli.ws import logs as log_output
from svc.cli.ws.columns import note_limits, path_of
from svc.cli.ws.wait import ENDED, TimedOut, Waiting
from svc.client import transport
from svc.client.requests import ask, ask_when_free, checked, quote, show_raw
from svc.commandline import output
from svc.commandline.arguments import QUIET, Argument, Arguments, Command
from svc.commandline.output import pick, text
from svc.engine_errors import CommandNotExecutable, CommandNotFound, MemoryTooSmall
from svc.errors import BadAnswer, ExitedAtOnce, NotFound, SvcError, Unreachable, UsageError
from svc_helper.wire.limits import EXEC_TIMEOUT_MAX_S

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

EXIT_BEFORE = 125  # an error of svc: the command did not begin, or its exit code is unknown
EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND = 126, 127  # as those of podman run and of a shell
BY_ITSELF = "container_exited"  # the reason of a workspace whose command has ended
UNDER_WAY = ("queued", "running")  # statuses of an operation that has not ended
CANCEL_S = 30  # for a cancelled set-up to end
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SET_BY_RUN = ("--name", "--command", "--restart-on-boot")
HELP = "svc ws run --help"
EXAMPLES = """\
svc ws run --template python --rm -- python3 -c 'print(6 * 7)'
svc ws run --template torch --rm --gpu-count 1 -- python3 /work/train.py --epochs 20
svc ws run --template torch --name train --memory 32g -- python3 /work/train.py
svc ws run -i --template python --rm -- gzip -c < table.csv > table.csv.gz"""


def run(args: Arguments) -> int:
    """Run a command in a new workspace: set it up, start it, print the output, and exit with its code.

    The command takes the place of the template's, and may last as long as it likes: a
    restart of the service does not end it. What it prints comes as it is written, standard
    output and standard error apart; all else, as the progress of a pull, is on standard
    error. What is no UTF-8 is replaced; -i passes bytes on as they are.

    --rm deletes the workspace afterwards; the files of /work stay. Without --rm it
    stays, stopped: svc ws logs prints the output again. A workspace without --name is
    named run- and eight characters. Should svc itself be killed, the service deletes that of
    --rm ten minutes after its command has ended, except with -i.

    With -i standard input is passed on, and the command runs beside that of the template,
    as svc ws exec -i runs one: for 600 seconds at most, and a restart of the service ends
    it. The template's own command has to last as long.

    Ctrl-C, SIGTERM and SIGHUP end the command as svc ws stop does, and with --rm delete the
    workspace; what could not be ended is named, with the command that does it.

    --json prints the record of the workspace at its end, and the output of the command on
    standard error. Exit code: the command's; 128 and the signal's number for one that a signal has ended;
    126 if it may not be executed, 127 if there is no such command, 125 for every other
    error, of the set-up or of the service; 1 if the service does not run, and nothing was
    begun; 2 for wrong usage. After Ctrl-C 130, after SIGTERM 143, after SIGHUP 129.
    """
    if not args.exec_command:
        raise UsageError("no command after --", hint="svc ws run --template TEMPLATE --rm -- COMMAND...")
    if args.interactive and args.json:
        raise UsageError("-i passes the output on as it comes, --json prints a record", hint=HELP)
    args.command, args.restart_on_boot = None, False
    one = Run(args)
    exec_command.require_text(args.exec_command, one.name)
    before = {each: signal.getsignal(each) for each in SIGNALS}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:  # ignored signals stay ignored, as under nohup
            signal.signal(each, _interrupt)
    try:
        return one.exit_code()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Interrupted(KeyboardInterrupt):
    """A signal arrived."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _interrupt(number: int, _frame: object) -> None:
    raise Interrupted(number)


class Run:
    """One run: the name of its workspace, and what exists of it so far."""

    def __init__(self, args: Arguments) -> None:
        self.is_new_name = not args.name  # nothing else has one of eight random digits
        args.name = args.workspace = args.name or f"run-{os.urandom(4).hex()}"
        self.args, self.name = args, args.name
        self.id = args.name  # until it is known: another workspace may get the name
        self.operation = ""  # the id of the set-up until it has finished
        self.may_exist = False
        self.code = EXIT_BEFORE

    def exit_code(self) -> int:
        """Run the command and clean up; returns the exit code."""
        try:
            try:
                self._carry_out()
            except SvcError as error:
                if _is_unsent(error) and not self.may_exist:
                    raise  # exit code 1, as of every other command
                self._fail(error)
            self._finish()
        except Interrupted as interrupted:
            self._end()
            return 128 + interrupted.number
        except OSError:  # the output goes nowhere, as into a closed pipe or a full disk: end the run
            self._end()
            raise
        return self.code

    def _carry_out(self) -> None:
        self._set_up()
        began = self._start()
        if not self.args.interactive:
            self._print_output()
            self._take_code()
        elif began:
            request = {"command": self.args.exec_command, "timeout_s": EXEC_TIMEOUT_MAX_S}
            self.code = _code_of(piping.run(path_of(self.id, "/exec/stream"), request))

    def _fail(self, error: SvcError) -> None:
        output.error(error)
        if isinstance(error, CommandNotFound):
            self.code = EXIT_NOT_FOUND
        elif isinstance(error, CommandNotExecutable):
            self.code = EXIT_NOT_EXECUTABLE

    def _set_up(self) -> None:
        body = create.body(self.args)
        if not self.args.interactive:
            body["command"] = self.args.exec_command
            exec_command.note_unread(self.args.name, f"{HELP}  # -i passes it on")
        if self.args.rm:
            body["delete_when_stopped"] = True  # in case this process is killed
        with _undisturbed():  # a set-up that has begun must be known, to be cancelled
            try:
                asked = ask(self.args, "POST", "/api/workspaces/setup", body)
            except (Unreachable, BadAnswer) as error:
                if _is_unsent(error):
                    raise
                # the request may have been served
                self.may_exist = self.is_new_name
                if not self.is_new_name:  # whatever has this name may be older than this run
                    output.note(f"whether {self.name} was created is not known: svc ws get {self.name}")
                raise
            self.may_exist = True
            self.operation = text(asked.json(), "operation.id")
            self.id = self.args.workspace = text(asked.json(), "operation.subject.id") or self.name
        try:
            waiting.wait(self.args, asked, goes_on=False)
        except SvcError:
            self.may_exist = not self._set_up_has_failed()
            raise
        self.operation = ""

    def _set_up_has_failed(self) -> bool:
        """Whether the set-up itself has failed, of which nothing is left, or only the wait for it."""
        try:
            found = transport.request("GET", f"/api/operations/{quote(self.operation)}")
            return found.ok and text(found.json(), "status") in ("failed", "cancelled")
        except (Unreachable, BadAnswer):
            return False

    def _start(self) -> bool:
        """Start the workspace; False if its command has ended already."""
        started = transport.request("POST", path_of(self.id, "/start"), b"{}")
        error = None if started.ok else started.error()
        if isinstance(error, ExitedAtOnce | MemoryTooSmall) and not self.args.interactive:
            if isinstance(error, MemoryTooSmall):
                output.error(error)
            return False
        checked(self.args, started)
        note_limits(started.json())
        if not self.args.interactive or text(started.json(), "status") == "running":
            return True
        raise NotFound(
            f"the command of {self.args.template} has ended; -i runs another one beside it",
            hint="svc ws run --template TEMPLATE --rm -- COMMAND...",
        )

    def _print_output(self) -> None:
        """Print what the command writes until it ends; an error of the stream does not end the run."""
        self.args.tail = self.args.launcher = None
        self.args.timestamps = False
        try:
            for event in log_output.events(self.args):
                piece = event.json()
                if event.name == "marker":
                    output.note(text(piece, "text"))
                    continue
                descriptor = 2 if self.args.json or text(piece, "stream") == "stderr" else 1
                piping.write(descriptor, text(piece, "text").encode())
        except SvcError as error:
            output.error(error)
            output.remark(f"hint: svc ws logs {self.name}  # its output is kept")

    def _take_code(self) -> None:
        """The exit code of the workspace's command, once it has ended."""
        ended = Waiting(self.id).until(path_of(self.id), lambda one: text(one, "status") in ENDED)
        record = ended.json()
        reason = text(record, "status_reason")
        if reason != BY_ITSELF:
            output.note(f"{self.name} has ended: {reason or text(record, 'status')}")
        code = pick(record, "exit_code")
        if type(code) is int and 0 <= code < 256:
            self.code = code
        if self.args.json:
            show_raw(ended)

    # --- afterwards ---------------------------------------------------------------------

    def _finish(self) -> None:
        """Delete the workspace, or note that it stays."""
        if not self.may_exist:
            return
        if self.args.rm:
            self._end()
        elif self.args.interactive:
            self._end()
            self._note_kept()
        else:
            self._note_kept()

    def _note_kept(self) -> None:
        if not self.args.quiet:
            output.note(f"{self.name} stays; to delete it: svc ws delete {self.name} --yes")

    def _end(self) -> None:
        """Cancel the set-up, end the command, with --rm delete the workspace; note what was not ended."""
        if not self.may_exist:
            return
        done = self.args.json = False  # stdout gets nothing more
        try:
            if self.operation:
                self._cancel()
            if self.args.rm:
                ask_when_free(self.args, "DELETE", path_of(self.id), self.name)
            else:
                ask_when_free(self.args, "POST", path_of(self.id, "/stop"), self.name, {})
            done = True
        except NotFound:
            done = True
        except TimedOut:
            pass
        except SvcError as error:
            output.error(error)
        finally:  # also if a second signal arrives
            transport.changes.clear()  # the run was given up: no error may say that it is done
            if not done:
                self._note_left()

    def _cancel(self) -> None:
        """Cancel the set-up and wait until it has ended."""
        where = f"/api/operations/{quote(self.operation)}"
        ask(self.args, "POST", f"{where}/cancel", {})
        Waiting(self.id, CANCEL_S).until(where, lambda one: text(one, "status") not in UNDER_WAY)

    def _note_left(self) -> None:
        remedy = f"svc ws delete {self.name} --yes" if self.args.rm else f"svc ws stop {self.name}"
        if self.operation:
            remedy = f"svc operation cancel {self.operation}; {remedy}"
        left = "may still be there" if self.args.rm else "may still run"
        output.note(f"{self.name} {left}; to end that: {remedy}")


def _is_unsent(error: SvcError) -> bool:
    """Whether there was no connection to the service."""
    return isinstance(error, Unreachable) and error.nothing_sent


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Defer signals until after the block."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _code_of(result: dict[str, Any]) -> int:
    """The exit code of a command that ran beside the template's command."""
    if result.get("timed_out") is True:
        output.note(f"the command was killed after {EXEC_TIMEOUT_MAX_S} seconds")
        return exec_command.EXIT_TIMED_OUT
    code = result.get("exit_code")
    return code if type(code) is int and 0 <= code < 256 else EXIT_BEFORE


COMMANDS = (
    Command(
        "run",
        run,
        *(option for option in create.OPTIONS if option.name not in SET_BY_RUN),
        Argument("--name", "your name for it (default: run- and eight characters)", metavar="NAME"),
        Argument("--rm", "delete the workspace afterwards", kind="flag"),
        Argument("-i", "pass standard input on to the command", kind="flag", dest="interactive"),
        QUIET,
        examples=EXAMPLES,
        usage="svc ws run [-i] [--rm] --template TEMPLATE [OPTIONS] -- COMMAND...",
    ),
)
