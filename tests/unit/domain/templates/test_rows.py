"""Which template a reference leads to, at which revision."""

from __future__ import annotations

import pytest
from unit.serving import IMAGE

from svc import errors
from svc.domain.principal import Caller
from svc.domain.templates import rows as template_rows
from svc.domain.templates import templates


def test_at_a_revision(ada: Caller) -> None:
    template_id = templates.create(ada, {"name": "py", "source": {"image_ref": IMAGE}})["id"]
    templates.edit(ada, "py", {"description": "second"})
    first, second = (template_rows.at_revision(template_id, number) for number in (1, 2))
    assert (first.revision, first.spec["description"]) == (1, "")
    assert (second.revision, second.spec["description"]) == (2, "second")
    with pytest.raises(errors.NotFound):
        template_rows.at_revision(template_id, 3)


def test_an_id_wins_over_a_name(ada: Caller) -> None:
    first = templates.create(ada, {"name": "one", "source": {"image_ref": IMAGE}})["id"]
    templates.create(ada, {"name": first, "source": {"image_ref": IMAGE}})
    assert template_rows.find(ada, first).name == "one"


def test_what_a_template_is_called_on_a_command_line(ada: Caller, bob: Caller, boss: Caller) -> None:
    """By its name where the name means no other one to this user: an id says nothing to people."""
    source = {"image_ref": IMAGE}
    own = templates.create(ada, {"name": "own", "source": source})["id"]
    twice = templates.create(ada, {"name": "twice", "source": source})["id"]
    for_all = templates.create(boss, {"name": "twice", "scope": "global", "source": source})["id"]
    called = [
        (user.name, template_rows.reference(user.user_id, id_))
        for user in (ada, bob)
        for id_ in (own, for_all)
    ]
    assert called == [("ada", "own"), ("ada", for_all), ("bob", own), ("bob", "twice")]
    assert template_rows.reference(ada.user_id, twice) == twice
    assert template_rows.reference(ada.user_id, "tpl-gone") == "tpl-gone"
