"""What a newer revision of its template changes of a workspace, and what of it needs a new container.

A value that the workspace has from its template becomes the new template's; what its owner has
set stays. Resources beyond the new limits come down to them. Rules only, no calls.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any, NamedTuple

from svc.actions.commands import edit
from svc.domain.quotas import resources
from svc.domain.quotas.resources import LIMITED, UNLIMITED, Resources
from svc.domain.templates import findings, parts, revisions
from svc.domain.templates.rows import Template
from svc.domain.workspaces.ports import Port
from svc.domain.workspaces.states import Workspace
from svc.errors import ReplacementRequired, ValidationFailed

CREATED_WITH = ("command", "run_as", "mounts")  # of the document: no start can change these of a container
OTHERS = ("launchers", "idle", "gpu")  # read from the document when they are needed

Change = dict[str, Any]  # {part, name, before, after, needs_container}


class PortChanges(NamedTuple):
    """The ports that go, those that change, and those that come."""

    removed: list[str]
    changed: list[Port]
    added: list[dict[str, Any]]


class Plan(NamedTuple):
    """An upgrade: the row as it will be, its ports, and the list of what changes."""

    before: int
    after: int
    row: Workspace
    ports: PortChanges
    changes: list[Change]

    @property
    def container(self) -> str:
        """none, kept, or replaced: then what is installed in it is lost."""
        if not self.row.container_id:
            return "none"
        return "replaced" if any(change["needs_container"] for change in self.changes) else "kept"

    @property
    def is_due(self) -> bool:
        """Whether there is a newer revision, or the image was built or pulled again."""
        return self.before != self.after or self.container == "replaced"

    def record(self) -> dict[str, Any]:
        """The record of the API."""
        return {
            "before": self.before,
            "after": self.after,
            "container": self.container,
            "changes": self.changes,
        }


def make(workspace: Workspace, ports: list[Port], new: Template, digest: str | None = None) -> Plan:
    """The plan that brings a workspace with these ports to its template's revision `new`.

    `digest`: of the image that the owner's store has for it, if that is known.
    """
    old = workspace.template
    granted, env = _resources(workspace, old, new), _own_env(workspace, old, new)
    # One that its owner has chosen stays.
    network = new.spec["network"] if workspace.network == old.spec["network"] else workspace.network
    row = workspace._replace(
        template_revision=new.revision, image_ref=new.image_ref, env_json=json.dumps(env), network=network,
        **granted._asdict(),
    )  # fmt: skip
    port_changes = _ports(ports, old, new)
    before, after = findings.documents(revisions.content_of(old), revisions.content_of(new))
    changes = [
        *_one("image", *_images(workspace, new.image_ref, digest), needs_container=True),
        *(
            one
            for key in CREATED_WITH
            if not (key == "command" and workspace.command_json)  # its owner's own stays
            for one in _one(key, before[key], after[key], needs_container=True)
        ),
        *_one(
            "network",
            workspace.network,
            network,
            needs_container=_network_needs_container(workspace.network, network),
        ),
        *_named("env", _variables(before["env"], workspace.env), _variables(after["env"], env)),
        *_named("resources", resources.request_of(_granted(workspace)), resources.request_of(granted)),
        *_port_records(ports, port_changes),
        *(one for key in OTHERS for one in _one(key, before[key], after[key])),
    ]
    return Plan(workspace.template_revision, new.revision, row, port_changes, changes)


def _images(workspace: Workspace, image_ref: str, digest: str | None) -> tuple[str, str]:
    """The image before and after: with the digests where the store has another one of the same reference."""
    before = workspace.image_digest if workspace.container_id else None
    is_tag = workspace.image_ref == image_ref and "@" not in image_ref
    if not is_tag or not before or not digest or before == digest:
        return workspace.image_ref, image_ref
    return f"{image_ref}@{before}", f"{image_ref}@{digest}"


def _one(
    part: str, before: Any, after: Any, *, needs_container: bool = False, name: str = ""
) -> list[Change]:
    if before == after:
        return []
    return [
        {
            "part": part, "name": name or None, "before": before, "after": after,
            "needs_container": needs_container,
        }
    ]  # fmt: skip


def _named(part: str, before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """The changes of each name, None where it is not there."""
    names = dict.fromkeys([*before, *after])
    return [one for name in names for one in _one(part, before.get(name), after.get(name), name=name)]


# --- resources --------------------------------------------------------------------------


def _granted(workspace: Workspace) -> Resources:
    return Resources(*(getattr(workspace, name) for name in Resources._fields))


def _resources(workspace: Workspace, old: Template, new: Template) -> Resources:
    """What its owner has set, within the new limits; the new defaults for the rest."""
    present = resources.request_of(_granted(workspace))
    defaults: dict[str, Any] = {}
    with contextlib.suppress(ValidationFailed):  # of an earlier release
        of_template = resources.resolve({}, old.spec["defaults"], old.spec["limits"], old.spec["gpu"])
        defaults = resources.request_of(of_template)
    request = {key: value for key, value in present.items() if defaults.get(key) != value}
    limits, gpu = new.spec["limits"], new.spec["gpu"]
    for key in LIMITED:
        value, limit = request.get(key), limits.get(key)
        if value is not None and limit is not None and (value == UNLIMITED or value > limit):
            request[key] = limit
    if request.get("gpu_mode") == "shared" and not gpu.get("allow_shared"):
        del request["gpu_mode"]
    return resources.resolve(request, new.spec["defaults"], limits, gpu)


# --- variables --------------------------------------------------------------------------


def _own_env(workspace: Workspace, old: Template, new: Template) -> dict[str, str]:
    """The workspace's own variables: those that are still the old defaults become the new ones."""
    was, will = _default_env(old), _default_env(new)
    env: dict[str, str] = {}
    for name, value in workspace.env.items():
        if was.get(name) != value:
            env[name] = value
        elif name in will:
            env[name] = will[name]
    came = {name: value for name, value in will.items() if name not in was and name not in workspace.env}
    return env | came


def _default_env(template: Template) -> dict[str, str]:
    return {pair["name"]: pair["value"] for pair in template.spec["defaults"].get("env", [])}


def _variables(listed: list[dict[str, Any]], own: dict[str, str]) -> dict[str, Any]:
    """The variables of a container, by name; of secret ones what findings.documents() shows."""
    return {one["name"]: one.get("value") for one in listed} | own


# --- ports ------------------------------------------------------------------------------


def _ports(rows: list[Port], old: Template, new: Template) -> PortChanges:
    """Ports that are as the old template had them become the new one's; those that were removed stay away."""
    was, will = _template_ports(old), _template_ports(new)
    changes = PortChanges([], [], [])
    for row in rows:
        if was.get(row.name) != row.definition:
            continue
        if row.name not in will:
            changes.removed.append(row.name)
        elif will[row.name] != was[row.name]:
            changes.changed.append(row.defined(will[row.name]))
    taken = {row.name for row in rows} | set(was)
    for name, definition in will.items():
        if name not in taken:
            changes.added.append({"name": name} | definition)
    return changes


def _template_ports(template: Template) -> dict[str, Change]:
    return {port["name"]: _definition(port) for port in map(parts.full_port, template.spec["ports"])}


def _definition(port: dict[str, Any]) -> Change:
    return {key: port[key] for key in parts.PORT_DEFAULTS}


def _port_records(rows: list[Port], changes: PortChanges) -> list[Change]:
    before = {row.name: row.definition for row in rows}
    after = {name: value for name, value in before.items() if name not in changes.removed}
    after |= {port.name: port.definition for port in changes.changed}
    after |= {port["name"]: _definition(port) for port in changes.added}
    return _named("ports", before, after)


# --- networks and commands --------------------------------------------------------------


def _network_needs_container(before: str | None, after: str | None) -> bool:
    """Whether a container cannot be moved from one network to the other: from or to none."""
    return (before is None) != (after is None)


def command_column(command: list[str] | None) -> str | None:
    """The column of a command of its own."""
    return None if command is None else json.dumps(command)


def container_columns(workspace: Workspace, patch: dict[str, Any]) -> dict[str, Any]:
    """The columns that an edit of the network or the command changes; raises ReplacementRequired.

    Podman cannot give an existing container another command, its first network, or take its last: then the
    next start makes another one. One that was never started has nothing to lose.
    """
    columns: dict[str, Any] = {}
    parts = []
    if "command" in patch:
        columns["command_json"] = command_column(patch["command"])
        if workspace._replace(command_json=columns["command_json"]).command != workspace.command:
            parts.append("command")
    if "network" in patch:
        columns["network"] = patch["network"]
        if _network_needs_container(workspace.network, patch["network"]):
            parts.append("network")
    if not parts or not workspace.container_id:
        return columns
    if workspace.started_at is not None and not patch.get("replace_container"):
        afterwards = "; edit the variables after that" if "env" in patch else ""
        raise ReplacementRequired(
            f"{workspace.name} needs a new container for that: what was installed in the present one is lost;"
            f" the files of /work stay{afterwards}",
            hint=_edit_again(workspace.name, patch),
            details={"parts": parts},
        )
    return columns | {"stale": 1, "container_id": None}


def _edit_again(name: str, patch: dict[str, Any]) -> str:
    """The command that makes the same edit, and takes what it costs; without values of variables.

    They may be secrets, and a hint is printed, also into the log of a job.
    """
    if patch.keys() <= {"network", "replace_container"}:
        return f"svc ws edit {name} --network {patch['network'] or 'none'} --replace-container"
    again = {key: value for key, value in patch.items() if key != "env"} | {"replace_container": True}
    return edit(name, again)
