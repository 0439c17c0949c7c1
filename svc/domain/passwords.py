"""Service passwords: which ones are accepted, how they are kept and compared.

"normalised before validation": NFKC, then 8 to 64 code points (12 to 64 for
root and superusers); "Common passwords and easy guesses derived from the user
name or the product name are rejected"; no classes of characters are required.
What is stored is bcrypt over a keyed digest, so that no length is cut off and a
stolen database alone cannot be guessed at.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import socket
import unicodedata
from collections.abc import Iterable

import bcrypt

from svc.domain.common_passwords import COMMON, KEYBOARD_ROWS
from svc.errors import ValidationFailed
from svc.limits import PASSWORD_MAX, PASSWORD_MIN, PASSWORD_MIN_SUPERUSER

SCHEME = "v1$"
COST = 12
RAW_BYTES_MAX = 1024  # of one password before anything is computed from it
PRODUCT = ("svc", "workspace", "workspaces", "workspace service")
LEET = str.maketrans("@4831!0$57", "aabeiiosst")
LEET_L = LEET | str.maketrans("1!", "ll")
RUN = 3  # so many neighbours in a row are a sequence
TERM = 4  # names of so many letters are looked for anywhere in the password
# What a password has on its mind besides letters: counted years, exclamation marks, a leading number.
DECORATION = re.compile(r"^[\W\d_]+|[\W\d_]+$")


def normalise(password: str) -> str:
    """The form that is counted, checked and digested; ValidationFailed for what no keyboard types."""
    if any(unicodedata.category(character) in ("Cc", "Cn", "Cs") for character in password):
        raise _refused("password_characters", "must not contain control or unassigned characters")
    if len(password.encode()) > RAW_BYTES_MAX:
        raise _refused("password_too_long", f"must have at most {PASSWORD_MAX} characters")
    return unicodedata.normalize("NFKC", password)


def check(password: str, *, user: str, display_name: str = "", superuser: bool = False) -> str:
    """The normalised password when the rules allow it for this user; ValidationFailed says why not."""
    password = normalise(password)
    least = PASSWORD_MIN_SUPERUSER if superuser else PASSWORD_MIN
    if len(password) < least:
        raise _refused(
            "password_too_short", f"must have at least {least} characters, this has {len(password)}"
        )
    if len(password) > PASSWORD_MAX:
        raise _refused(
            "password_too_long", f"must have at most {PASSWORD_MAX} characters, this has {len(password)}"
        )
    forms = _forms(password)
    if any(_is_common(form) for form in forms):
        raise _refused("password_common", "is one of the most common ones")
    if any(_is_pattern(form) for form in forms):
        raise _refused("password_pattern", "is a repetition or a sequence")
    if _is_derived(forms, _terms((user, display_name, socket.gethostname(), *PRODUCT))):
        raise _refused(
            "password_derived", "can be guessed from the name of the user, the host or the product"
        )
    return password


def _refused(code: str, message: str) -> ValidationFailed:
    fields = [{"field": "password", "code": code, "message": message}]
    return ValidationFailed(
        "the password is refused", hint="several unrelated words make a good one", fields=fields
    )


def _forms(password: str) -> set[str]:
    """The password as a guesser sees it: one case, without its decoration, letters for their look-alikes."""
    plain = password.casefold()
    bare = DECORATION.sub("", plain)
    letters = re.sub(r"[\W\d_]", "", plain)
    texts = {plain, bare, letters if len(letters) >= PASSWORD_MIN - 2 else bare}
    texts |= {text.translate(leet) for text in (plain, bare) for leet in (LEET, LEET_L)}
    return {text for text in texts if text}


def _is_common(form: str) -> bool:
    """One of the list, or a long one of it with hardly anything around."""
    return form in COMMON or any(
        word in form for word in COMMON if len(word) >= PASSWORD_MIN - 2 and len(form) - len(word) < TERM
    )


def _terms(names: Iterable[str]) -> set[str]:
    """The names themselves, their words, and all of it backwards."""
    words = set()
    for name in names:
        folded = unicodedata.normalize("NFKC", name).casefold()
        words |= {folded, *re.split(r"[\W_]+", folded), "".join(re.split(r"[\W_]+", folded))}
    words |= {word[::-1] for word in words}
    return {word for word in words if len(word) >= 2}


def _is_derived(forms: set[str], terms: set[str]) -> bool:
    """A name of four letters anywhere in it, or a shorter one and nothing else but decoration."""
    return any(
        (len(term) >= TERM and term in form) or _repeats(form, term) for form in forms for term in terms
    )


def _repeats(text: str, unit: str) -> bool:
    return text == (unit * (len(text) // len(unit) + 1))[: len(text)] and len(text) >= len(unit)


def _is_pattern(text: str) -> bool:
    """A short piece over and over, or hardly anything but runs along the alphabet or the keyboard."""
    if len(text) < PASSWORD_MIN:
        return False
    if any(_repeats(text, text[:length]) for length in range(1, min(PASSWORD_MIN, len(text) // 2 + 1))):
        return True
    left = length = 0
    for place in range(1, len(text) + 1):
        if place < len(text) and _neighbours(text[place - 1], text[place]):
            length += 1
            continue
        left += length + 1 if length + 1 < RUN else 0
        length = 0
    return left <= len(text) // 4


def _neighbours(one: str, other: str) -> bool:
    if abs(ord(one) - ord(other)) <= 1:
        return True
    return any(one + other in row or other + one in row for row in KEYBOARD_ROWS)


def hash_password(normalised: str, secret: bytes) -> str:
    """What is stored for a password that `check` returned; takes a quarter of a second."""
    return SCHEME + bcrypt.hashpw(_digest(normalised, secret), bcrypt.gensalt(COST)).decode()


def verify(password: str, stored: str | None, secret: bytes) -> bool:
    """Whether it is the password; takes as long for an account that has none or does not exist."""
    try:
        normalised = normalise(password)
    except ValidationFailed:
        normalised, stored = "", None
    known = stored is not None and stored.startswith(SCHEME)
    reference = stored.removeprefix(SCHEME) if stored and known else _NOBODY
    try:
        return bcrypt.checkpw(_digest(normalised, secret), reference.encode()) and known
    except ValueError:  # a damaged row
        return False


def _digest(normalised: str, secret: bytes) -> bytes:
    """44 characters without NUL, whatever the password: bcrypt would cut at 72 bytes and stop at a NUL."""
    key = hmac.digest(secret, b"svc password v1", hashlib.sha256)
    return base64.b64encode(hmac.digest(key, normalised.encode(), hashlib.sha256))


# The hash that a login without account is compared with, of a random password nobody kept.
_NOBODY = "$2b$12$OCqpX6YAD1Fru6fLiyqaVe7spFQmOM5iGPiBj9NYUJ9TxQHgmCBPm"
