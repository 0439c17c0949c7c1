"""Networks with the installed program: `--network` from a create to the last delete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from e2e.installation import Call, Service
from e2e.surroundings import must, podman, template_of
from waiting import until

USER = "tse-alice"
SERVE = "while true; do printf 'of %s\\n' \"$(hostname)\" | nc -l -p 5432; done"
Record = Callable[[str], dict[str, Any]]


def networks() -> list[str]:
    return must(podman(USER, "network", "ls", "--format", "{{.Name}}")).out.split()


@pytest.fixture
def pair(alice: Call, service: Service, registry: str) -> Iterator[tuple[str, str]]:
    """Two workspaces: the first on the template's network, the second on none yet."""
    name = f"net-{os.urandom(3).hex()}"
    template_of(USER, registry, service.env, name, command=["sh", "-c", SERVE], network=name)
    first, second = f"{name}-tools", f"{name}-nb"
    must(alice("ws", "setup", "--template", name, "--name", first))
    must(alice("ws", "create", "--template", name, "--name", second, "--network", "none"))
    yield first, second
    for one in (first, second):
        alice("ws", "delete", one, "--yes")
    must(alice("template", "delete", name, "--yes"))


def test_workspaces_on_a_network_reach_each_other(
    alice: Call, pair: tuple[str, str], record: Record, service: Service
) -> None:
    tools, nb = pair
    network = record(tools)["network"]
    assert f"svc-{network}" in networks()
    must(alice("ws", "start", tools))
    must(alice("ws", "start", nb))
    fetch = ("ws", "exec", nb, "--", "sh", "-c", f"echo | nc -w 1 {tools} 5432")
    assert "of " not in alice(*fetch).out

    # It has run: what is installed in it is not lost without a word.
    must(alice("ws", "stop", nb))
    refused = alice("ws", "edit", nb, "--network", network, "--json")
    assert (refused.code, refused.json()["error"]["code"]) == (1, "replacement_required")
    command = refused.json()["error"]["hint"]
    assert command == f"svc ws edit {nb} --network {network} --replace-container"
    must(alice(*command.split()[1:]))
    assert record(nb)["network"] == network
    must(alice("ws", "start", nb))
    until(lambda: "of " in alice(*fetch).out, 30)

    for one in pair:
        must(alice("ws", "delete", one, "--yes"))
    assert f"svc-{network}" not in networks()
