"""Every action of the audit has its sentence on the activity screen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from conventions.inspection import ROOT

SENTENCES = ROOT / "svc/web/pages/static/activity/sentences.js"
ACTION = re.compile(r"[a-z]+\.[a-z_.]+")
# The functions that record an action, which is one of their arguments.
RECORDING = {
    "add", "append", "begin", "end", "audited", "changing_nothing", "count", "note", "_changing",
    "_opening_audited",
}  # fmt: skip
# Actions that are put together: where, and which they come to.
COMPOSED = {
    ("svc/admin/policy/registry.py", "f'admin.{verb}'"): {
        "admin.registries.login",
        "admin.registries.logout",
    },
    ("svc/domain/files/fs.py", "f'fs.{verb}'"): set(),  # the routes name them
    ("svc/domain/operations.py", "ACTIONS[kind]"): {"image.pull", "image.build", "workspace.setup"},
    ("svc/domain/templates/reviews.py", "f\"template.{status.removesuffix('d')}\""): {
        "template.enable",
        "template.disable",
    },
}


def _constants(tree: ast.AST) -> dict[str, str]:
    """The names of a module that stand for an action."""
    found = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        pairs = (
            zip(target.elts, value.elts, strict=False)
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            else [(target, value)]
        )
        for name, text in pairs:
            if isinstance(name, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str):
                found[name.id] = text.value
    return found


def _arguments(call: ast.Call) -> list[ast.expr]:
    """What is given to a function that records; nothing for another call."""
    match call.func:
        case ast.Name(name):
            pass
        case ast.Attribute(ast.Name("audit"), name):
            pass
        case _:
            return []
    if name == "partial" and call.args:
        return _arguments(ast.Call(call.args[0], call.args[1:], []))
    routed = [key.value for key in call.keywords if key.arg == "action"] if name == "route" else []
    return [*routed, *(call.args if name in RECORDING else [])]


def _recorded(path: Path) -> Iterator[tuple[str, str]]:
    """Each action that a module names, and each expression that gives one."""
    tree = ast.parse(path.read_text())
    constants = _constants(tree)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        for argument in _arguments(call):
            if isinstance(argument, ast.Constant):
                text = argument.value
            else:
                text = constants.get(argument.id, "") if isinstance(argument, ast.Name) else ""
            if isinstance(text, str) and ACTION.fullmatch(text):
                yield text, ""
            elif isinstance(argument, ast.JoinedStr | ast.Subscript):
                yield "", ast.unparse(argument)


def test_every_action_has_a_sentence_and_every_sentence_an_action() -> None:
    actions, composed = set(), set()
    for path in sorted((ROOT / "svc").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.startswith("svc/cli/"):
            continue  # a client: it records nothing
        for action, expression in _recorded(path):
            if action:
                actions.add(action)
            elif (place, expression) in COMPOSED or re.match(r"f['\"][a-z]+\.\{", expression):
                composed.add((place, expression))
    assert composed == set(COMPOSED)
    told = set(re.findall(r"(?m)^  '([a-z_.]+)': \['", SENTENCES.read_text()))
    assert told == actions.union(*COMPOSED.values())
