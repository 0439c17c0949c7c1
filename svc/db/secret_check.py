"""The check value of the signing secret: the database knows which secret is its own.

A keyed digest of a constant: it tells whether a secret is the same, and nothing of it. With another one no
password is right and no sealed variable can be decrypted, and neither says why (docs/backup.md).
"""

from __future__ import annotations

import hashlib
import hmac
import os

import peewee

from svc.db import facts
from svc.db.connect import close_database, open_database
from svc.errors import HostRefused, SvcError
from svc.host.secret import read_secret

FACT = "signing_secret_check"
CONSTANT = b"svc check value"  # no purpose of svc.domain.accounts.keys begins with these words
OWN, FOREIGN, UNKNOWN = "own", "foreign", "unknown"
ACCEPT = "sudo svc admin migrate --new-secret"


def value_of(secret: bytes) -> str:
    """The check value."""
    return hmac.digest(secret, CONSTANT, hashlib.sha256).hex()


def is_own(secret: bytes) -> bool:
    """Whether the secret is the open database's own; true for one that has no check value yet."""
    stored = facts.find(FACT).get(FACT)
    return stored is None or hmac.compare_digest(stored.encode(), value_of(secret).encode())


def ensure(secret: bytes) -> bool:
    """Store the check value in the open database unless it has one; returns whether the secret is its own."""
    if FACT not in facts.find(FACT):
        replace(secret)
    return is_own(secret)


def replace(secret: bytes) -> None:
    """Store the check value of this secret."""
    facts.put({FACT: value_of(secret)})


def read_own(secret_file: str) -> bytes:
    """The secret; raises HostRefused also for another one than the open database's own."""
    secret = read_secret(secret_file)
    if not is_own(secret):
        raise HostRefused(f"{sentence(secret_file)}; nothing was changed", hint="sudo svc admin doctor")
    return secret


def sentence(secret_file: str) -> str:
    """What is wrong with another secret."""
    return f"{secret_file} is not the signing secret that this database was used with"


def compare(path: str, secret_file: str) -> str:
    """In a process of the database's owner: `own`, `foreign`, or `unknown` where that cannot be told."""
    if not (os.path.lexists(path) and os.path.lexists(secret_file)):
        return UNKNOWN
    try:
        open_database(path)
        secret = read_secret(secret_file)
        is_known, own = FACT in facts.find(FACT), is_own(secret)
    except (SvcError, peewee.DatabaseError):  # other checks say what is wrong with these files
        return UNKNOWN  # and the process ends without closing, which could write to a damaged file
    close_database()
    return UNKNOWN if not is_known else OWN if own else FOREIGN
