"""The page docs/modules.md: every folder and module in one line, and the import directions.

Made from the docstrings and from the layers contracts in .importlinter, so it cannot
drift from the code.
"""

from __future__ import annotations

import ast
import configparser
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("svc", "svc_helper", "schema")
INTRODUCTION = """\
# Modules

Every folder and module, by the first line of its docstring. Which folder is for what, and
where a sentence of the specification is kept, is in [code-map.md](code-map.md).

## Import directions

Each folder has layers, shown above its modules: a module or folder imports from the lines below its own,
never from the same line or from those above. Where no lines are shown, modules do not import each other.
`tests/run conventions` fails for an import that points upwards, for one that closes a circle, and for a
module without a line in `.importlinter`.
"""


def first_line(path: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


def row(path: Path) -> str:
    """The line of a module in its folder's table."""
    text = first_line(path).replace("|", "\\|")
    return f"| `{path.name}` | {text} |\n"


def layers() -> dict[str, str]:
    """The layers of each package that has a contract of them in .importlinter, from the top down."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    contracts = (config[name] for name in config.sections() if name.startswith("importlinter:contract:"))
    return {
        contract["containers"]: contract["layers"].strip()
        for contract in contracts
        if contract["type"] == "layers"
    }


def folders() -> Iterator[Path]:
    """The packages, each before those inside it."""
    for package in PACKAGES:
        yield from sorted(path.parent for path in (ROOT / package).rglob("__init__.py"))


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    diagrams = layers()
    for folder in folders():
        name = folder.relative_to(ROOT)
        parts.append(f"## {name}/\n\n{first_line(folder / '__init__.py')}\n")
        if diagram := diagrams.get(".".join(name.parts)):
            parts.append(textwrap.indent(diagram, "    ") + "\n")
        modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        rows = "".join(row(path) for path in modules)
        if rows:
            parts.append(f"| module | |\n|---|---|\n{rows}")
    return "\n".join(parts)
