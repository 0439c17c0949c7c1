"""Personal access tokens and one-time tickets: what creating one takes, and the records."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.domain.accounts.tokens import SCOPES
from svc.limits import TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX, TOKEN_NAME_MAX
from svc.web.schemas.fields import Text, Whole, matching
from svc.web.schemas.pages import ListQuery, page_of, status_field

STATUSES = ("active", "expired")
APP = r"[a-z0-9][a-z0-9-]{0,62}/[a-z0-9][a-z0-9-]{0,62}"
_SCOPE = fields.String(validate=validate.OneOf(SCOPES))


class TokenQuery(ListQuery):
    """A page of tokens."""

    status = status_field(STATUSES)


class TokenCreate(Schema):
    """A new token."""

    name = Text(TOKEN_NAME_MAX, 1, required=True)
    expires_days = Whole(
        1, TOKEN_DAYS_MAX, load_default=TOKEN_DAYS_DEFAULT, metadata={"description": "its lifetime in days"}
    )
    scopes = fields.List(
        _SCOPE,
        load_default=list,
        validate=validate.Length(max=len(SCOPES)),
        metadata={
            "description": "`files`: it also reaches the owner's files; `apps`: programs of the owner's"
            " workspaces; none by default"
        },
    )
    app = fields.String(
        load_default=None, allow_none=True, validate=matching(APP, "Use WORKSPACE/PORT, such as notes/lab."),
        metadata={"description": "one app, as WORKSPACE/PORT, which is then all that the token opens"},
    )  # fmt: skip


class Token(Schema):
    """A token without its secret."""

    id = fields.String()
    name = fields.String()
    prefix = fields.String(metadata={"description": "the secret's first characters"})
    scopes = fields.List(
        fields.String(),
        metadata={"description": "what it may do besides; `app:WORKSPACE/PORT` alone: all that it opens"},
    )
    status = fields.String(validate=validate.OneOf(STATUSES))
    expires_soon = fields.Boolean(metadata={"description": "within seven days"})
    created_at = fields.DateTime()
    expires_at = fields.DateTime()
    last_used_at = fields.DateTime(allow_none=True, metadata={"description": "to the minute"})
    last_used_from = fields.String(allow_none=True, metadata={"description": "the address of that use"})


class NewToken(Token):
    """A new token with its secret."""

    secret = fields.String(metadata={"description": "only in this response, and stored nowhere"})


TOKENS = page_of(Token, "TokenPage")


class TicketCreate(Schema):
    """What a ticket is to open."""

    url = fields.String(
        required=True,
        validate=validate.Length(1, 16 * 1024),
        metadata={"description": "path below /api/ with its query, as for a GET with other credentials"},
    )


class NewTicket(Schema):
    """A ticket, in the URL that it opens."""

    url = fields.String(metadata={"description": "the URL with the ticket, which is nowhere else"})
    expires_at = fields.DateTime()
