"""A template's variables, of which some are secret: write-only for users.

A secret value is stored encrypted beside the revision's document, which has only
its name; it is decrypted for a workspace's container alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svc.domain.templates import encryption
from svc.errors import invalid_field

if TYPE_CHECKING:  # which imports this module
    from svc.domain.templates.rows import Template

Variables = list[dict[str, Any]]


def split(
    template_id: str, requested: Variables, before: Template | None = None
) -> tuple[Variables, dict[str, str]]:
    """The document's list and the encrypted values for the requested variables.

    A secret without a value keeps its previous one (also a plain one that becomes
    secret); an equal value keeps its encrypted text. Raises ValidationFailed for a
    plain variable without a value.
    """
    plain_before = _plain(before) if before else {}
    sealed_before = before.sealed if before else {}
    env: Variables = []
    sealed: dict[str, str] = {}
    for number, variable in enumerate(requested):
        name, value = variable["name"], variable.get("value")
        if not variable.get("secret"):
            if value is None:
                message = f"{name} has no value; only a secret one may keep its own"
                raise invalid_field(f"env.{number}.value", "required", message)
            env.append({"name": name, "value": value})
            continue
        env.append({"name": name, "secret": True})
        was = sealed_before.get(name)
        if was is not None and (value is None or encryption.matches(template_id, name, was, value)):
            sealed[name] = was
        elif value is not None or name in plain_before:
            sealed[name] = encryption.encrypt(
                template_id, name, plain_before[name] if value is None else value
            )
    return env, sealed


def encrypt_earlier(
    template_id: str, env: Variables, sealed: dict[str, str], now_sealed: dict[str, str]
) -> tuple[Variables, dict[str, str]]:
    """An earlier revision's variables, with those encrypted that are secret from now on."""
    kept: Variables = []
    sealed = dict(sealed)
    for one in env:
        name, value = one["name"], one.get("value")
        if value is None or name not in now_sealed:
            kept.append(one)
            continue
        same = encryption.matches(template_id, name, now_sealed[name], value)
        sealed[name] = now_sealed[name] if same else encryption.encrypt(template_id, name, value)
        kept.append({"name": name, "secret": True})
    return kept, sealed


def values_of(template: Template) -> dict[str, str]:
    """Every variable with its plain value, for a container; a secret that was never set is left out."""
    return _plain(template) | {
        name: encryption.decrypt(template.id, name, sealed) for name, sealed in template.sealed.items()
    }


def redacted(template: Template) -> Variables:
    """The list without secret values; `is_set` is true where there is one."""
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


def for_clone(template: Template, *, own: bool) -> Variables:
    """The list for a clone, with secret values only from the caller's own template."""
    values = values_of(template) if own else {}
    return [
        one | {"value": values.get(one["name"])} if one.get("secret") else one for one in template.spec["env"]
    ]


def _plain(template: Template) -> dict[str, str]:
    return {one["name"]: one["value"] for one in template.spec["env"] if "value" in one}
