"""Secret variables: written, kept, cloned, handed to containers, never read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.configuring import SECRET, configured
from unit.serving import IMAGE, FarEnd

from svc import errors
from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.templates import rows as template_rows
from svc.domain.templates import templates
from svc.domain.templates import variables as template_variables
from svc.domain.workspaces import workspaces

SET = {"name": "API_KEY", "value": "s3cret-value", "secret": True}
KEEP = {"name": "API_KEY", "secret": True}
PLAIN = {"name": "A", "value": "1"}


def make(caller: Caller, *env: dict[str, Any], name: str = "py") -> dict[str, Any]:
    return templates.create(caller, {"name": name, "source": {"image_ref": IMAGE}, "env": list(env)})


def env_of(caller: Caller, ref: str = "py") -> dict[str, str]:
    return template_variables.values_of(template_rows.find(caller, ref))


def everything() -> str:
    """Every text of the database's templates and audit."""
    rows = [
        *database.execute_sql("SELECT * FROM template_revisions"),
        *database.execute_sql("SELECT * FROM audit"),
    ]
    return repr(rows)


def test_a_secret_is_never_shown_nor_written_down(ada: Caller) -> None:
    record = make(ada, PLAIN, SET)
    assert record["env"] == [
        {"name": "A", "value": "1", "secret": False, "is_set": True},
        {"name": "API_KEY", "value": None, "secret": True, "is_set": True},
    ]
    assert "s3cret" not in json.dumps(record)
    templates.edit(ada, "py", {"env": [PLAIN, SET | {"value": "s3cret-other"}]})
    assert "s3cret" not in everything()
    assert env_of(ada) == {"A": "1", "API_KEY": "s3cret-other"}


def test_one_without_a_value_keeps_the_one_it_had(ada: Caller) -> None:
    make(ada, SET)
    assert templates.edit(ada, "py", {"env": [KEEP]})["revision"] == 1
    assert templates.edit(ada, "py", {"env": [KEEP | {"value": None}, PLAIN]})["revision"] == 2
    assert templates.edit(ada, "py", {"description": "x"})["revision"] == 3
    assert env_of(ada) == {"A": "1", "API_KEY": "s3cret-value"}
    assert templates.edit(ada, "py", {"env": [SET, PLAIN]})["revision"] == 3  # the same again
    assert templates.edit(ada, "py", {"env": [SET | {"value": ""}]})["revision"] == 4  # empty is a value
    assert env_of(ada) == {"API_KEY": ""}
    templates.edit(ada, "py", {"env": []})
    assert templates.edit(ada, "py", {"env": [KEEP]})["env"][0]["is_set"] is False


def test_plain_and_secret_change_places(ada: Caller) -> None:
    make(ada, {"name": "API_KEY", "value": "was plain"})
    templates.edit(ada, "py", {"env": [KEEP]})
    assert env_of(ada) == {"API_KEY": "was plain"}
    with pytest.raises(errors.ValidationFailed) as caught:
        templates.edit(ada, "py", {"env": [{"name": "API_KEY"}]})
    assert caught.value.fields[0]["field"] == "env.0.value"
    record = templates.edit(ada, "py", {"env": [{"name": "API_KEY", "value": "open"}]})
    assert record["env"][0]["value"] == "open"
    assert template_rows.find(ada, "py").sealed == {}


def test_a_container_gets_it_and_one_that_is_unset_is_left_out(ada: Caller, far: FarEnd) -> None:
    make(ada, SET, {"name": "UNSET", "secret": True})
    record = workspaces.create(ada, {"name": "lab", "template": "py"})
    assert far.calls[-1].args["env"] == {"API_KEY": "s3cret-value"}
    assert "s3cret" not in json.dumps(record)


def test_a_clone_of_ones_own_takes_it_along_sealed_anew(ada: Caller, boss: Caller) -> None:
    make(ada, SET, PLAIN)
    templates.clone(ada, "py", "mine")
    assert env_of(ada, "mine") == {"A": "1", "API_KEY": "s3cret-value"}
    rows = {row[0] for row in database.execute_sql("SELECT sealed_json FROM template_revisions")}
    assert len(rows) == 2
    requested = {"name": "open", "source": {"image_ref": IMAGE}, "env": [SET, PLAIN], "scope": "global"}
    templates.create(boss, requested)
    database.execute_sql("UPDATE templates SET status = 'enabled'")
    for caller in (ada, boss):
        clone = templates.clone(caller, "open", "theirs")
        assert [one["is_set"] for one in clone["env"]] == [False, True]
        assert env_of(caller, "theirs") == {"A": "1"}


def test_another_signing_secret_opens_nothing_and_lets_it_be_given_again(ada: Caller) -> None:
    make(ada, SET)
    configured(secret=b"another secret of another host..")
    with pytest.raises(errors.Conflict):
        env_of(ada)
    assert templates.get(ada, "py")["env"][0]["is_set"] is True
    templates.edit(ada, "py", {"env": [SET]})
    assert env_of(ada) == {"API_KEY": "s3cret-value"}
    configured(secret=SECRET)
