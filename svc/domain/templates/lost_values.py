"""Secret variables whose signing secret is lost: they become unset, where their owners see it."""

from __future__ import annotations

import json

from svc.db.connect import database, write
from svc.domain.templates import encryption, findings
from svc.errors import Conflict


def unset() -> int:
    """Unset every value that this process's signing secret does not decrypt; returns their number.

    In all revisions, which workspaces may still use. The revision's findings name them from then on.
    """
    count = 0
    with write():
        rows = database.execute_sql(
            "SELECT template_id, revision, spec_json, sealed_json, findings_json FROM template_revisions"
            " WHERE sealed_json <> '{}' AND json_valid(spec_json) AND json_valid(sealed_json)"
            " AND json_valid(findings_json)"
        ).fetchall()
        for template_id, revision, spec_json, sealed_json, findings_json in rows:
            sealed = json.loads(sealed_json)
            kept = {name: text for name, text in sealed.items() if _is_readable(template_id, name, text)}
            if kept == sealed:
                continue
            count += len(sealed) - len(kept)
            found = findings.with_unset(json.loads(findings_json), json.loads(spec_json), kept)
            database.execute_sql(
                "UPDATE template_revisions SET sealed_json = ?, findings_json = ?"
                " WHERE template_id = ? AND revision = ?",
                (json.dumps(kept), json.dumps(found), template_id, revision),
            )
    return count


def _is_readable(template_id: str, name: str, sealed: str) -> bool:
    try:
        encryption.decrypt(template_id, name, sealed)
    except Conflict:
        return False
    return True
