"""What others notice of crowds: 880 half requests of a neighbour, 2,000 connections of a stranger."""

from __future__ import annotations

import http.client
import pwd
import ssl
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, closing

from bench.pairs import Row, Shell, Side, timed
from bench.stage import NEIGHBOUR, Stage
from e2e.installation import SVC
from hostile.attackers import addresses
from hostile.attackers.crowds import HALF_A_BODY, HALF_A_HEAD, HALF_A_HELLO, SILENCE, crowd, subordinate_uids

BAR = 3.0
ROUNDS, EACH = 4, 6
SOURCES = [addresses.address(number) for number in range(50)]


def rows(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """The list and `health` beside crowds against the same without them, by turns."""
    port = int(set_up.env["SVC_PORT"])
    sides = {
        "ws list beside 2,880 connections | alone": shell.side(str(SVC), "ws", "list"),
        "health over TLS beside 2,880 connections | alone": Side(lambda: _health(port)),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for side in sides.values():
        timed(side)
    for _ in range(ROUNDS):
        alone = {name: _median(side) for name, side in sides.items()}
        with ExitStack() as stack:
            gather(stack, set_up)
            for name, side in sides.items():
                taken[name].append((_median(side), alone[name]))
    for name, pairs in taken.items():
        yield Row(
            name,
            statistics.median(beside for beside, _ in pairs),
            statistics.median(alone for _, alone in pairs),
            statistics.median(beside / alone for beside, alone in pairs),
            BAR,
        )


def gather(stack: ExitStack, set_up: Stage) -> None:
    """The crowds of both, held until the stack is left."""
    path, port = set_up.env["SVC_SOCKET"], int(set_up.env["SVC_PORT"])
    stranger = pwd.getpwnam("nobody").pw_uid
    stack.enter_context(addresses.of_this_host())
    for uid in subordinate_uids(NEIGHBOUR, 8):
        stack.enter_context(crowd(110, [HALF_A_HEAD, HALF_A_BODY], uid=uid, path=path))
    stack.enter_context(crowd(1000, [HALF_A_HELLO, SILENCE], uid=stranger, port=port, sources=SOURCES))
    stack.enter_context(crowd(1000, [HALF_A_HEAD, SILENCE], uid=stranger, path=path))


def _median(side: Side) -> float:
    return statistics.median(timed(side) for _ in range(EACH))


def _health(port: int) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
    with closing(client):
        client.request("GET", "/api/health")
        if client.getresponse().status != 200:
            raise RuntimeError("health is not well")
