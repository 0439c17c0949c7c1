"""Output as it comes: of real containers, and of files that are replaced while somebody reads them."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agent.priv_ns import Agent, Pending, User

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import follow, running
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import launcher_states
from svc_helper.wire import protocol

Make = Callable[..., str]


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
    args = {"id": ws, "tail": tail, "launcher": launcher}
    return Reader(agent.begin("ctr.follow", deadline_s=120, **args))


@pytest.mark.root
@pytest.mark.parametrize("run_as", [None, {"uid": 1234, "gid": 1234}], ids=["root", "keep-id"])
def test_output_as_it_comes(agent: Agent, make: Make, run_as: dict[str, int] | None) -> None:
    script = "seq 1 50; while ! test -e /tmp/go; do sleep 0.1; done; seq 51 60; printf 'pro\\303\\274mpt> '; "
    ws = make(command=["sh", "-c", script + "exec sleep 1000"], run_as=run_as)
    until = time.monotonic() + 20
    while "\n50\n" not in agent.call("ctr.logs", id=ws, tail=60).data["text"] and time.monotonic() < until:
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
    """Both the file on disk and the answer stay bounded: "captured output bounded"."""
    script = "until test -e /tmp/go; do sleep 0.1; done; yes 0123456789abcdef | head -n 2000000; echo THE END"
    ws = make(command=["sh", "-c", script + "; exec sleep 1000"])
    agent.call("ctr.exec", id=ws, command=["touch", "/tmp/go"], timeout_s=20)
    until = time.monotonic() + 60
    while not agent.call("ctr.logs", id=ws, tail=1).data["text"].startswith("THE END"):
        assert time.monotonic() < until
        time.sleep(0.1)
    bundle = user.run("cat", f"{user.runtime}/svc/containers/{ws}").stdout.split()[1]
    kept = [path.stat().st_size for path in Path(bundle).iterdir() if path.name.startswith("ctr.log")]
    assert 0 < sum(kept) <= 10 * 1024 * 1024 + 64 * 1024
    reader = begin(agent, ws, tail=10_000)
    reader.read(lambda text: text.endswith("THE END\n"))
    assert len(reader.text) <= 1024 * 1024
    reader.pending.hang_up()


@pytest.mark.root
def test_it_goes_on_over_a_replaced_file(agent: Agent, make: Make) -> None:
    """What conmon writes is 40 times as long as what is said: the file is replaced on the way."""
    script = "while ! test -e /tmp/go; do sleep 0.1; done; i=0; while [ $i -lt 12 ]; do "
    script += "seq 1 25000; sleep 1; i=$((i+1)); done; echo THE END"
    ws = make(command=["sh", "-c", script])
    reader = begin(agent, ws)
    agent.call("ctr.exec", id=ws, command=["touch", "/tmp/go"], timeout_s=20)
    reader.read(lambda text: text.endswith("THE END\n"), 90)
    assert reader.text.split("\n")[:-2] == [str(number) for number in range(1, 25001)] * 12
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
        """Collect the messages."""
        assert len(json.dumps(facts)) < 64 * 1024
        self.said.append(facts["text"])

    def check(self) -> None:
        """It is still there."""

    def sleep(self, seconds: float) -> None:
        """Do the next thing."""
        if not self.then:
            raise Failure("cancelled", "nothing more to do")
        self.then.pop(0)()


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A launcher's output of a running workspace."""
    directory = tmp_path / ".local/state/svc/workspaces/ws-00000000/launchers"
    directory.mkdir(parents=True)
    me = running.First(os.getpid(), running.crun.start_time(os.getpid()) or 0, "")
    monkeypatch.setattr(running, "find", lambda *_: me)
    launcher_states.write(str(directory), launcher_states.State("notebook", launcher_states.STARTED))
    return directory / "notebook.log"


def listen(launched: Path, *then: Callable[[], object], tail: int = 100) -> str:
    """What a follower of the launcher gets."""
    home = str(launched).partition("/.local")[0]
    podman = cast(Podman, SimpleNamespace(home=SimpleNamespace(home=home)))
    listener = Listener(*then)
    args = {"id": "ws-00000000", "launcher": "notebook", "tail": tail}
    assert follow.follow(podman, cast(Call, listener), args) == {"ended": True}
    return "".join(listener.said)


def end(launched: Path) -> Callable[[], None]:
    """The launcher's end."""
    ended = launcher_states.State("notebook", launcher_states.EXITED, 3)
    return lambda: launcher_states.write(str(launched.parent), ended)


def add(launched: Path, content: bytes) -> Callable[[], None]:
    """More of its output."""

    def write() -> None:
        with launched.open("ab") as file:
            file.write(content)

    return write


def test_a_launcher(launched: Path) -> None:
    launched.write_bytes(b"one\ntwo\nthree\n")
    said = listen(
        launched, add(launched, b"fo"), add(launched, b"ur \xc3"), add(launched, b"\xbc\n"), end(launched)
    )
    assert said == "one\ntwo\nthree\nfour \u00fc\n"
    assert listen(launched, tail=1) == "four \u00fc\n", "of one that has ended: what there is"
    launched.write_bytes(b"one\nunfinished \xc3")
    assert listen(launched, tail=1) == "unfinished \ufffd"


def test_a_full_file_is_renamed(launched: Path) -> None:
    launched.with_name("notebook.log.1").write_bytes(b"older\n")
    launched.write_bytes(b"before\n")

    def turn_over() -> None:
        add(launched, b"last of the old\n")()
        launched.rename(launched.with_name("notebook.log.1"))

    def new() -> None:
        launched.write_bytes(b"first of the new\n")

    said = listen(launched, turn_over, new, end(launched))
    assert said == "older\nbefore\nlast of the old\nfirst of the new\n"
    assert listen(launched, tail=2) == "last of the old\nfirst of the new\n", "over both files"


def test_a_file_that_is_emptied_or_taken_away(launched: Path) -> None:
    launched.write_bytes(b"some\nlines\n")
    assert listen(launched, lambda: launched.write_bytes(b"new\n"), end(launched)) == "some\nlines\nnew\n"
    assert listen(launched, launched.unlink) == "new\n"


def test_control_characters_fit_into_messages(launched: Path) -> None:
    launched.write_bytes(b"\x00\x01\x1b\xff" * 50_000 + b"\n")
    assert listen(launched, end(launched)) == "\x00\x01\x1b\ufffd" * 50_000 + "\n"


def test_what_lies_there_instead_of_a_file(launched: Path) -> None:
    os.mkfifo(launched)
    with pytest.raises(OSError, match="regular"):
        listen(launched)
    launched.unlink()
    assert listen(launched) == "", "started, and nothing said yet; then it is over"
    launched.with_name("notebook.json").unlink()
    with pytest.raises(Failure) as raised:
        listen(launched)
    assert raised.value.code == "not_found"
