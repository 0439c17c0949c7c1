"""Addresses of apps: which ports have one, and the refusals of the others."""

from __future__ import annotations

import pytest
from unit.configuring import configured
from unit.domain.apps.conftest import ORIGIN

from svc.db.connect import write
from svc.domain.apps import places
from svc.domain.principal import Caller
from svc.domain.workspaces import ports, states
from svc.errors import Conflict, NotAvailable, NotFound


def test_each_port_of_a_browser_has_one(ada: Caller, workspace: str) -> None:
    lab = states.find(ada, workspace)
    assert places.local_origin(lab, places.find(lab, "lab")) == ORIGIN
    records = {row.name: row.record(lab, None) for row in ports.rows_of(workspace)}
    assert (records["lab"]["label"], records["lab"]["app_local_url"]) == ("lab-f7d3k2qa", f"{ORIGIN}/")
    assert (records["login"]["label"], records["login"]["app_local_url"]) == (None, None)


def test_what_has_none(ada: Caller, workspace: str) -> None:
    lab = states.find(ada, workspace)
    with pytest.raises(NotFound, match="notes has no port x"):
        places.find(lab, "x")
    with pytest.raises(Conflict, match="of the kind ssh"):
        places.find(lab, "login")
    configured(apps_local_port=0)
    with pytest.raises(NotAvailable, match="SVC_APPS_LOCAL_PORT"):
        places.local_origin(lab, places.find(lab, "lab"))
    assert ports.rows_of(workspace)[0].record(lab, None)["app_local_url"] is None


def test_a_name_too_long_for_dns(ada: Caller, workspace: str) -> None:
    name = "a" * 54
    with write():
        ports.adopt(workspace, [{"name": name, "container_port": 1}])
    lab = states.find(ada, workspace)
    with pytest.raises(Conflict, match="more than 53 characters"):
        places.local_origin(lab, places.find(lab, name))
