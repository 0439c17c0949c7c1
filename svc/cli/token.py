"""`svc token`: personal access tokens, for calls of the HTTP API from other hosts."""

from __future__ import annotations

import os
import stat
import sys

from svc.cli import output
from svc.cli.arguments import Argument, Arguments, Command, CommandGroup, reference, whole
from svc.cli.client import ask, quote, show_list, show_raw
from svc.cli.output import plain, state, when
from svc.errors import BadAnswer
from svc.limits import TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

DESCRIPTION = """\
Access tokens, for calls of the HTTP API from other hosts.

A token acts for you, as an ordinary user, on the HTTP API of the HTTPS port:
your workspaces, templates and images. It never administers and never manages
tokens. Commands on this host need none. They take a token's id or its name."""


def soon(value: Any, human: bool) -> str:
    """The flag of a token "when it expires within seven days"."""
    return plain(value, human) if not human else "expires soon" if value else ""


COLUMNS = (
    ("NAME", "name", plain),
    ("ID", "id", plain),
    ("PREFIX", "prefix", plain),
    ("STATUS", "status", state),
    ("CREATED", "created_at", when),
    ("EXPIRES", "expires_at", when),
    ("LAST USED", "last_used_at", when),
    ("NOTE", "expires_soon", soon),
)
CREATE_EXAMPLES = """\
svc token create --name laptop
svc token create --name ci --expires 30 --json
(umask 077; svc token create --name ci > token.txt)"""


def stored(text: str) -> str:
    """A token's id or name; never its secret, which belongs on no command line."""
    if text.startswith("svc_pat_"):
        raise ValueError("that is a secret or its beginning; `svc token list` shows whose")
    return reference(text)


def create(args: Arguments) -> int:
    """Create a token and print its secret, once.

    The secret alone goes to standard output, what there is to know about it to
    standard error. The service does not keep the secret: a lost one is revoked
    and made anew. --json prints the whole answer, with the secret in it.
    """
    body = {"name": args.name} | ({} if args.expires is None else {"expires_days": args.expires})
    answer = ask(args, "POST", "/api/tokens", body)
    if args.json:
        return show_raw(answer)
    record = answer.json()
    secret = output.text(record, "secret")
    if not secret:
        raise BadAnswer("the service's answer has no secret")
    print(output.visible(secret))
    name, day = output.text(record, "name"), output.text(record, "expires_at")[:10]
    output.note(f"the secret of {name} is shown only this once; it is good until {day}")
    output.note("keep it in a file of mode 0600, never on a command line, where other users see it")
    if in_open_file():
        output.note(
            "warning: others may read the file that it was written to; make that file yours: chmod 600"
        )
    output.note("calls from other hosts send it in the header `Authorization: Bearer <secret>`")
    return 0


def in_open_file() -> bool:
    """Whether standard output is a file that others may read, such as a redirection makes."""
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o077)


def list_(args: Arguments) -> int:
    """List your tokens, the newest first.

    Columns: name, id, prefix (how the secret begins), status, created, expires,
    last used, note (in a pipe: true when it expires within seven days). Expired
    ones stay until they are revoked by their id. --json prints the first 200
    records as the API gave them, with the address of the last use.
    """
    return show_list(args, "/api/tokens", COLUMNS, "No tokens: svc token create --help")


def revoke(args: Arguments) -> int:
    """Revoke a token, at once and for good.

    Nothing is asked first. The next call with it is refused.
    """
    answer = ask(args, "DELETE", f"/api/tokens/{quote(args.token)}")
    if args.json:
        return show_raw(answer)
    if output.on_terminal():
        print(output.visible(f"{args.token} is revoked."))
    return 0


COMMAND = CommandGroup(
    "token",
    DESCRIPTION,
    Command(
        "create",
        create,
        Argument(
            "--name", "what you will know it by, such as the host it is for", metavar="NAME", required=True
        ),
        Argument(
            "--expires",
            f"its lifetime in days, 1 to {TOKEN_DAYS_MAX} (default {TOKEN_DAYS_DEFAULT})",
            metavar="DAYS",
            type=whole(1, TOKEN_DAYS_MAX),
        ),
        examples=CREATE_EXAMPLES,
    ),
    Command("list", list_, examples="svc token list\nsvc token list --json"),
    Command(
        "revoke",
        revoke,
        Argument("TOKEN", "its id or name", type=stored),
        examples="svc token revoke laptop\nsvc token revoke tok-4k2m9x7p",
    ),
)
