"""The supervisor: runs as root and reads nothing from any client.

It binds the two listeners, creates the socket pairs between app and helper, starts
and restarts both, and stops everything within five seconds. It keeps listeners and
pairs open, so that a restarted child finds queued calls and waiting connections.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from functools import partial

from svc.db import faults
from svc.db.location import (
    database_path,
    for_database,
    lost_database,
    named_database,
    refuse_foreign_directory,
)
from svc.db.lock import hold
from svc.domain.licence import fingerprint
from svc.errors import DatabaseRefused, HostRefused, SvcError
from svc.helper import start
from svc.host import clock, restoring
from svc.host.accounts import ROLES, Accounts, find_accounts
from svc.host.owner import Owner, run_as
from svc.host.sharing import share
from svc.limits import STOP_TOTAL_S
from svc.log import log
from svc.server import children, ending, listeners, outbound, surroundings, systemd
from svc.server.output import of_supervisor
from svc.server.ping import PAIR, Ping
from svc.server.restart import EARLY_ENDS_MAX, NOT_SERVING, UNUSABLE, Child, reap
from svc.settings import Settings

CHECK_S = 30.0  # for the check of the database at a start; it takes much less


def both_ready(received: bytes) -> bool:
    """Whether each listener has sent its first letter: it accepts requests (a restarted one repeats it)."""
    return set(b"ut") <= set(received)


class Supervisor:
    """The running server."""

    def __init__(
        self, settings: Settings, dev: bool, accounts: Accounts, names: str, request_code: str
    ) -> None:
        self.settings = settings
        self.dev = dev
        self.accounts = accounts
        self.names = names
        self.request_code = request_code
        self.stopping = False
        self.received = b""  # from the listeners, over the ready pipe
        self.wakeup_read, self.wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.ready_read, ready_write = os.pipe2(os.O_CLOEXEC)
        self.ready_write = children.move_high(ready_write)
        self.unix = children.move_high(listeners.unix_listener(settings.socket).detach())
        host = settings.host or ("127.0.0.1" if dev else "")
        self.tcp = children.move_high(listeners.tcp_listener(host, settings.port).detach())
        self.netlinks = [children.move_high(listeners.netlink()) for _ in ("tls", "apps")]
        self.apps = [
            children.move_high(each.detach()) for each in listeners.app_listeners(settings.apps_local_port)
        ]
        self.output = of_supervisor()
        self.app_ends: list[int] = []
        self.helper_ends: list[int] = []
        for _ in ROLES:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # before the first call is queued
            self.app_ends.append(children.move_high(ours.detach()))
            self.helper_ends.append(children.move_high(theirs.detach()))
        self.ping = Ping()
        self.watchdog = systemd.Watchdog(settings.socket)
        self.clock = clock.Recorder(
            partial(clock.read_file, settings.state_dir), partial(clock.write_file, settings.state_dir)
        )
        self.helper = Child("supervisor", "helper", self.start_helper)
        self.children = [self.helper, Child("supervisor", "app", self.start_app)]

    def start_helper(self) -> int:
        """Start the root helper on its ends of the pairs, ours among them."""
        fds = {pair: children.FIRST_FD + place for place, pair in enumerate((*ROLES, PAIR))}
        uids = {**self.accounts.roles, PAIR: os.geteuid()}
        command = start.command(self.settings, "svc_helper.root.__main__", fds, uids)
        descriptors = [*self.helper_ends, self.ping.helper_end]
        return children.spawn(children.as_root(command), descriptors, start.environment())

    def watch_helper(self) -> None:
        """Kill a helper that does not answer; a second time leave behind one that the kernel holds."""
        if not self.helper.pid or not self.ping.is_late(self.helper.started):
            return
        if self.ping.killed == self.helper.pid:
            self.helper.leave_behind()
        else:
            log("supervisor", "the helper does not answer and is killed", "critical")
            self.helper.signal(signal.SIGKILL)
            self.ping.expect_end(self.helper.pid)

    def record_time(self) -> None:
        """Keep the latest time in root's file, by which the licence is judged (every ten minutes)."""
        if not self.dev:
            with contextlib.suppress(OSError):  # a full disk; the database has the time too
                self.clock.begin()

    def start_app(self) -> int:
        """Start the app parent on the listeners, its ends of the pairs and the ready pipe.

        Its process namespace ends with it: a process of an earlier one, which could have taken
        descriptors along, is gone.
        """
        config = {
            "settings": {name: resolved.text for name, resolved in self.settings.resolved.items()}
            | {"SVC_DB": os.path.abspath(self.settings.db), "SVC_PUBLIC_HOSTS": self.names},
            "dev": self.dev,
            "roles": self.accounts.uids,
            "apps_gid": self.accounts.apps.gid,
            "apps_listeners": len(self.apps),
            "separate": self.accounts.separate,
            "request_code": self.request_code,
        }
        descriptors = [self.unix, self.tcp, *self.app_ends, self.ready_write, *self.netlinks, *self.apps]
        command = children.isolated("svc.app", "--config", json.dumps(config))
        command = children.as_app(self.accounts, command)
        if not self.accounts.separate:
            return children.spawn(command, descriptors, start.environment())
        with surroundings.process_namespace() as is_own:
            if not is_own:
                self._kill_roles()
            return children.spawn_detached(
                command,
                descriptors,
                start.environment(),
                self.output.writing,
                partial(surroundings.enter, self.settings),
            )

    def _kill_roles(self) -> None:
        """Kill what an earlier app has left, by uid; of another server on this host too."""
        for role, uid in self.accounts.uids.items():
            if not ending.kill_all_of(uid):
                log("supervisor", f"processes of an earlier {role} could not be killed", "critical")

    def run(self) -> int:
        """Supervise until SIGTERM or SIGINT; returns the exit status."""
        signal.set_wakeup_fd(self.wakeup_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, self._on_signal)
        watched = [self.wakeup_read, self.ready_read, self.output.reading]
        while not self.stopping:
            for child in self.children:
                child.ensure()
            self.watch_helper()
            self.watchdog.step()
            self.record_time()
            writable = [self.output.target] if self.output.pending else []
            readable, _, _ = select.select(watched, writable, [], 1.0)
            if self.wakeup_read in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.wakeup_read, 4096)
            if self.ready_read in readable:
                self.received += os.read(self.ready_read, 64)
                if both_ready(self.received):
                    watched.remove(self.ready_read)
                    self._ready()
            self.output.copy()
            reap(self.children)
            if self.children[-1].exit_code == UNUSABLE and not self.stopping:
                self._app_gave_up()
            self._require_serving()
        return self._stop()

    def _app_gave_up(self) -> None:
        """Stop, and raise why the database cannot be used; the app is started again if it can be used."""
        self.children[-1].exit_code = 0
        try:
            check_database(self.settings, self.dev, self.accounts)
        except SvcError:
            self._stop()
            raise

    def _require_serving(self) -> None:
        """Stop, and raise, when no start of the app has led to one answer: the next one would not either."""
        app = self.children[-1]
        is_hopeless = app.exit_code == NOT_SERVING or app.early_ends >= EARLY_ENDS_MAX
        if self.stopping or not is_hopeless or both_ready(self.received):
            return
        self._stop()
        raise HostRefused(
            "the app ends at each start, before it answers anything; the lines above say why",
            hint=for_database("doctor", self.settings),
        )

    def _on_signal(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self.stopping = True

    def _ready(self) -> None:
        """Log that both listeners accept requests, and notify systemd."""
        log("supervisor", f"ready: {self.settings.socket} and port {self.settings.port}")
        systemd.notify(b"READY=1\n")

    def _stop(self) -> int:
        """Stop the app first (requests in flight get three seconds), then the helper; five seconds in all."""
        deadline = time.monotonic() + STOP_TOTAL_S - 0.5
        log("supervisor", "stopping")
        for child in reversed(self.children):
            child.signal(signal.SIGTERM)
            while child.pid and time.monotonic() < deadline:
                reap(self.children)
                self.output.copy()
                time.sleep(0.01)
            if child.pid:
                log("supervisor", f"{child.name} did not exit in time and is killed")
                child.signal(signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.settings.socket)
        self.output.copy()
        log("supervisor", "stopped")
        return 0


def serve(settings: Settings, dev: bool) -> int:
    """Check the prerequisites, take the database's lock, and run; raises SvcError."""
    if os.geteuid() != 0 and not dev:
        raise HostRefused("the server must be run as root", hint="sudo svc server   (or: svc server --dev)")
    if not dev:
        os.umask(0o022)  # that of a hardened root would keep every user from the socket's directory
    children.set_close_on_exec()
    database = database_path(settings)  # refuses a path in a directory that others can write
    restoring.require_none(settings.state_dir, database)
    if dev:
        refuse_foreign_directory(settings)
    settings.anchor_database(database)
    os.chdir("/")  # the app has no homes and a /tmp of its own; nor is the mount of the start kept busy
    if dev:
        _migrate(settings)
    _check_prerequisites(settings, dev)
    # "The supervisor holds the database's lock exclusively for as long as it runs".
    with hold(settings.db, exclusive=True):
        restoring.require_none(settings.state_dir, database)  # one that ended just now
        accounts = find_accounts()
        if not dev:
            _ensure_certificate(settings, accounts)
            check_database(settings, dev, accounts)
        outbound.write(settings)
        names, code = _host_names(settings, accounts), _request_code(accounts)
        return Supervisor(settings, dev, accounts, names, code).run()


def check_database(settings: Settings, dev: bool, accounts: Accounts) -> None:
    """Raise why the database cannot be used, with the command that helps: to start the app would not help.

    In a child that runs as the app, since root opens no database. With --dev its
    migration has checked it.
    """

    def check() -> None:
        from svc.db import check

        restoring.remove_draft(os.path.abspath(settings.db))  # its copy of everything is of no more use
        check.require_usable(os.path.abspath(settings.db))

    if dev:
        _migrate(settings)
    else:
        _require_not_lost(settings)
        run_as(Owner(accounts.uid, accounts.gid), check, CHECK_S)


def _require_not_lost(settings: Settings) -> None:
    if lost := lost_database(settings, database_path(settings)):
        raise DatabaseRefused(lost, hint=faults.RESTORE)


def _ensure_certificate(settings: Settings, accounts: Accounts) -> None:
    """In a child that runs as the app: root reads no certificate and does not load the library.

    The administrator's certificate is read as the account that serves with it.
    """

    def ensure() -> None:
        from svc.tls import serving

        serving.ensure_certificate(settings)

    def ensure_and_share() -> None:
        if not settings.tls_cert:
            ensure()
        share(settings.db, settings.secret_file, settings.tls_key)

    run_as(Owner(accounts.uid, accounts.gid), ensure_and_share)
    if settings.tls_cert:
        run_as(Owner(accounts.roles["tls"], accounts.gid), ensure)


def _host_names(settings: Settings, accounts: Accounts) -> str:
    """The names that the Host header of a request may have, for SVC_PUBLIC_HOSTS of the app.

    The app has no network to ask a name server, and root reads no answers of one: a child looks them up.
    """
    if not accounts.separate or settings.public_hosts:
        return str(settings.resolved["SVC_PUBLIC_HOSTS"].text)

    def find_names() -> list[str]:
        from svc.tls import host_names

        names = host_names.of_service([])
        return sorted(names, key=lambda name: "." not in name)  # first the one for other computers

    names = ",".join(map(str, run_as(Owner(accounts.uid, accounts.gid), find_names)))
    is_valid = Settings(flags={"SVC_PUBLIC_HOSTS": names}, environ={}, file={}).is_valid("SVC_PUBLIC_HOSTS")
    return names if is_valid else ""  # the app then takes the kernel's name of the host


def _request_code(accounts: Accounts) -> str:
    """This host's request code, of which root reads the parts; empty, and said in the log, without one."""
    try:
        parts = fingerprint.identity()
    except HostRefused as error:
        log("supervisor", error.message, "warning", hint=error.hint)
        return ""
    code = str(run_as(Owner(accounts.uid, accounts.gid), partial(fingerprint.code_of, *parts)))
    return code if fingerprint.CODE.fullmatch(code) else ""


def _migrate(settings: Settings) -> None:
    """With --dev: create or migrate the database, by the command that an administrator would run."""
    command = children.isolated("svc.__main__", "admin", "migrate", "--db", settings.db)
    pid = os.posix_spawn(command[0], command, dict(os.environ))
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        raise DatabaseRefused(f"{settings.db} could not be migrated", hint=for_database("migrate", settings))


def _check_prerequisites(settings: Settings, dev: bool) -> None:
    if not dev:
        _require_not_lost(settings)
    if not os.path.exists(settings.db):
        raise DatabaseRefused(
            f"there is no database at {settings.db}", hint=for_database("migrate", settings)
        )
    if not dev:
        accounts = find_accounts()
        work = partial(_require_startable, settings, accounts)
        run_as(Owner(accounts.uid, accounts.gid), work)


def _require_startable(settings: Settings, accounts: Accounts) -> None:
    """As the app: without these its processes would only be restarted for ever; raises HostRefused."""
    from svc.host.secret import read_secret
    from svc.server import confinement

    read_secret(settings.secret_file, named_database(settings))
    try:
        confinement.try_filter(accounts.uids.values(), [accounts.apps.gid])
    except OSError as error:
        raise HostRefused(
            f"the app's system calls cannot be restricted: {error}",
            hint="install libseccomp2, then: sudo systemctl restart svc",
        ) from None
