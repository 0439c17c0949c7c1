"""A template's variables, of which some are secret: written, never read again.

A secret's value is kept encrypted beside the revision's document, which has the
name alone; only a workspace's container gets it opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svc.domain.templates import encryption
from svc.errors import ValidationFailed

if TYPE_CHECKING:  # which shows variables, and so needs this module
    from svc.domain.templates.rows import Template

Variables = list[dict[str, Any]]


def split(
    template_id: str, wanted: Variables, before: Template | None = None
) -> tuple[Variables, dict[str, str]]:
    """The document's list and the sealed values of what was asked for.

    A secret without a value keeps the one that it had (a plain one that becomes
    secret too); an equal value stays as it is sealed. Raises ValidationFailed
    for a plain variable without a value.
    """
    plain_before = _plain(before) if before else {}
    sealed_before = before.sealed if before else {}
    env: Variables = []
    sealed: dict[str, str] = {}
    for number, given in enumerate(wanted):
        name, value = given["name"], given.get("value")
        if not given.get("secret"):
            if value is None:
                raise _no_value(number, name)
            env.append({"name": name, "value": value})
            continue
        env.append({"name": name, "secret": True})
        was = sealed_before.get(name)
        if was is not None and (value is None or encryption.holds(template_id, name, was, value)):
            sealed[name] = was
        elif value is not None or name in plain_before:
            sealed[name] = encryption.seal(template_id, name, plain_before[name] if value is None else value)
    return env, sealed


def sealed_too(
    template_id: str, env: Variables, sealed: dict[str, str], now_sealed: dict[str, str]
) -> tuple[Variables, dict[str, str]]:
    """An earlier revision's variables, sealed where they are secret from now on, equal values equally."""
    kept: Variables = []
    sealed = dict(sealed)
    for one in env:
        name, value = one["name"], one.get("value")
        if value is None or name not in now_sealed:
            kept.append(one)
            continue
        same = encryption.holds(template_id, name, now_sealed[name], value)
        sealed[name] = now_sealed[name] if same else encryption.seal(template_id, name, value)
        kept.append({"name": name, "secret": True})
    return kept, sealed


def _no_value(number: int, name: str) -> ValidationFailed:
    message = f"{name} has no value; only a secret one may keep its own"
    field = f"env.{number}.value"
    return ValidationFailed(
        f"{field}: {message}", fields=[{"field": field, "code": "required", "message": message}]
    )


def values_of(template: Template) -> dict[str, str]:
    """Every variable with its value, opened, for a container; a secret that was never set is left out."""
    return _plain(template) | {
        name: encryption.opened(template.id, name, sealed) for name, sealed in template.sealed.items()
    }


def shown(template: Template) -> Variables:
    """The list as everybody may see it: a secret has no value, and says whether it is set."""
    sealed = template.sealed
    return [
        {
            "name": one["name"],
            "value": one.get("value"),
            "secret": bool(one.get("secret")),
            "is_set": not one.get("secret") or one["name"] in sealed,
        }
        for one in template.spec["env"]
    ]


def copied(template: Template, *, own: bool) -> Variables:
    """The list as a clone is created with: the values of secrets only from one's own template."""
    values = values_of(template) if own else {}
    return [
        one | {"value": values.get(one["name"])} if one.get("secret") else one for one in template.spec["env"]
    ]


def _plain(template: Template) -> dict[str, str]:
    return {one["name"]: one["value"] for one in template.spec["env"] if "value" in one}
