"""A thousand failed logins: they neither delay users on the host nor reveal which accounts exist.

Each try can come from an address of its own.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import select
import ssl
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from e2e.installation import Call, Service
from e2e.surroundings import in_database, make_accounts
from hostile.attackers import addresses
from hostile.conftest import LATER, SECRET

TRIES = 1000
ROUNDS = 4
QUIET_EACH = 20  # of `svc ws list` before each round
AT_ONCE = 20  # tries under way
BREATH_S = 0.05  # between two lists
SAMPLES = 25  # of each kind of name, when its time is taken
CHANCE = 0.01  # of seeing a difference in times that differ by nothing
WINDOW_S = 15 * 60

NUMBERS = itertools.count(1)


def source() -> str:
    """An address without a login attempt so far."""
    return addresses.address(next(NUMBERS))


@pytest.fixture(scope="module", autouse=True)
def sources() -> Iterator[None]:
    """This host has the addresses of source()."""
    with addresses.of_this_host():
        yield


class Tried(NamedTuple):
    """The status of a login attempt, its duration and its Retry-After."""

    status: int
    code: str
    took_s: float
    retry_after: str


def log_in(port: int, name: str, password: str, address: str) -> Tried:
    """One login over TLS from an address; timed from the established connection on."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    listener = http.client.HTTPSConnection(
        "127.0.0.1", port, timeout=60, context=context, source_address=(address, 0)
    )
    try:
        listener.connect()
        began = time.monotonic()
        body = json.dumps({"username": name, "password": password})
        listener.request("POST", "/api/auth/login", body, {"Content-Type": "application/json"})
        answer = listener.getresponse()
        content = json.loads(answer.read())
        took_s = time.monotonic() - began
        code = content.get("error", {}).get("code", "")
        return Tried(answer.status, code, took_s, answer.getheader("Retry-After", ""))
    finally:
        listener.close()


@pytest.fixture
def port(service: Service) -> int:
    """Of the TLS listener."""
    return int(service.env["SVC_PORT"])


@pytest.fixture
def unlocked(service: Service) -> Iterator[Callable[[], None]]:
    """unlocked() forgets all wrong logins, as fifteen minutes would; so it is before and after each test."""

    def forget() -> None:
        in_database(service.env, "DELETE FROM login_failures")
        in_database(service.env, "DELETE FROM login_places")
        in_database(service.env, "UPDATE users SET failed_logins = 0")

    forget()
    yield forget
    forget()


# --- the host does not wait -------------------------------------------------------------


STORM = """
import json, sys
from hostile.test_logins import in_a_storm
port, tries = json.load(sys.stdin)
print("begun", flush=True)
print(json.dumps(in_a_storm(port, tries)))
"""


@contextmanager
def storm(port: int, tries: list[tuple[str, str]]) -> Iterator[subprocess.Popen[str]]:
    """Wrong logins, AT_ONCE at a time, by a process that stands for hosts with processors of their own."""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = ["nice", "-n", "19", sys.executable, "-c", STORM]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | path
    ) as process:
        assert process.stdin and process.stdout
        json.dump([port, tries], process.stdin)
        process.stdin.close()
        try:
            assert process.stdout.readline() == "begun\n"
            yield process
        finally:
            process.kill()


def in_a_storm(port: int, tries: list[tuple[str, str]]) -> list[tuple[int, str]]:
    """All the tries; what each was answered."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [
            tried[:2] for tried in pool.map(lambda one: log_in(port, one[0], "wrong again", one[1]), tries)
        ]


def wrong_tries(count: int) -> list[tuple[str, str]]:
    """Names and addresses: one name from everywhere, many names from one place, a tenth each its own.

    Those last are hashed, as many as find a place in the line; a known name and a place soon are not.
    """
    one_place = source()
    kinds = {0: ("tsz-mallory", source), 1: ("", lambda: one_place), 2: ("root", source)}
    tries = []
    for number in range(count):
        name, place = kinds[number % 3] if number % 10 else ("", source)
        tries.append((name or f"nobody{next(NUMBERS)}", place()))
    return tries


def listed(alice: Call) -> float:
    """The duration of `svc ws list` after a pause."""
    time.sleep(BREATH_S)
    began = time.monotonic()
    assert alice("ws", "list", timeout=30).code == 0
    return time.monotonic() - began


def in_the_storm(port: int, alice: Call) -> tuple[list[float], list[tuple[int, str]]]:
    """The times of one list after the other until the storm is over, and what its tries were answered."""
    times: list[float] = []
    with storm(port, wrong_tries(TRIES // ROUNDS)) as process:
        assert process.stdout
        while not select.select([process.stdout], [], [], 0)[0]:
            times.append(listed(alice))
        return times, [(status, code) for status, code in json.load(process.stdout)]


def stormy_ratio(port: int, alice: Call) -> tuple[float, Counter[tuple[int, str]]]:
    """The median time of `svc ws list` in the storm over its quiet one, taken by turns; and all answers."""
    quiet: list[float] = []
    stormy: list[float] = []
    answers: Counter[tuple[int, str]] = Counter()
    for _ in range(ROUNDS):
        quiet += [listed(alice) for _ in range(QUIET_EACH)]
        times, answered = in_the_storm(port, alice)
        stormy += times
        answers.update(answered)
    assert len(stormy) >= 20, f"only {len(stormy)} lists in the storm"
    usual, meanwhile = statistics.median(quiet), statistics.median(stormy)
    print(
        f"ws list: {usual * 1000:.1f} ms quiet, {meanwhile * 1000:.1f} ms in the storm ({len(stormy)} times)"
    )
    print(f"answers: {dict(answers)}")
    return meanwhile / usual, answers


@pytest.mark.timeout(600)
@pytest.mark.depth("merge", "a storm of a thousand logins, measured for minutes")
def test_a_thousand_wrong_logins_leave_the_host_at_ease(
    port: int, alice: Call, unlocked: Callable[[], None]
) -> None:
    """ "1,000 wrong logins leave `svc ws list` on the host under twice its quiet time"."""
    for _ in range(2):  # what else this machine does may spoil one
        ratio, answers = stormy_ratio(port, alice)
        assert answers.total() == TRIES
        assert set(answers) <= {(401, "unauthenticated"), (429, "too_many_requests")}, answers
        assert answers[(401, "unauthenticated")] >= 10, "some were hashed"
        if ratio < 2:
            break
        unlocked()
    assert ratio < 2
    right = log_in(port, "tsz-alice", SECRET, source())
    assert right.status == 200, right


def test_wrong_logins_close_the_user_and_the_address_and_nobody_else(
    service: Service, port: int, alice: Call, unlocked: Callable[[], None]
) -> None:
    for _ in range(5):
        assert log_in(port, "tsz-alice", "not this one", source()).status == 401
    closed = log_in(port, "tsz-alice", SECRET, source())
    assert (closed.status, closed.code) == (429, "too_many_requests")
    assert 0 < int(closed.retry_after) <= WINDOW_S
    here = source()
    for number in range(5):
        assert log_in(port, f"nobody{number}", "not this one", here).status == 401
    assert log_in(port, "tsz-mallory", SECRET, here).status == 429
    assert log_in(port, "tsz-mallory", SECRET, source()).status == 200, "right, and from elsewhere"
    assert alice("ws", "list").code == 0, "the socket never locks"
    in_database(
        service.env,
        "UPDATE login_failures SET at = strftime('%Y-%m-%dT%H:%M:%fZ', at, ?)",
        f"-{WINDOW_S} seconds",
    )
    assert log_in(port, "tsz-alice", SECRET, here).status == 200, "fifteen minutes later"


def test_failures_of_strangers_do_not_lock_out_where_a_user_has_logged_in(
    port: int, unlocked: Callable[[], None]
) -> None:
    hers, elsewhere = source(), source()
    assert log_in(port, "tsz-alice", SECRET, hers).status == 200
    for _ in range(5):
        assert log_in(port, "tsz-alice", "not this one", source()).status == 401
    for number in range(5):
        assert log_in(port, f"nobody{number}", "not this one", hers).status == 401
    assert log_in(port, "tsz-alice", SECRET, elsewhere).status == 429, "closed for a new address"
    assert log_in(port, "tsz-mallory", SECRET, hers).status == 429, "closed for other names"
    assert log_in(port, "tsz-alice", SECRET, hers).status == 200


def test_loopback_addresses_are_one(port: int, unlocked: Callable[[], None]) -> None:
    for number in range(5):
        assert log_in(port, f"nobody{number}", "not this one", f"127.0.7.{number + 1}").status == 401
    assert log_in(port, "nobody", "not this one", "127.200.0.1").status == 429
    assert log_in(port, "nobody", "not this one", source()).status == 401


def test_a_hundred_wrong_ones_in_a_row_close_the_account_until_its_user_calls(
    service: Service, port: int, alice: Call, unlocked: Callable[[], None]
) -> None:
    in_database(service.env, "UPDATE users SET failed_logins = 100 WHERE name = 'tsz-alice'")
    closed = log_in(port, "tsz-alice", SECRET, source())
    assert (closed.status, closed.code) == (401, "unauthenticated")
    assert alice("ws", "list").code == 0
    assert log_in(port, "tsz-alice", SECRET, source()).status == 200


# --- and nobody learns from it ----------------------------------------------------------


@pytest.fixture
def accounts(service: Service) -> list[str]:
    """Users with a password, the suite's own and more: one name can be wrong five times only."""
    make_accounts(service.env, dict.fromkeys(LATER, SECRET))
    return ["tsz-alice", "tsz-mallory", *LATER]


def by_chance(one: list[float], other: list[float]) -> float:
    """How often medians lie so far apart when the times are dealt to two hands at random."""
    apart = abs(statistics.median(one) - statistics.median(other))
    together, dealer, as_far = [*one, *other], random.Random(1), 0
    for _ in range(2000):
        dealer.shuffle(together)
        hands = together[: len(one)], together[len(one) :]
        as_far += abs(statistics.median(hands[0]) - statistics.median(hands[1])) >= apart
    return as_far / 2000


def times_of(port: int, kinds: dict[str, list[str]]) -> dict[str, list[float]]:
    """The time of each wrong login, the kinds by turns, so that what else happens meets all of them alike."""
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(SAMPLES):
        for kind in random.Random(number).sample(sorted(kinds), len(kinds)):
            names = kinds[kind]
            tried = log_in(port, names[number % len(names)], "eleven grey otters under mud", source())
            assert (tried.status, tried.code) == (401, "unauthenticated"), (kind, tried)
            times[kind].append(tried.took_s)
    return times


@pytest.mark.timeout(600)
@pytest.mark.depth("merge", "statistics over hundreds of slow hashes")
def test_the_time_of_a_wrong_login_does_not_tell_who_has_an_account(
    port: int, accounts: list[str], unlocked: Callable[[], None]
) -> None:
    """ "The timing of known and unknown user names cannot be told apart beyond noise"."""
    for _ in range(3):  # a difference that is there is seen each time
        kinds = {
            "known": accounts,
            "unknown": [f"tsz-nobody{next(NUMBERS)}" for _ in range(SAMPLES)],
            "no name": ["", "-", "x" * 200, "\u00e9\u00e9n", "a b", "'; --"],
        }
        times = times_of(port, kinds)
        medians = {kind: statistics.median(taken) for kind, taken in times.items()}
        chances = {kind: by_chance(times["known"], times[kind]) for kind in kinds if kind != "known"}
        outcome = {kind: f"{median * 1000:.1f} ms" for kind, median in medians.items()}
        print(f"wrong logins: {outcome}; differences as great by chance: {chances}")
        assert max(medians.values()) < 1.5 * min(medians.values())
        if min(chances.values()) > CHANCE:
            return
        unlocked()
    assert min(chances.values()) > CHANCE


def test_more_at_once_than_may_wait_for_a_hash_are_sent_away(
    port: int, alice: Call, unlocked: Callable[[], None]
) -> None:
    with ThreadPoolExecutor(40) as pool:
        tries = [pool.submit(log_in, port, f"nobody{next(NUMBERS)}", "wrong", source()) for _ in range(40)]
        assert alice("ws", "list", timeout=60).code == 0
        answers = [future.result() for future in tries]
    assert {tried.status for tried in answers} == {401, 429}
    assert all(tried.retry_after.isdigit() for tried in answers if tried.status == 429)
