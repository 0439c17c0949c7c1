"""What a template may be made from, and who may replace it."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import IMAGE

from svc import errors
from svc.domain.principal import Caller
from svc.domain.templates import rows as template_rows
from svc.domain.templates import sources as template_sources
from svc.domain.templates import templates
from svc.domain.templates.rows import Source

RECIPE = "FROM registry.example/debian:12\nUSER 1000\n"


def field_of(caught: Any) -> str:
    return str(caught.value.fields[0]["field"])


@pytest.mark.parametrize(
    ("requested", "is_global", "field"),
    [
        ({}, False, "source.image_ref"),
        ({"type": "registry"}, True, "source.image_ref"),
        ({"image_ref": "python:3"}, False, "source.image_ref"),
        ({"image_ref": "localhost/svc/tpl-1:ab"}, False, "source.image_ref"),
        ({"image_ref": IMAGE, "dockerfile": RECIPE}, False, "source.dockerfile"),
        ({"image_ref": IMAGE, "local_only": True}, True, "source.local_only"),
        ({"type": "dockerfile"}, False, "source.dockerfile"),
        ({"type": "dockerfile", "dockerfile": RECIPE, "image_ref": IMAGE}, True, "source.image_ref"),
        ({"type": "dockerfile", "dockerfile": RECIPE, "local_only": True}, False, "source.local_only"),
    ],
)
def test_what_does_not_go_together_names_the_field(
    requested: dict[str, Any], is_global: bool, field: str
) -> None:
    with pytest.raises(errors.ValidationFailed) as caught:
        template_sources.new(requested, is_global=is_global)
    assert field_of(caught) == field


def test_what_goes_together() -> None:
    assert template_sources.new({"image_ref": IMAGE}, is_global=False, written_by=7) == Source(
        "registry", IMAGE
    )
    recipe = {"image_ref": IMAGE, "dockerfile": RECIPE}
    assert template_sources.new(recipe, is_global=True, written_by=7) == Source(
        "registry", IMAGE, RECIPE, written_by=7
    )
    local = {"type": "dockerfile", "dockerfile": RECIPE, "local_only": True}
    assert template_sources.new(local, is_global=True).local_only


def test_a_dockerfile_is_its_owners_to_replace(ada: Caller, bob: Caller) -> None:
    created = templates.create(ada, {"name": "own", "source": {"type": "dockerfile", "dockerfile": RECIPE}})
    template = template_rows.find(ada, "own")
    assert template.written_by == ada.user_id
    same = template_sources.edited(bob, template, {"dockerfile": RECIPE})
    assert same.written_by == ada.user_id  # nobody wrote anything
    other = template_sources.edited(ada, template._replace(written_by=None), {"dockerfile": "FROM scratch"})
    assert (other.dockerfile, other.written_by) == ("FROM scratch", ada.user_id)
    for patch, field in (
        ({"type": "registry"}, "source.type"),
        ({"image_ref": IMAGE}, "source.image_ref"),
        ({"local_only": True}, "source.local_only"),
    ):
        with pytest.raises(errors.ValidationFailed) as caught:
            template_sources.edited(ada, template, patch)
        assert field_of(caught) == field
    assert created["source"]["has_dockerfile"]


def test_a_global_templates_dockerfile_is_read_only(boss: Caller, ada: Caller) -> None:
    """ "a global template's Dockerfile is read-only", for administrators too."""
    source = {"type": "dockerfile", "dockerfile": RECIPE, "local_only": True}
    templates.create(boss, {"name": "open", "scope": "global", "source": source})
    templates.create(boss, {"name": "plain", "scope": "global", "source": {"image_ref": IMAGE}})
    for name in ("open", "plain"):
        with pytest.raises(errors.ReadOnly) as caught:
            templates.edit(boss, name, {"source": {"dockerfile": "FROM scratch"}})
        assert caught.value.hint == f"svc template clone {name} --name {name}-own"
    templates.create(ada, {"name": "mine", "source": {"image_ref": IMAGE}})
    with pytest.raises(errors.Conflict, match="has no Dockerfile"):
        templates.edit(ada, "mine", {"source": {"dockerfile": "FROM scratch"}})
    assert templates.edit(boss, "open", {"source": {"local_only": False}})["source"]["local_only"] is False
