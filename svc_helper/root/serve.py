"""The helper's single thread: receive a call, authorise it, pass it on.

Nothing here waits: not for the app, not for an agent, not for the account check.
What may wait runs in a child (children.py). Whoever performs a call gets its reply
path; the helper keeps none.
"""

from __future__ import annotations

import os
import select
import socket
import time
from typing import NamedTuple

from svc_helper.root.agents import Agents, Host
from svc_helper.root.check import AccountChecks, Result, TooManyWaiting, resolve
from svc_helper.root.children import Children
from svc_helper.root.enrolment import Enrolment, Entry, SingleUser
from svc_helper.root.log import log
from svc_helper.root.peer import Listener, NoProof
from svc_helper.root.verbs import Refusal, RootVerb, perform
from svc_helper.wire.protocol import Call, ProtocolError, check_call, close_all, receive, send_reply

ROOT_VERB_S = 60
ROOT_VERBS_MAX = 8  # at once; they wait for one lock
VIOLATIONS_LOGGED = 100  # one line each, then each power of two


class Config(NamedTuple):
    """The configuration from the command line, which root or the app's own user wrote."""

    host: Host
    socket: str
    app_uid: int
    fds: dict[str, int]  # by the pair's name: unix, tls, worker, admin
    pam_service: str
    verbs: dict[str, RootVerb]  # the root verbs of this program


class Pending(NamedTuple):
    """A call that is made once the account check has passed these entries."""

    call: Call
    reply: socket.socket
    entries: list[Entry]  # the target first
    at: float


class Server:
    """The socket pairs and the state of the loop."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.single_user = config.host.single_user
        self.poll = select.poll()
        self.children = Children(self.poll)
        self.checks = AccountChecks(self.children, config.pam_service)
        self.enrolment: Enrolment | SingleUser = Enrolment(config.host.state_dir)
        if self.single_user:
            self.enrolment = SingleUser(config.app_uid)
        self.agents = Agents(self.children, config.host)
        self.listener: Listener | None = None
        if "unix" in config.fds:
            self.listener = Listener(config.socket, check_file=not self.single_user)
        if set(config.fds) != {"admin"} and not self.single_user:
            self.checks.prepare()
        self.violations = 0
        self.root_verbs = 0
        self.pairs: dict[int, tuple[str, socket.socket]] = {}
        for pair_name, fd in config.fds.items():
            os.set_inheritable(fd, False)
            pair = socket.socket(fileno=fd)
            pair.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self.pairs[fd] = (pair_name, pair)
            self.poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Serve until every pair is closed."""
        while self.pairs:
            deadline = self.children.next_deadline()
            timeout = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000 + 1
            for fd, _ in self.poll.poll(timeout):
                if fd in self.pairs:
                    self.serve_one(*self.pairs[fd])
                else:
                    self.children.reap(fd)
            self.children.kill_late()

    def serve_one(self, pair_name: str, pair: socket.socket) -> None:
        """Receive one message of a pair and handle it."""
        try:
            frame = receive(pair, wait=False)
        except BlockingIOError:
            return
        except ProtocolError as error:
            self._violation(pair_name, str(error))
            return
        except (EOFError, ConnectionError):
            self.poll.unregister(pair)
            del self.pairs[pair.fileno()]
            pair.close()
            return
        try:
            self._admit(pair_name, frame.message, frame.fds, frame.uid)
        finally:
            close_all(frame.fds)

    def _violation(self, pair_name: str, why: str) -> None:
        self.violations += 1
        if self.violations > VIOLATIONS_LOGGED and self.violations & (self.violations - 1):
            return  # a compromised app must not fill root's disk
        log("protocol violation", "critical", pair=pair_name, why=why, count=self.violations)

    def _admit(self, pair_name: str, untrusted: dict[str, object], fds: list[int], uid: int | None) -> None:
        """Check a message as far as possible without waiting; takes the reply path out of fds."""
        if uid != (0 if pair_name == "admin" and not self.single_user else self.config.app_uid):
            self._violation(pair_name, f"a message of uid {uid}")
            return
        reply = _reply_path(fds)
        if reply is None:
            self._violation(pair_name, "no reply path")
            return
        at = time.monotonic()
        try:
            call = check_call(untrusted, pair_name)
            if len(fds) != int(pair_name == "unix" and call.verb.name != "helper.ping"):
                raise ProtocolError("wrong number of descriptors for this call")
        except ProtocolError as error:
            self._violation(pair_name, str(error))
            refuse(reply, "protocol", str(error))
            reply.close()
            return
        try:
            entries = self._authorise(pair_name, call, fds)
        except NoProof as error:
            self._end(Pending(call, reply, [], at), "refused", f"no peer proof: {error}")
        except PermissionError as error:
            self._end(Pending(call, reply, [], at), "refused", str(error))
        else:
            self._check_next(Pending(call, reply, entries, at), 0)

    def _authorise(self, pair_name: str, call: Call, fds: list[int]) -> list[Entry]:
        """The entries that the account check must pass; raises NoProof or PermissionError."""
        allowed = call.verb.caller
        target = None
        if call.verb.side == "agent" or call.verb.name == "account.check":
            target = self.enrolment.find(call.user)
            if target is None:
                raise PermissionError("not enrolled")
        entries = [target] if target else []
        if pair_name != "unix" or call.verb.name == "helper.ping":
            return entries
        if self.listener is None:
            raise NoProof("this helper has no listener")
        peer = self.listener.proven_uid(fds[0])
        if allowed != "admin" and target is not None and target.uid == peer:
            return entries
        if allowed != "self" and peer == 0:
            return entries
        administrator = self.enrolment.find_administrator(peer) if allowed != "self" else None
        if administrator is None:
            raise PermissionError(f"uid {peer} may not do this")
        return [*entries, administrator]

    def _check_next(self, pending: Pending, passed: int, target: Result | None = None) -> None:
        """Check the next entry's account; after the last one perform the call."""
        if passed == len(pending.entries) or self.single_user:
            self._perform(pending, target)
            return

        def checked(result: Result) -> None:
            if result.account is None:
                self._end(pending, result.code, result.message)
            else:
                self._check_next(pending, passed + 1, target or result)

        try:
            self.checks.request(pending.entries[passed], checked)
        except TooManyWaiting:
            self._end(pending, "unavailable", "too many calls wait for the account check")
        except OSError as error:
            log("the account check could not start", "error", why=str(error))
            self._end(pending, "unavailable", "the account check could not start")

    def _perform(self, pending: Pending, target: Result | None) -> None:
        verb = pending.call.verb
        if verb.name == "helper.ping":
            self._end_ok(pending, {"systemd": self.config.host.systemd, "violations": self.violations})
        elif verb.name == "account.check":
            self._end_ok(pending, {"good_for_ms": int(self.checks.fresh_s(pending.entries[0]) * 1000)})
        elif verb.side == "root":
            self._fork_root_verb(pending)
        else:
            self._deliver_to_agent(pending, target)

    def _deliver_to_agent(self, pending: Pending, target: Result | None) -> None:
        account = target.account if target else resolve(pending.call.user or "")
        if account is None:
            self._end(pending, "refused", "not enrolled")
        elif _is_closed(pending.reply):
            self._end(pending, "gone")
        else:
            try:
                self.agents.deliver(account, pending.call, pending.reply)
            except OSError as error:  # its channel is full, or it could not be started
                self._end(pending, "unavailable", f"the agent accepts no call: {error.strerror}")
            else:
                self._end(pending, "sent")

    def _fork_root_verb(self, pending: Pending) -> None:
        """Perform a root verb in a child, which sends the reply itself."""
        if self.single_user and pending.call.verb.name != "registries.write":
            self._end(pending, "refused", "accounts are fixed in single-user mode")
            return
        if self.root_verbs >= ROOT_VERBS_MAX:
            self._end(pending, "unavailable", "too many administrative calls at once")
            return

        def work() -> None:
            perform_and_reply(self.config, pending)

        def ended(_code: int) -> None:
            self.root_verbs -= 1

        try:
            self.children.fork(work, ended, keep=[pending.reply.fileno()], deadline_s=ROOT_VERB_S)
        except OSError as error:
            self._end(pending, "unavailable", f"no child process: {error.strerror}")
            return
        self.root_verbs += 1
        pending.reply.close()

    def _end_ok(self, pending: Pending, data: dict[str, object]) -> None:
        reply_to(pending.reply, {"ok": True, "data": data})
        self._end(pending, "ok")

    def _end(self, pending: Pending, outcome: str, message: str = "") -> None:
        """Finish the helper's part of a call: send a refusal, close the reply path, log the call."""
        if message:
            refuse(pending.reply, outcome, message)
        pending.reply.close()
        log_call(pending, outcome, message)


def log_call(pending: Pending, outcome: str, why: str = "") -> None:
    """Write the one line per call in root's own log."""
    call = pending.call
    milliseconds = round((time.monotonic() - pending.at) * 1000, 1)
    facts: dict[str, object] = {"rid": call.rid, "verb": call.verb.name, "user": call.user}
    log("call", "info", **facts, outcome=outcome, ms=milliseconds, **({"why": why} if why else {}))


def perform_and_reply(config: Config, pending: Pending) -> None:
    """In a child: perform a root verb, send the reply, log the call."""
    outcome, why = "ok", ""
    try:
        data = perform(config.verbs, config.host, pending.call)
        reply_to(pending.reply, {"ok": True, "data": data})
    except Refusal as refusal:
        outcome, why = refusal.code, refusal.message
        refuse(pending.reply, outcome, why)
    log_call(pending, outcome, why)


def reply_to(reply: socket.socket, message: dict[str, object]) -> None:
    """Send a last message without waiting for a caller that does not read."""
    try:
        send_reply(reply, message, wait=False)
    except OSError:
        pass


def refuse(reply: socket.socket, code: str, message: str) -> None:
    """Reply that the call was not performed."""
    reply_to(reply, {"ok": False, "code": code, "message": message})


def _reply_path(fds: list[int]) -> socket.socket | None:
    """The first descriptor, if it is a Unix SEQPACKET socket."""
    if not fds:
        return None
    try:
        reply = socket.socket(fileno=fds[0])
    except OSError:
        return None
    del fds[0]
    if reply.family == socket.AF_UNIX and reply.type == socket.SOCK_SEQPACKET:
        return reply
    reply.close()
    return None


def _is_closed(reply: socket.socket) -> bool:
    """Whether the caller has closed its end."""
    poll = select.poll()
    poll.register(reply, 0)
    return bool(poll.poll(0))
