"""Earlier revisions and what differs: by which names, for whom."""

from __future__ import annotations

import pytest
from unit.serving import make_template

from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import history, templates
from svc.errors import NotFound, ValidationFailed

RECIPE = "FROM registry.example/debian:12\n"


def test_the_newest_come_first(ada: Caller) -> None:
    make_template(ada.user_id, "own", dockerfile=RECIPE)
    for number in range(3):
        templates.edit(ada, "own", {"description": str(number)})
    found = history.page_of(ada, "own", Page())["items"]
    assert [one["revision"] for one in found] == [4, 3, 2, 1]
    found = history.page_of(ada, "own", Page(sort="created_at", limit=2))["items"]
    assert [one["revision"] for one in found] == [1, 2]
    with pytest.raises(ValidationFailed):
        history.page_of(ada, "own", Page(sort="image"))


def test_one_revision_has_its_own_parts(ada: Caller) -> None:
    make_template(ada.user_id, "own", dockerfile=RECIPE)
    templates.edit(ada, "own", {"name": "renamed", "description": "later", "command": ["x"]})
    first = history.get(ada, "renamed", 1)
    assert (first["description"], first["command"], first["dockerfile"]) == ("", None, RECIPE)
    assert "name" not in first
    assert "status" not in first


def test_a_draft_is_for_administrators(ada: Caller, boss: Caller) -> None:
    make_template(None, "open")
    templates.edit(boss, "open", {"description": "draft"})
    templates.edit(boss, "open", {"description": "final"})
    assert history.diff(boss, "open", 2, 3)["changed"] == ["description"]
    with pytest.raises(NotFound):
        history.diff(ada, "open", 2, 3)
    assert history.diff(ada, "open", None, None)["changed"] == []  # the one that they see, and none before it


def test_a_long_difference_is_cut(ada: Caller) -> None:
    make_template(ada.user_id, "own", dockerfile=RECIPE)
    text = RECIPE + "".join(f"RUN echo {number}\n" for number in range(1500))
    templates.set_dockerfile(ada, "own", text)
    found = history.diff(ada, "own", 1, 2)
    assert "more lines" in found["dockerfile"].splitlines()[-1]
