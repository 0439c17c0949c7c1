"""The container of a workspace: create, start, remove, inspect, list, watch; stops.py stops it.

Its name is `svc-` + the workspace's id, its label is the id. Every verb is
idempotent.
"""

from __future__ import annotations

import os

from svc_helper.agent import locks, subid_ranges
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import cdi, networks, overrides, spec, stale_containers
from svc_helper.agent.containers.container_info import from_inspect, from_list
from svc_helper.agent.containers.overrides import Created, Prepared
from svc_helper.agent.containers.spec import LABEL, container_name
from svc_helper.agent.home import Home
from svc_helper.agent.podman import moved_layers
from svc_helper.agent.podman.http import not_understood
from svc_helper.agent.podman.podman import LIBPOD, Podman, refusal
from svc_helper.agent.runtime import conmon_log, crun, oom, records
from svc_helper.wire.quick_typing import Any, NamedTuple

_LABELLED = f"%7B%22label%22%3A%5B%22{LABEL}%22%5D%7D"  # {"label":["svc.workspace"]}
_KILLED = 137  # by the kernel for memory, perhaps
_NOT_MODIFIED = 304


def create(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Create the container, or return the workspace's existing one. Never pulls."""
    moved = moved_layers.image_of(podman.home, args["id"])
    plan = planned(podman, call, args | ({"image": moved} if moved else {}))
    with networks.needed(podman, call, args["network"]):
        reply = podman.request(call, "POST", f"{LIBPOD}/containers/create", plan.body)
    if reply.status != 201:
        _require_same(podman, call, args["id"], reply.value)
    else:
        overrides.note(podman.home, args["id"], plan.created)
    records.forget(podman.home, args["id"])
    facts = _facts(podman, call, args["id"])
    return {
        "container_id": facts["container_id"],
        "image_id": facts["image_id"],
        "limits_applied": plan.applied,
        "limits_missing": plan.missing,
    }


class Planned(NamedTuple):
    """A container to be created: Podman's body, what is recorded of it, and its limits."""

    body: dict[str, Any]
    created: Created
    applied: list[str]
    missing: list[str]


def planned(podman: Podman, call: Call, args: dict[str, Any]) -> Planned:
    """What is needed to create the container of these arguments, with its directories made."""
    subid_ranges.require(podman.home)
    spec.require_mounts(podman.home, args["mounts"])
    untrusted_image = podman.ask(call, "GET", f"/images/{args['image']}/json")
    if not isinstance(untrusted_image, dict):
        raise Failure("image_missing", "the image is not in this user's store")
    for root in ("work", *(mount["root"] for mount in args["mounts"])):
        create_root(podman.home, root)
    applied, missing = spec.limits(args["resources"], podman.home.controllers)
    body = spec.specification(podman.home, args, untrusted_image, applied)
    return Planned(body, overrides.created_with(args, untrusted_image, applied), applied, missing)


def _require_same(podman: Podman, call: Call, workspace_id: str, untrusted_error: Any) -> None:
    """After a failed create: raise Failure unless the workspace's own container exists already."""
    found = find_container(podman, call, workspace_id)
    if found is None:
        raise refusal(call, untrusted_error)
    config = found.get("Config")
    labels = config.get("Labels") if isinstance(config, dict) else None
    if not isinstance(labels, dict) or labels.get(LABEL) != workspace_id:
        raise Failure("container_name_taken", "another container of this user has the workspace's name")


def start(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Start it ("Starting a workspace never pulls"); a running one is left as it is.

    `env`, `resources` and `devices` apply to this start; null means the values it
    was created with, and no device. Returns which limits apply and which do not,
    and the devices of which a node is missing in the container: "verified inside
    the container after start", unless that has ended already; and whether it ran before.
    """
    create_root(podman.home, "work")  # Podman refuses to mount a missing directory
    devices = args["devices"] or []
    spec.require_named_devices(devices)
    edits = cdi.resolve(devices)
    with locks.held(podman.home, call, "start", args["id"]):  # a start must not get another's overrides
        created = _created(podman, call, args)
        prepared = overrides.prepare(podman.home, created, args, edits)
        end_forgotten(podman, call, args["id"])
        moved_layers.adopt(podman, call, args["id"])
        with networks.needed(podman, call, args["network"]):
            networks.join(podman, call, args["id"], args["network"])
        ran_already = _start_with(podman, call, args["id"], prepared)
    facts = _facts(podman, call, args["id"])
    if ran_already:
        running = crun.find_running(podman.home, args["id"])
        config = crun.read_config(podman.home, running) if running else None
        prepared = overrides.found_running(prepared, created, config or {})
    return {
        **{name: facts[name] for name in ("container_id", "pid", "started_at")},
        "limits_applied": list(prepared.limits),
        "limits_missing": prepared.missing,
        "devices_missing": cdi.missing(facts["pid"], edits.nodes) if facts["pid"] else [],
        "ran_already": ran_already,
    }


def end_forgotten(podman: Podman, call: Call, workspace_id: str) -> None:
    """End the processes of a container of which Podman does not know that it runs."""
    if pids := stale_containers.find_processes(workspace_id):
        found = find_container(podman, call, workspace_id)
        if found is None or from_inspect(found)["status"] != "running":
            stale_containers.end_processes(call, pids)


def _start_with(podman: Podman, call: Call, workspace_id: str, prepared: Prepared) -> bool:
    """Start it with its overrides and withdraw them afterwards; whether it ran already."""
    oom.note(podman.home, workspace_id)
    conmon_log.prepare(podman.home, workspace_id)
    try:
        started = _start(podman, call, workspace_id, prepared)
        if started:
            _require_applied(podman, call, workspace_id, prepared.token)
    except BaseException:  # Podman may still be starting it
        overrides.revoke(podman.home, workspace_id)
        raise
    overrides.withdraw(podman.home, workspace_id)
    return not started


def _start(podman: Podman, call: Call, workspace_id: str, prepared: Prepared) -> bool:
    """Have Podman start it; False if it ran already."""
    path = f"{LIBPOD}/containers/{container_name(workspace_id)}/start"
    reply = podman.request(call, "POST", path)
    if reply.status >= 500 and not overrides.failed(podman.home, workspace_id, prepared.token):
        found = _inspected(podman, call, workspace_id)
        if found is not None and stale_containers.record_end(podman, call, found):
            reply = podman.request(call, "POST", path)
    if reply.status < 400:
        return reply.status != _NOT_MODIFIED
    if reply.status == 404:
        raise Failure("not_found", "the container does not exist")
    if overrides.failed(podman.home, workspace_id, prepared.token):
        overrides.require_applied(podman.home, call, workspace_id, prepared.token)
    raise refusal(call, reply.value)


def _require_applied(podman: Podman, call: Call, workspace_id: str, token: str) -> None:
    try:
        overrides.require_applied(podman.home, call, workspace_id, token)
    except Failure:
        podman.ask(call, "POST", f"/containers/{container_name(workspace_id)}/stop?timeout=0")
        raise


def _created(podman: Podman, call: Call, args: dict[str, Any]) -> Created:
    """The parameters that it was created with; without a record, read from Podman if they are needed."""
    created = overrides.recall(podman.home, args["id"])
    if created is not None:
        return created
    if args["env"] is None and args["resources"] is None:
        return overrides.UNKNOWN
    found = _inspected(podman, call, args["id"])
    if found is None:
        raise Failure("not_found", "the container does not exist")
    untrusted_image = podman.ask(call, "GET", f"/images/{found.get('Image')}/json")
    created = overrides.guess(found, untrusted_image if isinstance(untrusted_image, dict) else {})
    overrides.note(podman.home, args["id"], created)
    return created


def remove(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Remove it, running or not, and one that was to replace it; also succeeds for a missing one."""
    names = [container_name(args["id"])]
    if overrides.is_prepared(podman.home, args["id"]):
        names.append(spec.next_name(args["id"]))
    with networks.leaving(podman, call, *names):
        for name in names:
            podman.remove_container(call, name)
    end_forgotten(podman, call, args["id"])
    moved_layers.forget(podman, call, args["id"])
    records.forget(podman.home, args["id"])
    overrides.forget(podman.home, args["id"])
    locks.forget(podman.home, args["id"])
    oom.forget(podman.home, args["id"])
    return {}


def inspect(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Podman's facts of it."""
    found = find_container(podman, call, args["id"])
    return {"exists": False} if found is None else {"exists": True, **from_inspect(found)}


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Every container of a workspace, with the facts of inspect().

    With `ends_agent`, an agent and a Podman that were started for this alone end, unless something runs.
    """
    untrusted_rows = podman.ask(call, "GET", f"/containers/json?all=true&filters={_LABELLED}")
    if not isinstance(untrusted_rows, list):
        raise not_understood()
    containers = [facts for row in untrusted_rows if (facts := _listed(podman, call, row))]
    runs = any(facts["status"] == "running" for facts in containers)  # the worker will ask about it
    call.ends_idle_agent = bool(args["ends_agent"]) and not runs
    return {"containers": containers}


def _listed(podman: Podman, call: Call, untrusted_row: Any) -> dict[str, Any] | None:
    row = untrusted_row if isinstance(untrusted_row, dict) else {}
    labels = row.get("Labels")
    workspace_id = labels.get(LABEL) if isinstance(labels, dict) else None
    if row.get("Names") != [container_name(str(workspace_id))]:
        return None  # labelled by the user
    facts = from_list(row)
    # The list lacks oom_killed, and Podman may be wrong that it runs or that somebody removes it.
    unsure = facts["status"] == "stopped" and facts["exit_code"] == _KILLED
    unsure = unsure or row.get("State") == stale_containers.REMOVING
    if unsure or (facts["status"] == "running" and crun.start_time(facts["pid"] or 0) is None):
        found = find_container(podman, call, str(workspace_id))
        if found is None:
            return None  # removed meanwhile
        facts = from_inspect(found)
    return {"id": workspace_id, **facts}


def watch(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """A pidfd of the container's first process, readable when the container ends."""
    facts = _facts(podman, call, args["id"])
    if facts["status"] != "running" or facts["pid"] is None:
        raise Failure("not_running", "the workspace is not running")
    try:
        call.fds.append(os.pidfd_open(facts["pid"]))
    except ProcessLookupError:
        raise Failure("not_running", "the workspace is not running") from None
    # Before pidfd_open() the process may have ended and its pid been reused.
    if _facts(podman, call, args["id"])["pid"] != facts["pid"]:
        raise Failure("not_running", "the workspace is not running")
    return {name: facts[name] for name in ("container_id", "pid", "started_at")}


def find_container(podman: Podman, call: Call, workspace_id: str) -> dict[str, Any] | None:
    """Podman's description of a workspace's container, or None; caches its id and bundle."""
    found = _inspected(podman, call, workspace_id)
    if found is not None and stale_containers.record_end(podman, call, found):
        found = _inspected(podman, call, workspace_id)
    if found is None:
        records.forget(podman.home, workspace_id)
        return None
    bundle = str(found.get("OCIConfigPath") or "").removesuffix("/config.json")
    if bundle:  # a container that never ran has none
        records.remember(podman.home, workspace_id, str(found.get("Id")), bundle)
    if found["State"].get("ExitCode") == _KILLED and oom.happened(podman.home, workspace_id):
        found["State"]["OOMKilled"] = True
    return found


def _inspected(podman: Podman, call: Call, workspace_id: str) -> dict[str, Any] | None:
    try:
        found = podman.ask(call, "GET", f"/containers/{container_name(workspace_id)}/json")
    except Failure as failure:
        if not failure.engine or not stale_containers.is_removing(podman, call, workspace_id):
            raise
        stale_containers.end_removal(podman, call, workspace_id)
        return None
    if found is not None and not (isinstance(found, dict) and isinstance(found.get("State"), dict)):
        raise not_understood()
    if found is not None and found["State"].get("Status") == stale_containers.REMOVING:
        stale_containers.end_removal(podman, call, workspace_id)
        return None
    return found


def _facts(podman: Podman, call: Call, workspace_id: str) -> dict[str, Any]:
    found = find_container(podman, call, workspace_id)
    if found is None:
        raise Failure("not_found", "the container does not exist")
    return from_inspect(found)


def create_root(home: Home, name: str) -> None:
    """Create the directory of a file root as the user, if it does not exist."""
    path = home.roots[name]
    if os.path.isdir(path):
        return
    try:
        os.makedirs(path, 0o700, exist_ok=True)  # as provisioning does
    except OSError:
        raise Failure("failed", f"the directory of the file root {name} cannot be created") from None
