"""Modules joined into few files: imports, scopes, and what is left of the sources."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from svc.web.pages import assets, modules, shells

NODE = Path(sys.executable).with_name("node")  # tests/run installs it
SOURCES = {
    "frame/a.js": "export const a = 1;\n",
    "frame/b.js": "import { a } from './a.js';\nexport const b = a;\n",
    "list/row.js": "import { a } from '../frame/a.js';\nexport const row = a;\n",
    "list/screen.js": "import {\n  b,\n} from '../frame/b.js';\nimport { row } from './row.js';\nrow(b);\n",
    "other/screen.js": "import { row } from '../list/row.js';\nrow();\n",
    "still/screen.js": "1;\n",
}


def test_what_a_module_needs_stands_before_it() -> None:
    assert modules.parts(SOURCES) == {
        "app.js": ["frame/a.js", "frame/b.js"],
        "list-screen.js": ["list/row.js", "list/screen.js"],
        "other-screen.js": ["list/row.js", "other/screen.js"],
        "still-screen.js": ["still/screen.js"],
    }


def test_imports_between_parts_go_and_others_are_pointed_to_the_file() -> None:
    joined = modules.join(SOURCES)
    assert joined["app.js"] == "export const a=1;\n\nexport const b=a;\n"
    assert joined["list-screen.js"] == ("import { a, b } from './app.js';\nexport const row=a;\n\nrow(b);\n")
    assert joined["still-screen.js"] == "1;\n"


def test_comments_and_indentation_stay_behind() -> None:
    source = (
        "// What it is.\n\nlet a = 'a // b'; // an address: https://x\nlet d = 1; // it isn't\n"
        "if (a) {\n  // why\n  a = 2;\n}\n"
        "/**\n * What it does.\n * @param {string} b\n */\nlet c = /** @type {string} */ (null);\n"
    )
    assert modules.join({"list/screen.js": source})["list-screen.js"] == (
        "let a='a // b';\nlet d = 1; // it isn't\nif(a){\na=2;\n}\nlet c=(null);\n"
    )


@pytest.mark.parametrize(
    ("line", "joined"),
    [
        ("const a = { b: [1, 2], c: x => x ? y : null };", "const a={b:[1,2],c:x=>x?y:null};"),
        ("say('a, b', \"c : d\", `e = f`);", "say('a, b',\"c : d\",`e = f`);"),
        ("a = b - -c + +d;", "a=b - -c + +d;"),
        ("say(`a, ${b} : c`, d);", "say(`a, ${b} : c`,d);"),
        ("say(`a, ${b ? `c, d` : e}`, f);", "say(`a, ${b ? `c, d` : e}`, f);"),
        ("}, b, ${", "}, b, ${"),
        ("a = /b, c/.test(d);", "a = /b, c/.test(d);"),
        ("a = b / c;", "a = b / c;"),
    ],
)
def test_spaces_between_tokens_stay_behind(line: str, joined: str) -> None:
    """In a line that has nothing else than strings and code."""
    assert modules.join({"list/screen.js": f"{line}\n"})["list-screen.js"] == f"{joined}\n"


def test_a_file_has_the_constants_that_its_parts_import() -> None:
    sources = {
        "generated/rows.js": "export const A = {\n  a: 1,\n};\nexport const B = 2;\nexport const C = 3;\n",
        "list/row.js": "import { A } from '../generated/rows.js';\nexport const row = A;\n",
        "list/screen.js": (
            "import { C } from '../generated/rows.js';\nimport { row } from './row.js';\nrow(C);\n"
        ),
    }
    assert modules.join(sources)["list-screen.js"] == (
        "export const A={\na:1,};\nexport const C=3;\n\nexport const row=A;\n\nrow(C);\n"
    )


def test_a_part_that_is_loaded_later_is_a_file_of_its_own() -> None:
    sources = {
        "list/screen.js": "const { part } = await import('./part.js');\nawait import('../other/part.js');\n",
        "list/part.js": "export const part = 1;\n",
        "other/part.js": "export const part = 2;\n",
    }
    joined = modules.join(sources)
    assert sorted(joined) == ["app.js", "list-part.js", "list-screen.js", "other-part.js"]
    assert "import('./list-part.js')" in joined["list-screen.js"]
    assert "import('./other-part.js')" in joined["list-screen.js"]


def test_a_missing_module_and_a_circle_are_errors() -> None:
    with pytest.raises(KeyError):
        modules.join({"list/screen.js": "import { a } from '../frame/a.js';\n"})
    circle = {"frame/a.js": "import { b } from './b.js';\n", "frame/b.js": "import { a } from './a.js';\n"}
    with pytest.raises(ValueError, match=r"a circle of imports: frame/a.js frame/b.js frame/a.js"):
        modules.join(circle)


def test_every_import_is_of_the_form_that_is_joined_and_names_what_is_exported() -> None:
    sources = assets.sources()
    exports = {
        name: set(re.findall(r"^export (?:async )?(?:const|let|function|class) (\w+)", text, re.MULTILINE))
        for name, text in sources.items()
    }
    for name, text in sources.items():
        imports = modules.imports_of(name, text)
        assert len(imports) == len(re.findall(r"^\s*import\b", text, re.MULTILINE)), name
        for words, module in imports:
            assert set(words) <= exports[module], f"{name} imports {words} of {module}"
            for word in words:  # and uses all of it
                assert len(re.findall(rf"\b{word}\b", text)) > 1, f"{name} does not use {word}"


def test_no_two_parts_of_a_file_declare_one_name() -> None:
    """They share one scope, with what is imported of app.js: the browser would refuse the whole file."""
    sources = assets.sources()
    joined = modules.join(sources)
    for file, names in modules.parts(sources).items():
        text = "".join(sources[name] for name in names)
        form = r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)"
        declared = re.findall(form, text, re.MULTILINE)
        imported = set(re.findall(r"^import .*", joined[file], re.MULTILINE))
        words = declared + [word for line in imported for word in re.findall(r"\w+", line.split("}")[0])[1:]]
        assert sorted(set(words)) == sorted(words), file


def test_every_file_is_the_script_of_a_shell() -> None:
    """A module that nobody imports is a screen or loaded later, and one that is neither is dead."""
    text = " ".join(page.body.decode() for page in shells.render().values())
    used = set(re.findall(r"/([\w-]+\.js)\"", text))
    later = {name for text in modules.join(assets.sources()).values() for name in _later(text)}
    assert set(modules.parts(assets.sources())) == (used - {assets.THEME}) | later


def test_a_part_that_is_loaded_later_has_no_screen_of_its_own() -> None:
    """screen/page.js knows the screen that it has begun; a second copy would know none."""
    found = modules.parts(assets.sources())
    later = {name for text in modules.join(assets.sources()).values() for name in _later(text)}
    assert [name for name in later if "screen/page.js" in found[name]] == []


def _later(text: str) -> list[str]:
    return re.findall(r"import\('\./([\w-]+\.js)'\)", text)


@pytest.mark.allow_commands("node")
def test_the_joined_files_are_modules(tmp_path: Path) -> None:
    for name, content in assets.load().files.items():
        if name.endswith(".js"):
            path = tmp_path / name.replace(".js", ".mjs")
            path.write_bytes(content.body)
            checked = subprocess.run([NODE, "--check", path], capture_output=True, text=True, check=False)
            assert checked.returncode == 0, checked.stderr


@pytest.mark.allow_commands("node")
@pytest.mark.parametrize(
    ("next_", "destination"),
    [
        ("/workspaces/lab?tab=logs", "/workspaces/lab?tab=logs"),
        ("/templates/a%2520b", "/templates/a%20b"),
        ("", "/workspaces"),
        ("/sign-in", "/workspaces"),
        ("https://evil.example/", "/workspaces"),
        ("javascript:alert(1)", "/workspaces"),
        ("//evil.example/", "/workspaces"),
        ("%2F%2Fevil.example/", "/workspaces"),
        ("/\\evil.example", "/workspaces"),
        ("/%09/evil.example", "/workspaces"),
        ("/%0A%5Cevil.example", "/workspaces"),
        ("/.//evil.example/", "/workspaces"),
        ("/%252e//evil.example/", "/workspaces"),
        ("/a/..//evil.example/", "/workspaces"),
        ("/.\\\\evil.example/", "/workspaces"),
        ("/%09/[", "/workspaces"),  # no address at all
    ],
)
def test_a_login_leads_to_a_path_of_the_service_alone(tmp_path: Path, next_: str, destination: str) -> None:
    module = tmp_path / "destination.mjs"
    module.write_bytes((assets.FOLDER / "sign_in/destination.js").read_bytes())
    script = f"import {{ destinationOf }} from '{module}'; console.log(destinationOf(process.argv[1]))"
    address = f"https://host.example:8443/sign-in?next={next_}"
    command = [NODE, "--input-type=module", "--eval", script, address]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{destination}\n", "")
