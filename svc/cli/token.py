"""`svc token`: personal access tokens, for calls of the HTTP API from other hosts."""

from __future__ import annotations

import os
import stat
import sys

from svc.client.requests import ask, quote, show_ended, show_list, show_raw
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command, CommandGroup, new_name, reference, whole
from svc.commandline.output import plain, state, when
from svc.errors import BadAnswer, FileRefused, UsageError
from svc.limits import TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.client.transport import Answer

DESCRIPTION = """\
Access tokens, for calls of the HTTP API from other hosts.

A token acts for you, as an ordinary user, on the HTTP API of the HTTPS port:
your workspaces, templates and images, with the scope `files` also your files, with
`apps` the programs of your workspaces. One for --app opens that program, and
nothing else. A token never administers and never manages tokens. Commands on this host need none. They
take a token's id or its name."""
SCOPES = ("apps", "files")


def named(value: object, human: bool) -> str:
    """The additional scopes of a token, separated by commas."""
    return ",".join(str(scope) for scope in value) if isinstance(value, list) else ""


def soon(value: object, human: bool) -> str:
    """The flag of a token "when it expires within seven days"."""
    return plain(value, human) if not human else "expires soon" if value else ""


COLUMNS = (
    ("ID", "id", plain),
    ("NAME", "name", plain),
    ("PREFIX", "prefix", plain),
    ("STATUS", "status", state),
    ("CREATED", "created_at", when),
    ("EXPIRES", "expires_at", when),
    ("LAST USED", "last_used_at", when),
    ("NOTE", "expires_soon", soon),
    ("SCOPES", "scopes", named),
)
CREATE_EXAMPLES = """\
svc token create laptop
svc token create --name ci --expires 30 --json
svc token create --name runner --scope files
svc token create --name chat --app notes/llm
(umask 077; svc token create --name ci > token.txt)"""


def token_reference(text: str) -> str:
    """A token's id or name; a secret on the command line is refused."""
    if text.startswith("svc_pat_"):
        raise ValueError(
            "this is a token's secret or its beginning; use the id or name from `svc token list`"
        )
    return reference(text)


def create(args: Arguments) -> int:
    """Create a token and print its secret, once.

    Standard output has the secret alone, standard error what to do with it. The
    service does not store the secret: revoke a lost token and create another.
    --json prints the whole answer, including the secret.
    """
    if sys.__stdout__ is None:
        raise FileRefused("standard output is closed: the secret could not be printed; no token is created")
    if (name := new_name(args)) is None:
        raise UsageError("write a name for the token, once", hint="svc token create NAME")
    body: dict[str, Any] = {"name": name}
    body |= {} if args.expires is None else {"expires_days": args.expires}
    body |= {"scopes": args.scope} if args.scope else {}
    body |= {"app": args.app} if args.app else {}
    answer = ask(args, "POST", "/api/tokens", body)
    record = answer.json()
    secret = output.text(record, "secret")
    if not secret:
        raise BadAnswer("the service's answer has no secret")
    _print(args, answer, secret)
    if args.json:
        return 0
    name, day = output.text(record, "name"), output.text(record, "expires_at")[:10]
    output.note(f"the secret of {name} is printed only once; it is valid until {day}")
    output.note("keep it in a file of mode 0600, never on a command line, which other users can see")
    if in_open_file():
        output.note("warning: other users can read the file that it was written to; protect it: chmod 600")
    output.note("requests from other hosts send it in the header `Authorization: Bearer <secret>`")
    return 0


def _print(args: Arguments, answer: Answer, secret: str) -> None:
    """Print the secret; a token whose secret nobody can have read is revoked, and FileRefused raised."""
    try:
        if args.json:
            show_raw(answer)
        else:
            print(output.visible(secret))
        sys.stdout.flush()
    except OSError as error:
        output.discard(sys.stdout)
        record = answer.json()
        ask(args, "DELETE", f"/api/tokens/{quote(output.text(record, 'id'))}")
        raise FileRefused(
            f"cannot print the secret: {error.strerror}; the token {output.text(record, 'name')} is revoked"
        ) from None


def in_open_file() -> bool:
    """Whether standard output is a file that other users can read."""
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o077)


def list_(args: Arguments) -> int:
    """List your tokens, the newest first.

    Columns: id, name, prefix (the start of the secret), status, created, expires,
    last used, note (in a pipe: true when it expires within seven days), scopes. Expired
    tokens stay until they are revoked by their id. --json prints the API's first
    200 records unchanged, with the address of the last use.
    """
    return show_list(args, "/api/tokens", COLUMNS, "No tokens: svc token create --help")


def revoke(args: Arguments) -> int:
    """Revoke a token, at once and for good.

    There is no confirmation. The next request with it is refused.
    """
    ask(args, "DELETE", f"/api/tokens/{quote(args.token)}")
    return show_ended(args, f"{args.token} is revoked.", revoked=args.token)


COMMAND = CommandGroup(
    "token",
    DESCRIPTION,
    Command(
        "create",
        create,
        Argument("NAME", "your name for it, such as the host that uses it", optional=True, dest="new_name"),
        Argument("--name", "the same, as an option", metavar="NAME"),
        Argument(
            "--expires",
            f"lifetime in days, 1 to {TOKEN_DAYS_MAX} (default {TOKEN_DAYS_DEFAULT})",
            metavar="DAYS",
            type=whole(1, TOKEN_DAYS_MAX),
        ),
        Argument(
            "--scope",
            "what it may do besides: `files` is your file roots, `apps` the programs of your workspaces",
            kind="list",
            choices=SCOPES,
        ),
        Argument("--app", "the one app that it opens, and nothing else", metavar="WORKSPACE/PORT"),
        examples=CREATE_EXAMPLES,
    ),
    Command("list", list_, examples="svc token list\nsvc token list --json"),
    Command(
        "revoke",
        revoke,
        Argument("TOKEN", "its id or name", type=token_reference),
        examples="svc token revoke laptop\nsvc token revoke tok-4k2m9x7p",
    ),
)
