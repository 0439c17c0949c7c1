"""Private networks of one user's workspaces, which reach each other on one by name.

A network is one of this user's own Podman: a bridge in the network namespace of the user's rootless
Podman, with a DNS server there. No other user, and nobody on the host, has a route to it. It is made
when a container first needs it and removed with the last container that names it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from svc_helper.agent import locks
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers.spec import container_name, network_name
from svc_helper.agent.podman.http import whole
from svc_helper.agent.podman.podman import LIBPOD, Podman, refusal
from svc_helper.wire.limits import NETWORK_PROGRAMS, PODMAN_PROGRAM_DIRECTORIES
from svc_helper.wire.quick_typing import Any

LABEL = "svc.network"
_UNUSED = f"%7B%22dangling%22%3A%5B%22true%22%5D%2C%22label%22%3A%5B%22{LABEL}%22%5D%7D"  # as JSON
_ANSWER_MAX = 64 * 1024
_PREFIX = network_name("")
Network = dict[str, str]  # {name, alias}: of the network, and of the workspace in it


@contextmanager
def needed(podman: Podman, call: Call, network: Network | None) -> Iterator[None]:
    """The network exists, and is not removed meanwhile; nothing for None.

    Raises Failure `network_programs_missing`.
    """
    if network is None:
        yield
        return
    _require_programs(PODMAN_PROGRAM_DIRECTORIES)
    with locks.held(podman.home, call, "networks", "all"):
        _ensure(podman, call, network["name"])
        yield


def _require_programs(directories: tuple[str, ...]) -> None:
    missing = [
        name
        for name in NETWORK_PROGRAMS
        if not any(os.path.exists(f"{directory}/{name}") for directory in directories)
    ]
    if missing:
        raise Failure(
            "network_programs_missing",
            f"Podman on this host lacks {' and '.join(missing)}, which networks of workspaces need",
        )


def _ensure(podman: Podman, call: Call, name: str) -> None:
    if podman.ask(call, "GET", f"/networks/{network_name(name)}/json") is not None:
        return
    body = {
        "name": network_name(name),
        "driver": "bridge",
        "dns_enabled": True,
        "labels": {LABEL: name},
        "options": {"isolate": "true"},  # else workspaces of two networks reach each other by address
    }
    reply = podman.request(call, "POST", f"{LIBPOD}/networks/create", body)
    if reply.status not in (200, 201, 409):
        raise refusal(call, reply.value)


def join(podman: Podman, call: Call, workspace_id: str, network: Network | None) -> None:
    """Before a start: put the container on this network alone, by this alias: an edit or rename changes them.

    Nothing for None. Podman cannot do it for a container that was created without a network.
    """
    if network is None:
        return
    untrusted = podman.ask(call, "GET", f"/containers/{container_name(workspace_id)}/json")
    present = of_container(untrusted)
    if untrusted is None or present == {network_name(network["name"]): network["alias"]}:
        return
    if not present:
        raise Failure("failed", "the container was created without a network")
    for name in present:
        _ask(podman, call, f"/networks/{name}/disconnect", {"Container": container_name(workspace_id)})
    body = {"container": container_name(workspace_id), "aliases": [network["alias"]]}
    _ask(podman, call, f"/networks/{network_name(network['name'])}/connect", body)
    remove_unused(podman, call)


def _ask(podman: Podman, call: Call, path: str, body: dict[str, Any]) -> None:
    with podman.open(call, "POST", f"{LIBPOD}{path}", json.dumps(body).encode()) as wire:
        status, parts = wire.answer()  # its success is a word, no JSON
        podman.service.answered()
        untrusted_text = whole(parts, _ANSWER_MAX).decode(errors="replace")
    if status >= 400:
        raise refusal(call, untrusted_text)


def of_container(untrusted: Any) -> dict[str, str]:
    """The networks of ours that a container is on, by Podman's name, with its first alias in each."""
    settings = untrusted.get("NetworkSettings") if isinstance(untrusted, dict) else None
    found = settings.get("Networks") if isinstance(settings, dict) else None
    networks: dict[str, str] = {}
    for name, value in found.items() if isinstance(found, dict) else ():
        aliases = value.get("Aliases") if isinstance(value, dict) else None
        first = aliases[0] if isinstance(aliases, list) and aliases else None
        if name.startswith(_PREFIX):
            networks[name] = first if isinstance(first, str) else ""
    return networks


@contextmanager
def leaving(podman: Podman, call: Call, *names: str) -> Iterator[None]:
    """In the block these containers are removed; networks that nobody needs any more go too."""
    were_on_one = [_may_be_on_one(podman, call, name) for name in names]
    yield
    if any(were_on_one):
        with locks.held(podman.home, call, "networks", "all"):
            remove_unused(podman, call)


def _may_be_on_one(podman: Podman, call: Call, name: str) -> bool:
    try:
        return bool(of_container(podman.ask(call, "GET", f"/containers/{name}/json")))
    except Failure as failure:
        if failure.code != "storage_damaged":  # such a container can be removed, and nothing else
            raise
        return True


def remove_unused(podman: Podman, call: Call) -> None:
    """Remove the networks that no container names; the caller holds their lock."""
    untrusted_rows = podman.ask(call, "GET", f"/networks/json?filters={_UNUSED}")
    for row in untrusted_rows if isinstance(untrusted_rows, list) else ():
        name = row.get("name") if isinstance(row, dict) else None
        if isinstance(name, str) and name.startswith(_PREFIX) and name.replace("-", "").isalnum():
            podman.request(call, "DELETE", f"{LIBPOD}/networks/{name}")
