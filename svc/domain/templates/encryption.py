"""Secret variables at rest: sealed with a key made from the signing secret, opened for a container only.

AES-GCM; a seal is bound to its template and name, so that a row copied to
another one does not open there. A database without its signing secret gives
none of the values away, and cannot read them either.
"""

from __future__ import annotations

import base64
import os

from svc.domain.accounts import keys
from svc.errors import Conflict

PURPOSE = b"sealed variables"
VERSION = "v1."  # AES-256-GCM, a nonce of NONCE_BYTES before what it made, URL-safe base64 without padding
NONCE_BYTES = 12


def seal(template_id: str, name: str, value: str) -> str:
    """The value as a row may hold it; another text each time. Raises HostRefused without a signing secret."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 3 MB that most processes never need

    nonce = os.urandom(NONCE_BYTES)
    made = AESGCM(keys.derived(PURPOSE)).encrypt(nonce, value.encode(), _bound_to(template_id, name))
    return VERSION + base64.urlsafe_b64encode(nonce + made).decode("ascii").rstrip("=")


def opened(template_id: str, name: str, sealed: str) -> str:
    """The value that was sealed for this template and name.

    Raises Conflict, which names the way out, for a seal that is damaged, of another template or
    variable, or of another signing secret; HostRefused without a signing secret.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key = keys.derived(PURPOSE)
    try:
        if not sealed.startswith(VERSION):
            raise ValueError("a seal of another version")
        text = sealed.removeprefix(VERSION)
        both = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        nonce, made = both[:NONCE_BYTES], both[NONCE_BYTES:]
        return AESGCM(key).decrypt(nonce, made, _bound_to(template_id, name)).decode()
    except (InvalidTag, ValueError):  # what is no base64, no nonce and no UTF-8 is a ValueError each
        raise _closed(template_id, name) from None


def holds(template_id: str, name: str, sealed: str, value: str) -> bool:
    """Whether that is the value sealed; one that does not open is another, so that it can be given again."""
    try:
        return opened(template_id, name, sealed) == value
    except Conflict:
        return False


def _bound_to(template_id: str, name: str) -> bytes:
    return f"{template_id}\0{name}".encode()  # neither can hold the NUL between them


def _closed(template_id: str, name: str) -> Conflict:
    return Conflict(
        f"the secret variable {name} cannot be opened with this host's signing secret; give its value again",
        hint=f"svc template edit {template_id} --file patch.json",
        details={"template": template_id, "variable": name},
    )
