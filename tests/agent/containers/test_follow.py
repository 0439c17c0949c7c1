"""Output as it comes: of real containers, and of files that are replaced while somebody reads them."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agent.priv_ns import Agent, Pending, User

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import follow, running
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import launcher_states, rotating_log
from svc_helper.agent.runtime.rotating_log import RotatingLog
from svc_helper.wire import protocol

Make = Callable[..., str]


def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.05)


class Reader:
    """Who follows: what came so far."""

    def __init__(self, pending: Pending) -> None:
        self.pending = pending
        self.pieces: list[str] = []
        self.last: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.pieces)

    def read(self, until: Callable[[str], bool], timeout_s: float = 30) -> str:
        """Read until the text is so, or the call has ended."""
        poller = select.poll()
        poller.register(self.pending.sock, select.POLLIN)
        end = time.monotonic() + timeout_s
        while self.last is None and not until(self.text) and time.monotonic() < end:
            if not poller.poll(1000):
                continue
            message = protocol.receive_reply(self.pending.sock).message
            if "progress" not in message:
                self.last = message
                break
            assert set(message["progress"]) == {"text"}
            assert len(message["progress"]["text"].encode()) <= 32 * 1024
            self.pieces.append(message["progress"]["text"])
        return self.text

    def rest(self) -> str:
        """Read to the end."""
        return self.read(lambda _: False)


def begin(agent: Agent, ws: str, tail: int = 100, launcher: str | None = None) -> Reader:
    """Follow a workspace."""
    args = {"id": ws, "tail": tail, "launcher": launcher, "times": False}
    return Reader(agent.begin("ctr.follow", deadline_s=120, **args))


@pytest.mark.root
@pytest.mark.parametrize("run_as", [None, {"uid": 1234, "gid": 1234}], ids=["root", "keep-id"])
def test_output_as_it_comes(agent: Agent, make: Make, run_as: dict[str, int] | None) -> None:
    script = "seq 1 50; while ! test -e /tmp/go; do sleep 0.1; done; seq 51 60; printf 'pro\\303\\274mpt> '; "
    ws = make(command=["sh", "-c", script + "exec sleep 1000"], run_as=run_as)
    until = time.monotonic() + 20
    while "\n50\n" not in agent.logs(ws, tail=60).text and time.monotonic() < until:
        time.sleep(0.05)
    reader = begin(agent, ws, tail=3)
    assert reader.read(lambda text: "50\n" in text) == "48\n49\n50\n"
    agent.call("ctr.exec", id=ws, command=["touch", "/tmp/go"], timeout_s=20)
    requested = "".join(f"{number}\n" for number in range(48, 61)) + "pro\u00fcmpt> "
    assert reader.read(lambda text: "prompt" in text or text.endswith("> ")) == requested
    late = begin(agent, ws, tail=2)
    assert late.read(lambda text: text.endswith("> ")) == "60\npro\u00fcmpt> ", "an unfinished line stays so"
    agent.call("ctr.stop", id=ws, grace_s=5)
    for one in (reader, late):
        one.rest()
        assert one.last == {"ok": True, "data": {"ended": True}}
    assert reader.text == requested


@pytest.mark.root
def test_what_was_said_last_comes_before_the_end(agent: Agent, make: Make) -> None:
    script = "while ! test -e /tmp/go; do sleep 0.1; done; seq 1 20000"
    ws = make(command=["sh", "-c", script])
    reader = begin(agent, ws)
    agent.call("ctr.exec", id=ws, command=["touch", "/tmp/go"], timeout_s=20)
    reader.rest()
    assert reader.last == {"ok": True, "data": {"ended": True}}
    assert reader.text.split() == [str(number) for number in range(1, 20001)]
    again = begin(agent, ws, tail=2)
    assert again.rest() == "19999\n20000\n"
    assert again.last == {"ok": True, "data": {"ended": True}}, "of a stopped one: what there is"


@pytest.mark.root
def test_more_output_than_is_kept(agent: Agent, make: Make, user: User) -> None:
    """A full file and its successor are kept without the agent; after more the newest, and that is told."""
    script = (
        "seq 1 2000000; touch /work/all; until test -e /tmp/go; do sleep 0.1; done; "
        "seq 2000001 7000000; touch /work/more; exec sleep 1000"
    )
    ws = make(command=["sh", "-c", script])
    wait_for(Path(user.home, "work", "all").exists, 60)
    wait_for(lambda: agent.logs(ws, tail=1).text == "2000000\n")
    found = agent.logs(ws)
    assert (found.start, found.older_gone) == ([0, 0], False)
    assert found.content == "".join(f"{number}\n" for number in range(1, 2000001)).encode()
    agent.call("ctr.exec", id=ws, command=["touch", "/tmp/go"], timeout_s=20)
    wait_for(Path(user.home, "work", "more").exists, 90)
    wait_for(lambda: agent.logs(ws, tail=1).text == "7000000\n")
    found = agent.logs(ws)
    first = int(found.text.partition("\n")[0])
    assert found.older_gone and found.start[0] > 1 and first > 2000001
    assert found.content == "".join(f"{number}\n" for number in range(first, 7000001)).encode()
    assert not agent.logs(ws, tail=5).older_gone
    directory = Path(user.home, ".local/state/svc/workspaces", ws, "output")
    assert sum(path.stat().st_size for path in directory.glob("output.*.log")) <= 3 * 64 * 1024 * 1024
    reader = begin(agent, ws, tail=10_000)
    reader.read(lambda text: text.endswith("7000000\n"))
    assert len(reader.text.split()) == 10_000
    reader.pending.hang_up()


@pytest.mark.root
def test_it_goes_on_over_a_replaced_file(agent: Agent, make: Make) -> None:
    """What conmon writes is seven times as long as what is said: the file is replaced on the way."""
    script = "while ! test -e /tmp/go; do sleep 0.1; done; i=0; while [ $i -lt 6 ]; do "
    script += "seq 1 250000; sleep 0.5; i=$((i+1)); done; echo THE END"
    ws = make(command=["sh", "-c", script])
    reader = begin(agent, ws)
    agent.call("ctr.exec", id=ws, command=["touch", "/tmp/go"], timeout_s=20)
    reader.read(lambda text: text.endswith("THE END\n"), 90)
    assert reader.text.split("\n")[:-2] == [str(number) for number in range(1, 250001)] * 6
    assert reader.rest().endswith("THE END\n")


@pytest.mark.root
def test_who_goes_or_cancels_ends_it(agent: Agent, make: Make) -> None:
    ws = make(command=["sh", "-c", "while :; do echo more and more; done"])
    for number in range(10):  # more than may follow at once
        reader = begin(agent, ws)
        reader.read(lambda text: len(text) > 1000)
        if number % 2:
            reader.pending.hang_up()
        else:
            reader.pending.cancel()
            reader.rest()
            assert reader.last is not None
            assert reader.last["code"] == "cancelled"
        time.sleep(0.1)
    slow = begin(agent, ws)  # reads nothing
    assert agent.call("ctr.exec", id=ws, command=["true"], timeout_s=20).data["exit_code"] == 0
    slow.pending.hang_up()


@pytest.mark.root
def test_followers_leave_room_for_others(agent: Agent, make: Make) -> None:
    ws = make()
    readers = [begin(agent, ws) for _ in range(follow.FOLLOWS_MAX)]
    until = time.monotonic() + 20
    while (refused := agent.call("ctr.follow", id=ws, tail=1, launcher=None, deadline_s=1)).code == "timeout":
        assert time.monotonic() < until
    assert refused.code == "unavailable"
    assert agent.call("ctr.inspect", id=ws).data["exists"]
    for reader in readers:
        reader.pending.hang_up()


@pytest.mark.root
def test_what_never_ran(agent: Agent, make: Make) -> None:
    ws = make(start=False)
    created = begin(agent, ws)
    assert created.rest() == ""
    assert created.last == {"ok": True, "data": {"ended": True}}
    assert agent.call("ctr.follow", id="ws-00000000", tail=1, launcher=None).code == "not_found"
    assert agent.call("ctr.follow", id=ws, tail=1, launcher="notebook").code == "not_found"


# --- a launcher's files -------------------------------------------------------------------------


class Listener:
    """A call whose caller does something each time there is nothing new."""

    def __init__(self, *then: Callable[[], object]) -> None:
        self.then = list(then)
        self.said: list[str] = []

    def progress(self, facts: dict[str, Any], *, wait: bool) -> None:
        """Collect the messages; a marker in brackets."""
        assert len(json.dumps(facts)) < 64 * 1024
        self.said.append(f"[{facts['marker']}]" if "marker" in facts else facts["text"])

    def check(self) -> None:
        """It is still there."""

    def sleep(self, seconds: float) -> None:
        """Do the next thing."""
        if not self.then:
            raise Failure("cancelled", "nothing more to do")
        self.then.pop(0)()


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RotatingLog]:
    """The output of a launcher of a running workspace."""
    directory = tmp_path / ".local/state/svc/workspaces/ws-00000000/launchers"
    directory.mkdir(parents=True)
    me = running.First(os.getpid(), running.crun.start_time(os.getpid()) or 0, "")
    monkeypatch.setattr(running, "find", lambda *_: me)
    launcher_states.write(str(directory), launcher_states.State("notebook", launcher_states.STARTED))
    log = RotatingLog(str(directory), "notebook")
    yield log
    log.close()


def listen(launched: RotatingLog, *then: Callable[[], object], tail: int | None = 100) -> str:
    """What a follower of the launcher gets."""
    home = launched.directory.partition("/.local")[0]
    podman = cast(Podman, SimpleNamespace(home=SimpleNamespace(home=home)))
    listener = Listener(*then)
    args = {"id": "ws-00000000", "launcher": "notebook", "tail": tail, "times": False}
    assert follow.follow(podman, cast(Call, listener), args) == {"ended": True}
    return "".join(listener.said)


def end(launched: RotatingLog) -> Callable[[], None]:
    """The launcher's end."""
    ended = launcher_states.State("notebook", launcher_states.EXITED, 3)
    return lambda: launcher_states.write(launched.directory, ended)


def add(launched: RotatingLog, content: bytes) -> Callable[[], object]:
    """More of its output."""
    return lambda: launched.write(content)


def test_a_launcher(launched: RotatingLog) -> None:
    launched.mark("started")
    launched.write(b"one\ntwo\nthree\n")
    said = listen(
        launched,
        add(launched, b"fo"),
        add(launched, b"ur \xc3"),
        add(launched, b"\xbc\n"),
        lambda: launched.mark("started again"),
        end(launched),
    )
    assert said == "[started]one\ntwo\nthree\nfour \u00fc\n[started again]"
    assert listen(launched, tail=1) == "four \u00fc\n[started again]", "of one that has ended: what there is"
    launched.write(b"unfinished \xc3")
    assert listen(launched, tail=1) == "[started again]unfinished \ufffd"


def test_a_full_file_has_a_successor(launched: RotatingLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotating_log, "FILE_BYTES", 110)
    adding = [add(launched, f"line {number}\n".encode()) for number in range(20)]
    whole = "".join(f"line {number}\n" for number in range(20))
    assert listen(launched, *adding, end(launched)) == whole
    last = "".join(f"line {number}\n" for number in range(17, 20))
    assert listen(launched, tail=3) == last, "over both files"
    assert listen(launched, tail=None) == f"[{follow._GONE}]line 16\n{last}"

    def much_at_once() -> None:
        for each in adding:
            each()

    said = listen(launched, *adding[:3], lambda: end(launched)(), tail=1)
    assert said == "line 19\n", "it had ended before"
    launcher_states.write(launched.directory, launcher_states.State("notebook", launcher_states.STARTED))
    said = listen(launched, much_at_once, end(launched), tail=1)
    assert said == f"line 19\n[{follow._GONE}]line 16\n{last}", "a slow reader is told"


def test_control_characters_fit_into_messages(launched: RotatingLog) -> None:
    launched.write(b"\x00\x01\x1b\xff" * 50_000 + b"\n")
    assert listen(launched, end(launched)) == "\x00\x01\x1b\ufffd" * 50_000 + "\n"


def test_what_lies_there_instead_of_a_file(launched: RotatingLog) -> None:
    os.mkfifo(f"{launched.directory}/notebook.0.log")
    assert listen(launched, end(launched)) == ""
    os.unlink(f"{launched.directory}/notebook.0.log")
    assert listen(launched) == "", "started, and nothing said yet; then it is over"
    os.unlink(f"{launched.directory}/notebook.json")
    with pytest.raises(Failure) as raised:
        listen(launched)
    assert raised.value.code == "not_found"
