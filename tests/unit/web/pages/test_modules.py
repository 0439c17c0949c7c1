"""Modules joined into few files: imports, scopes, and what is left of the sources."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from svc.web.pages import assets, modules


def test_imports_between_parts_go_and_others_are_pointed_to_the_file() -> None:
    sources = {part: f"export const n_{number} = {number};\n" for number, part in enumerate(modules.HOMES)}
    sources["dom.js"] = "import { n_0 } from './icons.js';\nexport const dom = n_0;\n"
    sources["workspaces.js"] = (
        "import { dom } from './dom.js';\nimport { n_2, n_3 } from './words.js';\n"
        "import { n_9 } from './headroom.js';\ndom();\n"
    )
    sources["alone.js"] = "import { dom } from './dom.js';\nimport { x } from './other.js';\n"
    sources["other.js"] = "export const x = 1;\n"
    joined = modules.join(sources)
    assert set(joined) == {*modules.JOINED, "alone.js", "other.js"}
    assert "import" not in joined["app.js"]
    assert joined["workspaces.js"].startswith("import { dom, n_2, n_3 } from './app.js';\n")
    assert joined["workspaces.js"].count("import") == 1
    assert joined["alone.js"] == "import { dom } from './app.js';\nimport { x } from './other.js';\n" or set(
        joined["alone.js"].splitlines()
    ) >= {"import { dom } from './app.js';", "import { x } from './other.js';"}


def test_a_missing_part_is_an_error() -> None:
    with pytest.raises(KeyError):
        modules.join({"dom.js": ""})


def test_every_import_is_of_the_form_that_is_joined_and_names_what_is_exported() -> None:
    sources = {
        path.name: path.read_text() for path in assets.FOLDER.glob("*.js") if path.name != assets.THEME
    }
    exports = {
        name: set(re.findall(r"^export (?:async )?(?:const|function|class) (\w+)", text, re.MULTILINE))
        for name, text in sources.items()
    }
    for name, text in sources.items():
        imports = re.findall(r"^import \{ ([^}\n]*) \} from '\./(\w+\.js)';$", text, re.MULTILINE)
        assert len(imports) == len(re.findall(r"\bimport\b[ ({*]", re.sub(r"//.*", "", text))), name
        for words, module in imports:
            assert set(words.split(", ")) <= exports[module], f"{name} imports {words} of {module}"
            for word in words.split(", "):  # and uses all of it
                assert len(re.findall(rf"\b{word}\b", text)) > 1, f"{name} does not use {word}"


def test_no_two_parts_of_a_file_declare_one_name() -> None:
    """They share one scope: the browser would refuse the whole file."""
    for name, parts in modules.JOINED.items():
        declared = [
            word
            for part in parts
            for word in re.findall(
                r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)",
                (assets.FOLDER / part).read_text(),
                re.MULTILINE,
            )
        ]
        assert sorted(set(declared)) == sorted(declared), name


@pytest.mark.allow_commands("node")
@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_joined_files_are_modules(tmp_path: Path) -> None:
    for name, content in assets.load().files.items():
        if name.endswith(".js"):
            path = tmp_path / name.replace(".js", ".mjs")
            path.write_bytes(content.body)
            checked = subprocess.run(["node", "--check", path], capture_output=True, text=True, check=False)
            assert checked.returncode == 0, checked.stderr
