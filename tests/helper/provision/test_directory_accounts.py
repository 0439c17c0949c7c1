"""Accounts as directory services have them: high uids, names with a domain, homes that are none."""

from __future__ import annotations

import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helper.stage import WS, Stage, code_of, enrolled, ensure, remove_user

from svc import errors
from svc_helper.provision import subids
from svc_helper.root import check

NAME = "tsh-first.Last@example.org"
UID = 896053708  # as SSSD makes them of a domain's
USERADD = ["useradd", "--badname", "--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0"]


@pytest.fixture
def person() -> Iterator[str]:
    """The name of an account that is not there yet."""
    remove_user(NAME)
    yield NAME
    remove_user(NAME)


def test_a_person_of_a_directory_service_is_enrolled(stage: Stage, person: str) -> None:
    subprocess.run([*USERADD, "--uid", str(UID), "--create-home", person], check=True)
    assert ensure(stage, person)["uid"] == UID
    assert f"{person} {UID} user" in enrolled(stage)
    assert stage.client("worker").call("ctr.inspect", person, WS, rid="r")
    with pytest.raises(errors.NotFound):
        stage.client("worker").call("ctr.inspect", person.lower(), WS, rid="r")


@pytest.mark.parametrize("name", ["tsh-no.body", "Tsh-nobody", "tsh-nobody@example.org", "t" * 33])
def test_no_new_account_has_such_a_name(stage: Stage, name: str) -> None:
    with pytest.raises(errors.HostRefused, match="a new one cannot have that name"):
        ensure(stage, name)
    assert not check.resolve(name)


def test_a_uid_of_somebodys_containers_is_no_persons(stage: Stage, person: str) -> None:
    """Neither at the enrolment nor when the range comes later: its processes would be the person's."""
    ensure(stage, "tsh-ada")
    span = next(span for span in subids.read("uid") if span.owner == "tsh-ada")
    subprocess.run([*USERADD, "--uid", str(span.first + 5), "--no-create-home", person], check=True)
    why = f"uid {span.first + 5} is one of the subordinate uids of tsh-ada in /etc/subuid"
    with pytest.raises(errors.Conflict, match=why):
        ensure(stage, person)
    stage.enrol(f"{person} {span.first + 5} user")
    assert code_of(stage, person) == "refused"


@pytest.mark.parametrize("uid", [65534, 65535, 2**32 - 2])
def test_nobodys_uids_are_refused(uid: int) -> None:
    assert f"uid {uid} is nobody's" in check.why_no_person(uid)


def test_the_refusal_of_a_system_account_says_why(stage: Stage) -> None:
    lowest = check.login_defs()["UID_MIN"]
    with pytest.raises(errors.HostRefused, match=f"uid 1 is below UID_MIN, {lowest} in /etc/login.defs"):
        ensure(stage, "daemon")
    assert check.why_no_person(lowest) == check.why_no_person(UID) == ""


@pytest.mark.parametrize("home", ["/nonexistent", "//nonexistent/", "/", "/usr/sbin", "/home/tsh-ada"])
def test_a_home_that_is_not_the_persons_is_left_alone(stage: Stage, person: str, home: str) -> None:
    subprocess.run([*USERADD, "--home-dir", home, "--no-create-home", person], check=True)
    before = Path(home).exists() and Path(home).stat()
    whose = {"/usr/sbin": "daemon", "/home/tsh-ada": "tsh-ada"}.get(home, "none")
    with pytest.raises(errors.Conflict, match=f"home directory: .*{whose}.*usermod --home /home/{person} "):
        ensure(stage, person)
    assert (Path(home).exists() and Path(home).stat()) == before
    assert not any(line.startswith(person) for line in enrolled(stage))
    home = f"/home/{person}"
    subprocess.run(["usermod", "--home", home, person], check=True)
    assert ensure(stage, person)["home"] == home
    assert Path(home).stat().st_uid == pwd.getpwnam(person).pw_uid
