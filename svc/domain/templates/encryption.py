"""Encryption of secret variables at rest, with a key derived from the signing secret (decision 17).

AES-GCM, bound to the template and the variable's name: a row copied to another
one cannot be decrypted there.
"""

from __future__ import annotations

import base64
import os

from svc.domain.accounts import keys
from svc.errors import Conflict

PURPOSE = b"sealed variables"
VERSION = "v1."  # AES-256-GCM, the nonce before the ciphertext, URL-safe base64 without padding
NONCE_BYTES = 12


def encrypt(template_id: str, name: str, value: str) -> str:
    """Encrypt a value, to another text each time; raises HostRefused without a signing secret."""
    from cryptography.hazmat.primitives.ciphers.aead import (
        AESGCM,  # 3 MB of memory that most processes never need
    )

    nonce = os.urandom(NONCE_BYTES)
    ciphertext = AESGCM(keys.derived(PURPOSE)).encrypt(nonce, value.encode(), _bound_to(template_id, name))
    return VERSION + base64.urlsafe_b64encode(nonce + ciphertext).decode("ascii").rstrip("=")


def decrypt(template_id: str, name: str, sealed: str) -> str:
    """The value that was encrypted for this template and name.

    Raises Conflict for a text that is damaged, or of another template, variable or
    signing secret; HostRefused without a signing secret.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key = keys.derived(PURPOSE)
    try:
        if not sealed.startswith(VERSION):
            raise ValueError("another version")
        text = sealed.removeprefix(VERSION)
        both = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        nonce, ciphertext = both[:NONCE_BYTES], both[NONCE_BYTES:]
        return AESGCM(key).decrypt(nonce, ciphertext, _bound_to(template_id, name)).decode()
    except (InvalidTag, ValueError):  # ValueError: bad base64, nonce or UTF-8
        raise _unreadable(template_id, name) from None


def matches(template_id: str, name: str, sealed: str, value: str) -> bool:
    """Compare with an encrypted value; one that cannot be decrypted differs, so that it can be replaced."""
    try:
        return decrypt(template_id, name, sealed) == value
    except Conflict:
        return False


def _bound_to(template_id: str, name: str) -> bytes:
    return f"{template_id}\0{name}".encode()  # neither can hold the NUL between them


def _unreadable(template_id: str, name: str) -> Conflict:
    return Conflict(
        f"the secret variable {name} cannot be decrypted with this signing secret; set its value again",
        hint=f"svc template edit {template_id} --file patch.json",
        details={"template": template_id, "variable": name},
    )
