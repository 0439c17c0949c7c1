"""Pages for users and integrators, word for word: jupyter, gpus, ports, api; tokens of automation."""

from __future__ import annotations

import contextlib
import http.client
import json
import pwd
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.fake_gpus import installed
from e2e.guides import python_image
from e2e.guides.far_browser import laptop, through_ssh, write
from e2e.installation import IMAGE, ROOT, Outcome, Service, run
from e2e.pages import Block, Guide, blocks, play
from e2e.registries import REPOSITORY, Shelf
from e2e.surroundings import make_accounts, must, new_template
from waiting import until

USER, PASSWORD = "tse-rosa", "nine wet boats by the lock"
CELL = {"cell_type": "code", "source": "6 * 7", "metadata": {}, "outputs": [], "execution_count": None}
NOTEBOOK = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [CELL]}
EXECUTE = ("jupyter", "execute", "--inplace", "--kernel_name=python3", "/work/sum.ipynb")
SUDO = '#!/bin/sh\nexec "$@"\n'  # its stand-in: the test is root already


@pytest.fixture(scope="module")
def home(service: Service, registry: str) -> Path:
    """The home of a user with an account and the template `python`."""
    make_accounts(service.env, {USER: PASSWORD})
    new_template(USER, service.env, "python", {"type": "registry", "image_ref": f"{registry}/{IMAGE}"})
    return Path(pwd.getpwnam(USER).pw_dir)


@pytest.fixture
def guide(service: Service, home: Path, public_tmp_path: Path) -> Callable[..., Guide]:
    """guide(page, **replace) -> its reader, who is the user, and root where a block has `sudo`."""
    programs = public_tmp_path / "bin"
    programs.mkdir()
    (programs / "sudo").write_text(SUDO)
    (programs / "sudo").chmod(0o755)
    env = service.env | {"PATH": f"{programs}:{service.env['PATH']}"}

    def put(name: str, text: str) -> None:
        (home / name).parent.mkdir(exist_ok=True)
        write(USER, home / name, text)

    def typed(text: str) -> Outcome:
        return play("root" if "sudo " in text else USER, text, env)

    def make(page: str, **replace: str) -> Guide:
        return Guide(page, typed, put, {"alice": USER} | replace)

    return make


@pytest.fixture
def gpus(service: Service, home: Path) -> Iterator[None]:
    """The host has GPUs."""
    with installed(service, [USER]):
        yield


@pytest.fixture(scope="module")
def python_tag(shelf: Shelf) -> str:
    """The tag of the image with a real pip."""
    try:
        folder = python_image.wheels()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"JupyterLab cannot be had from PyPI: {error.stderr.strip()[-300:]}")
    return python_image.put(shelf, folder)


def url_of(service: Service, workspace: str) -> str:
    """The address of its only port on this host."""
    return must(run(USER, "ws", "ports", workspace, env=service.env)).out.split("\t")[2].strip()


def forwarded(service: Service, workspace: str, visit: Callable[[str], None]) -> Callable[[Block], bool]:
    """What does the block with `ssh -N`: the page is visited at its far end."""

    def instead(block: Block) -> bool:
        if block.kind != "sh" or "ssh -N" not in block.text:
            return False
        with through_ssh(block.text, USER, url_of(service, workspace)) as here:
            visit(here)
        return True

    return instead


def fetched(url: str, method: str = "GET", token: str = "") -> str:
    """The body of an answer, empty while there is none."""
    headers = {"Authorization": f"token {token}"} if token else {}
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        return ""


@pytest.mark.timeout(600)  # a build, and a real program of that size: half a minute on a quiet machine
@pytest.mark.usefixtures("gpus")
@pytest.mark.depth("merge", "it installs the real JupyterLab")
def test_jupyter(
    service: Service,
    home: Path,
    registry: str,
    python_tag: str,
    guide: Callable[..., Guide],
) -> None:
    """The real JupyterLab: its page through ssh, the address with its token, a kernel that runs."""

    def visit(here: str) -> None:
        with contextlib.suppress(AssertionError):
            until(lambda: launcher()["token"] is not None, 120, 0.5)
        found, log = launcher(), output()
        assert found["link"] is not None, log
        assert found["link"] in log, "what JupyterLab prints is right outside"
        token = found["token"]
        assert "JupyterLab" in until(lambda: fetched(f"{here}/lab?token={token}"), 30, 0.2)
        kernel = json.loads(until(lambda: fetched(f"{here}/api/kernels", "POST", token), 30, 0.5))["id"]
        assert fetched(f"{here}/api/kernels/{kernel}") == "", "nothing without the token"
        assert '"python3"' in fetched(f"{here}/api/kernels/{kernel}", token=token)
        write(USER, home / "work/sum.ipynb", json.dumps(NOTEBOOK))
        must(run(USER, "ws", "exec", "notes", "--", *EXECUTE, env=service.env))
        assert '"42"' in (home / "work/sum.ipynb").read_text()

    def launcher() -> dict[str, Any]:
        listed = must(run(USER, "ws", "launchers", "notes", "--json", env=service.env)).json()
        record: dict[str, Any] = listed["items"][0]
        return record

    def output() -> str:
        return must(run(USER, "ws", "logs", "notes", "--launcher", "jupyter", env=service.env)).out

    files = {
        "dockerfile An image with JupyterLab": "jupyter/Dockerfile",
        "json An image with JupyterLab": "jupyter.json",
    }
    base = {"docker.io/library/python:3.12-slim": f"{registry}/{REPOSITORY}:{python_tag}"}
    reader = guide("jupyter.md", **base)
    printed = reader.follow(files, forwarded(service, "notes", visit))
    assert "jupyterlab==" in printed["Files and packages"]
    assert must(run(USER, "ws", "list", env=service.env)).out == ""


@pytest.mark.usefixtures("gpus")
def test_gpus(service: Service, guide: Callable[..., Guide]) -> None:
    printed = guide("gpus.md").follow({})
    assert "NVIDIA H100" in printed["What is there"]
    assert "svc ws setup --template python" in printed["Take one"] or "svc ws create" in printed["Take one"]
    assert must(run(USER, "ws", "list", env=service.env)).out == ""
    must(run("root", "admin", "quota", "set", "default", "--gpus", "unlimited", env=service.env))


def test_a_laptop(service: Service, home: Path, guide: Callable[..., Guide]) -> None:
    """Each command by a real ssh, which is the login; the page at the end of a forward."""

    def visit(here: str) -> None:
        server = (
            "mkdir -p /tmp/site && echo hello >/tmp/site/index.html && httpd -p 127.0.0.1:8000 -h /tmp/site"
        )
        must(run(USER, "ws", "exec", "lab", "--", "sh", "-c", server, env=service.env))
        assert until(lambda: fetched(here), 20, 0.1) == "hello\n"

    with laptop(service, USER) as programs:
        reader = guide("ports.md", **{"USER@HOST": f"{USER}@127.0.0.1"})
        env = service.env | {"PATH": f"{programs}:{service.env['PATH']}"}
        on_the_laptop = reader._replace(play=lambda text: play(USER, text, env))
        printed = on_the_laptop.follow({}, forwarded(service, "lab", visit), "From a laptop")
    assert USER in printed["Commands"] and "uid=0" in printed["Commands"]
    assert "a,1\n" in printed["Files"]
    assert (home / "back.csv").read_text() == "a,1\n"


def test_ports(service: Service, guide: Callable[..., Guide]) -> None:
    """With ssh, and with the launcher of its template."""

    def visit(here: str) -> None:
        assert until(lambda: fetched(here), 20, 0.1) == "hello\n"

    elsewhere, at_far_end = blocks(ROOT / "docs/ports.md", "From a laptop"), forwarded(service, "site", visit)
    followed = guide("ports.md").follow(
        {"json In a template": "web.json"}, lambda block: block in elsewhere or at_far_end(block)
    )
    assert "hello\n" in followed["From the host"]
    assert "#svc_tkt_" in followed["In a browser"]
    assert "\nhello\n" in followed["In a browser"]
    assert "host" in followed["For other users of the host"]
    assert "started" in followed["In a template"]


@pytest.fixture
def elsewhere(service: Service, home: Path) -> dict[str, str]:
    """This host, as the examples for other hosts name it; its certificate is in svc.pem."""
    shutil.copyfile(Path(service.env["SVC_DB"]).parent / "tls/cert.pem", home / "svc.pem")
    (home / "svc.pem").chmod(0o644)
    return {"HOST:24680": f"localhost:{service.env['SVC_PORT']}"}


def test_tokens(service: Service, home: Path, guide: Callable[..., Guide], elsewhere: dict[str, str]) -> None:
    reader = guide("automation.md", **elsewhere)

    def python(block: Block) -> bool:
        if block.kind != "python":
            return False
        write(USER, home / "list.py", reader.filled(block.text))
        said = play(USER, "python3 list.py", service.env)
        assert re.fullmatch(r"\d+ workspaces\n", said.out), said
        return True

    printed = reader.follow({}, python, "Access tokens")
    secret = (home / "svc-token").read_text().strip()
    assert secret.startswith("svc_pat_")
    assert secret not in "".join(printed.values())
    assert (home / "svc-token").stat().st_mode & 0o077 == 0
    assert (home / "svc-header").stat().st_mode & 0o077 == 0


def test_api(service: Service, home: Path, guide: Callable[..., Guide], elsewhere: dict[str, str]) -> None:
    make = '(umask 077; printf "Authorization: Bearer %s\\n" "$(svc token create --name api)" >svc-header)'
    assert play(USER, make, service.env).code == 0
    printed = guide("api.md", **elsewhere).follow({})
    assert '"openapi"' in (home / "openapi.json").read_text()
    assert "not_found\n" in printed["Errors"]
    assert "exit code 1" in printed["Errors"]
    assert '"total": 1' in printed["Lists"].replace('":1', '": 1')
    must(run(USER, "token", "revoke", "api", env=service.env))
