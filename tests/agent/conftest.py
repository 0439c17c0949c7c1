"""Real users with real rootless Podman and a real registry in a private namespace."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.file_roots import FileRoots
from agent.priv_ns import NO_LIMITS, Agent, Namespace, User
from agent.registry import SHELL, Registry
from registries import registry_of

from svc_helper.agent.home import STORAGE

PORT = 5077
# Forks twice, in a session of its own, deaf to TERM, with an empty environment and as another user.
STUBBORN = """
trap '' TERM
(setsid env -i sleep 4241 &)
(setsid sh -c 'trap "" TERM; (sleep 4242 &) ; sleep 4243' &)
(setsid setuidgid worker sleep 4244 &)
env -i sleep 4245 &
sleep 4246
"""
STUBBORN_BUT_MARKED = STUBBORN.replace("env -i ", "")


@pytest.fixture
def files(tmp_path: Path) -> FileRoots:
    """File roots of the test's own."""
    return FileRoots(tmp_path)


@pytest.fixture(scope="session")
def directory() -> Iterator[Path]:
    """A directory that every user can read."""
    path = Path(tempfile.mkdtemp(prefix="tsa-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def namespace(needs_root: None) -> Iterator[Namespace]:
    """The private mount namespace; skips where it cannot be made."""
    if shutil.which("podman") is None or shutil.which("docker-registry") is None:
        pytest.skip("needs podman and docker-registry")
    created = Namespace()
    yield created
    created.close()


@pytest.fixture(scope="session")
def registry(directory: Path, namespace: Namespace) -> Iterator[Registry]:
    """A registry on loopback, allowed by the policy."""
    with registry_of(directory, port=PORT) as address:
        yield Registry(address, directory)


@pytest.fixture(scope="session")
def user(namespace: Namespace, directory: Path) -> Iterator[User]:
    """A real Linux user."""
    created = User(namespace, "tsa-user", directory)
    yield created
    created.delete()


@pytest.fixture
def empty_work(user: User) -> Iterator[None]:
    """The user's root `work` has nothing in it, before and after, whosever it was."""

    def empty() -> None:
        for path in Path(user.home, "work").glob("*"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    empty()
    yield
    empty()


@pytest.fixture(scope="session")
def image(registry: Registry) -> str:
    """An image whose command is a shell, as workspace images have it; not in the user's store."""
    return registry.put("base:1", **SHELL)


@pytest.fixture(scope="session")
def workers_image(registry: Registry) -> str:
    """An image that runs as its own user, elsewhere, with another PATH; not in the user's store."""
    settings = {"User": "worker", "WorkingDir": "/tmp", "Env": ["PATH=/bin:/tmp"], "Cmd": ["/bin/sh"]}
    return registry.put("worker:1", **settings)


@pytest.fixture(scope="module")
def agent(request: pytest.FixtureRequest, user: User, image: str, directory: Path) -> Iterator[Agent]:
    """An agent of the user, with the image in its store; IN_EACH_STORE says where that is."""
    store = directory / "own-store" if getattr(request, "param", "home") == "store directory" else None
    if store is not None:
        (store / STORAGE).mkdir(parents=True, exist_ok=True)  # what is in the home was moved
        for path in (store, store / STORAGE):
            shutil.chown(path, user.uid, user.gid)
    created = user.start_agent(store=str(store or ""))
    if not created.call("image.inspect", image=image).data["present"]:  # of a module before this one
        assert created.call("image.pull", image=image).data
    yield created
    created.close()


@pytest.fixture
def make(agent: Agent, image: str) -> Iterator[Callable[..., str]]:
    """Makes a workspace's container, running unless told otherwise; removed afterwards."""
    created = []

    def make_workspace(*, start: bool = True, **changes: Any) -> str:
        workspace_id = f"ws-{secrets.token_hex(4)}"
        created.append(workspace_id)
        args = {
            "id": workspace_id,
            "image": image,
            "name": "demo",
            "command": None,
            "env": {"COLOUR": "blue"},
            "resources": NO_LIMITS,
            "run_as": None,
            "mounts": [],
        }
        assert agent.call("ctr.create", **args | changes).data
        if start:
            assert agent.call("ctr.start", id=workspace_id).data
        return workspace_id

    yield make_workspace
    for workspace_id in created:
        assert agent.call("ctr.remove", id=workspace_id).data == {}


@pytest.fixture(params=["own cgroup", "container's cgroup", "mark"])
def stubborn(request: pytest.FixtureRequest, user: User, image: str) -> Iterator[tuple[Agent, str, str]]:
    """An agent, a running workspace and a stubborn script, for each way of ending what it started."""
    ws = "ws-57abb042"
    options = []
    created = user.start_agent()
    created.call("ctr.list")
    if request.param == "container's cgroup":
        options = [f"--cgroup-parent=/test-{user.name}"]
    if request.param == "mark":
        created.close()
        created = user.start_agent(keep_cgroup=True)
    user.podman("create", "--init", "-i", *options, f"--name=svc-{ws}", f"--label=svc.workspace={ws}", image)
    assert created.call("ctr.start", id=ws).data
    script = STUBBORN_BUT_MARKED if request.param == "mark" else STUBBORN
    yield created, ws, script
    created.call("ctr.remove", id=ws)
    created.close()
