"""Requests of an app's address that are the service's own: `/.svc/` and all below it.

A one-time link leads to `/.svc/enter`; its page asks whom the link signs in, and posts it on a click. What is
posted is taken from a tab alone, and with the origin of the page that posts it, by which it is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs

import h11

from svc.apps import credentials, pages, same_origin
from svc.apps.addresses import Place
from svc.apps.pages import Said
from svc.apps.pair import BUSY, Answer, Asked, Authority, Described, Entered, Left, Refused, Ticket

BODY_MAX = 16 * 1024  # bytes
NOT_FOUND = Refused(404, "not_found", "the service has nothing at this address")
CROSS_ORIGIN = Refused(403, "app_cross_origin", "another page asked for this")
LARGE_BODY = Refused(413, "too_large", "the body is too large")
MALFORMED = Refused(400, "invalid_request", "this is no form of the service's page")

Then = Callable[[Said | Refused], None]


def is_own(target: bytes) -> bool:
    """Whether the target of a request is the service's; every other spelling of it is the program's."""
    return target.partition(b"?")[0].startswith(pages.OWN) or target == pages.OWN[:-1]


class Entry:
    """One request: its body is taken, and `end` answers it."""

    def __init__(self, request: h11.Request, place: Place, address: str, authority: Authority) -> None:
        self.place, self.address, self.authority = place, address, authority
        self.method = request.method.decode("ascii")
        self.path = request.target.partition(b"?")[0].decode("ascii", "replace")
        self.fields = list(request.headers)
        self.body = bytearray()
        self.is_large = False

    def take(self, data: bytes) -> None:
        """Take a part of the body; what is too much is dropped."""
        self.is_large = self.is_large or len(self.body) + len(data) > BODY_MAX
        if not self.is_large:
            self.body += data

    def end(self, then: Then) -> None:
        """Answer, now or when the authority has."""
        acts = {pages.ENTER: self._enter, pages.DESCRIBE: self._describe, pages.LEAVE: self._leave}
        is_post = self.method == "POST"
        if self.is_large:
            then(LARGE_BODY)
        elif is_post and self.path in acts:
            acts[self.path](then)
        elif not is_post and self.path == pages.ENTER:
            then(pages.entrance(self.place.app))
        else:
            then(pages.FILES.get(self.path, NOT_FOUND) if not is_post else NOT_FOUND)

    def _enter(self, then: Then) -> None:
        origins = same_origin.values(self.fields, b"origin")
        if len(origins) != 1 or not same_origin.is_for_tab(self.fields):
            then(CROSS_ORIGIN)
            return
        form = self._form()
        if form is None:
            then(MALFORMED)
            return
        ticket = Ticket(self.place, self.address, form["ticket"], origins[0].decode("latin-1"))
        self.authority.enter(ticket, lambda answer: then(self._said(answer, form["path"])))

    def _describe(self, then: Then) -> None:
        form = self._form()
        if not self._is_own_page():
            then(CROSS_ORIGIN)
        elif form is None:
            then(MALFORMED)
        else:
            ticket = Ticket(self.place, self.address, form["ticket"])
            self.authority.describe(ticket, lambda answer: then(self._said(answer)))

    def _leave(self, then: Then) -> None:
        if not self._is_own_page():
            then(CROSS_ORIGIN)
            return
        asked = Asked(self.place, self.address, *credentials.of(self.fields))
        self.authority.leave(asked, lambda answer: then(self._said(answer)))

    def _said(self, answer: Answer, path: str = "/") -> Said | Refused:
        cookie = credentials.COOKIE.decode()
        if isinstance(answer, Entered):
            return pages.entered(path, (cookie, answer.cookie))
        if isinstance(answer, Described):
            return pages.described(self.place.app, answer)
        if isinstance(answer, Left):
            return pages.left(cookie)
        return answer if isinstance(answer, Refused) else BUSY

    def _is_own_page(self) -> bool:
        return same_origin.is_own(self.method, self.fields, self.place.origin, upgrade=False)

    def _form(self) -> dict[str, str] | None:
        """The fields `ticket` and `path` of a form; None for what is none."""
        try:
            found = parse_qs(self.body.decode("ascii"), max_num_fields=8)
        except ValueError:
            return None
        if any(len(values) != 1 for values in found.values()) or "ticket" not in found:
            return None
        return {"ticket": found["ticket"][0], "path": found.get("path", ["/"])[0]}
