"""Reports about what only root can read, each with its age."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.web.schemas.pages import page_of


class About(Schema):
    """How old a report is, and the command that renews it."""

    written_at = fields.DateTime(
        allow_none=True, metadata={"description": "null: there is none yet, and the items are empty"}
    )
    age_s = fields.Integer(allow_none=True)
    old = fields.Boolean(metadata={"description": "there is none, or it is older than 26 hours"})
    command = fields.String(metadata={"description": "renews it, on the host"})


class BackupSnapshot(Schema):
    """A complete snapshot in SVC_BACKUP_DIR."""

    name = fields.String()
    created_at = fields.DateTime()
    size_bytes = fields.Integer()
    schema = fields.Integer(allow_none=True)
    commit = fields.String()
    refused = fields.String(
        allow_none=True, metadata={"description": "why the program that wrote it could not restore it"}
    )
    host_files = fields.Boolean(
        metadata={"description": "the archive of the host's small files is beside it"}
    )


class RecoverySet(Schema):
    """What was before an upgrade, a restore or a migration."""

    id = fields.String()
    kind = fields.String()
    created_at = fields.String()
    why = fields.String()
    version = fields.String()
    commit = fields.String()
    next_version = fields.String()
    schema = fields.Integer(allow_none=True)
    size_bytes = fields.Integer()
    applicable = fields.Boolean()
    problem = fields.String(metadata={"description": "why it cannot be applied"})
    remedy = fields.String(metadata={"description": "the command that can be run instead"})


class Updates(Schema):
    """The installed release, and what the last check and the last apply found."""

    installed_version = fields.String(metadata={"description": "empty for a checkout"})
    installed_commit = fields.String()
    installed_by = fields.String(metadata={"description": "package or checkout"})
    source = fields.String()
    release_keys = fields.Integer(metadata={"description": "of this build; without one nothing is applied"})
    checked_at = fields.DateTime(allow_none=True)
    problem = fields.String(metadata={"description": "of the last check"})
    available = fields.String(metadata={"description": "the newest release seen, unless it is installed"})
    notes = fields.String()
    applied_at = fields.DateTime(allow_none=True)
    outcome = fields.String()
    reason = fields.String()


class UpdatesReport(Schema):
    """The state of updates."""

    report = fields.Nested(About)
    updates = fields.Nested(Updates, allow_none=True)


class HostFinding(Schema):
    """A finding of `svc admin doctor`."""

    code = fields.String(metadata={"description": "docs/doctor.md has a line for each"})
    level = fields.String(validate=validate.OneOf(["ok", "warn", "fail"]))
    found = fields.String()
    remedy = fields.String(metadata={"description": "the next command; empty for the level ok"})


class ChainRow(Schema):
    """A row of the audit's chain; id 0 and no hash where there is none."""

    id = fields.Integer()
    hash = fields.String()


class AuditChain(Schema):
    """The chain of the audit: what the doctor verified last, and its present ends."""

    report = fields.Nested(About)
    level = fields.String(
        allow_none=True,
        validate=validate.OneOf(["ok", "warn", "fail"]),
        metadata={"description": "of the doctor's finding; null: not verified yet"},
    )
    found = fields.String()
    remedy = fields.String()
    head = fields.Nested(ChainRow, metadata={"description": "the newest row now"})
    archived = fields.Nested(ChainRow, metadata={"description": "the last row that was moved to an archive"})


_REPORT = {"report": fields.Nested(About, required=True)}
BACKUPS = page_of(BackupSnapshot, "BackupPage", **_REPORT)
RECOVERY_SETS = page_of(RecoverySet, "RecoverySetPage", **_REPORT)
FINDINGS = page_of(HostFinding, "HostFindingPage", **_REPORT)
