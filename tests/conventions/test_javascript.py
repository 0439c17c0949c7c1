"""The verdicts of JavaScript's tools, which tests/run installs beside this Python."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, normpath

from conventions.inspection import JAVASCRIPT, NODE_MODULES, ROOT, javascript, run_node

from svc.web.pages import assets, modules

LINE_MAX = 120

# The folders of the pages' modules, the upper first: one imports itself and those below, also for later.
LAYERS = (
    {"activity", "admin", "composer", "files", "images", "nothing", "settings", "templates", "workspaces"},
    {"live"},  # terminal, logs and monitor of a workspace
    {"workspace"},
    {"screen"},
    {"palette", "sign_in"},
    {"parts"},  # of several screens
    {"frame"},
    {"generated"},
)
FLOORS = {folder: number for number, folders in enumerate(reversed(LAYERS)) for folder in folders}


def test_eslint_finds_nothing() -> None:
    eslint, config = NODE_MODULES / "eslint/bin/eslint.js", JAVASCRIPT / "eslint.config.cjs"
    run_node(eslint, "--config", config, "--max-warnings", "0", *javascript())


def test_types_hold() -> None:
    """Those of JSDoc, and of the records of the API, which schema/api.d.ts has."""
    run_node(NODE_MODULES / "typescript/bin/tsc", "--project", JAVASCRIPT)


def test_the_javascript_is_formatted() -> None:
    """`make format` does it."""
    run_node(JAVASCRIPT / "format.cjs", "--check", *javascript())


def test_no_line_is_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in javascript()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LINE_MAX
    ]
    assert not long


def test_joining_keeps_every_token(tmp_path: Path) -> None:
    """Comments, indentation and the spaces between tokens stay behind, and nothing else."""
    for name, text in assets.sources().items():
        if name.startswith(modules.GENERATED):
            continue
        sources = {"a/a.js": re.sub(r"(?m)^import [^;]*;\n", "", text).replace("import('.", "import_('.")}
        for folder, content in (("joined", modules.join(sources)["a-a.js"]), ("source", sources["a/a.js"])):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name.replace("/", "-")).write_text(content)
    assert run_node(JAVASCRIPT / "tokens.cjs", tmp_path / "joined", tmp_path / "source") == ""


def imports(text: str) -> list[str]:
    """The paths of what a module imports, now or later."""
    return re.findall(r"(?:\bfrom |\bimport\()'(\.[^']*)'", text)


def test_no_folder_of_the_pages_imports_upwards() -> None:
    assert {name.split("/")[0] for name in assets.sources()} == set(FLOORS)
    found = []
    for name, text in assets.sources().items():
        folder = name.split("/")[0]
        for path in imports(text):
            other = normpath(f"{dirname(name)}/{path}").split("/")[0]
            if other in FLOORS and other != folder and FLOORS[other] >= FLOORS[folder]:
                found.append(f"{name} imports {path}")
    assert not found
