"""A browser at an app's address, as far as the service looks at what a browser sends."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any
from urllib.parse import urlencode, urlsplit

TAB = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Page:
    """What came back: status, fields and body."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.headers = answer.status, answer.headers
        self.body = answer.read()

    @property
    def code(self) -> str:
        """Of an error."""
        return str(json.loads(self.body)["error"]["code"])


class Browser:
    """One browser, and the cookie that it keeps for one app."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname and parts.hostname.endswith(".localhost"), url
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.host, self.port = parts.netloc, parts.port
        self.cookie = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str | None) -> Page:
        """One request of the app's own page, unless headers say otherwise (None takes one away)."""
        own: dict[str, str | None] = {"Host": self.host, "Sec-Fetch-Site": "same-origin"}
        own |= {"Cookie": f"__Host-svc-app={self.cookie}"} if self.cookie else {}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in (own | named).items() if value is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, sent)
            return Page(connection.getresponse())
        finally:
            connection.close()

    def follow(self, link: str) -> Page:
        """Open a one-time link and click; what the click's answer leads to."""
        parts = urlsplit(link)
        found = re.fullmatch(r"(svc_tkt_[0-9a-f]+)(/.*)", parts.fragment)
        assert found and parts.path == "/.svc/enter", link
        assert self.ask("GET", parts.path, **TAB, Sec_Fetch_Site="none").status == 200
        form = urlencode({"ticket": found[1], "path": found[2]})
        page = self.ask("POST", parts.path, form, **TAB, **FORM, Origin=self.origin)
        if page.status != 303:
            return page
        cookie = re.match(r"__Host-svc-app=([^;]+);", page.headers["Set-Cookie"])
        assert cookie
        self.cookie = cookie[1]
        return self.ask("GET", page.headers["Location"], **TAB)
