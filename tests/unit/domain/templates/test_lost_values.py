"""Secret variables under another signing secret."""

from __future__ import annotations

import pytest
from unit.configuring import configured
from unit.serving import IMAGE

from svc import errors
from svc.domain.principal import Caller
from svc.domain.templates import lost_values, templates, variables
from svc.domain.templates import rows as template_rows

LOST, KEPT = ({"name": name, "value": "s3cret", "secret": True} for name in ("LOST", "KEPT"))


def test_what_cannot_be_decrypted_becomes_unset_and_its_owner_sees_it(ada: Caller) -> None:
    """ "sealed variables without their key become unset and their owners see it": in every revision."""
    spec = {"name": "py", "source": {"image_ref": IMAGE}, "env": [LOST]}
    template_id = templates.create(ada, spec)["id"]
    configured(secret=b"y" * 32)
    templates.edit(ada, "py", {"env": [{"name": "LOST", "secret": True}, KEPT]})
    with pytest.raises(errors.Conflict):
        variables.values_of(template_rows.find(ada, "py"))
    assert lost_values.unset() == 2
    assert lost_values.unset() == 0
    record = templates.get(ada, "py")
    assert [(one["name"], one["is_set"]) for one in record["env"]] == [("LOST", False), ("KEPT", True)]
    said = [one["message"] for one in record["findings"] if one["code"] == "secret_unset"]
    assert said == ["secret variables without a value, which no workspace gets: LOST"]
    assert variables.values_of(template_rows.find(ada, "py")) == {"KEPT": "s3cret"}
    assert variables.values_of(template_rows.at_revision(template_id, 1)) == {}
    templates.edit(ada, "py", {"env": [LOST, KEPT]})
    assert not [one for one in templates.get(ada, "py")["findings"] if one["code"] == "secret_unset"]
