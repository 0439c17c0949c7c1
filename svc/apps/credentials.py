"""What a request presents: the app's cookie, or a token, beside which a cookie counts for nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from svc.apps import cookies

COOKIE = b"__Host-svc-app"
_OURS = re.compile(rb"[ \t]*bearer[ \t]+svc_pat_.*", re.IGNORECASE | re.DOTALL)
_TOKEN = re.compile(rb"bearer[ \t]+(svc_pat_[0-9A-Za-z_]+)[ \t]*", re.IGNORECASE)


def of(fields: Sequence[tuple[bytes, bytes]]) -> tuple[str, str]:
    """The value of the cookie, and the token; one of both at most."""
    token = _token(fields)
    return ("", token) if token else (_cookie(fields), "")


def is_ours(authorization: bytes) -> bool:
    """Whether the value of Authorization is the service's, right or wrong; any other is the program's."""
    return _OURS.fullmatch(authorization) is not None


def _token(fields: Sequence[tuple[bytes, bytes]]) -> str:
    """Of Authorization, or of X-Svc-Token where the program needs that; empty without one, and with two."""
    bearers = [_TOKEN.fullmatch(value) for name, value in fields if name == b"authorization"]
    found = [match[1] for match in bearers if match]
    found += [value.strip() for name, value in fields if name == b"x-svc-token"]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def _cookie(fields: Sequence[tuple[bytes, bytes]]) -> str:
    """Empty without one, and with two: a neighbour may have set the other."""
    pairs = [pair.strip(b" \t") for name, value in fields if name == b"cookie" for pair in value.split(b";")]
    split = [pair.partition(b"=") for pair in pairs if cookies.is_ours(pair)]
    found = [value.decode("latin-1") for name, _, value in split if name == COOKIE]
    return found[0] if len(found) == 1 else ""
