"""One connection of a browser: its requests, each to the program of its app, and what the program answers.

h11 parses and writes both sides: no byte of one head reaches the other side as it came. A connection has at
most one stream to a program, kept for its next request while app and credential are the same. After 101 the
bytes pass as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

import h11

from svc.apps import credentials, entry, heads, pages, same_origin
from svc.apps.addresses import Place
from svc.apps.ends import End
from svc.apps.entry import CROSS_ORIGIN, Entry
from svc.apps.heads import Target, Visitor
from svc.apps.pages import Said
from svc.apps.pair import BUSY, Answer, Asked, Authority, Opened, Refused
from svc_helper.shim.loop import Loop

HEAD_MAX = 64 * 1024  # bytes
FIELDS_MAX = 100
HEAD_S, KEPT_S = 10.0, 60.0  # for a head that has begun, and between two requests
STALL_S = 60.0  # in which a reader takes something of what waits for it
BODY_MIN = 64 * 1024  # bytes of a request's body in that time
CHECK_S = 15.0  # the longest time for which a visitor who was let in is not judged again
AGAIN = (b"GET", b"HEAD", b"OPTIONS")  # sent once more when a kept stream turns out to have ended

SIGN_IN = Refused(401, "app_sign_in", "sign in first")
NOT_FOUND = Refused(404, "app_not_found", "there is no such app, or it is not yours")
BAD_RESPONSE = Refused(502, "app_bad_response", "the program's answer is no HTTP")
LARGE_HEAD = Refused(431, "headers_too_large", f"a head has at most {FIELDS_MAX} fields and 64 KiB")
MALFORMED = Refused(400, "invalid_request", "this is no request of HTTP")


class Pace:
    """Whether a count that should grow has done so, looked at now and then."""

    def __init__(self) -> None:
        self.seen, self.left_s = -1, STALL_S

    def is_over(self, elapsed_s: float, count: int, least: int) -> bool:
        """Whether it grew by less than `least` for STALL_S; -1: it need not grow now."""
        if count < 0 or self.seen < 0 or count - self.seen >= least:
            self.seen, self.left_s = count, STALL_S
            return False
        self.left_s -= elapsed_s
        return self.left_s <= 0


@dataclass
class Program:
    """The stream to a program, for whom it was opened, and how the program sees them."""

    end: End
    asked: Asked
    target: Target
    visitor: Visitor
    visit: str  # names what lets the visitor in
    http: h11.Connection
    is_kept: bool = False  # it has had a request before


class Connection:
    """Serves one client. `find` tells the app of a Host header; `gone` is called at the end."""

    def __init__(
        self,
        loop: Loop,
        end: End,
        address: str,
        find: Callable[[str], Place | None],
        authority: Authority,
        gone: Callable[[Connection], None],
    ) -> None:
        self.loop, self.address, self.find, self.authority, self.gone = loop, address, find, authority, gone
        self.browser = end
        end.took, end.moved, end.lost = self._browser_sent, self._browser_read, self.close
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_MAX)
        self.program: Program | None = None
        self.let_in: Callable[[Connection, str], None] = lambda _connection, _user: None
        self.request: h11.Request | None = None  # the present one
        self.place: Place | None = None  # of its app
        self.entry: Entry | None = None  # a request of the service's own, while its body comes
        self.is_waiting = False  # for the authority: what the browser sends meanwhile stays where it is
        self.is_tunnel = self.is_ending = self.is_closed = False
        self.pace, self.body_pace = Pace(), Pace()
        self.timer = loop.later(HEAD_S, self.close)

    def close(self) -> None:
        """End both sides now."""
        if self.is_closed:
            return
        self.is_closed = True
        self.timer.drop()
        self.browser.close()
        self._drop_program()
        self.gone(self)

    # --- from the browser ------------------------------------------------------------------------

    def _browser_sent(self, data: bytes) -> None:
        if self.is_tunnel:
            self._tunnel(data, self.browser)
            return
        self.http.receive_data(data)
        self._take_requests()

    def _take_requests(self) -> None:
        """Handle what has come, as far as the program has room for it; no more is read than is handled."""
        is_paused = False
        while not (self.is_waiting or is_paused or self._is_over()) and self._has_room():
            try:
                event = self.http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(LARGE_HEAD if error.error_status_hint == LARGE_HEAD.status else MALFORMED)
                return
            if event is h11.NEED_DATA:
                break
            is_paused = event is h11.PAUSED
            self._handle(event)
        if not self._is_over():
            self.browser.read(self._has_room() and not self.is_waiting and not is_paused)

    def _is_over(self) -> bool:
        """Whether no further request is handled."""
        return self.is_closed or self.is_ending or self.is_tunnel

    def _has_room(self) -> bool:
        """Whether what a request brings has somewhere to go: to the program, or into an answer of our own."""
        return self.browser.has_room if self.program is None else self.program.end.has_room

    def _handle(self, event: object) -> None:
        if isinstance(event, h11.Request):
            self.timer.drop()
            self.request = event
            self._judge(event)
        elif isinstance(event, h11.ConnectionClosed):
            self._end(KEPT_S)
        elif self.entry is not None:
            self._go_on_with(self.entry, event)
        elif isinstance(event, h11.Data):
            self._go_on(event)
        elif isinstance(event, h11.EndOfMessage):
            self._go_on(h11.EndOfMessage())  # trailers stay behind

    def _go_on_with(self, own: Entry, event: object) -> None:
        """With the body of a request of the service's own, or with its answer."""
        if isinstance(event, h11.Data):
            own.take(event.data)
        elif isinstance(event, h11.EndOfMessage):
            self.entry = None
            self.timer.drop()
            self.is_waiting = True
            own.end(self._said_later)

    def _go_on(self, event: h11.Data | h11.EndOfMessage) -> None:
        """With a request's body; what comes after the answer is nobody's."""
        if self.program is not None and self.program.http.our_state is h11.SEND_BODY:
            self._send(self.program, event)

    def _judge(self, request: h11.Request) -> None:
        """Find out whose request it is, and get the way in."""
        fields = list(request.headers)
        hosts = same_origin.values(fields, b"host")
        place = self.place = self.find(hosts[0].decode("latin-1")) if len(hosts) == 1 else None
        if _is_large(fields):
            self._refuse(LARGE_HEAD)
            return
        if place is None:
            self._refuse(NOT_FOUND)
            return
        if request.method == b"CONNECT":  # after which nothing would be HTTP any more
            self._refuse(MALFORMED)
            return
        if entry.is_own(request.target):
            self.entry = Entry(request, place, self.address, self.authority)
            self.timer = self.loop.later(HEAD_S, self.close)  # for its body, which is small
            self._invite()
            return
        cookie, token = credentials.of(fields)
        if not cookie and not token:
            self._refuse(SIGN_IN)
        elif cookie and not same_origin.is_own(
            request.method.decode("ascii"), fields, place.origin, upgrade=_is_websocket(request)
        ):
            self._refuse(CROSS_ORIGIN)
        else:
            self._enter(request, Asked(place, self.address, cookie, token))

    def _enter(self, request: h11.Request, asked: Asked) -> None:
        kept = self.program
        if kept is not None and kept.asked == asked and kept.http.our_state is h11.IDLE:
            kept.is_kept = True
            self._forward(kept, request)
            return
        self._drop_program()
        self.is_waiting = True
        self.authority.open(asked, lambda answer: self._answered(request, asked, answer))

    def _answered(self, request: h11.Request, asked: Asked, answer: Answer) -> None:
        self.is_waiting = False
        if not isinstance(answer, Opened):
            self._refuse(answer if isinstance(answer, Refused) else BUSY)
            return
        if self.is_closed:
            answer.stream.close()
            return
        self.let_in(self, answer.user)
        if self.is_closed:
            answer.stream.close()
            return
        self.program = program = Program(
            End(self.loop, answer.stream, self._program_sent, receives_rest=True),
            asked,
            Target(asked.place.origin, answer.local, answer.scheme, answer.is_public),
            Visitor(answer.user, self.address),
            answer.visit,
            h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX),
        )
        program.end.moved, program.end.lost = self._program_read, self._program_lost
        self.loop.later(CHECK_S, lambda: self._check(program))
        self._forward(program, request)
        if self.http.their_state is not h11.SEND_BODY:  # sent again: its end has been handled before
            self._go_on(h11.EndOfMessage())
        self._take_requests()

    def _check(self, program: Program) -> None:
        """Judge the visitor again, for as long as the stream to the program is there."""
        if self.program is program:
            self.authority.check(program.asked, lambda answer: self._checked(program, answer))

    def _checked(self, program: Program, answer: Answer) -> None:
        if self.program is not program:
            return
        if isinstance(answer, Refused) and answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            self.close()
        else:  # the service's own trouble ends nothing
            self.loop.later(CHECK_S, lambda: self._check(program))

    def _forward(self, program: Program, request: h11.Request) -> None:
        message = heads.to_program(
            list(request.headers), program.target, program.visitor, upgrade=_is_websocket(request)
        )
        self._send(program, h11.Request(method=request.method, target=request.target, headers=message))
        self._invite()

    def _invite(self) -> None:
        """Ask for the body of a request that waits to be asked."""
        if self.http.they_are_waiting_for_100_continue:
            self._answer(h11.InformationalResponse(status_code=HTTPStatus.CONTINUE, headers=[]))

    @staticmethod
    def _send(program: Program, event: h11.Event) -> None:
        program.end.write(program.http.send(event) or b"")

    # --- from the program ------------------------------------------------------------------------

    def _program_sent(self, data: bytes) -> None:
        program = self.program
        if program is None:
            return
        if self.is_tunnel:
            self._tunnel(data, program.end)
            return
        program.http.receive_data(data)
        self._take_answers(program)

    def _take_answers(self, program: Program) -> None:
        """Handle what has come, as far as the browser has room for it."""
        while self.program is program and not self.is_closed and not self.is_tunnel:
            if not self.browser.has_room:
                program.end.read(False)
                return
            try:
                event = program.http.next_event()
                if event in (h11.NEED_DATA, h11.PAUSED):
                    return
                self._pass_on(program, event)
            except h11.ProtocolError:
                self._program_lost()
                return

    def _pass_on(self, program: Program, event: object) -> None:
        if isinstance(event, h11.InformationalResponse):
            if event.status_code == HTTPStatus.SWITCHING_PROTOCOLS:  # h11 takes it for an upgrade alone
                self._switch(program, event)
        elif isinstance(event, h11.Response):
            if _is_large(list(event.headers)):
                raise h11.RemoteProtocolError(LARGE_HEAD.message)
            is_of_proxies = event.status_code == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
            status = HTTPStatus.BAD_GATEWAY if is_of_proxies else event.status_code
            message = heads.to_browser(list(event.headers), program.target, upgrade=False)
            self._answer(h11.Response(status_code=status, headers=message, reason=event.reason))
        elif isinstance(event, h11.Data):
            self._answer(event)
        elif isinstance(event, h11.EndOfMessage):
            self._answer(h11.EndOfMessage())
            self._end_exchange(program)
        elif isinstance(event, h11.ConnectionClosed):
            self._drop_program()

    def _answer(self, event: h11.Event) -> None:
        self.browser.write(self.http.send(event) or b"")

    def _end_exchange(self, program: Program | None) -> None:
        """The answer is complete: the next request, if both sides can have one."""
        if self.http.our_state is not h11.DONE or self.http.their_state is not h11.DONE:
            self._end()
            return
        if program is None:
            pass  # the service's own
        elif program.http.our_state is h11.DONE and program.http.their_state is h11.DONE:
            program.http.start_next_cycle()
        else:
            self._drop_program()
        self.http.start_next_cycle()
        self.timer = self.loop.later(KEPT_S, self.close)
        self._take_requests()

    def _program_lost(self) -> None:
        """It broke off, or said what is no HTTP. What has begun is broken off too: it must not seem whole."""
        program, self.program = self.program, None
        if program is not None:
            program.end.close()
        if self.is_tunnel or self.http.our_state is h11.SEND_BODY:
            self.close()
        elif self.http.our_state is h11.SEND_RESPONSE and self.request is not None and program is not None:
            if (
                program.is_kept
                and self.request.method in AGAIN
                and self.http.their_state is not h11.SEND_BODY
            ):
                self._enter(self.request, program.asked)
            else:
                self._refuse(BAD_RESPONSE)

    def _drop_program(self) -> None:
        program, self.program = self.program, None
        if program is not None:
            program.end.close()

    # --- after 101 ---------------------------------------------------------------------------------

    def _switch(self, program: Program, event: h11.InformationalResponse) -> None:
        """Both sides become a tunnel, beginning with what has come behind the heads."""
        message = heads.to_browser(list(event.headers), program.target, upgrade=True)
        self._answer(h11.InformationalResponse(status_code=event.status_code, headers=message))
        self.is_tunnel = True
        program.end.write(self.http.trailing_data[0])
        self.browser.write(program.http.trailing_data[0])
        self.browser.read(True)

    def _tunnel(self, data: bytes, source: End) -> None:
        if self.program is None:
            self.close()
            return
        other = self.program.end if source is self.browser else self.browser
        if data:
            other.write(data)
            source.read(other.has_room)
        else:
            other.finish()
            self._close_if_over()

    def _close_if_over(self) -> None:
        if self.program is None:
            return
        ends = (self.browser, self.program.end)
        if all(end.has_ended for end in ends) and not any(end.output for end in ends):
            self.close()

    # --- who stops ---------------------------------------------------------------------------------

    def close_if_stalled(self, elapsed_s: float) -> None:
        """Close it if nobody takes what waits, or a body comes too slowly, for STALL_S."""
        ends = [self.browser] if self.program is None else [self.browser, self.program.end]
        sent = sum(end.sent for end in ends) if any(end.output for end in ends) else -1
        is_sending = self.http.their_state is h11.SEND_BODY and self._has_room() and not self.is_waiting
        received = self.browser.received if is_sending else -1
        is_stuck = self.pace.is_over(elapsed_s, sent, 1)
        if self.body_pace.is_over(elapsed_s, received, BODY_MIN) or is_stuck:
            self.close()

    # --- room again --------------------------------------------------------------------------------

    def _browser_read(self) -> None:
        if self.program is None:
            self._take_requests()
        elif self.browser.has_room:
            self.program.end.read(True)
            if self.is_tunnel:
                self._close_if_over()
            else:
                self._take_answers(self.program)

    def _program_read(self) -> None:
        if not self.is_tunnel:
            self._take_requests()
        elif self.program is not None:
            self.browser.read(self.program.end.has_room)
            self._close_if_over()

    # --- what the service says itself --------------------------------------------------------------

    def _said_later(self, said: Said | Refused) -> None:
        """Not within the turn that took the request: a thousand may have come in one piece."""
        self.loop.later(0, partial(self._said, said))

    def _said(self, said: Said | Refused) -> None:
        """The service's own answer to a request of its own."""
        self.is_waiting = False
        if isinstance(said, Refused):
            self._refuse(said)
        elif not self.is_closed:
            self._say(said)
            self._end_exchange(None)

    def _refuse(self, refused: Refused) -> None:
        """Answer in the program's place, and close: what else the browser sends is nobody's."""
        if not self.is_closed and self.http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            as_page = self.request is not None and same_origin.is_for_tab(list(self.request.headers))
            app = self.place.app if self.place else None
            self._say(pages.refusal(refused, app, as_page=as_page), ("connection", "close"))
        self._end()

    def _say(self, said: Said, *more: tuple[str, str]) -> None:
        fields = [*said.fields, *more]
        if said.status != HTTPStatus.NO_CONTENT:
            fields.append(("content-length", str(len(said.body))))
        self._answer(h11.Response(status_code=said.status, headers=fields))
        if said.body and (self.request is None or self.request.method != b"HEAD"):
            self._answer(h11.Data(data=said.body))
        self._answer(h11.EndOfMessage())

    def _end(self, within_s: float = HEAD_S) -> None:
        """Close when the browser has read what waits for it; what it still sends is read, and dropped."""
        self._drop_program()
        if self.is_closed:
            return
        self.is_ending = True
        self.browser.took = lambda _: self._close_if_read()
        self.browser.moved = self._close_if_read
        self.browser.read(True)
        self.browser.finish()
        self.timer.drop()
        self.timer = self.loop.later(within_s, self.close)
        self._close_if_read()

    def _close_if_read(self) -> None:
        if self.browser.has_ended and not self.browser.output:
            self.close()


def _is_large(fields: list[tuple[bytes, bytes]]) -> bool:
    """Whether a head is over the limits; h11 bounds only one that has not ended yet."""
    return len(fields) > FIELDS_MAX or sum(len(name) + len(value) for name, value in fields) > HEAD_MAX


def _is_websocket(request: h11.Request) -> bool:
    """Whether a request asks for a WebSocket: the one upgrade that is passed on."""
    upgrades = [value.lower() for value in same_origin.values(list(request.headers), b"upgrade")]
    return request.method == b"GET" and upgrades == [b"websocket"]
