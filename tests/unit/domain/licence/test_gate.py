"""What a lapsed licence and the limits of a licence stop."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.configuring import configured
from unit.domain.gpu_rows import Gpus, uuid
from unit.domain.licence.test_entitlement import days_ago
from unit.licensing import Vendor, put
from unit.serving import CONTAINER, FarEnd, caller_of, make_template, make_user, make_workspace

from svc.db.connect import database, write
from svc.domain.accounts import users
from svc.domain.licence import gate, trial
from svc.domain.principal import Caller
from svc.domain.workspaces import workspaces
from svc.errors import LicenseLimit, LicenseRequired

STARTED = {"container_id": CONTAINER, "pid": 5, "started_at": None, "devices_missing": []}


@pytest.fixture
def lapsed(state: str) -> None:
    """The trial is over."""
    trial.write_file(state, days_ago(91))


def test_creating_and_starting_are_refused_and_nothing_changes(
    ada: Caller, far: FarEnd, lapsed: None, template: str
) -> None:
    """ "When lapsed: create and start are refused"."""
    make_workspace(ada.user_id, template, "lab", container_id=CONTAINER)
    for attempt in (
        lambda: workspaces.create(ada, {"name": "more", "template": "base"}),
        lambda: workspaces.set_up(ada, {"name": "more", "template": "base"}),
        lambda: workspaces.start(ada, "lab"),
    ):
        with pytest.raises(LicenseRequired, match="the trial ended on") as refused:
            attempt()
        assert refused.value.hint == "sudo svc admin license show"
    assert far.verbs() == []
    assert database.execute_sql("SELECT name, status FROM workspaces").fetchall() == [("lab", "stopped")]


def test_a_running_one_stays_and_can_be_stopped_and_deleted(
    ada: Caller, far: FarEnd, lapsed: None, template: str
) -> None:
    """ "stop, delete, files, export, backup always work"; a start of a running one is none."""
    make_workspace(ada.user_id, template, "lab", status="running", container_id=CONTAINER)
    far.answers["ctr.inspect"] = {"exists": True, "status": "running"}
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert workspaces.stop(ada, "lab")["status"] == "stopped"
    assert workspaces.edit(ada, "lab", {"display_name": "Lab"})["display_name"] == "Lab"
    workspaces.delete(ada, "lab")


def test_the_newest_accounts_beyond_the_number_start_nothing(
    state: str, vendor: Vendor, far: FarEnd, ada: Caller
) -> None:
    """Accounts are counted in the order of their creation; root, disabled and unfinished ones are not."""
    users.update(make_user("off", 2010), disabled=True)
    make_user("half", 2011, provisioning="incomplete")
    bob = caller_of(make_user("bob", 2012), far)
    put(vendor, Path(state, "license.json"), users=1)
    assert gate.users() == 2
    gate.require_valid(ada.user_id)
    with pytest.raises(LicenseLimit, match="the licence is for 1 user, and there are 2") as refused:
        gate.require_valid(bob.user_id)
    assert refused.value.details == {"resource": "users", "limit": 1, "used": 2, "requested": 1}
    with write():
        database.execute_sql("UPDATE users SET disabled = 1 WHERE id = ?", (ada.user_id,))
    gate.require_valid(bob.user_id)


def test_no_more_gpus_than_the_licence_has(
    state: str, vendor: Vendor, far: FarEnd, ada: Caller, bob: Caller, gpus: Gpus
) -> None:
    """All users' leases count together; a workspace without GPUs starts, and what runs goes on."""
    far.answers["ctr.start"] = STARTED
    for owner in (ada, bob):
        base = make_template(owner.user_id, f"t{owner.user_id}")
        make_workspace(owner.user_id, base, f"{owner.name}two", gpu_count=2, container_id=CONTAINER)
        make_workspace(owner.user_id, base, f"{owner.name}none", container_id=CONTAINER)
    put(vendor, Path(state, "license.json"), gpus=3)
    workspaces.start(ada, "adatwo")
    with pytest.raises(LicenseLimit, match="the licence is for 3 GPUs at once") as refused:
        workspaces.start(bob, "bobtwo")
    assert refused.value.details == {"resource": "gpus", "limit": 3, "used": 2, "requested": 2}
    assert workspaces.get(bob, "bobtwo")["status"] == "stopped"
    assert database.execute_sql("SELECT gpu FROM gpu_leases").fetchall() == [(uuid(0),), (uuid(1),)]
    workspaces.start(bob, "bobnone")
    put(vendor, Path(state, "license.json"), gpus=0)
    assert workspaces.get(ada, "adatwo")["status"] == "running"
    put(vendor, Path(state, "license.json"), gpus=4)
    workspaces.start(bob, "bobtwo")


def test_the_trial_has_no_limits(state: str, ada: Caller) -> None:
    configured(license_path="")
    for number in range(5):
        make_user(f"u{number}", 2100 + number)
    gate.require_valid(ada.user_id)
