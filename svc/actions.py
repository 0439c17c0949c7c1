"""What a button does where an error says what to type: the commands of hints as requests to the API.

One table for all errors. A hint without a row here needs a terminal, root, or a person's decision: nothing
that deletes is a button beside an error. svc.web.errors leaves out what the caller may not request.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False  # as typing's own: svc.errors is imported by quick commands
if TYPE_CHECKING:
    from typing import Any

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"  # names and ids, which need no quoting in a shell or a path


class Row:
    """One command: its form, the button's label, the request; `{1}` is the form's first name.

    A form that ends with JSON has it as the body; else `body` holds the request's.
    """

    def __init__(self, form: str, label: str, method: str, path: str, **body: str) -> None:
        self.form, self.label, self.method, self.path, self.body = form, label, method, path, body
        pattern = re.escape(form).replace("NAME", f"({NAME})").replace("JSON", r"(\{.*\})")
        self.pattern = re.compile(pattern)


TEMPLATES, WORKSPACES = "/api/templates", "/api/workspaces"
TABLE = (
    Row("svc image pull NAME --wait", "Pull the image", "POST", f"{TEMPLATES}/{{1}}/image/pull"),
    Row("svc image build NAME --wait", "Build the image", "POST", f"{TEMPLATES}/{{1}}/image/build"),
    Row("svc template enable NAME", "Enable the template", "POST", f"{TEMPLATES}/{{1}}/enable"),
    Row("svc template disable NAME", "Disable the template", "POST", f"{TEMPLATES}/{{1}}/disable"),
    Row(
        "svc template clone NAME --name NAME", "Clone it as {2}", "POST", f"{TEMPLATES}/{{1}}/clone",
        name="{2}",
    ),
    Row("svc ws start NAME", "Start {1}", "POST", f"{WORKSPACES}/{{1}}/start"),
    Row("svc ws stop NAME", "Stop {1}", "POST", f"{WORKSPACES}/{{1}}/stop"),
    Row("svc ws restart NAME", "Restart {1}", "POST", f"{WORKSPACES}/{{1}}/restart"),
    Row("svc ws upgrade NAME --dry-run", "Show what changes", "GET", f"{WORKSPACES}/{{1}}/upgrade"),
    Row(
        "svc ws rename NAME --name NAME", "Rename it to {2}", "POST", f"{WORKSPACES}/{{1}}/rename",
        name="{2}",
    ),
    Row("svc ws edit NAME --file - <<< 'JSON'", "Change {1}", "PATCH", f"{WORKSPACES}/{{1}}"),
    Row("echo 'JSON' | svc ws edit NAME --file -", "Change {1}", "PATCH", f"{WORKSPACES}/{{1}}"),
    Row(
        "svc ws setup --template NAME --name NAME", "Set up {2}", "POST", f"{WORKSPACES}/setup",
        template="{1}", name="{2}",
    ),
    Row("svc ws logs NAME", "Show its output", "GET", f"{WORKSPACES}/{{1}}/logs"),
    Row(
        "svc ws logs NAME --launcher NAME", "Show its output", "GET",
        f"{WORKSPACES}/{{1}}/launchers/{{2}}/logs",
    ),
    Row("svc operation watch NAME", "Show the progress", "GET", "/api/operations/{1}"),
    Row("svc operation log NAME", "Show the log", "GET", "/api/operations/{1}/log"),
)  # fmt: skip


def of_hint(hint: str) -> dict[str, Any] | None:
    """{label, method, path, body} of a hint's first command; None where a button cannot do it."""
    first = hint.partition(" && ")[0]
    for row in TABLE:
        if match := row.pattern.fullmatch(first):
            return _filled(row, match.groups())
    return None


def _filled(row: Row, groups: tuple[str, ...]) -> dict[str, Any] | None:
    names = ["", *(group for group in groups if not group.startswith("{"))]
    body: Any = {key: value.format(*names) for key, value in row.body.items()}
    if len(names) <= len(groups):
        [document] = (group for group in groups if group.startswith("{"))
        try:
            body = json.loads(document)
        except ValueError:
            return None
    return {
        "label": row.label.format(*names), "method": row.method, "path": row.path.format(*names),
        "body": None if row.method == "GET" else body,
    }  # fmt: skip
