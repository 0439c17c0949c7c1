"""ES modules joined into few files: browsers load `app.js` and one more for each screen.

The sources are ordinary modules, which run as they are. Joining takes out the imports between the parts of
one file, and points the others to the file that has the part. All parts of a file share one scope then: a
name that two of them declare is a syntax error, which a test finds first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# In this order: a part stands below those whose constants it uses while it loads. All else is by itself.
JOINED = {
    "app.js": (
        "icons.js",
        "dom.js",
        "words.js",
        "api.js",
        "events.js",
        "line.js",
        "notices.js",
        "sign_in_form.js",
        "frame.js",
    ),
    "workspaces.js": ("headroom.js", "workspace_row.js", "workspaces.js"),
}
HOMES = {part: name for name, parts in JOINED.items() for part in parts}

# The only form of an import: names, of a module in the same folder, on one line.
_IMPORT = re.compile(r"^import \{ ([^}\n]*) \} from '\./(\w+\.js)';\n", re.MULTILINE)


def join(sources: Mapping[str, str]) -> dict[str, str]:
    """The modules that browsers load, by name; raises KeyError without one of the parts."""
    names = {HOMES.get(source, source) for source in sources}
    return {name: _joined(name, [sources[part] for part in JOINED.get(name, (name,))]) for name in names}


def _joined(name: str, parts: list[str]) -> str:
    imported: dict[str, set[str]] = {}
    for part in parts:
        for imports, module in _IMPORT.findall(part):
            home = HOMES.get(module, module)
            if home != name:
                imported.setdefault(home, set()).update(imports.split(", "))
    lines = [f"import {{ {', '.join(sorted(names))} }} from './{home}';" for home, names in imported.items()]
    return "\n".join([*sorted(lines), *(_IMPORT.sub("", part) for part in parts)])
