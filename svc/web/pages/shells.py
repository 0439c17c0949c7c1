"""The shells of the pages: HTML without data, rendered once when the listener starts.

A shell is the same for everybody, and so needs no credential: what is in it a script fills in, with the
caller's own session.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from svc.web import pieces
from svc.web.pages import assets, content
from svc.web.pages.content import Content

FOLDER = Path(__file__).with_name("shells")
STATIC = "/static"


class Page(NamedTuple):
    """One page: paths, title and shell; `command` is what the line says before the script runs."""

    name: str
    paths: tuple[str, ...]
    title: str
    shell: str
    command: str
    place: str = ""  # the entry of the navigation that is the present one


HOME = "/workspaces"
NOTHING = "nothing"  # the page of all paths that no other one has
PAGES = (
    Page(NOTHING, (), "There is nothing here", "nothing.html", ""),
    Page("sign_in", ("/sign-in",), "Sign in", "sign_in.html", ""),
    Page("workspaces", (HOME,), "Workspaces", "workspaces.html", "svc ws list", "workspaces"),
    Page(
        "composer", ("/new",), "New workspace", "composer.html",
        "svc ws setup --template TEMPLATE --name NAME && svc ws start NAME", "workspaces",
    ),
    Page(
        "workspace", ("/workspaces/<name>",), "Workspace", "workspace.html", "svc ws get NAME", "workspaces",
    ),
    Page(
        "terminal", ("/workspaces/<name>/terminal",), "Terminal", "terminal.html", "svc ws shell NAME",
        "workspaces",
    ),
    Page(
        "logs", ("/workspaces/<name>/logs",), "Logs", "logs.html", "svc ws logs NAME --follow", "workspaces",
    ),
    Page(
        "monitor", ("/workspaces/<name>/monitor",), "Monitor", "monitor.html", "svc ws monitor NAME",
        "workspaces",
    ),
    Page(
        "apps", ("/workspaces/<name>/apps",), "Apps and ports", "workspace_apps.html",
        "svc ws launchers NAME && svc ws ports NAME", "workspaces",
    ),
    Page(
        "workspace_settings", ("/workspaces/<name>/settings",), "Settings", "workspace_settings.html",
        "svc ws edit NAME --file patch.json", "workspaces",
    ),
    Page("templates", ("/templates",), "Templates", "templates.html", "svc template list", "templates"),
    Page(
        "template", ("/templates/<name>", "/templates/<name>/dockerfile", "/templates/<name>/changes"),
        "Template", "template.html", "svc template get NAME", "templates",
    ),
    Page("images", ("/images",), "Images", "images.html", "svc image overview", "images"),
    Page("files", ("/files", "/files/<name>"), "Files", "files.html", "svc fs roots", "files"),
    Page("activity", ("/activity",), "Activity", "activity.html", "svc api GET /api/audit", "activity"),
    Page("settings", ("/settings",), "Settings", "settings.html", "svc whoami", "settings"),
    Page(
        "settings_tokens", ("/settings/tokens",), "API tokens", "settings.html", "svc token list", "settings",
    ),
    Page(
        "settings_sessions", ("/settings/sessions",), "Sessions", "settings.html",
        "svc api GET /api/auth/sessions", "settings",
    ),
    Page(
        "admin_users", ("/admin/users",), "Users", "admin.html", "svc api GET /api/admin/users", "admin-users"
    ),
    Page(
        "admin_quotas", ("/admin/quotas",), "Quotas", "admin.html", "svc api GET /api/admin/quotas",
        "admin-users",
    ),
    Page("admin_disk", ("/admin/disk",), "Disks", "admin.html", "sudo svc admin disk", "admin-users"),
    Page(
        "admin_templates", ("/admin/templates", "/admin/templates/<name>"), "Template review",
        "template_review.html", "svc template list --review", "admin-templates",
    ),
    Page(
        "admin_registries", ("/admin/registries",), "Registries", "admin.html", "svc image allowlist",
        "admin-registries",
    ),
    Page("admin_gpus", ("/admin/gpus",), "GPUs", "admin.html", "svc ws capacity", "admin-gpus"),
    Page(
        "admin_audit", ("/admin/audit",), "Audit", "admin.html", "svc api GET /api/admin/audit", "admin-audit"
    ),
    Page("admin_host", ("/admin/host",), "Host", "admin.html", "sudo svc admin doctor", "admin-host"),
)  # fmt: skip


@cache
def render() -> dict[str, Content]:
    """The shell of each page by the page's name."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    loaded = assets.load()
    commands = {path: page.command for page in PAGES for path in page.paths}
    shared = {"static": f"{STATIC}/{loaded.digest}", "icons": _icons(), "commands": commands}
    return {
        page.name: content.of(
            environment.get_template(page.shell)
            .render(page=page, pieces=assets.pieces_of(page.name), missing=_missing(page.name), **shared)
            .encode(),
            "text/html; charset=utf-8",
        )
        for page in PAGES
    }


def _missing(page: str) -> pieces.Missing | None:
    return pieces.find_missing(page) if page in pieces.PAGES else None


def _icons() -> dict[str, str]:
    """The paths of the icons, written once, for the scripts: `name: 'path'`, or `name: 'begin' + 'end'`."""
    text = re.sub(r"'\s*\+ '", "", (assets.FOLDER / "frame/icons.js").read_text("utf-8"))
    return dict(re.findall(r"^  (\w+):\s+'([^']+)',$", text, re.MULTILINE))
