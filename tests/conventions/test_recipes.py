"""docs/recipes.md holds: each recipe's patch applies to this tree, and its commands succeed after it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from conventions.inspection import ROOT

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
PROMISED = {
    "action",
    "command",
    "setting",
    "error",
    "helper verb",
    "migration",
    "workspace field",
    "doctor check",
}


class Recipe(NamedTuple):
    """One section of the page: its heading, its patch, its commands."""

    heading: str
    patch: str
    commands: str


def recipes() -> list[Recipe]:
    """The sections that hold a patch."""
    found = []
    for section in re.split(r"^## ", (ROOT / "docs/recipes.md").read_text(), flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"^```(diff|sh)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        patch = "".join(text for kind, text in blocks if kind == "diff")
        commands = "".join(text for kind, text in blocks if kind == "sh")
        if patch:
            found.append(Recipe(section.partition("\n")[0], patch, commands))
    return found


def test_every_promised_recipe_is_there() -> None:
    assert {recipe.heading.lower().removeprefix("a ").removeprefix("an ") for recipe in recipes()} == PROMISED


def test_an_action_is_five_files() -> None:
    """With its test; all else is generated from its row."""
    (recipe,) = (recipe for recipe in recipes() if recipe.heading == "An action")
    assert recipe.patch.count("diff --git ") <= 5


@pytest.mark.depth("merge", "each applies a change and runs its tests")
@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.heading)
def test_a_recipe_works(recipe: Recipe, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT, symlinks=True)
    environment = {
        "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "PYTHON": sys.executable,
        "SVC_TEST_ENVIRONMENT": sys.prefix,
    }

    def run(command: list[str], text: str = "") -> None:
        done = subprocess.run(command, cwd=tree, env=environment, input=text, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.fail(
                f"{recipe.heading}: {command}\n{done.stdout[-4000:]}{done.stderr[-4000:]}", pytrace=False
            )

    run(["git", "apply", "--whitespace=nowarn", "-"], recipe.patch)
    assert recipe.commands, "a recipe ends with the commands that show it"
    run(["bash", "-euxc", recipe.commands])
