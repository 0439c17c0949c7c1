"""Switching to another version of svc: the package, then the database, then the service, or all of it back.

For `rollback apply` and `update apply`. The state before is kept as a recovery set, to which a switch that
fails goes back by itself. Root notes each step before it (svc.host.switching): after an interruption the
server does not start on a program and a database that do not fit, and `svc admin rollback apply --finish`
goes back, or completes what was complete but for the start.

dpkg exchanges the files of this program while it runs: everything that is used after that is imported
here, at the top, and nothing later.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from svc.admin.backup import package, recovery_set, recovery_sets, snapshot_check
from svc.admin.backup.offline import require_closed
from svc.admin.backup.snapshot import SPARED_FOR_SERVICE, Source, source_of
from svc.admin.backup.target import alone, opened, size
from svc.admin.command import for_database, sudo_command
from svc.admin.release import service_unit
from svc.commandline import output
from svc.db.lock import hold
from svc.errors import Conflict, DatabaseRefused, FileRefused, HostRefused, StorageFull, SvcError
from svc.host import notes
from svc.host import switching as note_of
from svc.host.ids import now
from svc.host.owner import admin_command
from svc.host.restoring import require_none
from svc.settings import Settings

NEEDED = (
    "SVC_DB", "SVC_STATE_DIR", "SVC_RECOVERY_DIR", "SVC_JWT_SECRET_FILE", "SVC_LICENSE_PATH", "SVC_TLS_CERT",
    "SVC_SOCKET",
)  # fmt: skip
LOCK = "switch.lock"
PROGRAM_ROOM = 128 * 1024 * 1024  # for the program's files and their .deb
DATABASE_S = 86400  # of a large database on a slow disk


class Switch(NamedTuple):
    """What is switched to: a .deb, which root alone can change, and the database that belongs to it.

    `database` is a snapshot that the new program restores; without one it migrates the present
    database. `back_to` is a set of the present state; without one it is made when the service has
    stopped, so that no acknowledged write is lost by going back.
    """

    package: str
    sha256: str
    version: str
    why: str
    database: str = ""
    back_to: str = ""


class Outcome(NamedTuple):
    """How a switch ended: whether it did, the set of the state before, whether the service runs, why not."""

    switched: bool
    kept: str
    started: bool
    reason: str


def progress(text: str) -> None:
    """Say what is being done; a terminal that is gone is no reason to stop."""
    with contextlib.suppress(OSError, ValueError):
        output.note(text)


def switch(settings: Settings, change: Switch, say: Callable[[str], None] = progress) -> Outcome:
    """Switch to another version; goes back by itself when that fails.

    Raises SvcError when nothing was changed, and when going back failed too: then the note stays.
    """
    require_root()
    with _signals_held(), alone(os.path.join(settings.state_dir, LOCK), "switch"), package.locked():
        run = Run(settings, source_of(settings), say)
        run.prepare(change)
        return run.forward()


def finish(settings: Settings, say: Callable[[str], None] = progress) -> Outcome:
    """Complete or undo an interrupted switch; raises Conflict when there is none."""
    require_root()
    with _signals_held(), alone(os.path.join(settings.state_dir, LOCK), "switch"), package.locked():
        run = Run(settings, source_of(settings), say)
        run.note = note_of.find(settings.state_dir) or {}
        if not run.note:
            raise Conflict("no switch was interrupted", hint=for_database("rollback list", settings))
        if run.note.get("database") != run.source.database:
            raise Conflict(
                f"the switch that was interrupted is of {run.note.get('database')}, not of"
                f" {run.source.database}; nothing was changed",
                hint=finish_command(run.note),
            )
        return run.resume()


def finish_command(note: dict[str, Any]) -> str:
    """The command that completes or undoes this switch: of its database, whatever the settings name now."""
    return admin_command("rollback apply --finish", str(note.get("database", "")))


class Run:
    """One switch under way; `note` is what root has noted of it."""

    def __init__(self, settings: Settings, source: Source, say: Callable[[str], None]) -> None:
        self.settings = settings
        self.source = source
        self.say = say
        self.note: dict[str, Any] = {}

    def advance(self, step: str) -> None:
        """Note the next step, before it."""
        self.note["step"] = step
        with self._noting():
            notes.put(note_of.path_of(self.settings.state_dir), self.note)

    def end(self) -> None:
        """Remove the note: program and database fit."""
        with self._noting():
            notes.remove(note_of.path_of(self.settings.state_dir))
        service_unit.forget_upgrade()

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        """Change the note; raises HostRefused when the disk fails."""
        try:
            yield
        except OSError as error:
            where = self.settings.state_dir
            reason = error.strerror or str(error)
            raise HostRefused(
                f"the switch cannot be noted in {where}: {reason}", hint=f"df -h {where}"
            ) from None

    # --- forward -------------------------------------------------------------------------

    def prepare(self, change: Switch) -> None:
        """Check, note, keep the present state, stop the service; after an error all is as it was."""
        require_none(self.settings.state_dir, self.source.database)
        if note := note_of.find(self.settings.state_dir):
            raise Conflict("another switch was interrupted", hint=finish_command(note))
        if not os.path.lexists(self.source.database):
            raise DatabaseRefused(
                f"there is no database at {self.source.database}", hint=for_database("migrate", self.settings)
            )
        program = require_package()
        require_fit(change)
        require_room(self.settings, self.source.database)
        self.note = {
            **change._asdict(), "at": now(), "from": program.version,
            "was_running": service_unit.is_running(),
            "back": False, "touched": False, "reason": "", "database": self.source.database,
            "snapshot": change.database, "kept": change.back_to,
        }  # fmt: skip
        self.advance(note_of.PREPARED)
        try:
            with ExitStack() as held:
                self._keep(change, program, held)
                self.advance(note_of.PACKAGE)
        except BaseException:  # also an interrupt: the service runs again as it did
            self.end()
            if self.note["was_running"]:
                service_unit.start()
            raise

    def _keep(self, change: Switch, program: package.Installed, held: ExitStack) -> None:
        """Keep the present state as a set; afterwards nobody has the database until `held` ends."""

        def stop() -> None:
            if self.note["was_running"]:
                self.say("stopping the service; workspaces run on")
                service_unit.stop()
            held.enter_context(hold(self.source.database, holder="svc admin rollback"))
            require_closed(self.source.database)

        held.enter_context(alone(self.source.lock, "switch"))
        with recovery_set.directory(self.settings, self.source.database) as top:
            if change.back_to:
                recovery_sets.require_whole(top, change.back_to)
                stop()
                return
            self.say("keeping the present program and database")
            why = {"why": change.why, "next_version": change.version}
            kept = recovery_set.keep(
                self.source, top, why, kind=recovery_set.UPGRADE, program=program, before_database=stop
            )
            self.note["kept"] = kept["id"]

    def forward(self) -> Outcome:
        """Exchange the package, then the database, then start; or go back."""
        try:
            self.say(f"installing svc {self.note['version']}")
            package.install(self.note["package"])
            self.note["touched"] = True
            self.advance(note_of.DATABASE)
            self._database(self.note["snapshot"])
            self.note["files"] = _files(self.source.database)
            self.advance(note_of.START)
            self._start()
        except (SvcError, OSError) as error:
            return self.back(_reason(error))
        self._prune()
        self.end()
        return Outcome(True, self.note["kept"], self.note["was_running"], "")

    # --- back ----------------------------------------------------------------------------

    def resume(self) -> Outcome:
        """Go on where an interruption has ended it."""
        step, back = self.note["step"], self.note["back"]
        if step == note_of.PREPARED:
            self.end()
            if self.note["was_running"] and not service_unit.is_running():
                service_unit.start()
            return Outcome(False, self.note["kept"], self.note["was_running"], "it had changed nothing yet")
        if step == note_of.START:
            return self._end_back() if back else self._end_forward()
        return self.back(self.note["reason"] or "it was interrupted")

    def _end_forward(self) -> Outcome:
        """Start what is complete; go back if it does not start and nobody has used it meanwhile."""
        kept = self.note["kept"]
        way_back = admin_command(f"rollback apply {kept}", self.source.database)
        is_unused = self.note.get("files") == _files(self.source.database)
        try:
            self._start()
        except (SvcError, OSError) as error:
            if is_unused:
                return self.back(_reason(error))
            self.end()  # program and database fit; what was written since is not for us to give up
            raise HostRefused(
                f"svc {self.note['version']} is in place and was used after the interruption, but now"
                f" {_reason(error)}",
                hint=f"journalctl -u svc   (to go back all the same: {way_back})",
            ) from None
        self.end()
        return Outcome(True, kept, self.note["was_running"], "")

    def back(self, reason: str) -> Outcome:
        """Put the kept program and, if the other version may have changed it, the kept database in place.

        Each step may be repeated. Raises SvcError when that fails; the note stays then.
        """
        self.say(f"going back: {reason}")
        self.note |= {"back": True, "reason": reason}
        try:
            with recovery_set.directory(self.settings, self.source.database) as top:
                recovery_sets.require_whole(top, self.note["kept"])
                path = os.path.join(top.path, self.note["kept"])
            service_unit.stop()
            self.advance(note_of.PACKAGE)
            package.install(os.path.join(path, recovery_set.PROGRAM))
            if self.note["touched"]:
                self.advance(note_of.DATABASE)
                self._database(os.path.join(path, recovery_set.DATABASE))
            self.advance(note_of.START)
        except (SvcError, OSError) as error:
            raise HostRefused(
                f"the switch to {self.note['version']} failed ({reason}), and going back failed too:"
                f" {_reason(error)}",
                hint=finish_command(self.note),
            ) from None
        return self._end_back()

    def _end_back(self) -> Outcome:
        """Start what was before: it is in place, and may have been used since an interruption."""
        started, reason = self.note["was_running"], self.note["reason"]
        try:
            self._start()
        except (SvcError, OSError) as error:
            started, reason = False, f"{reason}; and now {_reason(error)}"
        self.end()
        return Outcome(False, self.note["kept"], started, reason)

    # --- steps ---------------------------------------------------------------------------

    def _database(self, snapshot: str) -> None:
        """Have the installed program put the snapshot in place, or migrate; raises HostRefused."""
        self.say(f"restoring {snapshot}" if snapshot else "migrating the database")
        arguments = ["restore", "--yes", snapshot] if snapshot else ["migrate"]
        command = [package.program(), "admin", *arguments, "--db", self.source.database]
        package.run(command, DATABASE_S, {note_of.IN_SWITCH: "1"})

    def _start(self) -> None:
        """Start the service if it ran before, and have it say that it is healthy; raises HostRefused."""
        if self.note["was_running"]:
            self.say("starting the service")
            service_unit.start()
            service_unit.require_healthy(self.settings.socket)

    def _prune(self) -> None:
        """Remove old sets; that it fails is no reason to go back."""
        database = self.source.database
        with contextlib.suppress(SvcError, OSError), recovery_set.directory(self.settings, database) as top:
            recovery_sets.prune(top, recovery_sets.here(database), recovery_sets.in_use(self.note))


def _files(database: str) -> list[list[int] | None]:
    """Size and time (ns) of the last change of the database and its log: others once somebody has written."""
    found: list[list[int] | None] = []
    for path in (database, f"{database}-wal"):
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            found.append(None)
        else:
            found.append([status.st_size, status.st_mtime_ns])
    return found


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, SvcError) else str(error)


def require_root() -> None:
    """Raise HostRefused for another than root: dpkg and the service are root's."""
    if os.geteuid() != 0:
        raise HostRefused("another version is installed by root alone", hint=sudo_command())


def require_package() -> package.Installed:
    """The installed package, of which this program is; raises Conflict for another kind of installation."""
    found = package.own()
    if found is None:
        raise Conflict(
            "this svc was not installed as the Debian package: another version cannot be put in its place",
            hint="packaging/install   (from a checkout of that version)",
        )
    return found


def require_fit(change: Switch) -> None:
    """Raise FileRefused unless the .deb is the one that was meant, of svc, for this host, and root's."""
    directory, name = os.path.split(change.package)
    with opened(directory, instead="copy it to a directory where only root can write") as target:
        if not target.is_own_file(name):
            raise FileRefused(
                f"{change.package} is not a file that only root can change", hint=f"ls -l {directory}"
            )
        descriptor = os.open(name, recovery_set.READ, dir_fd=target.descriptor)
        try:
            digest = snapshot_check.sha256_of(descriptor)
        finally:
            os.close(descriptor)
    if digest != change.sha256:
        raise FileRefused(f"{change.package} was changed: its digest is not {change.sha256}")
    fields = package.fields(change.package)
    if fields.package != package.NAME or fields.architecture not in ("all", package.architecture()):
        raise FileRefused(
            f"{change.package} is {fields.package} for {fields.architecture}, not {package.NAME} for here"
        )
    if fields.system not in ("", package.system()):
        raise FileRefused(
            f"{change.package} was built for {fields.system}, and this host is {package.system()}"
        )


def require_room(settings: Settings, database: str) -> None:
    """Raise StorageFull unless there is room for the way forward and back: without it neither might succeed.

    Kept are this state and what each of two restores replaces; the restored database is made beside it.
    """
    files = [f"{database}{suffix}" for suffix in ("", "-wal")]
    bytes_ = sum(os.lstat(path).st_size for path in files if os.path.lexists(path))
    with recovery_set.directory(settings, database) as top:
        needed = {top.path: PROGRAM_ROOM + 3 * bytes_, os.path.dirname(database): bytes_ + SPARED_FOR_SERVICE}
    devices = [os.stat(path).st_dev for path in needed]
    for path in needed:
        status, device = os.statvfs(path), os.stat(path).st_dev
        together = sum(each for each, on in zip(needed.values(), devices, strict=True) if on == device)
        if status.f_bavail * status.f_frsize < together:
            raise StorageFull(
                f"not enough room in {path}: the way there and back needs {size(together)},"
                f" {size(status.f_bavail * status.f_frsize)} are free; nothing was changed",
                hint=f"df -h {path}",
            )


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Let no Ctrl-C, hang-up or SIGTERM cut a switch in two; the programs that it runs get them as ever."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, _ignore) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(_number: int, _frame: object) -> None:
    progress("the switch goes on until it is complete: a part of it would leave nothing that works")
