"""The helper suite: the real helper as root, real socketpairs, a fake agent, Linux users called tsh-…."""

from __future__ import annotations

import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helper.stage import PAM_SERVICE, Stage, remove_user

PAM_FILE = Path("/etc/pam.d") / PAM_SERVICE
USERS = ("tsh-ada", "tsh-ben", "tsh-old")


@pytest.fixture(scope="session", autouse=True)
def host(needs_root: None) -> Iterator[None]:
    """A PAM service like the packaged one, and three accounts, one of them expired."""
    PAM_FILE.write_text((Path(__file__).parents[2] / "packaging/pam.d/svc").read_text())
    for name in USERS:
        remove_user(name)
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
    subprocess.run(["usermod", "--expiredate", "1", "tsh-old"], check=True)
    yield
    for name in USERS:
        remove_user(name)
    PAM_FILE.unlink()


@pytest.fixture
def uid() -> dict[str, int]:
    """The uids of the test accounts."""
    return {name: pwd.getpwnam(name).pw_uid for name in USERS}


def _everybody_enrolled(stage: Stage) -> Stage:
    ids = {name: pwd.getpwnam(name).pw_uid for name in USERS}
    stage.enrol(
        f"tsh-ada {ids['tsh-ada']} user",
        f"tsh-ben {ids['tsh-ben']} administrator",
        f"tsh-old {ids['tsh-old']} user",
    )
    return stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A helper of the test's own; ada is a user, ben an administrator, old has expired."""
    created = _everybody_enrolled(Stage())
    yield created
    created.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Stage]:
    """As `stage`, one for all tests of a module that do it no harm."""
    created = _everybody_enrolled(Stage())
    created.ping()
    yield created
    created.close()
