"""Accounts as administrators see them: with what each uses."""

from __future__ import annotations

from marshmallow import fields

from svc.web.schemas.pages import page_of
from svc.web.schemas.users import User


class AccountUsage(User):
    """A service account and what it uses."""

    workspaces = fields.Integer()
    running = fields.Integer(metadata={"description": "starting, running or stopping"})
    gpus = fields.Integer(metadata={"description": "leased"})
    image_bytes = fields.Integer(
        metadata={"description": "of its images together, when the store was last read"}
    )
    templates = fields.Integer(metadata={"description": "private ones"})
    sessions = fields.Integer()
    tokens = fields.Integer(metadata={"description": "active ones"})
    last_login_at = fields.DateTime(
        allow_none=True, metadata={"description": "with the password, in 90 days"}
    )
    last_action_at = fields.DateTime(allow_none=True, metadata={"description": "its newest row of the audit"})


ACCOUNTS = page_of(AccountUsage, "AccountPage")
