"""A running workspace of ada's with the ports `lab` (a browser's) and `login` (ssh)."""

from __future__ import annotations

import pytest
from unit.configuring import configured
from unit.serving import make_workspace

from svc.db.connect import database, write
from svc.domain.apps.visits import Where
from svc.domain.principal import Caller
from svc.domain.workspaces import ports

ID = "ws-f7d3k2qa"
ORIGIN = "http://lab-f7d3k2qa.localhost:24681"
LAB = Where(ID, "lab", ORIGIN)


@pytest.fixture
def workspace(ada: Caller, template: str) -> str:
    """Its id."""
    configured(apps_local_port=24681)
    made = make_workspace(ada.user_id, template, "notes")
    with write():
        database.execute_sql(
            "UPDATE workspaces SET id = ?, status = 'running', container_id = ? WHERE id = ?",
            (ID, "c" * 64, made),
        )
        ports.adopt(ID, [{"name": "lab", "container_port": 8888}, {"name": "login", "kind": "ssh"}])
    return ID
