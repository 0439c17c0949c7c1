"""Who gets the next thread, and who loses a connection, when there are too many."""

from __future__ import annotations

from typing import NamedTuple

from svc.limits import BODIES_PER_CLIENT, THREADS_PER_CLIENT, WEB_THREADS
from svc.web.gunicorn_worker.shares import RESERVED_EACH, Share, Shares


class Waiting(NamedTuple):
    """What counts of a connection that waits for a thread."""

    name: str = ""
    holds_body: bool = False


def with_idle(shares: Shares, client: str, count: int) -> Share:
    """That client with so many idle connections, the first the longest idle."""
    share = shares.find(client)
    for number in range(count):
        share.idle[f"{client} {number}"] = None
        shares.connections += 1
    return share


def run_all(shares: Shares, client: str, wanted: int) -> int:
    """How many of the connections that wait get a thread."""
    share = shares.find(client)
    share.waiting.extend(Waiting() for _ in range(wanted))
    began = 0
    while shares.next_waiting() is not None:
        share.running += 1
        shares.running += 1
        began += 1
    share.waiting.clear()
    return began


def test_one_client_has_its_part_of_the_threads() -> None:
    shares = Shares(WEB_THREADS, 100)
    assert run_all(shares, "a", 100) == THREADS_PER_CLIENT


def test_the_last_threads_are_for_clients_with_next_to_none() -> None:
    shares = Shares(WEB_THREADS, 100)
    begun = [run_all(shares, str(number), 100) for number in range(10)]
    assert sum(begun) <= WEB_THREADS
    assert begun[:3] == [THREADS_PER_CLIENT] * 3
    assert begun[4] == RESERVED_EACH, "the fifth crowd got its first threads"
    assert run_all(Shares(4, 100), "a", 10) < 4


def test_the_client_with_the_fewest_threads_comes_first() -> None:
    shares = Shares(4, 100)
    busy, other = shares.find("busy"), shares.find("other")
    busy.running = shares.running = 2
    busy.waiting.append(Waiting("busy's"))
    other.waiting.append(Waiting("other's"))
    assert shares.next_waiting().name == "other's"


def test_bodies_leave_threads_for_others_of_the_client() -> None:
    """Twenty bodies that came a byte at a time took all threads of an address for 7 seconds."""
    shares = Shares(WEB_THREADS, 100)
    share = shares.find("a")
    share.waiting.extend(Waiting("body", holds_body=True) for _ in range(60))
    share.waiting.append(Waiting("quick"))
    begun = []
    while (one := shares.next_waiting()) is not None:
        begun.append(one.name)
        share.running += 1
        share.bodies += one.holds_body
    assert begun == ["body"] * BODIES_PER_CLIENT + ["quick"]


def test_the_client_with_the_most_connections_gives_way() -> None:
    shares = Shares(4, 12)
    with_idle(shares, "crowd", 10)
    few = with_idle(shares, "few", 2)
    assert shares.giving_way(few) == "crowd 0"
    assert shares.giving_way(shares.find("new")) == "crowd 0"
    assert shares.giving_way(shares.find("crowd")) == "crowd 0", "its own, though it is the newcomer"


def test_the_last_that_waits_gives_way_when_none_is_idle() -> None:
    shares = Shares(4, 2)
    crowd = shares.find("crowd")
    crowd.waiting.extend(["first", "last"])
    assert shares.giving_way(shares.find("new")) == "last"
    crowd.waiting.clear()
    crowd.running = 2
    assert shares.giving_way(shares.find("new")) is None, "what a thread serves is not closed"


def test_a_client_without_connections_is_forgotten() -> None:
    shares = Shares(4, 2)
    share = with_idle(shares, "a", 1)
    shares.forget(share)
    assert shares.of_client
    share.idle.clear()
    shares.forget(share)
    assert not shares.of_client
