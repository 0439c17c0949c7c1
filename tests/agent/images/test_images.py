"""Pulls into a real user's store from a real registry: allowed, repeated, cancelled, outliving."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.priv_ns import Agent, User, wait_for
from agent.registry import Registry

pytestmark = pytest.mark.root
BIG = 200 << 20


def pullers(user: User) -> list[int]:
    """The processes that pull."""
    return [pid for pid, arguments in user.processes().items() if "images.puller" in arguments]


def remove(user: User, image: str) -> None:
    """Take an image out of the store under all its names, if it is there."""
    found = user.podman("inspect", "--type=image", "--format={{.Id}}", image, check=False).stdout.strip()
    if found:
        user.podman("rmi", "-f", found)


@pytest.fixture(scope="module")
def big(registry: Registry) -> str:
    """An image whose pull takes a while."""
    return registry.put("team/big:1", BIG, Env=["PATH=/bin"])


@pytest.fixture
def absent(user: User, big: str) -> Iterator[str]:
    """The big image, not in the store."""
    remove(user, big)
    yield big
    remove(user, big)


def test_look_and_list(agent: Agent, image: str, absent: str) -> None:
    found = agent.call("image.inspect", image=image).data
    assert found["present"] and found["digest"].startswith("sha256:") and found["size_bytes"] > 1_000_000
    assert agent.call("image.inspect", image=absent).data == {
        "present": False,
        "image_id": None,
        "digest": None,
        "size_bytes": None,
        "user": None,
        "platform": None,
    }
    row = next(row for row in agent.call("image.list").data["images"] if image in row["names"])
    assert (row["image_id"], row["digest"]) == (found["image_id"], found["digest"])


def test_a_pull_reports_bytes_and_answers_what_it_brought(agent: Agent, absent: str) -> None:
    pulled = agent.call("image.pull", image=absent)
    assert pulled.data["size_bytes"] > BIG
    assert agent.call("image.inspect", image=absent).data == {"present": True} | pulled.data
    last = pulled.progress[-1]
    assert last["unit"] == "bytes" and last["current"] == last["total"] == pulled.data["size_bytes"]
    assert all(0 <= report["current"] <= report["total"] for report in pulled.progress if "total" in report)
    again = agent.call("image.pull", image=absent)
    assert again.data == pulled.data, "a repeated pull finds it"
    by_digest = f"{absent.rpartition(':')[0]}@{pulled.data['digest']}"
    assert agent.call("image.pull", image=by_digest).data["image_id"] == pulled.data["image_id"]


@pytest.mark.parametrize(
    ("host", "prefix", "allowed"),
    [
        ("127.0.0.1:5077", "", True),
        ("127.0.0.1:5077", "team", True),
        ("127.0.0.1:5077", "team/", True),
        ("127.0.0.1:5077", "team/big", True),
        ("127.0.0.1:5077", "tea", False),
        ("127.0.0.1:5077", "team/bi", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1:50", "", False),
    ],
)
def test_the_policy_is_asked_again(
    agent: Agent, registry: Registry, big: str, host: str, prefix: str, allowed: bool
) -> None:
    registry.allow([{"host": host, "path_prefix": prefix, "insecure": True}])
    try:
        answer = agent.call("image.pull", image=big)
    finally:
        registry.allow([{"host": registry.host, "path_prefix": "", "insecure": True}])
    assert answer.message["ok"] is allowed
    if not allowed:
        assert answer.code == "registry"


def test_a_changed_policy_reaches_podman(agent: Agent, registry: Registry, absent: str) -> None:
    registry.allow([{"host": registry.host, "path_prefix": "", "insecure": False}])
    try:
        refused = agent.call("image.pull", image=absent)
        assert (refused.code, refused.message["message"]) == (
            "registry_tls",
            "the registry cannot be reached securely",
        )
    finally:
        registry.allow([{"host": registry.host, "path_prefix": "", "insecure": True}])
    assert agent.call("image.pull", image=absent).data


def test_what_the_registry_does_not_have(agent: Agent, registry: Registry) -> None:
    for name in ("nothing:1", "base:999", f"base@sha256:{'0' * 64}"):
        answer = agent.call("image.pull", image=f"{registry.host}/{name}")
        assert (answer.code, answer.message["message"]) == (
            "image_not_in_registry", "the registry has no such image",
        )  # fmt: skip
        assert answer.message["engine"].endswith("manifest unknown: manifest unknown")


def test_a_registry_that_does_not_answer(agent: Agent, registry: Registry) -> None:
    registry.allow([{"host": "127.0.0.1:5999", "path_prefix": "", "insecure": True}])
    try:
        answer = agent.call("image.pull", image="127.0.0.1:5999/x/y:1")
    finally:
        registry.allow([{"host": registry.host, "path_prefix": "", "insecure": True}])
    code, message = "registry_unreachable", "the registry does not answer"
    assert (answer.code, answer.message["message"]) == (code, message)
    assert "connection refused" in answer.message["engine"]


def test_a_cancelled_pull_ends_and_hurts_nothing(agent: Agent, user: User, absent: str) -> None:
    for pause in (0.05, 0.3, 0.6):
        call = agent.begin("image.pull", image=absent)
        time.sleep(pause)
        with contextlib.suppress(BrokenPipeError):  # it may be done already
            call.cancel()
        answer = call.answer(10)
        if answer.message["ok"]:
            remove(user, absent)
            continue
        assert answer.code == "cancelled"
        assert not pullers(user)
    assert not agent.call("image.inspect", image=absent).data["present"]
    assert agent.call("image.pull", image=absent).data
    assert user.podman("run", "--rm", absent, "ls", "/big").stdout == "/big\n"


def test_a_pull_outlives_its_caller(agent: Agent, user: User, absent: str) -> None:
    call = agent.begin("image.pull", image=absent)
    wait_for(lambda: bool(pullers(user)))
    call.hang_up()
    wait_for(lambda: agent.call("image.inspect", image=absent).data["present"])
    wait_for(lambda: not pullers(user))


def test_a_pull_outlives_the_agent_and_a_second_waits_for_it(user: User, agent: Agent, absent: str) -> None:
    first = user.start_agent()
    call = first.begin("image.pull", image=absent)
    wait_for(lambda: bool(pullers(user)))
    time.sleep(0.1)
    first.kill()
    assert call.answer(5).code == "died"
    (puller,) = pullers(user)
    second = agent.call("image.pull", image=absent)
    assert second.data["size_bytes"] > BIG
    assert second.progress[0]["text"] == "waiting for another pull of this image"
    wait_for(lambda: not os.path.exists(f"/proc/{puller}"))


def test_two_at_once_pull_once(agent: Agent, absent: str) -> None:
    calls = [agent.begin("image.pull", image=absent) for _ in range(2)]
    answers = [call.answer(60) for call in calls]
    assert answers[0].data == answers[1].data
    waited = [answer for answer in answers if answer.progress and "waiting" in answer.progress[0]["text"]]
    assert len(waited) == 1


def test_a_pull_that_came_again_after_a_restart_ends_what_it_waits_for(
    user: User, agent: Agent, absent: str
) -> None:
    first = user.start_agent()
    first.begin("image.pull", rid="req-again", image=absent)
    wait_for(lambda: bool(pullers(user)))
    time.sleep(0.1)
    first.kill()
    second = agent.begin("image.pull", rid="req-again", image=absent)
    wait_for(lambda: len(pullers(user)) == 2)
    second.cancel()
    assert second.answer(10).code == "cancelled"
    wait_for(lambda: not pullers(user))
    assert not agent.call("image.inspect", image=absent).data["present"]


def test_a_waiting_pull_can_be_cancelled(agent: Agent, user: User, absent: str) -> None:
    first = agent.begin("image.pull", image=absent)
    wait_for(lambda: len(pullers(user)) == 1)
    time.sleep(0.1)
    second = agent.begin("image.pull", image=absent)
    wait_for(lambda: len(pullers(user)) == 2)
    second.cancel()
    assert second.answer(10).code == "cancelled"
    assert first.answer(60).data


def test_a_store_without_room(agent: Agent, user: User, registry: Registry, absent: str) -> None:
    """The store on a small file system of its own."""
    import subprocess

    place = Path(user.home, "small")
    user.run("mkdir", "-p", str(place), f"{user.home}/.config/containers")
    into = ["nsenter", f"--target={user.namespace.holder.pid}", "--mount"]
    options = f"size=64m,uid={user.uid},mode=700"
    subprocess.run([*into, "mount", "-t", "tmpfs", "-o", options, "none", str(place)], check=True)
    conf = f"{user.home}/.config/containers/storage.conf"
    kept = user.run("cat", conf).stdout
    text = f'[storage]\ndriver = "overlay"\ngraphroot = "{place}/store"\nrunroot = "{user.runtime}/small"\n'
    try:
        user.run("sh", "-c", f"printf '%s' '{text}' > {conf}")
        other = user.start_agent()
        answer = other.call("image.pull", image=absent)
        other.close()
        assert answer.code == "storage_full", answer.message
    finally:
        user.run("sh", "-c", f"printf '%s' '{kept}' > {conf}")
        subprocess.run([*into, "umount", "-l", str(place)], check=False)
