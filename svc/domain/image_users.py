"""Images whose programs do not run as root, and so cannot open /work without `run_as`; those for other hosts.

The owner's agent reports the user of an image, and its platform if that is not the host's (image.inspect);
the image's row keeps both, in `user_json`. The texts are SQL expressions, since SQLite itself builds the
records of workspaces and images.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from svc.db.connect import database
from svc.domain import pages, untrusted
from svc.domain.principal import Caller
from svc.errors import EngineFailed
from svc_helper.wire.limits import RUN_AS_MAX

CODE = "image_user"  # code of the finding and of the warning
_OTHER_PLATFORM = """json_object('code', 'wrong_architecture', 'message', 'this image is for ' || {platform}
    || ', which this host does not execute: its programs may not start', 'hint', {hint})"""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}")  # the same check as in the agent
_NAMES_PLATFORM = re.compile(r"[a-z0-9]{1,20}/[a-z0-9]{1,20}")  # as well
# Nothing is known where it was changed by hand: the next inspection writes it again.
KEPT = pages.stored("i.user_json")
USER = f"iif(json_type({KEPT}, '$.uid') IS NULL, NULL, {KEPT})"  # NULL for root
_PLATFORM = f"json_extract({KEPT}, '$.platform')"
_FAULT = f"json_extract({USER}, '$.fault')"
_KNOWN = f"""({_FAULT} IS NULL
    AND json_extract({USER}, '$.uid') + json_extract({USER}, '$.gid') IS NOT NULL)"""
_WHO = f"""CASE WHEN NOT {_KNOWN} THEN coalesce(json_extract({USER}, '$.name'), 'a user of its own')
    ELSE coalesce(json_extract({USER}, '$.name') || ' (', 'the user (') || 'uid '
        || json_extract({USER}, '$.uid') || ', gid ' || json_extract({USER}, '$.gid') || ')' END"""
_CANNOT_START = "'; a workspace of it cannot start while the template has no run_as'"
_MESSAGE = f"""CASE {_FAULT}
    WHEN 'missing' THEN 'this image runs as ' || {_WHO}
        || ', whom its /etc/passwd or /etc/group does not have' || {_CANNOT_START}
    WHEN 'range' THEN 'this image runs as a user of an id beyond 65535, which no account has'
        || {_CANNOT_START}
    ELSE 'the programs of this image run as ' || {_WHO}
        || ' and cannot open /work, which is that of root inside: the template has no run_as' END"""
_FAULTS = ("missing", "range")
_RUN_AS = f"""' --run-as ' || json_extract({USER}, '$.uid') || ':' || json_extract({USER}, '$.gid')"""


def of(answer: Mapping[str, Any]) -> str | None:
    """User and platform in an agent's reply about an image, as JSON for its row; None for the usual ones."""
    platform = untrusted.find_text(answer, "platform", 41)
    of_platform = {"platform": platform} if platform and _NAMES_PLATFORM.fullmatch(platform) else {}
    found = _user(answer.get("user")) | of_platform
    return json.dumps(found) if found else None


def _user(user: Any) -> dict[str, Any]:
    """The user as the row keeps it; nothing for root."""
    if user is None:
        return {}
    if not isinstance(user, dict):
        raise EngineFailed("the engine's answer has no usable user")
    name, uid, gid = (
        untrusted.find_text(user, "name", 32),
        untrusted.find_number(user, "uid"),
        untrusted.find_number(user, "gid"),
    )
    if uid == 0:
        return {}
    usable = all(number is None or 0 <= number <= RUN_AS_MAX for number in (uid, gid))
    if name is not None and not _NAME.fullmatch(name):
        name = None
    found = {"name": name, "uid": uid if usable else None, "gid": gid if usable else None}
    fault = user.get("fault")
    return found | ({"fault": fault} if fault in _FAULTS else {})


def warnings_sql(*, run_as: str, template: str, owner: str, is_own: str, workspace: str = "NULL") -> str:
    """A SQL expression: the warnings [{code, message, hint}] of an image (joined as i) that a template uses.

    The arguments are SQL too: the template's run_as and id, the user's id, whether that user may edit
    the template, and the workspace's name.
    """
    name = f"""(SELECT iif(EXISTS (SELECT 1 FROM templates o WHERE o.id <> n.id AND o.name = n.name
            AND (o.owner_id IS NULL OR o.owner_id = {owner})), n.id, n.name)
        FROM templates n WHERE n.id = {template})"""
    own_name = f"(SELECT n.name FROM templates n WHERE n.id = {template})"
    lookup = f"coalesce({workspace}, {own_name})"
    setup = f"'svc ws setup --template ' || {name} || ' --name ' || {lookup} || ' && '"
    reading = f"'svc ws start ' || {lookup} || ' && svc ws exec ' || {lookup} || ' -- id'"
    numbers = f"iif({workspace} IS NULL, {setup}, '') || {reading}"
    clone = f"'svc template clone ' || {name} || ' --name ' || {own_name} || '-own && '"
    hint = f"""CASE WHEN {_FAULT} IS NOT NULL THEN 'svc template get ' || {name}
        WHEN NOT {_KNOWN} THEN {numbers}
        WHEN {is_own} THEN 'svc template edit ' || {name} || {_RUN_AS}
            || coalesce(' && svc ws upgrade ' || {workspace}, '')
        ELSE {clone} || 'svc template edit ' || {own_name} || '-own' || {_RUN_AS} END"""
    own = f"iif({USER} IS NOT NULL AND {run_as} IS NULL, json_array(json_object('code', '{CODE}',"
    own += f" 'message', {_MESSAGE}, 'hint', {hint})), json('[]'))"
    other = _OTHER_PLATFORM.format(platform=_PLATFORM, hint=f"'svc template get ' || {name}")
    return f"""CASE WHEN {KEPT} IS NULL THEN json('[]') WHEN {_PLATFORM} IS NULL THEN {own}
        ELSE json_insert({own}, '$[#]', {other}) END"""


def finding(caller: Caller, image_ref: str) -> tuple[str, str] | None:
    """The finding about the image in the caller's own store, and the option that resolves it, if known."""
    row: tuple[str, str] | None = database.execute_sql(
        f"SELECT {_MESSAGE}, iif({_KNOWN}, {_RUN_AS}, '') FROM images i"
        f" WHERE i.owner_id = ? AND i.image_ref = ? AND {USER} IS NOT NULL",
        (caller.user_id, image_ref),
    ).fetchone()
    return row
