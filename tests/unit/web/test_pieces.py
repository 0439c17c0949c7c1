"""The pieces of the web pages: what a page lacks is said, and nothing but what was pinned is fetched."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from svc.web import pieces

FRONTEND = Path(__file__).parents[3] / "packaging/frontend"
AXE = Path(__file__).parents[2] / "run.d/axe"  # of the tests alone
SUMS = dict(reversed(line.split()) for line in (FRONTEND / "SHA256SUMS").read_text().splitlines())


def test_a_page_says_which_pieces_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "FOLDER", tmp_path)
    for page, names in pieces.PAGES.items():
        missing = pieces.find_missing(page)
        assert missing and missing.files == names
        assert f"The {page} page needs {names[0]}" in missing.message
        assert f"packaging/frontend/fetch {tmp_path}" in missing.hint
        for name in names[:-1]:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        missing = pieces.find_missing(page)
        assert missing and missing.files == names[-1:]
        (tmp_path / names[-1]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / names[-1]).touch()
        assert pieces.find_missing(page) is None


def test_every_piece_has_its_digest_and_its_licence() -> None:
    used = {name for names in pieces.PAGES.values() for name in names}
    assert used == {name for name in SUMS if not name.endswith("/LICENSE")}
    lock = json.loads((FRONTEND / "package-lock.json").read_text())["packages"]
    for name in lock.keys() - {""}:
        package = name.removeprefix("node_modules/")
        assert f"{package}/LICENSE" in SUMS and any(file.startswith(f"{package}/") for file in used)


@pytest.mark.parametrize("folder", [FRONTEND, AXE], ids=lambda folder: folder.name)
def test_the_lock_is_exact_and_names_no_host(folder: Path) -> None:
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    lock = json.loads((folder / "package-lock.json").read_text())
    for package, version in wanted.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), package
        locked = lock["packages"][f"node_modules/{package}"]
        assert locked["version"] == version and locked["integrity"].startswith("sha512-")
    for path in folder.iterdir():
        assert "://" not in path.read_text(), path


@pytest.mark.allow_commands("fetch")
def test_a_file_without_its_digest_is_not_installed(tmp_path: Path) -> None:
    for name in SUMS:
        (tmp_path / "from" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "from" / name).write_text("another")
    done = subprocess.run(
        [FRONTEND / "fetch", tmp_path / "to"],
        env={"PATH": os.environ["PATH"], "SVC_PIECES": str(tmp_path / "from"), "LANG": "C"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "is not the one of packaging/frontend/SHA256SUMS" in done.stderr
    assert not (tmp_path / "to").exists()


@pytest.mark.allow_commands("fetch")
def test_without_npm_the_way_on_is_named(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("dirname", "mktemp", "rm"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run(
        [FRONTEND / "fetch", tmp_path / "to"],
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "npm is missing" in done.stderr and "SVC_PIECES=DIR" in done.stderr


@pytest.mark.allow_commands("fetch")
def test_another_lock_has_digests_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "from/one").mkdir(parents=True)
    (tmp_path / "from/one/file.js").write_text("text")
    digest = hashlib.sha256(b"text").hexdigest()
    for line, code in ((f"{digest}  one/file.js\n", 0), (f"{'0' * 64}  one/file.js\n", 1)):
        (tmp_path / "SHA256SUMS").write_text(line)
        done = subprocess.run(
            [FRONTEND / "fetch", tmp_path / "to", tmp_path],
            env={"PATH": os.environ["PATH"], "SVC_PIECES": str(tmp_path / "from"), "LANG": "C"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        assert code == 0 or f"{tmp_path}/SHA256SUMS" in done.stderr
        assert (tmp_path / "to/one/file.js").read_text() == "text"
