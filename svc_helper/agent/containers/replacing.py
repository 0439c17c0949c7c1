"""Another container in the place of a workspace's own: prepared beside it, then put in its place.

Killed at any step, the workspace has its own container, or the prepared one is found by its id and
put in place by the next `ctr.replace`: the caller records which of the two it is to be. The
prepared one was never started, so nothing is installed in it.
"""

from __future__ import annotations

from svc_helper.agent import locks
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import containers, networks, overrides
from svc_helper.agent.containers.container_info import from_inspect
from svc_helper.agent.containers.spec import container_name, next_name
from svc_helper.agent.podman import moved_layers
from svc_helper.agent.podman.podman import LIBPOD, Podman, refusal
from svc_helper.agent.runtime import records
from svc_helper.wire.quick_typing import Any


def prepare(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Create the container that is to replace the workspace's own; one prepared earlier goes. Never pulls."""
    with locks.held(podman.home, call, "start", args["id"]):
        plan = containers.planned(podman, call, args)
        body = plan.body | {"name": next_name(args["id"])}
        podman.remove_container(call, next_name(args["id"]))
        overrides.note(podman.home, args["id"], plan.created, prepared=True)  # first: ctr.remove looks for it
        with networks.needed(podman, call, args["network"]):
            reply = podman.request(call, "POST", f"{LIBPOD}/containers/create", body)
        if reply.status != 201:
            raise refusal(call, reply.value)
        found = _found(podman, call, next_name(args["id"]))
    if found is None:
        raise Failure("failed", "the container that was created is not there")
    return {
        "container_id": from_inspect(found)["container_id"],
        "limits_applied": plan.applied,
        "limits_missing": plan.missing,
    }


def replace(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Put the prepared container with this id in the place of the workspace's own, which is removed.

    {"replaced"}: whether the workspace's container has this id now. Of one that runs nothing is changed.
    """
    workspace_id = args["id"]
    with locks.held(podman.home, call, "start", workspace_id):
        own = containers.find_container(podman, call, workspace_id)
        if own is None or own.get("Id") != args["container_id"]:
            prepared = _found(podman, call, next_name(workspace_id))
            if prepared is None or prepared.get("Id") != args["container_id"]:
                return {"replaced": False}
            if own is not None and from_inspect(own)["status"] == "running":
                raise Failure("conflict", "the container runs")
            with networks.leaving(podman, call, container_name(workspace_id)):
                podman.remove_container(call, container_name(workspace_id))
            path = f"{LIBPOD}/containers/{next_name(workspace_id)}/rename?name={container_name(workspace_id)}"
            reply = podman.request(call, "POST", path)
            if reply.status >= 400:
                raise refusal(call, reply.value)
            moved_layers.forget(podman, call, workspace_id)
            records.forget(podman.home, workspace_id)
        overrides.take_over(podman.home, workspace_id)
    return {"replaced": True}


def _found(podman: Podman, call: Call, name: str) -> dict[str, Any] | None:
    found = podman.ask(call, "GET", f"/containers/{name}/json")
    return found if isinstance(found, dict) and isinstance(found.get("State"), dict) else None
