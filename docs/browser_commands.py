"""docs/browser-commands.md: every command of the program, and its place in the browser.

A command of an action has it in the action's row (svc/actions/table.py), the others have it here: the page
that does the same, or none, and with what, or why not.
"""

from __future__ import annotations

from collections.abc import Iterator

from svc.__main__ import GROUPS, declaration
from svc.actions.export import program_of
from svc.actions.table import TABLE
from svc.commandline.arguments import Command, CommandGroup, Deferred

INTRODUCTION = """# Commands and their place in the browser

Every command of `svc`, and the page that does the same. The table is generated from the rows of actions
(`svc/actions/table.py`) and from `docs/browser_commands.py`; a test compares its pages with the list of pages
(`svc/web/pages/shells.py`). `<name>` is a workspace or a template. A command without a page has the reason.

Each page says its commands itself: its own in the line at the foot, and a button's there before it is pressed
([browser.md](browser.md#the-screens)).
"""
OTHERS = {
    "whoami": ("/settings", "account, home, quota; the display name is changed there"),
    "servers hardware": (
        "/admin/gpus",
        "with the driver; everybody sees the GPUs and their models at `/workspaces`",
    ),
    "ws list": ("/workspaces", "with what runs, what needs attention, and set-ups"),
    "ws get": ("/workspaces/<name>", ""),
    "ws capacity": ("/workspaces", "what is in use: quota, host, who has the GPUs"),
    "ws recommend": ("/new", "beside each field"),
    "ws run": ("", "for scripts; `/new`, then `/workspaces/<name>/logs`"),
    "ws wait": ("", "for scripts; `/workspaces` shows each change as it comes"),
    "ws logs": ("/workspaces/<name>/logs", "follows, finds, saves"),
    "ws launchers": ("/workspaces/<name>/apps", ""),
    "ws launcher list": ("/workspaces/<name>/apps", "the same as `svc ws launchers`"),
    "ws ports": ("/workspaces/<name>/apps", "with the `ssh` line for other computers"),
    "ws port list": ("/workspaces/<name>/apps", "the same as `svc ws ports`"),
    "ws monitor": ("/workspaces/<name>/monitor", ""),
    "template list": ("/templates", ""),
    "template get": ("/templates/<name>", ""),
    "template examples": ("", "the definitions are files of the command"),
    "template dockerfile": ("/templates/<name>/dockerfile", "editor, with the build's log"),
    "template context": ("/templates/<name>/dockerfile", "the files beside it"),
    "template revisions": ("/templates/<name>", ""),
    "template diff": ("/templates/<name>/changes", ""),
    "template export": ("/templates/<name>", ""),
    "image list": ("/images", ""),
    "image status": ("/templates/<name>", ""),
    "image builds": ("/images", "what is under way"),
    "image log": ("/templates/<name>", "the log of a build"),
    "image overview": ("/images", ""),
    "image allowlist": ("/admin/registries", "to all others a refusal names the registry"),
    "operation list": ("/workspaces", "set-ups; pulls and builds at `/images`"),
    "operation watch": ("/new", "the steps of a set-up, found again by its address"),
    "operation log": ("/templates/<name>", "the log of a build"),
    "events": ("/activity", "every page is live by the same stream"),
    "token list": ("/settings/tokens", "with what expires within seven days"),
    "api": (
        "",
        "pages send such requests themselves; where no other command does the same, the line names this one",
    ),
    "skill install": ("", "writes a file for an agent that runs on the host"),
    "env": ("", "settings are root's files; `--certificate` is for programs elsewhere"),
    "server": ("", "what the pages come from"),
    "admin migrate": ("", "by root, while the service is stopped"),
    "admin list-users": ("/admin/users", ""),
    "admin quota list": ("/admin/quotas", ""),
    "admin registry list": ("/admin/registries", ""),
    "admin registry add": ("", "the policy is root's file; `/admin/registries` writes the command"),
    "admin registry remove": ("", "as above"),
    "admin backup": ("", "by root; `/admin/host` lists the backups"),
    "admin checkpoint": ("", "by root, before work on the host"),
    "admin update status": ("/admin/host", ""),
    "admin update check": ("", "by root; what it found is at `/admin/host`"),
    "admin rollback list": ("/admin/host", "recovery sets"),
    "admin rollback apply": ("", "by root, while the service is stopped"),
    "admin rollback keep": ("", "by root, beside the sets themselves"),
    "admin audit export": ("", "by root; `/admin/audit` shows and filters it"),
    "admin audit verify": (
        "",
        "by root, of exported files; what the doctor found of the chain is at `/admin/audit`",
    ),
    "admin db-path": ("", "for scripts on the host"),
    "admin doctor": ("/admin/host", "its last run, with remedies"),
    "admin report": ("", "by root: renews what `/admin/host` shows"),
    "admin tls-fingerprint": (
        "",
        "it is what a browser's page cannot vouch for; `/sign-in` names the command",
    ),
    "admin license show": ("/admin/host", ""),
    "admin license request": ("", "by root: what to send to the vendor"),
    "admin license verify": ("", "by root: a file that is not installed yet"),
}


def commands(declared: Command | CommandGroup | Deferred, name: str) -> Iterator[str]:
    """The commands below one, with all their words."""
    declared = declared.load() if isinstance(declared, Deferred) else declared
    if isinstance(declared, Command):
        yield name
        return
    for below in declared.commands:
        yield from commands(below, f"{name} {below.name}")


def places() -> dict[str, tuple[str, str]]:
    """By command without `svc`: the page, and what is said of it."""
    of_actions: dict[str, tuple[str, str]] = {}
    for row in TABLE:
        if row.command and (row.page or row.page_note):
            of_actions[program_of(row).removeprefix("svc ")] = row.page, row.page_note
    return of_actions | OTHERS


def page() -> str:
    """The page, in the order of the help."""
    known, parts = places(), [INTRODUCTION]
    for heading, names in zip(("For users", "For the host"), GROUPS.values(), strict=True):
        parts.append(f"\n## {heading}\n\n| command | page | what, or why not |\n|---|---|---|\n")
        for command in (each for name in names for each in commands(declaration(name), name)):
            place, said = known[command]
            parts.append(
                f"| `svc {command}` | {f'`{place}`' if place else 'none'} | {said}{' ' if said else ''}|\n"
            )
    return "".join(parts)
