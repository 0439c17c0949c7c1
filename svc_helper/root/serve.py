"""The helper's single thread: receive a call, authorise it, pass it on.

Nothing here waits: not for the app, not for an agent, not for the account check.
What may wait runs in a child (children.py). Whoever performs a call gets its reply
path; the helper keeps none.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from typing import NamedTuple

from svc_helper.root.agents import Agents, Host
from svc_helper.root.check import AccountChecks, Result, TooManyWaiting, resolve
from svc_helper.root.children import Children
from svc_helper.root.enrolment import Enrolment, Entry, SingleUser
from svc_helper.root.log import LimitedLog, log
from svc_helper.root.peer import Listener, NoProof
from svc_helper.wire.protocol import Call, ProtocolError, check_call, close_all, receive, send_reply

SENT = "sent"  # the outcome of a call that an agent has


class Config(NamedTuple):
    """The configuration from the command line, which root or the app's own user wrote."""

    host: Host
    socket: str
    fds: dict[str, int]  # by the pair's name: unix, tls, worker, admin
    uids: dict[str, int]  # the only uid whose messages a pair accepts


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
        self.log = LimitedLog()
        self.children = Children(self.poll, self.log)
        self.checks = AccountChecks(self.children, config.host.pam_service)
        self.enrolment: Enrolment | SingleUser = Enrolment(config.host.state_dir)
        if self.single_user:
            self.enrolment = SingleUser(os.getuid())
        self.agents = Agents(self.children, config.host)
        self.listener: Listener | None = None
        if "unix" in config.fds:
            self.listener = Listener(config.socket, check_file=not self.single_user)
        if set(config.fds) != {"admin"} and not self.single_user:
            self.checks.prepare()
        self.violations = 0
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
            deadline = min(filter(None, (self.children.next_deadline(), self.log.deadline)), default=None)
            timeout = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000 + 1
            for fd, _ in self.poll.poll(timeout):
                if fd in self.pairs:
                    self.serve_one(*self.pairs[fd])
                else:
                    self.children.reap(fd)
            self.children.kill_late()
            self.children.reap_held()
            self.log.end_window()

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
        facts = {"pair": pair_name, "why": why, "count": self.violations}
        self.log.log(f"pair {pair_name}", "protocol violation", "critical", **facts)

    def _admit(self, pair_name: str, untrusted: dict[str, object], fds: list[int], uid: int | None) -> None:
        """Check a message as far as possible without waiting; takes the reply path out of fds."""
        if uid != self.config.uids[pair_name]:
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
            self.end(Pending(call, reply, [], at), "refused", f"no peer proof: {error}")
        except OSError as error:  # not permitted, or no descriptor is left to look with
            self.end(Pending(call, reply, [], at), "refused", str(error))
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
        if target is not None and target.uid == peer:
            return entries
        if allowed != "self" and peer == 0:
            return entries
        administrator = self.enrolment.find_administrator(peer) if allowed != "self" else None
        if administrator is None:
            raise PermissionError(f"uid {peer} may not do this")
        return [*entries, administrator]

    def _check_next(self, pending: Pending, passed: int, target: Result | None = None) -> None:
        """Check the next account, then perform the call; what only ends things also of an expired user."""
        if passed == len(pending.entries) or self.single_user:
            self._perform(pending, target)
            return

        def checked(result: Result) -> None:
            if result.account is None or (result.code and (passed or not pending.call.verb.ends)):
                self.end(pending, result.code, result.message)
            else:
                self._check_next(pending, passed + 1, target or result)

        try:
            self.checks.request(pending.entries[passed], checked)
        except TooManyWaiting:
            self.end(pending, "unavailable", "too many calls wait for the account check")
        except OSError as error:
            name = pending.entries[passed].name
            self.log.log(name, "the account check could not start", "error", user=name, why=str(error))
            self.end(pending, "unavailable", "the account check could not start")

    def _perform(self, pending: Pending, target: Result | None) -> None:
        verb = pending.call.verb
        if verb.name == "helper.ping":
            self._end_ok(pending, {"systemd": self.config.host.systemd, "violations": self.violations})
        elif verb.name == "account.check":
            self._end_ok(pending, {"good_for_ms": int(self.checks.fresh_s(pending.entries[0]) * 1000)})
        elif verb.side == "root":
            self.perform_root_verb(pending)
        else:
            self._deliver_to_agent(pending, target)

    def _deliver_to_agent(self, pending: Pending, target: Result | None) -> None:
        account = target.account if target else resolve(pending.call.user or "")
        if account is None:
            self.end(pending, "refused", "not enrolled")
        elif _is_closed(pending.reply):
            self.end(pending, "gone")
        else:
            try:
                self.agents.deliver(account, pending.call, pending.reply)
            except ProtocolError:  # longer than it came: what it left out is in it as null
                self.end(pending, "too_large", "the request is too large for one call")
            except OSError as error:  # its channel is full, or it could not be started
                self.end(pending, "unavailable", f"the agent accepts no call: {error.strerror}")
            else:
                self.end(pending, SENT)

    def perform_root_verb(self, pending: Pending) -> None:
        """The resident helper has none: see svc_helper.provision."""
        self.end(pending, "refused", f"{pending.call.verb.name} is performed for `svc admin` only")

    def _end_ok(self, pending: Pending, data: dict[str, object]) -> None:
        reply_to(pending.reply, {"ok": True, "data": data})
        self.end(pending, "ok")

    def end(self, pending: Pending, outcome: str, message: str = "") -> None:
        """Finish the helper's part of a call: send a refusal, close the reply path, log the call."""
        if message:
            refuse(pending.reply, outcome, message)
        pending.reply.close()
        facts = call_facts(pending, outcome, message)
        if outcome == SENT:
            log("call", "info", **facts)
        elif pending.call.verb.name != "helper.ping":
            enrolled = self.enrolment.find(pending.call.user)
            self.log.log(enrolled.name if enrolled else "not enrolled", "call", "info", **facts)


def call_facts(pending: Pending, outcome: str, why: str = "") -> dict[str, object]:
    """The line of a call in root's own log."""
    call, ms = pending.call, round((time.monotonic() - pending.at) * 1000, 1)
    facts: dict[str, object] = {"rid": call.rid, "verb": call.verb.name, "user": call.user}
    return facts | {"outcome": outcome, "ms": ms} | ({"why": why} if why else {})


def reply_to(reply: socket.socket, message: dict[str, object]) -> None:
    """Send a last message without waiting for a caller that does not read."""
    with contextlib.suppress(OSError):
        send_reply(reply, message, wait=False)


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
