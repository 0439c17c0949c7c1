"""Images whose programs do not run as root, and so cannot open /work without `run_as`.

The owner's agent reports the user of an image (image.inspect), and the image's row keeps it. The texts
are SQL expressions, since SQLite itself builds the records of workspaces and images.
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

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}")  # the same check as in the agent
# As if of root where it was changed by hand: the next inspection writes it again.
USER = pages.stored("i.user_json")
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
    """The user in an agent's reply about an image, as JSON for the image's row; None for root."""
    user = answer.get("user")
    if user is None:
        return None
    if not isinstance(user, dict):
        raise EngineFailed("the engine's answer has no usable user")
    name, uid, gid = (
        untrusted.find_text(user, "name", 32),
        untrusted.find_number(user, "uid"),
        untrusted.find_number(user, "gid"),
    )
    if uid == 0:
        return None
    usable = all(number is None or 0 <= number <= RUN_AS_MAX for number in (uid, gid))
    if name is not None and not _NAME.fullmatch(name):
        name = None
    found = {"name": name, "uid": uid if usable else None, "gid": gid if usable else None}
    fault = user.get("fault")
    return json.dumps(found | ({"fault": fault} if fault in _FAULTS else {}))


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
    return f"""CASE WHEN {USER} IS NULL OR {run_as} IS NOT NULL THEN json('[]')
        ELSE json_array(json_object('code', '{CODE}', 'message', {_MESSAGE}, 'hint', {hint})) END"""


def finding(caller: Caller, image_ref: str) -> tuple[str, str] | None:
    """The finding about the image in the caller's own store, and the option that resolves it, if known."""
    row: tuple[str, str] | None = database.execute_sql(
        f"SELECT {_MESSAGE}, iif({_KNOWN}, {_RUN_AS}, '') FROM images i"
        f" WHERE i.owner_id = ? AND i.image_ref = ? AND {USER} IS NOT NULL",
        (caller.user_id, image_ref),
    ).fetchone()
    return row
