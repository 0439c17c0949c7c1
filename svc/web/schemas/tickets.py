"""One-time tickets: what issuing one takes, and the URL with it."""

from __future__ import annotations

from marshmallow import Schema, fields, validate


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
