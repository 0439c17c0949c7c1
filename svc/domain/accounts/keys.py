"""Keys derived from the signing secret of this process, one for each purpose.

`svc server --dev` signs sessions with a second secret that is kept nowhere: it
"uses an ephemeral JWT signing secret".
"""

from __future__ import annotations

import hashlib
import hmac

from svc.domain import configuration
from svc.errors import HostRefused


def secret() -> bytes:
    """The signing secret, with which passwords are keyed; HostRefused where none is configured."""
    if not configuration.current.secret:
        raise HostRefused("this process has no signing secret", hint="sudo svc admin doctor")
    return configuration.current.secret


def derived(purpose: bytes) -> bytes:
    """A key of 32 bytes for one purpose; the purposes that sign sessions begin with `session`."""
    key = configuration.current.session_secret if purpose.startswith(b"session") else b""
    return hmac.digest(key or secret(), b"svc " + purpose, hashlib.sha256)


def digest(secret: str) -> str:
    """What the database stores of a random secret; with 256 bits a fast digest is safe."""
    return hashlib.sha256(secret.encode()).hexdigest()
