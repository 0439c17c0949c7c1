"""`svc api`: one raw request."""

from __future__ import annotations

import sys

from svc.client import transport
from svc.client.requests import read_file
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.errors import UsageError
from svc.limits import EXEC_BODY_MAX

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
EXAMPLES = """\
svc api GET /api/usage/me
svc api GET '/api/workspaces?limit=5'
svc api POST /api/workspaces --body @workspace.json
svc api PATCH /api/users/alice --body '{"display_name": "Alice"}'
svc api DELETE /api/workspaces/ws-4k2m9x7p"""


def api(args: Arguments) -> int:
    """Send one request to the HTTP API, as you, and print the raw answer.

    There is no confirmation: a DELETE deletes at once. Streams (terminal, events,
    live monitor, followed logs), login and password changes are refused. Exit
    code 0 for status 2xx; else the body is printed too, and the message on
    standard error. JSON ends with a newline, all else is printed byte for byte. Of a
    HEAD, which has no body, the header fields are printed.
    """
    body = None
    if args.body is not None:
        in_file = args.body.startswith("@")
        body = (
            read_file(args.body[1:], EXEC_BODY_MAX)
            if in_file
            else args.body.encode("utf-8", "surrogateescape")
        )
    answer = transport.request(args.method, check_path(args.path), body, via="api")
    if args.method == "HEAD":
        print("\n".join(output.visible(f"{name}: {value}") for name, value in answer.fields.items()))
    output.raw(_with_newline(answer))
    sys.stdout.flush()
    if answer.ok:
        return 0
    error = answer.error()
    if args.method == "HEAD":
        error.message = (
            f"the service refused the request with status {answer.status}; a HEAD brings no reason"
        )
        error.hint = f"svc api GET {output.shell_quote(args.path)}"
    raise error


def _with_newline(answer: transport.Answer) -> bytes:
    """The body; of JSON, which is text, with a newline at its end, as `--json` prints it."""
    body, media_type = answer.body, answer.fields.get("content-type", "").partition(";")[0].strip()
    return body + b"\n" if body and media_type == "application/json" and body[-1:] != b"\n" else body


def check_path(path: str) -> str:
    """The path if it is one below /api/, safe for the request line; raises UsageError."""
    if "://" in path or path.startswith("//"):
        raise UsageError(
            f"{path} is an address, not a path: svc api uses the service on this host only",
            hint="svc api GET /api/version",
        )
    if not path.startswith("/api/"):
        raise UsageError(f"{path!r} does not start with /api/", hint="svc api GET /api/version")
    if not path.isascii() or not path.isprintable() or " " in path or "#" in path:
        raise UsageError(
            "a path has only printable ASCII characters and no spaces", hint="percent-encode it: %20"
        )
    if ".." in path.partition("?")[0].replace("%2e", ".").replace("%2E", ".").split("/"):
        raise UsageError("a path must not contain `..`", hint="svc api --help")
    return path


COMMAND = Command(
    "api",
    api,
    Argument("METHOD", ", ".join(METHODS), type=str.upper, choices=METHODS, metavar="METHOD"),
    Argument("PATH", "path below /api/, with its query"),
    Argument("--body", "request body: JSON, or @file (@- is standard input)", metavar="JSON|@FILE"),
    examples=EXAMPLES,
)
