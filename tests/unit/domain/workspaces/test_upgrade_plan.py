"""The plan of an upgrade: what follows the template, what stays its owner's, what needs a new container."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, make_workspace

from svc.db.connect import database, write
from svc.domain.principal import Caller
from svc.domain.templates import rows, templates
from svc.domain.workspaces import ports, states, upgrade_plan, upgrades, workspaces
from svc.domain.workspaces.upgrade_plan import Plan


@pytest.fixture
def edit(ada: Caller, template: str) -> Any:
    """Edit the template and enable it; returns its revision."""

    def edited(**patch: Any) -> int:
        templates.edit(ada, template, patch)
        with write():
            database.execute_sql("UPDATE templates SET status = 'enabled'")
        return int(templates.get(ada, template)["revision"])

    return edited


def planned(ada: Caller, template: str, **columns: Any) -> Plan:
    lab = make_workspace(ada.user_id, template, **{"container_id": CONTAINER} | columns)
    workspace = states.of_id(lab)
    assert workspace is not None
    return upgrade_plan.make(workspace, ports.rows_of(lab), rows.find(ada, template))


def test_resources_come_down_to_the_new_limits(ada: Caller, template: str, edit: Any) -> None:
    edit(limits={"memory_bytes": 2**30, "cpu_limit": 1.5, "gpu_count": 0})
    plan = planned(ada, template, memory_bytes=2**31, cpu_limit=None, gpu_count=2, pids_limit=77)
    row = plan.row
    assert (row.memory_bytes, row.cpu_limit, row.gpu_count, row.pids_limit) == (2**30, 1500, 0, 77)
    assert plan.container == "kept"


def test_shared_gpus_that_the_template_no_longer_allows(ada: Caller, template: str, edit: Any) -> None:
    edit(gpu={"allow_shared": False})
    assert planned(ada, template, gpu_count=1, gpu_mode="shared").row.gpu_mode == "exclusive"


def test_nothing_but_the_description(ada: Caller, template: str, edit: Any) -> None:
    newest = edit(description="other words")
    plan = planned(ada, template)
    assert plan.record() == {"before": 1, "after": newest, "container": "kept", "changes": []}


def test_a_secret_shows_that_it_has_changed(ada: Caller, template: str, edit: Any) -> None:
    secret = {"name": "KEY", "value": "one", "secret": True}
    first = edit(env=[secret])
    edit(env=[secret | {"value": "two"}])
    plan = planned(ada, template, template_revision=first)
    [change] = plan.changes
    assert (change["name"], change["before"], change["after"]) == ("KEY", "(set)", "(changed)")


def test_what_the_owner_has_set_stays(ada: Caller, edit: Any, template: str, far: FarEnd) -> None:
    far.answers["ctr.inspect"] = {"exists": True, "status": "stopped"}
    first = edit(
        defaults={"cpu_limit": 1, "memory_bytes": 2**30,
                  "env": [{"name": name, "value": "old"} for name in ("SAME", "MINE", "GONE", "DROPPED")]},
        ports=[{"name": name, "container_port": 80 + number, "access": "owner"}
               for number, name in enumerate(("web", "mine", "gone", "removed"))],
    )  # fmt: skip
    env = {"SAME": "old", "MINE": "changed", "GONE": "old", "OWN": "1"}
    lab = make_workspace(
        ada.user_id, template, template_revision=first, container_id=CONTAINER, cpu_limit=1000,
        memory_bytes=2**20, env_json=json.dumps(env),
    )  # fmt: skip
    with write():
        added = [("web", 80), ("mine", 8081), ("gone", 82), ("own", 9000)]
        ports.adopt(lab, [{"name": name, "container_port": port, "access": "owner"} for name, port in added])
    before = {port["name"]: port["host_port"] for port in workspaces.get(ada, "lab")["ports"]}
    edit(
        defaults={"cpu_limit": 2, "memory_bytes": 2**31,
                  "env": [{"name": name, "value": "new"} for name in ("SAME", "MINE", "DROPPED", "NEW")]},
        ports=[{"name": name, "container_port": 180 + number, "access": "owner"}
               for number, name in enumerate(("web", "mine", "removed", "new"))],
    )  # fmt: skip
    record = upgrades.upgrade(ada, "lab")
    assert {one["name"]: one["value"] for one in record["env"]} == {
        "SAME": "new", "MINE": "changed", "OWN": "1", "NEW": "new",
    }  # fmt: skip
    assert (record["resources"]["cpu_limit"], record["resources"]["memory_bytes"]) == (2.0, 2**20)
    after = {port["name"]: (port["container_port"], port["host_port"]) for port in record["ports"]}
    assert set(after) == {"web", "mine", "own", "new"}
    assert after["web"] == (180, before["web"])
    assert after["mine"] == (8081, before["mine"])
    assert after["own"] == (9000, before["own"])


def test_a_port_of_another_kind_and_number(ada: Caller, edit: Any, template: str, far: FarEnd) -> None:
    """From a fixed number to the host's, and back: the host's number stays."""
    far.answers["ctr.inspect"] = {"exists": True, "status": "stopped"}
    first = edit(ports=[{"name": "web", "container_port": 80}, {"name": "own"}])
    lab = make_workspace(ada.user_id, template, template_revision=first, container_id=CONTAINER)
    with write():
        ports.adopt(lab, [{"name": "web", "container_port": 80}, {"name": "own"}])
    own, web = ports.rows_of(lab)
    edit(ports=[{"name": "web"}, {"name": "own", "container_port": 22, "kind": "ssh", "user": "me"}])
    row, new = states.find(ada, "lab"), rows.find(ada, template)
    changes = {change["name"]: change for change in upgrade_plan.make(row, [own, web], new).changes}
    assert changes["web"]["before"] == {"container_port": 80, "access": "owner", "kind": "http", "user": None}
    assert changes["web"]["after"]["container_port"] is None
    upgrades.upgrade(ada, "lab")
    assert ports.rows_of(lab) == [
        own._replace(container_port=22, kind="ssh", user="me", follows=False),
        web._replace(container_port=web.host_port, follows=True),
    ]
