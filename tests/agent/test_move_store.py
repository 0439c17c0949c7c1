"""A user's store is moved to the store directory: images, what is installed in workspaces, their volumes."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.priv_ns import NO_LIMITS, PYTHON, Agent, Namespace, User
from agent.registry import SHELL, Registry

from svc_helper.agent import move_store

WS, RUN_AS = "ws-0300e000", "ws-0300e001"
CREATE = {
    "name": "demo", "command": None, "env": {}, "resources": NO_LIMITS, "run_as": None, "mounts": [],
    "network": None,
}  # fmt: skip
INSTALL = """set -e
mkdir -p /opt/mine && echo yes >/opt/mine/file && chown 5:6 /opt/mine/file
ln /opt/mine/file /opt/mine/second
rm /bin/yes && echo row >/data/row
"""
LOOK = """set -e
cat /opt/mine/file /data/row; stat -c '%u:%g %h' /opt/mine/file; test ! -e /bin/yes
"""


@pytest.fixture(scope="module")
def mover(namespace: Namespace, directory: Path) -> Iterator[User]:
    """A Linux user with workspaces in the default store."""
    created = User(namespace, "tsa-mover", directory)
    yield created
    created.delete()


@pytest.fixture(scope="module")
def store(mover: User, directory: Path) -> Path:
    """The user's store directory, as root makes it."""
    path = directory / "moved" / mover.name
    path.mkdir(parents=True, mode=0o755)
    path.chmod(0o700)
    shutil.chown(path, mover.uid, mover.gid)
    return path


@pytest.fixture(scope="module")
def with_data(registry: Registry) -> str:
    """An image with a volume."""
    return registry.put("moved:1", **SHELL, Volumes={"/data": {}})


def move(user: User, store: Path) -> subprocess.CompletedProcess[str]:
    """Run the program as the helper does."""
    config = {
        "user": user.name,
        "uid": user.uid,
        "home": user.home,
        "roots": {"work": f"{user.home}/work"},
        "systemd": False,
        "registries": str(user.directory / "registries.json"),
        "registries_conf": str(user.directory / "registries.conf"),
        "store": str(store),
    }
    code = f"import sys; sys.path.insert(0, {str(user.directory / 'site')!r})"
    code += "; from svc_helper.agent.move_store import main; sys.exit(main())"
    return user.run(PYTHON, "-I", "-S", "-c", code, json.dumps(config), check=False)


def execute(agent: Agent, workspace_id: str, script: str) -> str:
    done = agent.call("ctr.exec", id=workspace_id, command=["sh", "-c", script], timeout_s=30).data
    assert done["exit_code"] == 0, base64.b64decode(done["stderr"])
    return base64.b64decode(done["stdout"]).decode()


def start(agent: Agent, workspace_id: str) -> None:
    assert agent.call(
        "ctr.start", id=workspace_id, env=None, resources=None, devices=None, network=None
    ).data["pid"]


def test_a_store_is_moved(mover: User, store: Path, with_data: str) -> None:
    agent = mover.start_agent()
    assert agent.call("image.pull", image=with_data).data
    agent.call("ctr.create", **(CREATE | {"id": WS, "image": with_data})).data  # noqa: B018  it succeeded
    other = CREATE | {"id": RUN_AS, "image": with_data, "run_as": {"uid": 1234, "gid": 1234}}
    agent.call("ctr.create", **other).data  # noqa: B018
    agent.close()

    agent = mover.start_agent(store=str(store))  # set, but not moved yet: the former store stays in use
    start(agent, WS)
    execute(agent, WS, INSTALL)
    refused = move(mover, store)
    assert refused.returncode == 3, refused.stderr
    agent.kill()

    agent = mover.start_agent(store=str(store))
    assert agent.call("ctr.stop", id=WS, grace_s=0).data
    done = move(mover, store)
    assert done.returncode == 0, done.stderr
    again = move(mover, store)
    assert again.returncode == 0, again.stderr
    agent.kill()

    moved = mover.start_agent(store=str(store))
    try:
        names = [name for row in moved.call("image.usage").data["images"] for name in row["names"]]
        assert names == [with_data]
        assert moved.call("ctr.inspect", id=WS).data["exists"] is False
        # By another name in the meantime: the container is created from the image that it had.
        assert moved.call("ctr.create", **(CREATE | {"id": WS, "image": "gone.example/none:1"})).data
        start(moved, WS)
        assert execute(moved, WS, LOOK) == "yes\nrow\n5:6 2\n"
        assert not (store / "layers" / WS).exists()
        assert moved.call("ctr.stop", id=WS, grace_s=0).data
        start(moved, WS)
        assert execute(moved, WS, LOOK) == "yes\nrow\n5:6 2\n"
        assert moved.call("ctr.remove", id=WS).data == {}
        assert (store / "layers" / RUN_AS).exists()
        assert moved.call("ctr.remove", id=RUN_AS).data == {}
        assert not (store / "layers" / RUN_AS).exists()
    finally:
        moved.close()
    names = mover.run("podman", "ps", "--all", "--format", "{{.Names}}").stdout.split()
    assert sorted(names) == [f"svc-{WS}", f"svc-{RUN_AS}"]  # the former store stays


def test_an_interrupted_copy_is_continued(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "file").write_text("whole")
    (tmp_path / "target.part").mkdir()
    (tmp_path / "target.part" / "half").touch()
    move_store.copy_tree(str(source), str(target))
    assert [one.name for one in target.iterdir()] == ["file"]
    (source / "file").write_text("changed")
    move_store.copy_tree(str(source), str(target))
    assert (target / "file").read_text() == "whole"
    move_store.copy_tree(str(source), str(target), again=True)
    assert (target / "file").read_text() == "changed"
    assert not (tmp_path / "target.part").exists()
