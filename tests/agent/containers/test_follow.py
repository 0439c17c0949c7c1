"""Output as it comes: of real containers, and of files that are replaced while somebody reads them."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agent import viewing
from agent.priv_ns import Agent, User, wait_for

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import follow, running
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import launcher_states, rotating_log
from svc_helper.agent.runtime.rotating_log import RotatingLog
from svc_helper.wire import log_frames as frames

Make = Callable[..., str]


class Reader:
    """Who follows: what came so far."""

    def __init__(self, sock: socket.socket, code: str = "") -> None:
        self.sock, self.code = sock, code  # of a call that failed
        self.content = bytearray()
        self.said: list[str] = []  # lines and parts of lines, markers in brackets
        self.places: list[tuple[int, int, int]] = []  # after each row: its position, and the bytes sent
        self.ended = self.closed = False

    @property
    def text(self) -> str:
        """All of the output."""
        return self.content.decode(errors="replace")

    def take(self, timeout_s: float) -> bool:
        """Receive one frame; False when none came, and after the end."""
        poller = select.poll()
        poller.register(self.sock, select.POLLIN)
        if self.ended or self.closed or not poller.poll(timeout_s * 1000):
            return False
        frame = self.sock.recv(frames.FRAME_MAX + 1)
        assert len(frame) <= frames.FRAME_MAX
        if frame == frames.MISSING:
            self.said.append("[missing]")
        elif frame[:1] == frames.ROWS:
            self._take_rows(frame)
        elif frame == frames.END:
            self.ended = True
        else:
            assert not frame, frame[:20]
            self.closed = True
        return True

    def _take_rows(self, frame: bytes) -> None:
        position, _, rows = frame[1:].partition(b"\n")
        number, offset, sent = map(int, position.split())
        for row in rows.split(b"\n")[:-1]:
            text = row[frames.HEAD :] + (b"\n" if row[frames.FLAG] == frames.WHOLE else b"")
            if row[frames.STREAM] == frames.MARKER:
                self.said.append(f"[{text.decode().strip()}]")
            else:
                self.content += text
                self.said.append(text.decode(errors="replace"))
            self.places.append((number, offset, sent + len(text)))
            offset, sent = offset + len(row) + 1, 0

    def read(self, until: Callable[[str], bool], timeout_s: float = 30) -> str:
        """Read until the text is so, or the end."""
        end = time.monotonic() + timeout_s
        while not (self.ended or self.closed) and not until(self.text) and time.monotonic() < end:
            self.take(1)
        return self.text

    def rest(self) -> str:
        """Read to the end."""
        return self.read(lambda _: False)

    def hang_up(self) -> None:
        """Go."""
        self.sock.close()


def begin(
    agent: Agent, ws: str, tail: int | None = 100, launcher: str | None = None,
    after: tuple[int, int, int] | None = None,
) -> Reader:  # fmt: skip
    """Follow a workspace, or go on after a place."""
    number, offset, skip = after or (0, 0, 0)
    call, ours = viewing.begin(
        agent, "ctr.follow", id=ws, tail=tail, launcher=launcher, skip=skip,
        start={"number": number, "offset": offset} if after else None,
    )  # fmt: skip
    answer = call.answer()
    return Reader(ours, "" if answer.message["ok"] else answer.code)


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
        assert one.ended
    assert reader.text == requested


@pytest.mark.root
def test_what_was_said_last_comes_before_the_end(agent: Agent, make: Make) -> None:
    script = "while ! test -e /tmp/go; do sleep 0.1; done; seq 1 20000"
    ws = make(command=["sh", "-c", script])
    reader = begin(agent, ws)
    agent.call("ctr.exec", id=ws, command=["touch", "/tmp/go"], timeout_s=20)
    reader.rest()
    assert reader.ended
    assert reader.text.split() == [str(number) for number in range(1, 20001)]
    again = begin(agent, ws, tail=2)
    assert again.rest() == "19999\n20000\n"
    assert again.ended, "of a stopped one: what there is"


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
    reader.hang_up()


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
def test_who_goes_ends_it(agent: Agent, make: Make) -> None:
    ws = make(command=["sh", "-c", "while :; do echo more and more; done"])
    for _ in range(10):
        reader = begin(agent, ws)
        reader.read(lambda text: len(text) > 1000)
        reader.hang_up()
    slow = begin(agent, ws)  # reads nothing
    assert agent.call("ctr.exec", id=ws, command=["true"], timeout_s=20).data["exit_code"] == 0
    slow.hang_up()


@pytest.mark.root
def test_who_comes_back_goes_on(agent: Agent, make: Make) -> None:
    script = "seq 1 500; while ! test -e /tmp/go; do sleep 0.1; done; seq 501 1000"
    ws = make(command=["sh", "-c", script])
    wait_for(lambda: agent.logs(ws, tail=1).text == "500\n")
    said: list[str] = []
    place: tuple[int, int, int] | None = None
    for round_ in range(5):
        reader = begin(agent, ws, tail=None, after=place)
        wanted = 100 * (round_ + 1) - len(said)
        reader.read(lambda _, reader=reader, wanted=wanted: len(reader.said) >= wanted)
        said += reader.said[:wanted]
        place = reader.places[wanted - 1]
        reader.hang_up()
    assert place is not None
    late = begin(agent, ws, after=place)
    agent.call("ctr.exec", id=ws, command=["touch", "/tmp/go"], timeout_s=20)
    late.rest()
    assert late.ended
    assert "".join([*said, late.text]) == "".join(f"{number}\n" for number in range(1, 1001))
    number, offset, sent = late.places[-1]
    middle = begin(agent, ws, after=(number, offset, 2))
    assert (middle.rest(), sent) == ("00\n", 5)
    beyond = begin(agent, ws, after=(number + 9, 0, 0))
    beyond.rest()
    assert beyond.said[:2] == ["[missing]", "1\n"]


@pytest.mark.root
def test_followers_leave_room_for_others(agent: Agent, make: Make) -> None:
    ws = make()
    readers = [begin(agent, ws) for _ in range(follow.FOLLOWS_MAX)]
    assert {reader.code for reader in readers} == {""}
    assert begin(agent, ws).code == "unavailable"
    assert agent.call("ctr.inspect", id=ws).data["exists"]
    for reader in readers:
        reader.hang_up()
    wait_for(lambda: begin(agent, ws).code == "")


@pytest.mark.root
def test_what_never_ran(agent: Agent, make: Make) -> None:
    ws = make(start=False)
    created = begin(agent, ws)
    assert created.rest() == ""
    assert created.ended
    assert begin(agent, "ws-00000000", tail=1).code == "not_found"
    assert begin(agent, ws, tail=1, launcher="notebook").code == "not_found"


# --- a launcher's files -------------------------------------------------------------------------


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


def listen(
    launched: RotatingLog,
    *then: Callable[[], object],
    tail: int | None = 100,
    after: tuple[int, int, int] | None = None,
) -> Reader:
    """What a follower of the launcher gets, while one thing is done each time there is nothing new."""
    home = launched.directory.partition("/.local")[0]
    podman = cast(Podman, SimpleNamespace(home=SimpleNamespace(home=home)))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.setblocking(False)
    call = SimpleNamespace(data_stream=lambda _: theirs.detach(), check=lambda: None, afterwards=[])
    number, offset, skip = after or (0, 0, 0)
    start = {"number": number, "offset": offset} if after else None
    args = {"id": "ws-00000000", "launcher": "notebook", "tail": tail, "start": start, "skip": skip}
    left, wait = list(then), follow._Follower._wait

    def wait_or_do(self: Any, events: int, seconds: float | None) -> bool:
        if seconds is None:
            return wait(self, events, seconds)
        if left:
            left.pop(0)()
            return False
        return True  # as when the app goes

    reader = Reader(ours)
    with pytest.MonkeyPatch.context() as patch, ours:
        patch.setattr(follow._Follower, "_wait", wait_or_do)
        assert follow.follow(podman, cast(Call, call), args) == {}
        following = threading.Thread(target=call.afterwards[0])
        following.start()
        reader.rest()
        following.join(30)
        assert not following.is_alive()
    assert not follow._followers
    return reader


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
    reader = listen(
        launched,
        add(launched, b"fo"),
        add(launched, b"ur \xc3"),
        add(launched, b"\xbc\n"),
        lambda: launched.mark("started again"),
        end(launched),
    )
    assert reader.ended and reader.text == "one\ntwo\nthree\nfour \u00fc\n"
    assert (reader.said[0], reader.said[-1]) == ("[started]", "[started again]")
    newest = listen(launched, tail=1)
    assert (newest.text, newest.said[-1]) == ("four \u00fc\n", "[started again]"), "of one that has ended"
    launched.write(b"unfinished \xc3")
    assert listen(launched, tail=1).content == b"unfinished \xc3"
    for place, rest in zip(reader.places, range(len(reader.said)), strict=True):
        assert listen(launched, after=place).said[:-1] == reader.said[rest + 1 :], "once, and in order"


def test_a_full_file_has_a_successor(launched: RotatingLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotating_log, "FILE_BYTES", 110)
    adding = [add(launched, f"line {number}\n".encode()) for number in range(20)]
    whole = [f"line {number}\n" for number in range(20)]
    reader = listen(launched, *adding, end(launched))
    assert reader.said == whole
    assert listen(launched, tail=3).said == whole[17:], "over both files"
    assert listen(launched, tail=None).said == ["[missing]", *whole[16:]]
    assert listen(launched, after=reader.places[0]).said == ["[missing]", *whole[16:]]
    assert listen(launched, after=reader.places[16]).said == whole[17:]

    def much_at_once() -> None:
        for each in adding:
            each()

    assert listen(launched, *adding[:3], tail=1).said == ["line 19\n"], "it had ended before"
    launcher_states.write(launched.directory, launcher_states.State("notebook", launcher_states.STARTED))
    said = listen(launched, much_at_once, end(launched), tail=1).said
    assert said == ["line 19\n", "[missing]", *whole[16:]], "a slow reader is told"


def test_long_rows_have_frames_of_their_own(launched: RotatingLog) -> None:
    launched.write(b"\x00\x01\x1b\xff" * 50_000 + b"\nshort\n")
    reader = listen(launched, end(launched))
    assert reader.content == b"\x00\x01\x1b\xff" * 50_000 + b"\nshort\n"
    for place in reader.places:
        rest = listen(launched, after=place).content
        assert reader.content.endswith(rest)
    begun = [len(listen(launched, after=place).content) for place in reader.places]
    assert begun == sorted(set(begun), reverse=True) and begun[-1] == 0


def test_what_lies_there_instead_of_a_file(launched: RotatingLog) -> None:
    os.mkfifo(f"{launched.directory}/notebook.0.log")
    assert listen(launched, end(launched)).said == []
    os.unlink(f"{launched.directory}/notebook.0.log")
    assert listen(launched).said == [], "started, and nothing said yet; then it is over"
    os.unlink(f"{launched.directory}/notebook.json")
    with pytest.raises(Failure) as raised:
        listen(launched)
    assert raised.value.code == "not_found"
