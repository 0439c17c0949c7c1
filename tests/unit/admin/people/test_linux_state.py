"""What is left of a Linux account, seen from outside."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from svc.admin.people import linux_state
from svc.settings import Settings

NOBODY = pwd.getpwnam("nobody")
FREE = 59_992


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    state = tmp_path / "state"
    state.mkdir()
    return Settings(environ={"SVC_STATE_DIR": str(state)}, file={})


def test_the_account_that_was_enrolled(settings: Settings) -> None:
    enrolled = Path(settings.state_dir, "enrolled")
    enrolled.write_text(f"nobody {NOBODY.pw_uid} user\n")
    found = linux_state.find_linux(settings, "nobody", "nobody", FREE)  # the database's word does not count
    assert (found.exists, found.is_enrolled, found.uid) == (True, True, NOBODY.pw_uid)
    unfinished = linux_state.find_linux(
        settings, "nobody", "nobody", None
    )  # create-user has failed after its enrolment
    assert (unfinished.exists, unfinished.uid) == (True, NOBODY.pw_uid)
    assert f"the Linux account nobody with {NOBODY.pw_dir}" in found.stays[0]
    assert "userdel --remove nobody" in found.next_commands[0]


def test_another_account_of_the_name_is_left_alone(settings: Settings) -> None:
    found = linux_state.find_linux(settings, "nobody", "nobody", FREE)
    assert not found.exists
    assert found.stays[-1] == f"the Linux account nobody (uid {NOBODY.pw_uid}), which is another one"


def test_what_has_a_uid_that_is_somebodys_is_not_named(settings: Settings) -> None:
    assert linux_state.find_linux(settings, "svt-gone", "svt-gone", os.getuid()).stays == []


def test_files_of_a_former_account(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    useradd = tmp_path / "useradd"
    useradd.write_text(f"# defaults\nHOME={tmp_path}\n")
    monkeypatch.setattr(linux_state, "USERADD", str(useradd))
    home = tmp_path / "svt-gone"
    home.mkdir()
    assert (
        "no files" in linux_state.find_linux(settings, "svt-gone", "svt-gone", FREE).stays[0]
    )  # another's directory
    os.chown(home, FREE, FREE)
    for name in ("svt-gone", f"svt-gone:{FREE}", f"svt-gone.{FREE}"):
        found = linux_state.find_linux(settings, name, "svt-gone", FREE)
        assert found.stays == [f"the files of the former Linux account svt-gone: {home}"]
        assert found.next_commands[-1].endswith("sudo find / -xdev -nouser")
