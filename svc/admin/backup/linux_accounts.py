"""The Linux accounts of enrolled users as a script for a new host: the same uids and subordinate ids.

Files of a home, and Podman's storage in it, belong to these numbers. From root's own files alone.
"""

from __future__ import annotations

import grp
import re
import shlex

from svc.admin.findings import Enrolled, Range, linux_account, read_enrolled, read_ranges
from svc.settings import Settings
from svc_helper.wire.limits import NEW_USER_NAME

NAME = "accounts.sh"
HEAD = "# Linux accounts of the enrolled users, for root on a host without them; no passwords\nset -eu\n"


def script(settings: Settings) -> str:
    """The script; without a command where nobody is enrolled."""
    ranges = {kind: list(read_ranges(f"/etc/sub{kind}")) for kind in ("uid", "gid")}
    return HEAD + "".join(_of(user, ranges) for user in read_enrolled(settings.state_dir))


def _of(user: Enrolled, ranges: dict[str, list[Range]]) -> str:
    account = linux_account(user.name)
    if account is None or account.pw_uid != user.uid or user.uid == 0:
        return f"# {user.name}: no Linux account with uid {user.uid}\n"
    gid, name = str(account.pw_gid), user.name  # both of the enrolment's form
    is_plain = re.fullmatch(NEW_USER_NAME, name)  # as useradd(8) takes it
    home, shell = shlex.quote(account.pw_dir), shlex.quote(account.pw_shell or "/bin/sh")
    lines = [
        f"getent group {gid} >/dev/null || groupadd --gid {gid} {_group(account.pw_gid, name)}",
        f"useradd --uid {user.uid} --gid {gid} --home-dir {home} --create-home --shell {shell}"
        f" --key SUB_UID_COUNT=0 --key SUB_GID_COUNT=0 {'' if is_plain else '--badname '}{name}",
    ]
    for kind, found in ranges.items():
        lines += [
            f"usermod --add-sub{kind}s {one.start}-{one.end - 1} {name}"
            for one in found
            if one.owner in (name, str(user.uid))
        ]
    return f"if ! getent passwd {name} >/dev/null; then\n" + "".join(f"  {line}\n" for line in lines) + "fi\n"


def _group(gid: int, user: str) -> str:
    """The name of the account's first group; the account's own where it has none."""
    try:
        return shlex.quote(grp.getgrgid(gid).gr_name)
    except KeyError:
        return user
