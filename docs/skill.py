"""The skill that `svc skill install` writes: its texts, made from the commands, the API and the error table.

What is written by hand is docs/SKILL.md.in and the tables below. A client command with
--json needs its answer here; an error without a next step refers to its hint.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from svc import errors
from svc.__main__ import GROUPS, build_parser, usage
from svc.actions import export
from svc.web import openapi

TEMPLATE = Path(__file__).resolve().parent / "SKILL.md.in"
FOLDER = "svc/cli/skill/text"
CLIENT = next(iter(GROUPS.values()))  # the client commands

# What `--json` prints: the endpoint whose answer it is (of an action its row has it), or the object itself.
ANSWERS = export.answers() | {
    "svc whoami": "GET /api/users/me",
    "svc servers hardware": "GET /api/servers/hardware",
    "svc ws list": "GET /api/workspaces",
    "svc ws get": "GET /api/workspaces/{ref}",
    "svc ws capacity": "GET /api/workspaces/capacity",
    "svc ws recommend": "POST /api/workspaces/recommend",
    "svc ws run": "GET /api/workspaces/{ref}",
    "svc ws logs": "GET /api/workspaces/{ref}/logs",
    "svc ws shell": "GET /api/workspaces/{ref}/terminals",
    "svc ws launchers": "GET /api/workspaces/{ref}/launchers",
    "svc ws ports": "GET /api/workspaces/{ref}/ports",
    "svc ws monitor": "GET /api/workspaces/{ref}/monitor",
    "svc ws wait": "GET /api/workspaces/{ref}",
    "svc template list": "GET /api/templates",
    "svc template get": "GET /api/templates/{ref}",
    "svc template dockerfile": "GET /api/templates/{ref}/dockerfile",
    "svc template context": "GET /api/templates/{ref}/context",
    "svc template revisions": "GET /api/templates/{ref}/revisions",
    "svc template diff": "GET /api/templates/{ref}/diff",
    "svc image list": "GET /api/images",
    "svc image status": "GET /api/templates/{ref}/image",
    "svc image builds": "GET /api/images/builds",
    "svc image log": "GET /api/operations/{ref}/log",
    "svc image overview": "GET /api/images/overview",
    "svc image remove": '{"removed": ID}',
    "svc ws port list": "GET /api/workspaces/{ref}/ports",
    "svc ws launcher list": "GET /api/workspaces/{ref}/launchers",
    "svc image allowlist": "GET /api/images/allowlist",
    "svc operation list": "GET /api/operations",
    "svc operation watch": '{"operation": OPERATION}',
    "svc operation log": "GET /api/operations/{ref}/log",
    "svc events": "GET /api/events/history",
    "svc fs rm": "DELETE /api/fs/{root}/file",
    "svc token list": "GET /api/tokens",
    "svc token revoke": '{"revoked": NAME}',
    "svc template examples": '{"items": [{"name": NAME, "image": IMAGE, "description": TEXT}]}',
    "svc skill install": '{"path": PATH, "user": NAME, "replaced": true or false}',
}
WITH_OPTIONS = {  # an answer that an option changes
    "svc template dockerfile": "with `--set` a `Template`",
    "svc template context": "with `--set`, `--remove` or `--replace` a `Template`",
    "svc ws create": "with `--dry-run` a `CheckedWorkspace`",
    "svc image pull": "with `--dry-run` a `CheckedImage`",
    "svc image build": "with `--dry-run` a `CheckedImage`",
}

ADMINISTRATOR = "Tell the user: an administrator has to see to it."
REPORT = "Report the message; nothing that the user can do mends it."
FOLLOW = "Follow the hint."
LATER = "Try again after some seconds, a few times."
NEXT = {
    "internal_error": "Report the `request_id` to the user: the service's log has the rest.",
    "invalid_request": "Correct the path, query or header of the request.",
    "invalid_json": "Correct the body: one JSON object.",
    "streaming_not_supported": "Use the command instead: `svc ws logs NAME --follow`, `svc ws monitor NAME`.",
    "validation_failed": "Correct each value in `fields`.",
    "unauthenticated": "The token is wrong, revoked or missing: ask the user for another.",
    "token_expired": "The user makes another: `svc token create --name NAME`.",
    "account_missing": ADMINISTRATOR,
    "account_incomplete": ADMINISTRATOR,
    "account_disabled": ADMINISTRATOR,
    "password_reset_required": ADMINISTRATOR,
    "cross_site": "Call from the host, or with a token.",
    "pat_not_allowed": "Run the command on the host: tokens may not do this.",
    "not_allowed_on_socket": "Leave it: no command on the host does this.",
    "socket_only": "Run the command on the host.",
    "admin_command_only": ADMINISTRATOR,
    "root_not_allowed": "Run it as an ordinary user, not as root.",
    "owner_only": "Leave it: only the owner may do this.",
    "admin_only": ADMINISTRATOR,
    "template_disabled": "If it is the user's: build its Dockerfile, then `svc template enable TEMPLATE`.",
    "read_only": "Clone the template and change the clone: `svc template clone TEMPLATE --name NAME`.",
    "file_forbidden": "Choose another path, or ask the user about the permissions of the file.",
    "registry_not_allowed": "`svc image allowlist` lists those that are; an administrator adds others.",
    "license_required": ADMINISTRATOR,
    "not_found": "List what there is: `svc ws list`, `svc template list`, `svc fs ls work`.",
    "method_not_allowed": "See the paths of the API: `svc api GET /api/openapi.json`.",
    "workspace_not_stopped": "Ask the user, then `svc ws stop NAME`.",
    "workspace_not_running": "`svc ws start NAME`.",
    "image_missing": "`svc image pull TEMPLATE --wait`; with a Dockerfile `svc image build TEMPLATE --wait`.",
    "build_required": "`svc image build TEMPLATE --wait`, then `svc template enable TEMPLATE`.",
    "build_failed": "Read the end of the output, correct the Dockerfile, build again.",
    "removal_incomplete": "Read `details.output`: each entry with its reason; the rest is removed.",
    "exited_at_once": "Read `details.output` and `svc ws logs NAME`: the command is wrong or has ended.",
    "name_taken": "Take another name, or use the object that has this one.",
    "operation_in_progress": "Wait for its end (`svc operation watch`), then try again.",
    "quota_exceeded": "`svc ws capacity`: ask for less, or ask the user what to stop.",
    "license_limit": ADMINISTRATOR,
    "gpu_unavailable": "`svc ws capacity` names the holders; ask for fewer, or try again later.",
    "limits_not_enforceable": "Leave that limit out, or tell the user that this host does not apply it.",
    "port_unavailable": "Remove a port that is not needed, or try again later.",
    "file_exists": "Choose another name; `--force` only if the user wants it replaced.",
    "conflict": "Look at the object's present state with `get`.",
    "too_large": "`details` has the limit: send less, or in parts.",
    "range_unsatisfiable": "Begin before the end of the file.",
    "unknown_host": "Call the service by one of its own names.",
    "too_many_requests": "Wait as long as the message says.",
    "not_available": "Leave it: this release does not have it.",
    "engine_unavailable": "Look at the state first (`svc ws get NAME`), then try again.",
    "engine_failed": "Read `details.engine`. " + REPORT,
    "app_not_listening": "`svc ws launchers NAME`: start the launcher that listens there, or wait for it.",
    "command_not_found": "Correct the template's command, or choose another image.",
    "command_not_executable": "Correct the template's command, or make the file executable in the image.",
    "wrong_architecture": "Choose an image for this host's processors.",
    "workdir_missing": "Correct the image or its template.",
    "not_a_directory": "Correct the template's command or mounts.",
    "container_user_missing": "Correct `run_as` of the template, or the image.",
    "programs_missing": ADMINISTRATOR,
    "network_programs_missing": ADMINISTRATOR,
    "memory_too_small": "Stop it and give it more memory: `svc ws edit NAME --file patch.json`.",
    "processes_exhausted": "End processes of the workspace, or raise `pids_limit` with `svc ws edit`.",
    "container_name_taken": "Ask the user about the container of that name.",
    "subids_missing": ADMINISTRATOR,
    "cgroup_refused": ADMINISTRATOR,
    "storage_damaged": ADMINISTRATOR,
    "storage_locked": LATER,
    "image_corrupt": "Pull again once; then report it.",
    "image_not_in_registry": "Correct the image's name and tag in the template.",
    "registry_login_required": "Ask the user to log in to the registry (`podman login`).",
    "registry_tls": ADMINISTRATOR,
    "registry_name_unknown": "Correct the registry's name in the template, or report it.",
    "registry_unreachable": LATER,
    "registry_timeout": LATER,
    "registry_busy": "Try again in some minutes.",
    "registry_failed": LATER,
    "maintenance": "Try again in some minutes.",
    "engine_timeout": "Look at the state first (`svc ws get NAME`), then try again.",
    "storage_full": "Ask the user what can be deleted: `svc image overview`, `svc fs ls work`.",
    "disk_quota_exceeded": "Ask the user what can be deleted: `svc image overview`.",
    "storage_failed": ADMINISTRATOR,
    "database_damaged": ADMINISTRATOR,
    "usage": "Correct the command line: `svc help COMMAND...`.",
    "setting_invalid": ADMINISTRATOR,
    "database_refused": ADMINISTRATOR,
    "host_refused": ADMINISTRATOR,
    "unreachable": LATER + " Then tell the user: the service does not run.",
    "bad_answer": "Try once more; then report it.",
    "file_refused": "Choose another local file or directory; `--force` only if the user wants it replaced.",
    "license_invalid": ADMINISTRATOR,
    "aborted": "Add `--yes` if the user has told you to do it.",
}  # fmt: skip


def pages(document: dict[str, Any]) -> dict[str, str]:
    """Every file of the skill by its path in the repository; `document` is the OpenAPI description."""
    texts = {
        "SKILL.md": TEMPLATE.read_text().format(exit_codes=exit_codes()),
        "references/commands.md": commands_page(),
        "references/json.md": json_page(document),
        "references/errors.md": errors_page(),
    }
    return {f"{FOLDER}/{name}": text for name, text in texts.items()}


def exit_codes() -> str:
    """The table of exit codes, from `svc --help`."""
    line = " ".join(usage().partition("exit codes: ")[2].split())
    rows = [part.strip().partition(" ") for part in re.split(r";(?= [0-9] )", line)]
    return "| code | meaning |\n|---|---|\n" + "\n".join(f"| {code} | {text} |" for code, _, text in rows)


def commands() -> Iterator[argparse.ArgumentParser]:
    """The parsers of the client commands, without those of groups."""

    def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
        groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        for group in groups:
            for child in dict.fromkeys(group.choices.values()):
                yield from leaves(child)
        if not groups:
            yield parser

    yield from leaves(build_parser(CLIENT))


def commands_page() -> str:
    """Usage, description and options of every client command."""
    parts = [
        "# Commands of svc\n\nMade from the program itself. `-h` and `--json` are not described again.\n"
    ]
    for parser in commands():
        usage_line = " ".join(parser.format_usage().removeprefix("usage: ").split())
        rows = [row for action in parser._actions if (row := _argument(action))]
        listed = "\n".join(rows)
        text = (parser.description or "").strip()
        parts.append(f"## {parser.prog}\n\n    {usage_line}\n\n{text}\n" + (f"\n{listed}\n" if rows else ""))
    return "\n".join(parts)


def _argument(action: argparse.Action) -> str:
    """The line of an option or argument; empty for those that every command has."""
    name = " ".join(action.option_strings) or str(action.metavar or action.dest)
    if name in ("-h --help",) or (name == "--json" and action.help == "print the raw API answer"):
        return ""
    value = f" {action.metavar}" if action.option_strings and action.nargs != 0 else ""
    return f"- `{name}{value}`: {action.help}"


def json_page(document: dict[str, Any]) -> str:
    """What `--json` prints, and the keys of each object in it."""
    answers = {parser.prog: _answer(document, parser) for parser in commands()}
    rows = [f"| `{name}` | {answer} |\n" for name, answer in answers.items() if answer]
    used: list[str] = []
    for answer in answers.values():
        _collect(document, re.findall(r"`([A-Z]\w+)`", answer), used)
    _collect(document, ["Operation", "ErrorBody"], used)
    schemas = document["components"]["schemas"]
    return (
        "# What --json prints\n\nOne object for each command, `Accepted` with the operation: finished for"
        " `svc ws setup` and with `--wait`.\nA command that fails prints an `ErrorBody` instead.\n\n"
        "| command | prints |\n|---|---|\n" + "".join(rows) + "\n"
        + "\n".join(_schema(name, schemas[name]) for name in sorted(used))
    )  # fmt: skip


def _answer(document: dict[str, Any], parser: argparse.ArgumentParser) -> str:
    """What a command prints with --json; empty for one without, and for `svc api`."""
    if not any("--json" in action.option_strings for action in parser._actions) or parser.prog == "svc api":
        return ""
    answer = ANSWERS.get(parser.prog)
    if answer is None:
        raise SystemExit(f"docs/skill.py: ANSWERS lacks what `{parser.prog} --json` prints")
    if answer.startswith("{"):
        return f"`{answer}`"
    method, _, path = answer.partition(" ")
    described = next(iter(document["paths"][path][method.lower()]["responses"].values()))
    name = openapi._content_name(described)
    return ", ".join(filter(None, [name, WITH_OPTIONS.get(parser.prog, "")]))


def _collect(document: dict[str, Any], names: list[str], used: list[str]) -> None:
    """Add schemas, and all that they refer to."""
    for name in names:
        if name not in used:
            used.append(name)
            inner = re.findall(r"'#/components/schemas/(\w+)'", repr(document["components"]["schemas"][name]))
            _collect(document, inner, used)


def _schema(name: str, schema: dict[str, Any]) -> str:
    rows = []
    for key, field in schema.get("properties", {}).items():
        note = openapi._notes(field)
        rows.append(f"- `{key}`: {openapi._type_of(field)}{f' ({note})' if note else ''}\n")
    return f"## {name}\n\n{''.join(rows) or 'Empty.'}"


def errors_page() -> str:
    """Every error code with its exit code, its meaning and what to do next."""
    rows = [
        (f"`{row.code}`", str(row.exit_code), "yes" if row.retryable else "", _meaning(row), _next(row))
        for row in errors.table()
    ]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return (
        "# Errors of svc, and what to do next\n\nWithout `--json`: `svc: MESSAGE` and `hint: NEXT STEP` on"
        " standard error. With `--json` also an `ErrorBody`\non standard output, of what the service refuses."
        " The hint knows the case: it comes before this table.\n\n"
        f"{exit_codes()}\n\n| code | exit | retryable | meaning | next |\n|---|---|---|---|---|\n{table}"
    )


def _meaning(row: type[errors.SvcError]) -> str:
    return " ".join((row.__doc__ or "").split())


def _next(row: type[errors.SvcError]) -> str:
    return NEXT.get(row.code, FOLLOW)
