"""Who sees which template."""

from __future__ import annotations

import pytest
from unit.serving import IMAGE, make_template

from svc import errors
from svc.domain import template_records, templates
from svc.domain.callers import Caller
from svc.domain.pages import Page


def test_lists(ada: Caller, bob: Caller, boss: Caller) -> None:
    for name in ("b", "a", "c"):
        make_template(ada.user_id, name)
    make_template(None, "open")
    make_template(None, "shut", status="disabled")

    def names(caller: Caller, page: Page = Page(), owner: str | None = None) -> list[str]:  # noqa: B008
        return [item["name"] for item in templates.page_of(caller, page, owner)["items"]]

    assert names(ada) == ["a", "b", "c", "open"]
    assert names(bob) == ["open"]
    assert names(boss) == ["open", "shut"]
    assert names(boss, owner="ada") == ["a", "b", "c", "open", "shut"]
    assert names(ada, Page(sort="-name", limit=2, offset=1)) == ["c", "b"]
    assert names(boss, Page(status=("disabled",))) == ["shut"]
    assert names(ada, Page(q="%")) == []
    page = templates.page_of(ada, Page(limit=2))
    assert (page["total"], page["next_offset"]) == (4, 2)
    with pytest.raises(errors.ValidationFailed):
        names(ada, Page(sort="name; DROP TABLE users"))


def test_at_a_revision(ada: Caller) -> None:
    template_id = templates.create(ada, {"name": "py", "source": {"image_ref": IMAGE}})["id"]
    templates.edit(ada, "py", {"description": "second"})
    first, second = (template_records.at_revision(template_id, number) for number in (1, 2))
    assert (first.revision, first.spec["description"]) == (1, "")
    assert (second.revision, second.spec["description"]) == (2, "second")
    with pytest.raises(errors.NotFound):
        template_records.at_revision(template_id, 3)


def test_an_id_wins_over_a_name(ada: Caller) -> None:
    first = templates.create(ada, {"name": "one", "source": {"image_ref": IMAGE}})["id"]
    templates.create(ada, {"name": first, "source": {"image_ref": IMAGE}})
    assert template_records.find(ada, first).name == "one"
