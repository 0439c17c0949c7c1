"""An agent whose home directory is as on a file server: images and containers are in a store directory."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.priv_ns import NO_LIMITS, Agent, Namespace, User

from svc_helper.agent.home import is_unmoved

WS = "ws-5707e000"
CREATE = {
    "id": WS, "name": "demo", "command": None, "env": {}, "resources": NO_LIMITS,
    "run_as": None, "mounts": [], "network": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def far_user(namespace: Namespace, directory: Path) -> Iterator[User]:
    """A Linux user whose home refuses chown and extended attributes."""
    if shutil.which("bindfs") is None:
        pytest.skip("needs bindfs")
    created = User(namespace, "tsa-far", directory)
    inside = ["nsenter", f"--target={namespace.holder.pid}", "--mount"]
    behind = directory / "far"
    shutil.copytree(created.home, behind, symlinks=True)
    subprocess.run(["chown", "-R", f"{created.uid}:{created.uid}", str(behind)], check=True)
    options = ["--xattr-none", "--chown-deny", "--chgrp-deny", "-o", "allow_other,nonempty"]
    subprocess.run([*inside, "bindfs", *options, str(behind), created.home], check=True)
    yield created
    created.end_all()
    subprocess.run([*inside, "umount", "--lazy", created.home], check=True)
    created.delete()


@pytest.fixture(scope="module")
def store(far_user: User, directory: Path) -> Path:
    """The user's store directory, as root makes it."""
    path = directory / "stores" / far_user.name
    path.mkdir(parents=True, mode=0o755)
    path.chmod(0o700)
    shutil.chown(path, far_user.uid, far_user.gid)
    return path


@pytest.fixture(scope="module")
def served(far_user: User, store: Path) -> Iterator[Agent]:
    """An agent with the store directory."""
    created = far_user.start_agent(store=str(store))
    yield created
    created.close()


def test_the_home_alone_does_not_do(far_user: User, image: str) -> None:
    """What the setting is for: a container's files have no owners of their own."""
    command = ("podman", "run", "--rm", "--network=none", "--tls-verify=false", image, "chown", "5:6", "/bin")
    done = far_user.run(*command, check=False)
    assert done.returncode != 0
    said = ("ermission denied", "not permitted", "creating overlay mount")  # by kernel and file system below
    assert any(words in done.stderr for words in said), done.stderr
    far_user.run("podman", "system", "migrate")


def test_pull_start_exec_stop(far_user: User, served: Agent, store: Path, image: str) -> None:
    assert served.call("image.pull", image=image).data
    assert served.call("ctr.create", **(CREATE | {"image": image})).data
    started = served.call("ctr.start", id=WS, env=None, resources=None, devices=None, network=None)
    assert started.data["pid"]
    script = "mkdir -p /data && chown 5:6 /data && stat -c %u:%g /data && touch /work/here"
    done = served.call("ctr.exec", id=WS, command=["sh", "-c", script], timeout_s=30).data
    assert (done["exit_code"], base64.b64decode(done["stdout"])) == (0, b"5:6\n"), done
    assert far_user.run("test", "-f", f"{far_user.home}/work/here").returncode == 0
    assert served.call("ctr.stop", id=WS, grace_s=1).data
    info = served.call("image.usage").data
    assert info["total_bytes"] > 0
    assert (store / "storage/overlay-images/images.json").exists()
    assert (store.stat().st_mode & 0o7777, store.stat().st_uid) == (0o700, far_user.uid)


def test_the_users_own_podman_stays_where_it_was(far_user: User, served: Agent) -> None:
    own = far_user.run("podman", "info", "--format", "{{.Store.GraphRoot}} {{.Store.RunRoot}}").stdout.split()
    assert own == [f"{far_user.home}/.local/share/containers/storage", f"{far_user.runtime}/containers"]
    assert far_user.run("podman", "ps", "--all", "--quiet").stdout == ""
    assert served.call("ctr.inspect", id=WS).data["exists"] is True


def test_a_directory_of_another_owner_is_refused(far_user: User, directory: Path) -> None:
    other = directory / "stores" / "other"
    (other / "storage").mkdir(parents=True, mode=0o755)
    agent = far_user.start_agent(store=str(other))
    try:
        refused = agent.call("image.list").message
        assert refused["code"] == "failed"
        assert f"{other} is not a directory of {far_user.name}" in refused["message"]
        assert "sudo svc admin doctor" in refused["message"]
        assert agent.call("fs.list", root="work", path="", offset=0, limit=10).message["ok"]
    finally:
        agent.close()


def test_a_home_with_letters_beyond_ascii(namespace: Namespace, directory: Path, image: str) -> None:
    """conmon takes such a path in a locale that has it."""
    user = User(namespace, "tsa-umlaut", directory, home="/home/tsa-bgün")
    agent = user.start_agent()
    try:
        assert agent.call("image.pull", image=image).data
        assert agent.call("ctr.create", **(CREATE | {"image": image})).data
        assert agent.call("ctr.start", id=WS).data["pid"]
        done = agent.call("ctr.exec", id=WS, command=["touch", "/work/here"], timeout_s=30).data
        assert done["exit_code"] == 0 and Path(user.home, "work/here").exists()
        assert agent.call("ctr.remove", id=WS).data == {}
    finally:
        agent.close()
        user.end_all()
        user.delete()


def test_workspaces_of_the_former_store_keep_it(tmp_path: Path) -> None:
    """Until they are moved: what is installed in them must not seem lost."""
    assert is_unmoved(f"{tmp_path}/store", str(tmp_path)) is False
    record = tmp_path / ".local/state/svc/workspaces/ws-1/created.json"
    record.parent.mkdir(parents=True)
    assert is_unmoved(f"{tmp_path}/store", str(tmp_path)) is False
    record.touch()
    assert is_unmoved(f"{tmp_path}/store", str(tmp_path)) is True
    (tmp_path / "store/storage").mkdir(parents=True)
    assert is_unmoved(f"{tmp_path}/store", str(tmp_path)) is False
