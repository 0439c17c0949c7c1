"""ES modules joined into few files: browsers load `app.js` and one more for each screen.

The sources are ordinary modules, which run as they are. `app.js` is all that `frame/` has; a module that
no other one imports is a screen, and its file has what it needs besides. Joining takes out the imports
between the parts of one file, and points the others to `app.js`. All parts of a file share one scope then:
a name that two of them declare is a syntax error, which a test finds first. Comments and indentation stay
behind, and the spaces between tokens, a fourth of what would be sent; eslint has no string span lines.
Of `generated/`, which has a constant for each action, a file has those that its parts import.

A screen may load a part later, by `import('./part.js')`: that module is a file of its own too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from posixpath import dirname, normpath

SHARED = "frame/"
GENERATED = "generated/"
APP = "app.js"

# The only form of an import: names, of a module by its relative path.
_IMPORT = re.compile(r"^import \{\s*([^}]*?),?\s*\} from '(\.\.?/[\w./]+\.js)';\n", re.MULTILINE)
# A part that is loaded later: the same form of a path.
_LATER = re.compile(r"\bimport\('(\.\.?/[\w./]+\.js)'\)")
_CONSTANT = re.compile(r"^export const (\w+) = .*?;\n", re.DOTALL | re.MULTILINE)
# Types of records and their like; eslint holds that no string has the mark.
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/ ?", re.DOTALL)
# Lines of comments, and comments behind code: without quotes or braces, so that none is a part of a string.
_LEFT_OUT = re.compile(r"^[ \t]*//.*\n|[ \t]+//[^\n'\"`{]*$|^[ \t]+|^[ \t]*\n", re.MULTILINE)

# Strings, and templates that end in their line; the rest is code, where no space around these is needed.
_STRING = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)""")
_SPACES = re.compile(r" (?=[{}()\[\],;:?=<>&|!*])|(?<=[{}()\[\],;:?=<>&|!*]) ")
_NOT_CODE = re.compile(r"[`/]|\$\{")  # a part of a template that goes on, or perhaps a regular expression
_OPEN = re.compile(r"\$\{[^}]*$")

# A line without a comment that ends within brackets: the next one may stand in it.
_GOES_ON = re.compile(r"^((?:(?!//).)*[,(\[])\n", re.MULTILINE)


def imports_of(name: str, text: str) -> list[tuple[list[str], str]]:
    """What a module imports: the names, and the module by its path below the folder of all."""
    return [(re.split(r",\s*", names), _below(name, path)) for names, path in _IMPORT.findall(text)]


def _below(name: str, path: str) -> str:
    return normpath(f"{dirname(name)}/{path}")


def parts(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """The files that browsers load, and the modules that each is joined of; a module stands below its needs.

    Raises KeyError for an import of a module that is not there, ValueError for a circle of imports.
    """
    needs = {name: [module for _, module in imports_of(name, text)] for name, text in sorted(sources.items())}
    shared = _in_order([name for name in needs if name.startswith(SHARED)], needs)
    screens = set(needs) - set(shared) - {module for modules in needs.values() for module in modules}
    files = {APP: shared}
    for screen in sorted(screens):
        files[_file_of(screen)] = [part for part in _in_order([screen], needs) if part not in set(shared)]
    return files


def join(sources: Mapping[str, str]) -> dict[str, str]:
    """The files that browsers load, by name; raises as `parts` does."""
    of = cache(_of)  # many files have the same parts
    return {name: _joined(name, modules, sources, of) for name, modules in parts(sources).items()}


def _in_order(names: Iterable[str], needs: Mapping[str, list[str]]) -> list[str]:
    found: list[str] = []

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"a circle of imports: {' '.join((*above, name))}")
        for module in needs[name]:
            add(module, (*above, name))
        if name not in found:
            found.append(name)

    for name in names:
        add(name, ())
    return found


def _file_of(module: str) -> str:
    return module.replace("/", "-")


def _joined(file: str, modules: list[str], sources: Mapping[str, str], of: Callable[[str, str], str]) -> str:
    imports = [found for part in modules for found in imports_of(part, sources[part])]
    of_app = {name for names, module in imports if module.startswith(SHARED) for name in names}
    used = {name for names, module in imports if module.startswith(GENERATED) for name in names}
    head = [f"import {{ {', '.join(sorted(of_app))} }} from './{APP}';"] if file != APP and of_app else []
    return "\n".join([*head, *(of(part, _constants(part, sources[part], used)) for part in modules)])


def _constants(name: str, text: str, used: set[str]) -> str:
    if not name.startswith(GENERATED):
        return text
    return "".join(found[0] for found in _CONSTANT.finditer(text) if found[1] in used)


def _of(name: str, text: str) -> str:
    text = _LATER.sub(lambda found: f"import('./{_file_of(_below(name, found[1]))}')", _IMPORT.sub("", text))
    text = _LEFT_OUT.sub("", _BLOCK_COMMENT.sub("", text))
    return _GOES_ON.sub(r"\1", "\n".join(map(_squeezed, text.split("\n"))))


def _squeezed(line: str) -> str:
    """A line without the spaces between its tokens; as it is where it may have more than strings and code."""
    parts = _STRING.split(line)
    if any(map(_NOT_CODE.search, parts[::2])) or any(map(_OPEN.search, parts[1::2])):
        return line
    return "".join(part if at % 2 else _SPACES.sub("", part) for at, part in enumerate(parts))
