"""Service passwords: rules, hashing and verification.

"normalised before validation": NFKC, then 8 to 64 code points (12 to 64 for
root and superusers); "Common passwords and easy guesses derived from the user
name or the product name are rejected"; "There is no required mix of character
classes". The hash is bcrypt over a keyed digest: no password is truncated, and
a stolen database alone is not enough for guessing. "Existing passwords stay
valid after an upgrade": hashes of earlier releases are verified in their own way.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import socket
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise

import bcrypt

from svc.domain.accounts import password_strength
from svc.domain.accounts.common_passwords import KEYBOARD_ROWS, UNSHIFT
from svc.errors import ValidationFailed
from svc.limits import PASSWORD_GUESSES_MIN, PASSWORD_MAX, PASSWORD_MIN, PASSWORD_MIN_SUPERUSER

SCHEME = "v1$"
COST = 12
# A plain bcrypt hash in any variant; a cost of 17 means a damaged row, and would take too long.
BCRYPT = re.compile(r"\$2[aby]\$(0[4-9]|1[0-6])\$[./A-Za-z0-9]{53}")
BCRYPT_BYTES = 72  # the maximum of bcrypt; earlier releases ignored the rest of a password
RAW_BYTES_MAX = 1024  # of one password, checked before any computation
PRODUCT = ("svc", "workspace", "workspaces", "workspace service")
LEET = str.maketrans("@4831!0$57", "aabeiiosst")
LEET_L = LEET | str.maketrans("1!", "ll")
RUN = 3  # minimum length of a sequence
TERM = 4  # minimum length of a name that is searched anywhere in the password
TERM_BACKWARDS = 6  # the same for reversed names; shorter ones are part of too many good passwords

PATTERN = "is a repetition, a sequence, a date or a row of keys with few other characters"
COMMON = "is a common password or word with few other characters"
DERIVED = "can be guessed from the {}"


def normalise(password: str) -> str:
    """The NFKC form that is counted, checked and hashed; ValidationFailed for control characters."""
    if len(password.encode(errors="surrogatepass")) > RAW_BYTES_MAX:
        raise _refused("too_long", f"must have at most {PASSWORD_MAX} characters")
    password = unicodedata.normalize("NFKC", password)
    if any(unicodedata.category(character) in ("Cc", "Cn", "Cs") for character in password):
        raise _refused("characters", "must not contain control characters or unassigned ones")
    return password


def check(password: str, *, user: str, display_name: str = "", superuser: bool = False) -> str:
    """The normalised password if it meets the rules for this user, else ValidationFailed with the reason."""
    password = normalise(password)
    least = PASSWORD_MIN_SUPERUSER if superuser else PASSWORD_MIN
    if len(password) < least:
        raise _refused("too_short", f"must have at least {least} characters, this has {len(password)}")
    if len(password) > PASSWORD_MAX:
        raise _refused("too_long", f"must have at most {PASSWORD_MAX} characters, this has {len(password)}")
    names = {
        "user's name": _terms(user),
        "display name": _terms(display_name),
        "host's name": _terms(socket.gethostname()),
        "product's name": _terms(*PRODUCT),
    }
    for source, terms in names.items():
        if _is_derived(password, terms):
            raise _refused("derived", DERIVED.format(source))
    if any(_is_pattern(form) for form in _forms(password)):
        raise _refused("pattern", PATTERN)
    known = {term for terms in names.values() for term in terms if len(term) >= RUN}
    estimate = password_strength.weakest(password, known)
    if estimate.guesses < PASSWORD_GUESSES_MIN:
        raise _refused(*_reason(estimate.kinds))
    return password


def _refused(code: str, message: str) -> ValidationFailed:
    fields = [{"field": "password", "code": f"password_{code}", "message": message}]
    return ValidationFailed("the password is refused", hint="choose several unrelated words", fields=fields)


def _reason(kinds: frozenset[str]) -> tuple[str, str]:
    """Code and message for the kinds of an estimate's parts."""
    if "known" in kinds:
        return "derived", DERIVED.format("names of the user, the host or the product")
    if kinds <= {"repeat", "sequence", "spatial", "date", "regex", "bruteforce"}:
        return "pattern", PATTERN
    return "common", COMMON


def _forms(text: str) -> set[str]:
    """The text casefolded, with unshifted digit keys, and with look-alikes replaced by letters."""
    plain = text.casefold()
    return {plain, plain.translate(UNSHIFT), plain.translate(LEET), plain.translate(LEET_L)}


def _terms(*names: str) -> set[str]:
    """The names and their parts."""
    terms = set()
    for name in names:
        folded = unicodedata.normalize("NFKC", name).casefold()
        parts = re.split(r"[\W_]+", folded)
        terms |= {folded, *parts, "".join(parts)}
    return {term for term in terms if len(term) >= 2}


def _is_derived(password: str, terms: set[str]) -> bool:
    """Whether it contains a name, forwards or backwards, or is a short name with little decoration."""
    return any(
        (len(term) >= TERM and term in form)
        or (len(term) >= TERM_BACKWARDS and term[::-1] in form)
        or (decoration < PASSWORD_GUESSES_MIN and (_repeats(form, term) or _repeats(form, term[::-1])))
        for text, decoration in password_strength.readings(password)
        for form in _forms(text)
        for term in terms
    )


def _repeats(text: str, unit: str) -> bool:
    return text == (unit * (len(text) // len(unit) + 1))[: len(text)] and len(text) >= len(unit)


def _is_pattern(text: str) -> bool:
    """Whether it repeats a short piece, or is mostly runs along the alphabet or the keyboard."""
    if any(_repeats(text, text[:length]) for length in range(1, min(PASSWORD_MIN, len(text) // 2 + 1))):
        return True
    place = alone = 0
    while place < len(text):
        length = _run_length(text[place:])
        alone += 1 if length < RUN else 0
        place += 1 if length < RUN else length
    return alone <= len(text) // 4


def _run_length(text: str) -> int:
    """The length of the run at the beginning of the text."""
    length = 1
    while length < len(text) and _is_run(text[: length + 1]):
        length += 1
    return length


def _is_run(piece: str) -> bool:
    steps = {ord(after) - ord(before) for before, after in pairwise(piece)}
    return steps in ({0}, {1}, {-1}) or any(piece in row or piece in row[::-1] for row in KEYBOARD_ROWS)


# --- hashing -----------------------------------------------------------------


def hash_password(password: str, secret: bytes) -> str:
    """The hash to store for a password that `check` or `verify` accepted; takes a quarter of a second."""
    return SCHEME + bcrypt.hashpw(_digest(password, secret), bcrypt.gensalt(COST)).decode()


def needs_rehash(stored: str | None) -> bool:
    """Whether the hash has an earlier format and should be replaced at the next login."""
    return stored is not None and not stored.startswith(f"{SCHEME}$2b${COST:02d}$")


def verify(password: str, stored: str | None, secret: bytes) -> bool:
    """Whether the password matches; takes as long for an account without a password or no account.

    The time depends only on the text: one hash for each of its Unicode forms, any
    of which an earlier release may have hashed.
    """
    spellings = _spellings(password)
    tries = list(_tries(spellings, stored or "", secret))
    tries += [(b"", _nobody())] * (max(len(spellings), 1) - len(tries))
    return any(_matches(candidate, reference) for candidate, reference in tries)


def _spellings(password: str) -> list[str]:
    """The password as typed and its distinct Unicode forms; none for text that no password can be."""
    if len(password.encode(errors="surrogatepass")) > RAW_BYTES_MAX or re.search("[\ud800-\udfff]", password):
        return []
    forms: Iterable[str] = (unicodedata.normalize(form, password) for form in ("NFKC", "NFC", "NFD"))
    return list(dict.fromkeys((password, *forms)))


def _tries(spellings: list[str], stored: str, secret: bytes) -> Iterator[tuple[bytes, str]]:
    """The pairs to compare: one for the present scheme, one for each spelling for plain bcrypt."""
    reference = stored.removeprefix(SCHEME)
    if not BCRYPT.fullmatch(reference):
        return
    if stored.startswith(SCHEME):
        yield from ((_digest(spelling, secret), reference) for spelling in spellings[:1])
    else:
        yield from ((spelling.encode()[:BCRYPT_BYTES], reference) for spelling in spellings)


def _matches(candidate: bytes, reference: str) -> bool:
    """Compare; a mismatch with a cheaper hash takes as long as with COST: 2^10 + 2^10 + 2^11 = 2^12."""
    reference_cost = int(reference[4:6])
    try:
        if bcrypt.checkpw(candidate, reference.encode()):
            return True
    except ValueError:  # a damaged row takes as long
        bcrypt.hashpw(candidate, _nobody(reference_cost).encode())
    for cost in range(reference_cost, COST):
        bcrypt.hashpw(candidate, _nobody(cost).encode())
    return False


def _digest(password: str, secret: bytes) -> bytes:
    """44 characters without NUL for any password, since bcrypt stops at 72 bytes and at a NUL."""
    key = hmac.digest(secret, b"svc password v1", hashlib.sha256)
    normalised = unicodedata.normalize("NFKC", password)
    return base64.b64encode(hmac.digest(key, normalised.encode(), hashlib.sha256))


def _nobody(cost: int | None = None) -> str:
    """A hash that no password matches, for logins without an account."""
    return f"$2b${cost or COST:02d}$OCqpX6YAD1Fru6fLiyqaVe7spFQmOM5iGPiBj9NYUJ9TxQHgmCBPm"
