"""The root verbs of the resident helper: the administrator mark of an account, and the registry policy.

Each runs as root in a child of the helper. The verbs that create and remove
accounts are in a separate program, svc_helper.provision, which only `svc admin` starts.
"""

from __future__ import annotations

import errno
import pwd
from collections.abc import Callable
from typing import Any

from svc_helper.root import registries
from svc_helper.root.agents import Host
from svc_helper.root.check import ordinary
from svc_helper.root.enrolment import changing
from svc_helper.wire.protocol import Call

SERVICE = "svc"  # the app's own account


class Refusal(Exception):
    """A root verb was not performed: a code of the protocol, and a message that says what to do next."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


RootVerb = Callable[[Host, Call], dict[str, Any]]  # returns the data of the reply; raises Refusal or OSError


def perform(verbs: dict[str, RootVerb], host: Host, call: Call) -> dict[str, Any]:
    """Perform one root verb and return the data of its reply; raises Refusal."""
    verb = verbs.get(call.verb.name)
    if verb is None:
        raise Refusal("refused", f"{call.verb.name} is performed for `svc admin` only")
    try:
        return verb(host, call)
    except OSError as error:
        raise failure(error, call.verb.name) from None


def failure(error: OSError, what: str) -> Refusal:
    """The refusal for a failed system call."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Refusal("storage_full" if full else "failed", f"{what}: {error}")


def refuse_system(name: str) -> None:
    """Raise Refusal for root, system accounts, nobody and the service's own account."""
    try:
        uid = pwd.getpwnam(name).pw_uid
    except KeyError:
        uid = None
    if name == SERVICE or (uid is not None and not ordinary(uid)):
        raise Refusal("refused", f"{name} is a system account; take another name")


def mark_account(host: Host, call: Call) -> dict[str, Any]:
    """Set or clear the administrator mark of an enrolled account."""
    name, administrator = call.user or "", call.args["administrator"]
    refuse_system(name)
    with changing(host.state_dir) as entries:
        if name not in entries:
            raise Refusal("not_found", f"{name} is not enrolled")
        entries[name] = entries[name]._replace(administrator=administrator)
    return {"name": name, "administrator": administrator}


def write_registries(host: Host, call: Call) -> dict[str, Any]:
    """Replace the registry policy."""
    return registries.write(host.state_dir, call.args["registries"])


RESIDENT: dict[str, RootVerb] = {"account.mark": mark_account, "registries.write": write_registries}
