"""Cookies between browsers and programs: none of the service's own reaches a program, or comes from one.

A browser keeps cookies by name and host. The service's begin with `__Host-svc` or `__Secure-svc`, which no
page can set for another host. They are recognised in every spelling that a browser sends or takes: names in
any case, behind spaces, and without a name, when the value begins with the prefix.
"""

from __future__ import annotations

import re

OURS = (b"__host-svc", b"__secure-svc")
# What stands before a name, as some programs write it; a browser takes spaces and a tab away.
_BEFORE = b' \t"=$'
_ATTRIBUTE = re.compile(rb"[ \t]*([^=;]*?)[ \t]*(?:=.*)?", re.DOTALL)


def is_ours(pair: bytes) -> bool:
    """Whether `name=value` is the service's: also in capitals, and as a value without a name."""
    return pair.lstrip(_BEFORE).lower().startswith(OURS)


def to_program(header: bytes) -> bytes:
    """A Cookie header without the service's cookies; empty when nothing is left."""
    kept = [pair.strip(b" \t") for pair in header.split(b";")]
    return b"; ".join(pair for pair in kept if pair and not is_ours(pair))


def to_browser(header: bytes) -> bytes | None:
    """A Set-Cookie header that stays on the app's own address; None for one that is not passed on.

    Without `Domain` it goes to no neighbour; with `Secure` it is never sent in the clear.
    """
    pair, *attributes = header.split(b";")
    if is_ours(pair):
        return None
    kept = [pair.strip(b" \t")]
    for attribute in attributes:
        found = _ATTRIBUTE.fullmatch(attribute)
        name = found[1].lower() if found else b""
        if name not in (b"domain", b"secure", b""):
            kept.append(attribute.strip(b" \t"))
    return b"; ".join([*kept, b"Secure"])
