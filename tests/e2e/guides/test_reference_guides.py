"""The reference pages for users, word for word: files.md, templates.md, workspaces.md."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.guides import python_image
from e2e.guides.far_browser import write
from e2e.installation import IMAGE, Outcome, Service, run
from e2e.pages import Block, Guide, play
from e2e.registries import REPOSITORY, Shelf
from e2e.surroundings import make_accounts, must, new_template

USER, PASSWORD = "tse-sara", "a drawer of seven brass keys"
SUDO = '#!/bin/sh\nexec "$@"\n'  # its stand-in: the test is root already


@pytest.fixture(scope="module")
def home(service: Service) -> Path:
    """The home of a user with an account."""
    make_accounts(service.env, {USER: PASSWORD})
    must(run(USER, "fs", "roots", env=service.env))
    return Path(pwd.getpwnam(USER).pw_dir)


@pytest.fixture
def guide(service: Service, home: Path, tmp_path: Path) -> Callable[..., Guide]:
    """guide(page, replace) -> its reader, who is the user, and root where a block has `sudo`."""
    (tmp_path / "sudo").write_text(SUDO)
    (tmp_path / "sudo").chmod(0o755)
    env = service.env | {"PATH": f"{tmp_path}:{service.env['PATH']}"}

    def typed(text: str) -> Outcome:
        if "sudo " not in text:
            return play(USER, text, service.env)
        return play("root", f"cd {home}\n{text}", env)

    def put(name: str, text: str) -> None:
        write(USER, home / name, text)

    def make(page: str, replace: dict[str, str] | None = None) -> Guide:
        return Guide(page, typed, put, {"alice": USER} | (replace or {}))

    return make


def test_files(service: Service, home: Path, guide: Callable[..., Guide]) -> None:
    """Before each block there is what it takes, and nothing that it writes."""
    account = pwd.getpwnam(USER)
    work = home / "work"

    def prepare(block: Block) -> bool:
        for name in ("results.csv", "results.tar.gz", "results"):
            for path in (home / name, Path("/tmp") / name):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for folder in (work / "results", work / "in", work / "done"):
            folder.mkdir(exist_ok=True)
            os.chown(folder, account.pw_uid, account.pw_gid)
        for name in ("results.csv", "results/a.csv", "notes.txt", "draft.md", "old.csv"):
            write(USER, work / name, "a,1\n")
        odd = os.fsencode(work) + b"/caf\xe9.txt"
        with open(odd, "w", encoding="utf-8") as file:
            file.write("coffee\n")
        os.chown(odd, account.pw_uid, account.pw_gid)
        return False

    write(USER, home / "data.csv", "b,2\n")
    (home / "project").mkdir(exist_ok=True)
    os.chown(home / "project", account.pw_uid, account.pw_gid)
    write(USER, home / "project/Dockerfile", "FROM scratch\n")
    printed = guide("files.md").follow({}, prepare)
    assert "a,1\n" in printed["Downloads"]
    assert (work / "in/tomorrow.csv").read_text() == "b,2\n"
    assert (work / "done/draft.md").exists() and (work / "a/b").is_dir()
    assert os.path.exists(os.fsencode(home) + b"/caf\xe9.txt")
    Path("/tmp/results.csv").unlink(missing_ok=True)


def test_templates(
    service: Service, home: Path, registry: str, shelf: Shelf, guide: Callable[..., Guide]
) -> None:
    """The template with every kind of field runs as it is written, and its web server answers."""
    image = f"{registry}/{REPOSITORY}:{python_image.put(shelf)}"
    try:
        printed = guide("templates.md", {"docker.io/library/python:3.12": image}).follow(
            {"json Fields": "python.json"}
        )
    finally:
        for workspace in ("lab", "mine"):
            run(USER, "ws", "delete", workspace, "--yes", env=service.env)
    assert "started" in printed["Fields"]
    assert "Directory listing for /" in printed["Fields"]
    assert "uid=1000" in printed["Images with a user of their own"]
    assert (home / "work/made-inside").owner() == USER
    assert "numpy" in (home / "requirements.txt").read_text()


def test_workspaces_and_limits(service: Service, registry: str, guide: Callable[..., Guide]) -> None:
    new_template(USER, service.env, "small", {"type": "registry", "image_ref": f"{registry}/{IMAGE}"})
    must(run(USER, "ws", "setup", "--template", "small", "--name", "lab", env=service.env))
    try:
        printed = guide("workspaces.md").follow({})
        assert {"default\t", "lab\t"} <= set(re.findall(r"^\w+\t", printed["Quotas"], re.MULTILINE))
        assert f"{USER}\t" in printed["Quotas"], "the last command lists the users"
        assert "http://127.0.0.1:" in printed["Ports"]
        assert "10.89." in printed["Networks: workspaces reach each other by name"]
    finally:
        must(run(USER, "ws", "delete", "lab", "nb", "tools", "--yes", env=service.env))
        must(run("root", "admin", "edit-user", USER, "--quota", "default", env=service.env))
        limits = ("--running", "unlimited", "--gpus", "unlimited")
        must(run("root", "admin", "quota", "set", "default", *limits, env=service.env))
