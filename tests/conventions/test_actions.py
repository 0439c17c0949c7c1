"""The table of actions is the only place that says them: no row without use, no change without a row."""

from __future__ import annotations

import re
import sys

from conventions.inspection import ROOT

from svc.actions.export import program_of
from svc.actions.table import BY_NAME, TABLE
from svc.settings import Settings
from svc.web.access import routes_of
from svc.web.app import build

sys.path.append(str(ROOT / "docs"))

import browser_commands

STATIC = ROOT / "svc/web/pages/static"
# Commands of rows in another form than the row's: they are written out where they are shown.
OTHER_FORMS = {
    "svc ws edit": "a patch from a file",
    "svc template create": "a Dockerfile, without a file",
    "svc admin audit archive": "rows before a day",
    "svc admin disk": "shows, and measures nothing",
}
SENTENCES = ROOT / "svc/web/pages/static/activity/sentences.js"
# Rows that are looked up by a verb: "fs.list", "admin.registries.login".
BY_VERB = re.compile(r"fs\.\w+|admin\.registries\.\w+")
# Requests that change something and are no action of their own: a part of one, or nothing that the audit has.
NO_ACTION = {
    ("PUT", "/api/templates/<ref>/dockerfile"): "template.edit",
    ("PUT", "/api/templates/<ref>/context"): "template.edit",
    ("PUT", "/api/templates/<ref>/context/file"): "template.edit",
    ("DELETE", "/api/templates/<ref>/context/file"): "template.edit",
    ("DELETE", "/api/auth/sessions"): "auth.session_end",
    ("POST", "/api/tickets"): "a ticket is for one request, which is audited",
    ("POST", "/api/workspaces/recommend"): "it reads",
    ("POST", "/api/workspaces/check"): "it reads",
}


def test_every_row_is_used() -> None:
    code = "\n".join(
        path.read_text() for path in (ROOT / "svc").rglob("*.py") if path.parent.name != "actions"
    )
    unused = [row for row in TABLE if not re.search(rf"\b{row.upper().replace('.', '_')}\b", code)]
    assert not [row for row in unused if not BY_VERB.fullmatch(row)]


def test_every_request_that_changes_something_is_an_action() -> None:
    app = build(Settings(environ={}, file={}), None, listener="unix", dev=False)
    rows = {(row.method, "/api" + row.path.replace("{", "<").replace("}", ">")) for row in TABLE if row.path}
    routes = routes_of(app)
    found = {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in rule.methods or ()
        if routes[rule.endpoint].status != 501
    }
    assert rows <= found
    changing = {(method, path) for method, path in found if method not in ("GET", "HEAD", "OPTIONS")}
    assert changing - rows == set(NO_ACTION)


def test_every_command_of_a_row_is_one() -> None:
    known = {f"svc {command}" for command in browser_commands.places()}
    assert not [row.command for row in TABLE if row.command and program_of(row) not in known]


def test_the_pages_take_the_commands_of_rows() -> None:
    """A command is a list there, whose first part is a row, or the words of a command without one."""
    programs = {program_of(row) for row in TABLE}
    text = "\n".join(path.read_text() for path in STATIC.rglob("*.js") if path.parent.name != "generated")
    written = {f"svc {words}" for words in re.findall(r"\['([a-z][a-z -]*)'", text)}
    assert written & programs == set(OTHER_FORMS)
    assert not re.findall(r"[`'](?:sudo )?svc [a-z][^`']*\$\{", text)  # a command as a template


def test_the_screen_of_activity_has_no_other_actions() -> None:
    text = SENTENCES.read_text()
    assert set(re.findall(r"(?m)^  '([a-z_]+\.[a-z_.]+)':", text)) <= set(BY_NAME)
