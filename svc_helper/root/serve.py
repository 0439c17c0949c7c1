"""The helper's one thread: take a call, decide whether it may be, hand it on.

Nothing here waits: not for an app process, not for an agent, not for the host's
account check. What must wait runs in a child (children.py). The reply path of a
call goes to whoever does the work; the helper keeps none.
"""

from __future__ import annotations

import os
import select
import socket
import time
from typing import NamedTuple

from svc_helper.root.agents import Agents, Host
from svc_helper.root.check import Checks, Full, Verdict, resolve
from svc_helper.root.children import Children
from svc_helper.root.enrolment import Enrolment, Entry, OnlyMe
from svc_helper.root.log import log
from svc_helper.root.peer import Listener, NoProof
from svc_helper.root.verbs import Refusal, RootVerb, perform
from svc_helper.wire.protocol import Call, ProtocolError, check_call, close_all, receive, send_answer

ROOT_VERB_S = 60
VIOLATIONS_LOGGED = 100  # one line each
ROOT_VERBS_MAX = 8  # at once; they wait for each other anyway


class Config(NamedTuple):
    """What root's own starter says on the command line."""

    host: Host
    socket: str
    app_uid: int
    fds: dict[str, int]
    pam_service: str
    verbs: dict[str, RootVerb]  # the root verbs that this program performs


class Pending(NamedTuple):
    """A call that may be made once the host agrees to these accounts."""

    call: Call
    reply: socket.socket
    entries: list[Entry]  # the target first
    at: float


class Server:
    """The pairs, and everything that the loop knows."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.poll = select.poll()
        self.children = Children(self.poll)
        self.checks = Checks(self.children, config.pam_service)
        self.enrolment: Enrolment | OnlyMe = Enrolment(config.host.state_dir)
        if config.host.single_user:
            self.enrolment = OnlyMe(config.app_uid)
        self.agents = Agents(self.children, config.host)
        self.listener: Listener | None = None
        if "unix" in config.fds:
            self.listener = Listener(config.socket, see_file=not config.host.single_user)
        if set(config.fds) != {"admin"} and not config.host.single_user:
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
        """Serve until every pair has ended."""
        while self.pairs:
            late = self.children.next_deadline()
            timeout = None if late is None else max(0.0, late - time.monotonic()) * 1000 + 1
            for fd, _ in self.poll.poll(timeout):
                if fd in self.pairs:
                    self.take(*self.pairs[fd])
                else:
                    self.children.reap(fd)
            self.children.kill_late()

    def take(self, pair_name: str, pair: socket.socket) -> None:
        """Take one message of a pair and answer it, hand it on or let it wait."""
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
            return  # from then on only each power of two: nobody fills root's disk with them
        log("protocol violation", "critical", pair=pair_name, why=why, count=self.violations)

    def _admit(self, pair_name: str, untrusted: dict[str, object], fds: list[int], uid: int | None) -> None:
        """Check a message as far as can be done at once; takes the reply path out of fds."""
        if uid != (0 if pair_name == "admin" and not self.config.host.single_user else self.config.app_uid):
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
                raise ProtocolError("not the descriptors of such a call")
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
            self._advance(Pending(call, reply, entries, at), 0)

    def _authorise(self, pair_name: str, call: Call, fds: list[int]) -> list[Entry]:
        """The accounts that this call needs to be sound; raises NoProof or PermissionError."""
        who = call.verb.caller
        target = None
        if call.verb.side == "agent" or call.verb.name == "account.check":
            target = self.enrolment.find(call.user)
            if target is None:
                raise PermissionError("not enrolled")
        entries = [target] if target else []
        if pair_name != "unix" or call.verb.name == "helper.ping":
            return entries
        if self.listener is None:
            raise NoProof("this helper knows no listener")
        peer = self.listener.proven_uid(fds[0])
        if (who != "admin" and target is not None and target.uid == peer) or (who != "self" and peer == 0):
            return entries
        administrator = self.enrolment.find_administrator(peer) if who != "self" else None
        if administrator is None:
            raise PermissionError(f"uid {peer} may not do this")
        return [*entries, administrator]

    def _advance(self, pending: Pending, checked: int, target: Verdict | None = None) -> None:
        """Ask the host about the next account of the call; perform it after the last."""
        if checked == len(pending.entries) or self.config.host.single_user:
            self._perform(pending, target)
            return

        def judged(verdict: Verdict) -> None:
            if verdict.account is None:
                self._end(pending, verdict.code, verdict.message)
            else:
                self._advance(pending, checked + 1, target or verdict)

        try:
            self.checks.ask(pending.entries[checked], judged)
        except Full:
            self._end(pending, "unavailable", "too many calls wait for the account check")
        except OSError as error:
            log("the account check could not start", "error", why=str(error))
            self._end(pending, "unavailable", "the account check could not start")

    def _perform(self, pending: Pending, target: Verdict | None) -> None:
        call = pending.call
        if call.verb.name == "helper.ping":
            facts = {"systemd": self.config.host.systemd, "violations": self.violations}
            answer(pending.reply, {"ok": True, "data": facts})
            self._end(pending, "ok")
        elif call.verb.name == "account.check":
            fresh_s = self.checks.fresh_s(pending.entries[0])  # the checks of this call have just passed
            answer(pending.reply, {"ok": True, "data": {"good_for_ms": int(fresh_s * 1000)}})
            self._end(pending, "ok")
        elif call.verb.side == "root":
            self._perform_as_root(pending)
        else:
            self._hand_to_agent(pending, target)

    def _hand_to_agent(self, pending: Pending, target: Verdict | None) -> None:
        account = target.account if target else resolve(pending.call.user or "")
        if account is None:
            self._end(pending, "refused", "not enrolled")
        elif _hung_up(pending.reply):
            self._end(pending, "gone")
        else:
            try:
                self.agents.deliver(account, pending.call, pending.reply)
            except OSError as error:  # a full channel, no agent to be had
                self._end(pending, "unavailable", f"the agent takes no call: {error.strerror}")
            else:
                self._end(pending, "sent")

    def _perform_as_root(self, pending: Pending) -> None:
        """A verb of root's own, in a child that answers itself."""
        name = pending.call.verb.name
        if self.config.host.single_user and name != "registries.write":
            self._end(pending, "refused", "single-user mode has one account")
            return
        if self.root_verbs >= ROOT_VERBS_MAX:
            self._end(pending, "unavailable", "too many administrators' calls at once")
            return

        def work() -> None:
            perform_and_answer(self.config, pending)

        def ended(_code: int) -> None:
            self.root_verbs -= 1

        try:
            self.children.fork(work, ended, keep=[pending.reply.fileno()], deadline_s=ROOT_VERB_S)
        except OSError as error:
            self._end(pending, "unavailable", f"no child: {error.strerror}")
            return
        self.root_verbs += 1
        pending.reply.close()

    def _end(self, pending: Pending, outcome: str, message: str = "") -> None:
        """The helper's part of a call is over: answer a refusal, close the reply path, write the line."""
        if message:
            refuse(pending.reply, outcome, message)
        pending.reply.close()
        report(pending, outcome, message)


def report(pending: Pending, outcome: str, why: str = "") -> None:
    """The one line per call in root's own log."""
    call = pending.call
    milliseconds = round((time.monotonic() - pending.at) * 1000, 1)
    facts: dict[str, object] = {"rid": call.rid, "verb": call.verb.name, "user": call.user}
    log("call", "info", **facts, outcome=outcome, ms=milliseconds, **({"why": why} if why else {}))


def perform_and_answer(config: Config, pending: Pending) -> None:
    """In a child: perform a root verb, answer, report."""
    outcome, why = "ok", ""
    try:
        data = perform(config.verbs, config.host, pending.call)
        answer(pending.reply, {"ok": True, "data": data})
    except Refusal as refusal:
        outcome, why = refusal.code, refusal.message
        refuse(pending.reply, outcome, why)
    report(pending, outcome, why)


def answer(reply: socket.socket, message: dict[str, object]) -> None:
    """Send a last message; nobody waits for a caller that does not read."""
    try:
        send_answer(reply, message, wait=False)
    except OSError:
        pass


def refuse(reply: socket.socket, code: str, message: str) -> None:
    """Answer that it was not done."""
    answer(reply, {"ok": False, "code": code, "message": message})


def _reply_path(fds: list[int]) -> socket.socket | None:
    """The first descriptor, if it is what a reply path must be."""
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


def _hung_up(reply: socket.socket) -> bool:
    poll = select.poll()
    poll.register(reply, 0)
    return bool(poll.poll(0))
