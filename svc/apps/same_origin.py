"""Which requests with an app's cookie are the app's own: of its pages, or typed by the person.

Apps on sibling names are one site, so that a browser sends the cookie along with what a neighbour's page asks
for: fetches, forms, frames and WebSockets. This rule alone refuses those.
"""

from __future__ import annotations

from collections.abc import Sequence

Fields = Sequence[tuple[bytes, bytes]]  # names in lower case, in the order in which they came

OWN = (b"same-origin", b"none")  # "none": the person typed it, or opened a bookmark
READING = ("GET", "HEAD")


def values(fields: Fields, name: bytes) -> list[bytes]:
    """All values of a field."""
    return [value for key, value in fields if key == name]


def is_for_tab(fields: Fields) -> bool:
    """Whether a browser asks for the document of a tab: not of a frame, and not from a script."""
    modes, kinds = values(fields, b"sec-fetch-mode"), values(fields, b"sec-fetch-dest")
    return modes == [b"navigate"] and kinds == [b"document"]


def is_own(method: str, fields: Fields, origin: str, *, upgrade: bool) -> bool:
    """Whether a request that has the app's cookie may be judged by it.

    `origin` is the app's; a request that becomes a WebSocket must name it. Two values of a field are none.
    No page can set Sec-Fetch-Site; `null` may be the Origin of the app's own form, by its own policy.
    """
    origins = values(fields, b"origin")
    is_same = origins == [origin.encode()]
    if upgrade:
        return is_same
    sites = values(fields, b"sec-fetch-site")
    if not sites:  # an older browser, or a program that keeps cookies
        return not origins or is_same
    return (sites[0] in OWN and len(sites) == 1) or (method in READING and is_for_tab(fields))
