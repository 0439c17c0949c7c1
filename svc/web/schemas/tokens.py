"""Personal access tokens and one-time tickets: what creating one takes, and the records."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.domain.accounts.tokens import SCOPES
from svc.limits import TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX, TOKEN_NAME_MAX
from svc.web.schemas.fields import Text, Whole
from svc.web.schemas.pages import ListQuery, page_of, status_field

STATUSES = ("active", "expired")
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
        metadata={"description": "`files`: it also reaches the owner's files; none by default"},
    )


class Token(Schema):
    """A token without its secret."""

    id = fields.String()
    name = fields.String()
    prefix = fields.String(metadata={"description": "the secret's first characters"})
    scopes = fields.List(_SCOPE, metadata={"description": "what it may do besides"})
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
