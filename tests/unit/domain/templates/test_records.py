"""Who sees which template."""

from __future__ import annotations

import pytest
from unit.serving import make_template

from svc import errors
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import templates


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
