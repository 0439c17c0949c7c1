"""The files that an image is built with: from a project's directory, and changed one by one."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e import operations
from e2e.installation import Call, Outcome
from e2e.registries import REPOSITORY
from e2e.surroundings import must

USER = "tse-kim"
SCRIPT = b"#!/bin/sh\necho app of $(cat /app/requirements.txt)\n"
FILES = {
    "requirements.txt": b"flask==3.0\n",
    "app/__init__.py": b"",
    "app/main.py": b"print('hello')\n",
    "bin/start": SCRIPT,
    "notes/secret.env": b"KEY=1\n",
    "notes/keep.md": b"kept\n",
    ".dockerignore": b"# what stays here\n.git\n**/*.pyc\nnotes/*\n!notes/keep.md\nvenv/",
    ".git/HEAD": b"ref: refs/heads/main\n",
    "app/__pycache__/main.pyc": b"\0",
}
SENT = [
    ".dockerignore",
    "Dockerfile",
    "app/__init__.py",
    "app/main.py",
    "bin/start",
    "notes/keep.md",
    "requirements.txt",
]


@pytest.fixture(scope="module", autouse=True)
def allowed(policy: list[str], fetchers: None) -> None:
    """All the registries that the tests name."""


def own(*paths: Path) -> None:
    """Give files to the user."""
    account = pwd.getpwnam(USER)
    for path in paths:
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)


@pytest.fixture
def project(registry: str) -> Iterator[Path]:
    """A project in the user's home, as one may come from anywhere."""
    root = Path(pwd.getpwnam(USER).pw_dir, "web-app")
    text = f"FROM {registry}/{REPOSITORY}:1\nCOPY . /app\nRUN ls /app/notes && /app/bin/start\n"
    for name, content in {**FILES, "Dockerfile": text.encode()}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (root / "bin/start").chmod(0o755)
    (root / "venv").mkdir()
    (root / "venv/python").symlink_to("/usr/bin/python3")
    own(root, *root.rglob("*"))
    yield root
    shutil.rmtree(root)


@pytest.fixture
def gone(kim: Call) -> Iterator[None]:
    """No template of a test is left."""
    yield
    for one in kim("template", "list", "--json").json()["items"]:
        if one["owner"] == USER:
            kim("api", "DELETE", f"/api/templates/{one['id']}/image")
            must(kim("template", "delete", one["id"], "--yes"))


def listed(call: Call, template: str) -> dict[str, dict[str, Any]]:
    """The files of a template's context."""
    return {one["path"]: one for one in must(call("template", "context", template, "--json")).json()["items"]}


def refused(outcome: Outcome, message: str, hint: str = "") -> None:
    """A command that failed with these words."""
    assert (outcome.code, outcome.out) == (1, ""), outcome
    assert message in outcome.err and hint in outcome.err, outcome.err


def test_a_project_is_built_and_changed(kim: Call, project: Path, gone: None) -> None:
    """ "A clone has its own editable build context"; "A Dockerfile-backed clone or import must be built
    before it can be enabled".
    """
    made = must(
        kim("template", "create", "--dockerfile", "web-app/Dockerfile", "--context", "web-app", "--json")
    )
    record = made.json()
    assert (record["name"], record["status"], record["source"]["context_files"]) == (
        "web-app",
        "disabled",
        len(SENT),
    )
    files = listed(kim, "web-app")
    assert sorted(files) == SENT
    assert [path for path, one in files.items() if one["executable"]] == ["bin/start"]
    must(kim("image", "build", "web-app", "--wait"))
    log = operations.log(kim, must(kim("image", "builds", "--json")).json()["items"][0]["id"])
    assert "app of flask==3.0" in log and "keep.md" in log and "secret.env" not in log, log
    must(kim("template", "enable", "web-app"))

    must(kim("template", "clone", "web-app", "--name", "mine"))
    setting = ("template", "context", "mine", "--set")
    must(kim(*setting, "requirements.txt", "--file", "-", stdin="django==5\n"))
    assert must(kim("template", "context", "mine", "--get", "requirements.txt")).out == "django==5\n"
    assert must(kim("template", "context", "web-app", "--get", "requirements.txt")).out == "flask==3.0\n"
    must(kim(*setting, "bin/start", "--file", "-", stdin="#!/bin/sh\necho new\n"))
    must(kim("template", "context", "mine", "--get", "bin/start", "--out", "web-app/started"))
    assert (project / "started").stat().st_mode & 0o111  # as it was
    must(kim("image", "build", "mine", "--wait"))
    log = operations.log(kim, must(kim("image", "builds", "--json")).json()["items"][0]["id"])
    assert "new\n" in log, log
    must(kim("template", "enable", "mine"))
    removed = must(kim("template", "context", "mine", "--remove", "app/main.py"))
    assert removed.out.split("\t")[1:4] == ["mine", "private", "disabled"]
    assert "build it once, as it is now" in kim("template", "enable", "mine").err
    assert must(kim("template", "get", "web-app", "--json")).json()["status"] == "enabled"

    # back to the directory, then to a tar as any program writes it
    must(kim("template", "context", "mine", "--replace", "web-app"))
    assert sorted(listed(kim, "mine")) == sorted([*SENT, "started"])
    with tarfile.open(project / "some.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.add(project / "bin", "./bin")
    must(kim("template", "context", "mine", "--replace", "web-app/some.tar.gz"))
    assert {path: one["executable"] for path, one in listed(kim, "mine").items()} == {"bin/start": True}


def test_a_directory_is_imported(kim: Call, project: Path, gone: None) -> None:
    """ "Imports a bundle; the result is disabled": from a project, and from an unpacked and edited bundle."""
    imported = must(kim("template", "import", "web-app", "--json")).json()  # and builds it
    assert (imported["name"], imported["status"]) == ("web-app", "disabled")
    must(kim("template", "enable", "web-app"))
    must(kim("template", "export", "web-app", "--out", "web-app.tar"))
    home = project.parent
    with tarfile.open(home / "web-app.tar") as tar:
        tar.extractall(home / "unpacked")
    own(home / "unpacked", *(home / "unpacked").rglob("*"))
    try:
        must(kim("template", "import", "unpacked", "--build-later"))
        must(kim("template", "export", "web-app-2", "--out", "again.tar"))
        context = json.loads((home / "unpacked/manifest.json").read_text())["members"]
        with tarfile.open(home / "again.tar") as tar:
            assert json.load(tar.extractfile("manifest.json") or exit)["members"] == context
        (home / "unpacked/context/requirements.txt").write_text("edited\n")
        edited = must(kim("template", "import", "unpacked", "--build-later", "--json")).json()
        assert must(kim("template", "context", edited["id"], "--get", "requirements.txt")).out == "edited\n"
    finally:
        shutil.rmtree(home / "unpacked")
        for name in ("web-app.tar", "again.tar"):
            (home / name).unlink()


def test_what_is_no_part_of_a_context(kim: Call, project: Path, template: str, gone: None) -> None:
    """Links, special files and paths that lead elsewhere are refused by name, with a way out."""
    (project / "link").symlink_to("/etc/passwd")
    os.mkfifo(project / "pipe")
    own(project / "link", project / "pipe")
    create = ("template", "create", "--dockerfile", "web-app/Dockerfile", "--context", "web-app")
    hint = "printf '\\n%s\\n' link pipe >> web-app/.dockerignore"
    refused(kim(*create), "web-app/link, web-app/pipe are links or special files", hint)
    with open(project / ".dockerignore", "a") as file:
        file.write("\nlink\n/pipe\n")
    must(kim(*create))
    for path in ("../x", "/etc/x", "a//b", "./a", "a\\b", "requirements.txt/below"):
        outcome = kim("template", "context", "web-app", "--set", path, "--file", "-", stdin="x")
        refused(outcome, "requirements.txt is a file" if "below" in path else path.replace("\\", "\\"))
    refused(
        kim("template", "context", "web-app", "--get", "none"),
        "has no file none",
        "svc template context web-app",
    )
    refused(kim("template", "context", "web-app", "--remove", "app"), "app is a directory with 2 files")
    with tarfile.open(project / "bad.tar", "w") as tar:
        tar.add(project / "link", "link")
    refused(
        kim("template", "context", "web-app", "--replace", "web-app/bad.tar"),
        "link in web-app/bad.tar is a link",
    )
    both = kim("template", "context", "web-app", "--get", "a", "--remove", "a")
    assert (both.code, both.out) == (2, "") and "cannot be combined" in both.err
    assert must(kim("template", "get", "web-app", "--json")).json()["revision"] == 1
    clone = kim("template", "create", "--dockerfile", "web-app/Dockerfile", "--context", "web-app")
    refused(clone, "there is already a template web-app")
