"""Terminals: their records, and what opening and viewing one takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from svc.limits import DOCUMENT_BODY_MAX, JSON_DEPTH_MAX
from svc.web.schemas.fields import Command, QueryNumber, Whole, matching
from svc.web.schemas.pages import Envelope
from svc_helper.wire import strict_json
from svc_helper.wire.limits import TERMINAL_ID, TERMINAL_SIDE_MAX

COLS, ROWS = 80, 24  # of a window that does not tell its size
COMMAND_MAX = 4096  # bytes in a query, which has a line of 8 KiB with the rest of the request


class QueryCommand(fields.String):
    """A command in a query: a JSON list of words."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> Any:
        if not isinstance(value, str) or len(value) > COMMAND_MAX:
            raise ValidationError(f"Not a JSON list of at most {COMMAND_MAX} bytes.")
        try:
            found = strict_json.load_object(f'{{"command": {value}}}'.encode(), depth_max=JSON_DEPTH_MAX)
        except (strict_json.Malformed, UnicodeEncodeError):
            raise ValidationError("Not a JSON list of words.") from None
        if set(found) != {"command"}:
            raise ValidationError("Not a JSON list of words.")
        return Command().deserialize(found["command"])


class TerminalOpen(Schema):
    """A new terminal."""

    body_max = DOCUMENT_BODY_MAX

    cols = Whole(1, TERMINAL_SIDE_MAX, load_default=COLS)
    rows = Whole(1, TERMINAL_SIDE_MAX, load_default=ROWS)
    command = Command(metadata={"description": "default: the user's shell in the workspace"})


class TerminalQuery(Schema):
    """The terminal to view, or the one to open, and the size of the window."""

    id = fields.String(validate=matching(TERMINAL_ID, "Not the id of a terminal."))
    cols = QueryNumber(1, TERMINAL_SIDE_MAX, load_default=COLS)
    rows = QueryNumber(1, TERMINAL_SIDE_MAX, load_default=ROWS)
    command = QueryCommand(metadata={"description": "of a new terminal, as a JSON list of words"})


class Terminal(Schema):
    """A terminal."""

    id = fields.String()
    title = fields.String(metadata={"description": "as its program has set it"})
    command = fields.List(fields.String(), allow_none=True, metadata={"description": "null: the shell"})
    cols = fields.Integer()
    rows = fields.Integer()
    viewers = fields.Integer()
    state = fields.String(validate=validate.OneOf(("running", "exited")))
    exit_code = fields.Integer(allow_none=True)
    opened_at = fields.DateTime()
    active_at = fields.DateTime()


class NewTerminal(Terminal):
    """A new terminal with the ticket for its WebSocket."""

    ticket = fields.String(
        allow_none=True,
        metadata={"description": "for GET terminal?id=...: once, within 30 seconds; null on the host socket"},
    )


class TerminalPage(Envelope):
    """The terminals of a workspace."""

    items = fields.List(fields.Nested(Terminal))
    max = fields.Integer(metadata={"description": "the most that a workspace has"})
