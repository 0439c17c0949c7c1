"""What the palette finds besides the workspaces of the mock-up."""

from __future__ import annotations

from typing import Any

from pages.canned import Canned
from pages.records import ago, page


def template(name: str, scope: str = "private", **more: Any) -> dict[str, Any]:
    """The record of a template, as far as the palette reads it."""
    return {
        "id": f"tpl-{name}-{scope}", "name": name, "description": "", "scope": scope,
        "owner": None if scope == "global" else "ada", "status": "enabled", "revision": 4,
        "created_at": ago(days=9), "updated_at": ago(days=2),
    } | more  # fmt: skip


def image(template_name: str, ref: str, status: str = "ready") -> dict[str, Any]:
    """The record of an image."""
    return {
        "template": {"id": f"tpl-{template_name}", "name": template_name}, "ref": ref, "status": status,
        "digest": None, "size_bytes": None, "error": None, "used_by": [], "operation": None,
        "updated_at": None,
    }  # fmt: skip


TEMPLATES = [
    template("torch", "global"),
    template("my-torch", revision=2, status="disabled"),
    template("jupyter", "global", revision=7),
]
IMAGES = [image("torch", "docker.io/team/torch:1"), image("jupyter", "docker.io/team/jupyter:7", "missing")]


def add_to(canned: Canned) -> None:
    """Have these too."""
    canned.answers["GET /api/templates"] = page(TEMPLATES)
    canned.answers["GET /api/images"] = page(IMAGES)
