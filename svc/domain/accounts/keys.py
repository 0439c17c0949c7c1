"""The keys of this process, all made from the one signing secret; nothing else is signed or keyed with.

Each process says once which secret it is (`svc server --dev` signs sessions with
one that it forgets: "uses an ephemeral JWT signing secret").
"""

from __future__ import annotations

import hashlib
import hmac

from svc.errors import HostRefused

_secret = b""
_signing = b""


def use(secret: bytes, signing: bytes | None = None) -> None:
    """Work with this secret from now on, and sign with another one if there is one."""
    global _secret, _signing
    _secret, _signing = secret, signing or secret


def secret() -> bytes:
    """The secret that passwords are keyed with; raises HostRefused before `use`."""
    if not _secret:
        raise HostRefused("this process has no signing secret", hint="sudo svc admin doctor")
    return _secret


def derived(purpose: bytes) -> bytes:
    """A key of 32 bytes for one purpose; what signs sessions begins with `session`."""
    root = _signing if purpose.startswith(b"session") else _secret
    return hmac.digest(root or secret(), b"svc " + purpose, hashlib.sha256)
