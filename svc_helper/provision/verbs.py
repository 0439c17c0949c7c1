"""What the root verbs have in common: refusals, and which names they are not for."""

from __future__ import annotations

import errno
import pwd
from collections.abc import Callable
from typing import Any

from svc_helper.root.agents import Host
from svc_helper.root.check import SUBUID, why_no_person
from svc_helper.wire.protocol import Call

SERVICE = "svc"  # the app's own account


class Refusal(Exception):
    """A root verb was not performed: a code of the protocol, and a message that says what to do next."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


RootVerb = Callable[[Host, Call], dict[str, Any]]  # returns the data of the reply; raises Refusal or OSError


def failure(error: OSError, what: str) -> Refusal:
    """The refusal for a failed system call."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Refusal("storage_full" if full else "failed", f"{what}: {reason(error)}")


def reason(error: Exception) -> str:
    """The text of an error, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def refuse_system(name: str) -> None:
    """Raise Refusal for root, system accounts, nobody, uids of containers and the service's own account."""
    try:
        why = why_no_person(pwd.getpwnam(name).pw_uid)
    except KeyError:
        why = ""
    if SUBUID in why:
        raise Refusal("conflict", f"{why}; remove that line, or give {name} another uid")
    if name == SERVICE or why:
        raise Refusal("refused", f"{name} is a system account: {why or 'the service runs as it'}")
