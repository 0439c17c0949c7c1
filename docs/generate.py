"""Generate what is made from the code: settings, errors, doctor, command line, HTTP API, the skill.

usage: python docs/generate.py [--check]   (--check: exit 1 when a page is out of date)
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import api_types  # noqa: E402  beside this file
import browser_commands  # noqa: E402
import modules  # noqa: E402
import skill  # noqa: E402

from svc import errors, settings  # noqa: E402  the tree beside this file, not an installed one
from svc.__main__ import build_parser, usage  # noqa: E402
from svc.actions import export  # noqa: E402
from svc.admin import doctor  # noqa: E402
from svc.admin.checks import codes  # noqa: E402
from svc.web import openapi  # noqa: E402
from svc.web.app import build  # noqa: E402

HEADER = "<!-- Made by docs/generate.py from {source}; edit that and run `make docs`. -->\n\n"
DATABASE = "/var/lib/svc/data/svc.db"  # of an installation; below a directory of systemd/tmpfiles.d


def settings_page() -> str:
    """Every setting with its default and help text."""
    defaults = {row.name: f"`{row.default}`" if row.default else "" for row in settings.TABLE}
    rows = [f"| `{row.name}` | {defaults[row.name]} | {row.help} |\n" for row in settings.TABLE]
    return (
        HEADER.format(source="svc/settings.py")
        + "# Settings\n\n"
        + "Precedence: flag, process environment, `/etc/svc/svc.env`, default.\n"
        + "`svc env` prints the values in force on a host and their sources; `svc env --all` adds the\n"
        + "defaults.\n\n"
        + "A line of the file is `NAME=value`, a comment (`#` or `;`) or empty. A command refuses an\n"
        + "invalid value only if it uses that setting; `svc server` refuses those of all its settings\n"
        + "at once, with the lines. `svc env` and `svc admin doctor` name each fault of the file and\n"
        + "the environment: an invalid value, a line without `=`, bytes that are not UTF-8, an unknown\n"
        + "`SVC_` name (a warning). The other `svc admin` commands warn of them on standard error.\n\n"
        + "A file that users other than root may write, or that is no regular file of at most 64 KiB,\n"
        + "is not used: client commands go on with the default socket, everything else refuses a\n"
        + "setting that only the file could have.\n\n"
        + "| setting | default | what it is |\n|---|---|---|\n"
        + "".join(rows)
        + "\nThe form of a file of fake GPUs is in [decision 18](decisions/0018-where-gpus-are-seen.md).\n"
    )


def env_file() -> str:
    """The settings file that an installation begins with: every setting as a comment."""
    parts = []
    for row in settings.TABLE:
        line = f"#{row.name}={row.default}"
        if row.name == "SVC_DB":  # its default is for a checkout: a file of the working directory
            line = f"SVC_DB={DATABASE}"
        said = textwrap.wrap(row.help, 96, initial_indent="# ", subsequent_indent="# ")
        parts.append("\n".join([*said, line]))
    return (
        "# Settings of svc on this host: NAME=value lines, as in `svc env --all`; # begins a comment.\n"
        "# A change takes effect with: systemctl restart svc\n"
        "# Made by docs/generate.py from svc/settings.py.\n\n" + "\n\n".join(parts) + "\n"
    )


def errors_page() -> str:
    """Every error code with its HTTP status, the exit code of `svc` and its meaning."""
    rows = [
        f"| `{row.code}` | {row.status} | {row.exit_code} | {again(row)} | {meaning(row)} |\n"
        for row in errors.table()  # with those of engine_errors
    ]
    return (
        HEADER.format(source="svc/errors.py and svc/engine_errors.py")
        + "# Errors\n\n"
        + "The body of every reply that reports an error:\n\n```json\n"
        + '{"error": {"code": "image_missing", "message": "...", "hint": "svc image pull hello --wait",\n'
        + '           "action": {"label": "Pull the image", "method": "POST",\n'
        + '                      "path": "/api/templates/hello/image/pull", "body": {}},\n'
        + '           "fields": [], "details": {}, "retryable": false, "request_id": "..."}}\n```\n\n'
        + "`code` is stable and never reused. `hint` is the next command to type. `retryable`: the same\n"
        + "request may succeed later. The command line prints `svc: message` and `hint: ...`.\n\n"
        + actions_section()
        + "| code | status | exit | retryable | meaning |\n|---|---|---|---|---|\n"
        + "".join(rows)
    )


def actions_section() -> str:
    """The hints that a button can do, as requests."""
    rows = [f"| `{shown(line)}` | {label} | `{request}` |\n" for line, label, request in export.buttons()]
    return (
        "`action` is the hint's first command as a request, with the text of a button, where the caller may\n"
        "send it; else null. Nothing that deletes is an action. Of a `retryable` error without another\n"
        "action it is the same request again, `Try again`, if that had no body. Names of the hint that are\n"
        "not in the path, or its JSON, are the body. A hint that shows something, such as the progress of\n"
        "an operation, is a `GET` request.\n\n"
        "| hint | label | request |\n|---|---|---|\n" + "".join(rows) + "\n"
    )


def shown(text: str) -> str:
    """The text in a cell of a table."""
    return text.replace("|", "\\|")


def doctor_page() -> str:
    """Every code of `svc admin doctor` with its meaning."""
    rows = [f"| `{code}` | {line} |\n" for code, line in codes.CODES.items()]
    return (
        HEADER.format(source="svc/admin/checks/codes.py")
        + "# Checks of `svc admin doctor`\n\n"
        + "`sudo svc admin doctor` checks everything that must be right on this host. A finding has a\n"
        + "code, a level, what was found, and the command that mends it. Codes are stable and never\n"
        + "reused. `ok`: nothing to do. `warn`: it works, but not as it should. `fail`: something does\n"
        + "not work until this is mended; then the exit code is 1. `--json` prints the findings as\n"
        + '`{"items": [{"code", "level", "found", "remedy"}], ...}`.\n\n'
        + f"Of one code and level at most {doctor.LISTED_MAX} findings are\n"
        + "listed; one more counts the others.\n\n"
        + "As root it opens nothing that a user or the app could have exchanged: the database is opened by\n"
        + "a process of its owner, a user's files by one of that user. No remedy changes a file by its path\n"
        + "where others can write; `--repair` does that work ([decision 44]"
        + "(decisions/0044-roots-remedies-name-no-path.md)).\n\n"
        + "A line says what is right; a finding of another level says what is not.\n\n"
        + "| code | what it checks |\n|---|---|\n"
        + "".join(rows)
    )


def again(row: type[errors.SvcError]) -> str:
    """Whether the same request may succeed later."""
    return "yes" if row.retryable else ""


def meaning(row: type[errors.SvcError]) -> str:
    """The class docstring on one line."""
    return " ".join((row.__doc__ or "").split())


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of all commands below a parser, in the order of the help."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                yield child
                yield from parsers(child)


def cli_page() -> str:
    """The `--help` text of every command."""
    os.environ["COLUMNS"] = "100"
    text = HEADER.format(source="the command line's own parsers") + "# Command line\n\n"
    text += f"```\n{usage()}\n```\n"
    for parser in parsers(build_parser()):
        text += f"\n## {parser.prog}\n\n```\n{parser.format_help().rstrip()}\n```\n"
    return text


@cache
def api() -> dict[str, Any]:
    """The OpenAPI description, from an app without a listener."""
    app = build(settings.Settings(environ={}, file={}), None, listener="unix", dev=False)
    return openapi.describe(app)


PAGES: dict[str, Callable[[], str]] = {
    "docs/settings.md": settings_page,
    "packaging/svc.env": env_file,
    "docs/errors.md": errors_page,
    "docs/doctor.md": doctor_page,
    "docs/cli.md": cli_page,
    "docs/browser-commands.md": browser_commands.page,
    "docs/modules.md": lambda: HEADER.format(source="the docstrings and .importlinter") + modules.page(),
    "docs/http.md": lambda: openapi.http_page(api()),
    "schema/api.d.ts": lambda: api_types.page(api()),
    "svc/web/pages/static/generated/actions.js": export.rows,
    "svc/web/pages/static/generated/sentences.js": export.sentences,
    "schema/openapi.json": lambda: json.dumps(api(), indent=1, sort_keys=True) + "\n",
}


def main() -> int:
    """Write or compare every page; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when one is out of date")
    checking = parser.parse_args().check
    stale = []
    texts = {name: generate() for name, generate in PAGES.items()} | skill.pages(api())
    for name, text in texts.items():
        path = ROOT / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not checking:
            path.write_text(text)
    if stale:
        print(f"{'out of date' if checking else 'written'}: {', '.join(stale)}")
    return 1 if checking and stale else 0


if __name__ == "__main__":
    sys.exit(main())
