"""The page docs/modules.md: every folder and module in one line, and the import directions.

Made from the docstrings and from the layers contracts in setup.cfg, so it cannot
drift from the code.
"""

from __future__ import annotations

import ast
import configparser
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("svc", "svc_helper", "schema")
INTRODUCTION = """\
# Modules

Every folder and module, by the first line of its docstring. Which folder is for what, and
where a sentence of the specification is kept, is in [code-map.md](code-map.md).

## Import directions

A module imports from its own layer's folder and from the layers below it; layers on one line do
not import each other. `tests/run conventions` fails for an arrow that points upwards and for a
module without a layer.
"""


def first_line(path: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


def row(path: Path) -> str:
    """The line of a module in its folder's table."""
    text = first_line(path).replace("|", "\\|")
    return f"| `{path.name}` | {text} |\n"


def layers() -> Iterator[tuple[str, str, list[str]]]:
    """Each layers contract of setup.cfg: its name, its package, its layers from the top down."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    for section in config.sections():
        if section.startswith("importlinter:contract:") and config[section]["type"] == "layers":
            contract = config[section]
            yield contract["name"], contract["containers"], contract["layers"].strip().splitlines()


def folders() -> Iterator[Path]:
    """The packages, each before those inside it."""
    for package in PACKAGES:
        yield from sorted(path.parent for path in (ROOT / package).rglob("__init__.py"))


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for name, container, rows in layers():
        diagram = "\n".join(f"    {row}" for row in rows)
        parts.append(f"{name} (`{container}`):\n\n{diagram}\n")
    for folder in folders():
        name = folder.relative_to(ROOT)
        parts.append(f"## {name}/\n\n{first_line(folder / '__init__.py')}\n")
        modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        rows = "".join(row(path) for path in modules)
        if rows:
            parts.append(f"| module | |\n|---|---|\n{rows}")
    return "\n".join(parts)
