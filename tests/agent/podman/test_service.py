"""The agent before a Podman that misbehaves: dies, hangs, talks rubbish, does not start."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.priv_ns import NO_LIMITS, Agent

from svc_helper.agent.home import Home
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.podman.service import Service
from svc_helper.agent.scope import Scope
from svc_helper.agent.serve import THREAD_STACK, handler_of, serve
from svc_helper.wire import protocol
from svc_helper.wire.limits import AGENT_CALLS_MAX

WS = "ws-aaaaaaaa"
LIBPOD = "/v4.0.0/libpod"
INSPECT = f"GET {LIBPOD}/containers/svc-{WS}/json"
LIST = f"GET {LIBPOD}/containers/json"
CREATE = f"POST {LIBPOD}/containers/create"
START = f"POST {LIBPOD}/containers/svc-{WS}/start"
IMAGE = f"GET {LIBPOD}/images/reg.example/base:1/json"
PID = os.getpid()  # of a process that is there
IMAGE_ID, CONTAINER_ID = "f3" * 32, "56" * 32
STATE = {
    "Status": "running",
    "Running": True,
    "OOMKilled": False,
    "Pid": PID,
    "ExitCode": 0,
    "Error": "",
    "StartedAt": "2026-11-21T03:19:53.596809163+01:00",
    "FinishedAt": "0001-01-01T00:00:00Z",
}
FOUND = {
    "Id": CONTAINER_ID,
    "Image": IMAGE_ID,
    "State": STATE,
    "OCIConfigPath": "/nowhere/userdata/config.json",
    "Config": {"Labels": {"svc.workspace": WS}},
}
ROW = {
    "Id": CONTAINER_ID,
    "ImageID": IMAGE_ID,
    "Names": [f"svc-{WS}"],
    "Labels": {"svc.workspace": WS},
    "State": "exited",
    "ExitCode": 137,
    "Pid": 0,
    "StartedAt": 1795227593,
    "ExitedAt": 1795227600,
}


class Stage:
    """An agent's loop in a thread, its service code real, its Podman a fake."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, *, idle_s: float = 600) -> None:
        self.directory = directory
        bin_dir = directory / "bin"
        bin_dir.mkdir()
        fake = bin_dir / "podman"
        fake.write_text(
            f"#!{sys.executable} -IS\n" + (Path(__file__).parents[1] / "fake_podman.py").read_text()
        )
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
        monkeypatch.setattr("svc_helper.agent.subid_ranges.require", lambda home: None)  # no real user
        self.home = Home(
            user="tsa-fake",
            uid=os.getuid(),
            home=str(directory),
            roots={"work": str(directory / "work")},
            systemd=False,
            registries=str(directory / "registries.json"),
            registries_conf=str(directory / "registries.conf"),
        )
        self.home.environment |= {"PATH": f"{bin_dir}:/usr/bin:/bin", "FAKE": str(directory)}
        self.home.prepare()
        self.service = Service(self.home)
        self.answers: dict[str, Any] = {}
        self.answer({})
        self.started = False
        self.idle_s = idle_s

    def answer(self, answers: dict[str, Any]) -> None:
        """What Podman says from now on."""
        (self.directory / "answers.json").write_text(json.dumps(answers))

    def begin(self) -> Agent:
        """Start Podman and the loop."""
        self.service.start()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.shutdown(socket.SHUT_RD)

        def loop() -> None:
            with theirs:
                serve(theirs, Podman(self.home, self.service, Scope(self.home)), idle_s=self.idle_s)

        self.thread = threading.Thread(target=loop)
        self.thread.start()
        self.agent = Agent(None, ours, os.getuid(), self.directory)  # type: ignore[arg-type]
        self.started = True
        return self.agent

    def end(self) -> None:
        """The helper goes; everything ends."""
        if not self.started:
            return
        self.agent.channel.close()
        self.thread.join(10)
        assert not self.thread.is_alive()
        self.service.stop()
        self.service.process.wait(5)
        self.service.process.ended()
        del self.service.process  # and with it its pidfd
        self.service._listener.close()

    def lines(self, name: str) -> list[str]:
        """What the fake noted."""
        path = self.directory / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A stage with a fake Podman that knows nothing yet."""
    created = Stage(tmp_path, monkeypatch)
    yield created
    created.end()


@pytest.fixture
def agent(stage: Stage) -> Agent:
    """The loop on that stage."""
    return stage.begin()


def raw(status: str, *fields: str, body: str = "") -> dict[str, Any]:
    """An answer written by hand."""
    return {"raw": f"HTTP/1.1 {status}\r\n" + "".join(f"{field}\r\n" for field in fields) + "\r\n" + body}


CREATE_ARGS = {
    "id": WS,
    "image": "reg.example/base:1",
    "name": "demo",
    "command": None,
    "env": {},
    "resources": NO_LIMITS,
    "run_as": None,
    "mounts": [],
}


def test_facts_of_an_inspect(stage: Stage, agent: Agent) -> None:
    stage.answer({INSPECT: {"status": 200, "json": FOUND}})
    assert agent.call("ctr.inspect", id=WS).data == {
        "exists": True,
        "container_id": CONTAINER_ID,
        "image_id": IMAGE_ID,
        "status": "running",
        "pid": PID,
        "exit_code": 0,
        "oom_killed": False,
        "started_at": "2026-11-21T02:19:53.596Z",
        "finished_at": None,
        "error": None,
    }


def test_an_oom_kill_is_looked_up(stage: Stage, agent: Agent) -> None:
    stopped = FOUND | {"State": STATE | {"Status": "exited", "ExitCode": 137, "OOMKilled": True, "Pid": 0}}
    stage.answer({LIST: {"status": 200, "json": [ROW]}, INSPECT: {"status": 200, "json": stopped}})
    (row,) = agent.call("ctr.list").data["containers"]
    assert (row["id"], row["status"], row["oom_killed"]) == (WS, "stopped", True)


def test_a_long_list_comes_whole(stage: Stage, agent: Agent) -> None:
    rows = []
    for number in range(1000):
        ws = f"ws-{number:08d}"
        rows.append(ROW | {"Names": [f"svc-{ws}"], "Labels": {"svc.workspace": ws}, "ExitCode": 0})
    stage.answer({LIST: {"status": 200, "json": rows}})
    assert len(agent.call("ctr.list").data["containers"]) == 1000, "over 64 KiB, as a sealed memfd"


RUBBISH = {
    "no HTTP": {"raw": "hello\r\n\r\n"},
    "nothing": {"raw": ""},
    "half a head": {"raw": "HTTP/1.1 200 OK\r\nContent-"},
    "an endless head": {"raw": "HTTP/1.1 200 OK\r\n", "repeat": "X: y\r\n" * 1000, "times": 100},
    "no JSON": raw("200 OK", "Content-Length: 3", body="{]}"),
    "another type": {"status": 200, "json": ["x"]},
    "no state": {"status": 200, "json": {"Id": "x", "State": 7}},
    "a huge id": {"status": 200, "json": FOUND | {"Id": "x" * 1000}},
    "a number as id": {"status": 200, "json": FOUND | {"Id": 7}},
    "a bool as pid": {"status": 200, "json": FOUND | {"State": STATE | {"Pid": True}}},
    "a huge exit code": {"status": 200, "json": FOUND | {"State": STATE | {"ExitCode": 2**80}}},
    "a short body": raw("200 OK", "Content-Length: 100", body="{}"),
    "a negative length": raw("200 OK", "Content-Length: -1", body="{}"),
    "a bad chunk": raw("200 OK", "Transfer-Encoding: chunked", body="zz\r\n{}\r\n0\r\n\r\n"),
    "a negative chunk": raw("200 OK", "Transfer-Encoding: chunked", body="-2\r\n{}\r\n0\r\n\r\n"),
    "a chunk that lies": raw("200 OK", "Transfer-Encoding: chunked", body="2\r\n{}xx\r\n0\r\n\r\n"),
    "deep JSON": raw("200 OK", "Connection: close", body="[" * 100_000),
    "a status of letters": {"raw": "HTTP/1.1 abc OK\r\n\r\n"},
    "a death": {"die": True},
}


@pytest.mark.parametrize("case", RUBBISH)
def test_rubbish_is_unavailable_and_the_next_call_works(stage: Stage, agent: Agent, case: str) -> None:
    stage.answer({INSPECT: [RUBBISH[case], {"status": 200, "json": FOUND}]})
    answer = agent.call("ctr.inspect", id=WS)
    assert answer.code == "unavailable"
    assert answer.message["message"].startswith("Podman"), "a text of ours"
    assert agent.call("ctr.inspect", id=WS).data["exists"]


@pytest.mark.parametrize(
    "deed",
    [
        "json.loads('[' * 100_000)",
        """json.loads('{"a":' * 100_000)""",
        """json.dumps(json.loads('{"a":' * 9_900 + '1' + '}' * 9_900))""",
        "json.loads('[' * 9_900 + ']' * 9_900) == json.loads('[' * 9_900 + ']' * 9_900)",
    ],
)
def test_the_stack_of_a_thread_is_large_enough_for_what_nests(deed: str) -> None:
    """In a process of its own, which Linux would end otherwise."""
    program = f"""
import json, threading
from contextlib import suppress

def act():
    with suppress(RecursionError):
        {deed}

threading.stack_size({THREAD_STACK})
thread = threading.Thread(target=act)
thread.start()
thread.join()
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_an_answer_without_end_is_cut_off(stage: Stage, agent: Agent) -> None:
    endless = raw("200 OK") | {"repeat": "[" * 65536, "times": 1000}
    stage.answer({LIST: endless})
    assert agent.call("ctr.list").code == "failed"


def test_chunks_and_close_are_read(stage: Stage, agent: Agent) -> None:
    text = json.dumps(FOUND)
    half = len(text) // 2
    body = f"{half:x};x=y\r\n{text[:half]}\r\n{len(text) - half:X}\r\n{text[half:]}\r\n0\r\n\r\n"
    for answer in (raw("200 OK", "transfer-encoding: Chunked", body=body), raw("200 OK", body=text)):
        stage.answer({INSPECT: answer})
        assert agent.call("ctr.inspect", id=WS).data["pid"] == PID


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("copying: write /x: no space left on device", "storage_full"),
        ("disk quota exceeded", "disk_quota_exceeded"),
        ("setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=9", "failed"),
        ("clone: Resource temporarily unavailable", "processes_exhausted"),
        ("something else with /home/secret in it", "failed"),
    ],
)
def test_engine_words_are_apart_and_in_the_log(
    stage: Stage, agent: Agent, capfd: pytest.CaptureFixture[str], arguments: str, code: str
) -> None:
    stage.answer({START: {"status": 500, "json": {"cause": "x", "message": arguments, "response": 500}}})
    answer = agent.call("ctr.start", id=WS, rid="the-rid")
    assert answer.code == code
    assert arguments not in answer.message["message"]
    assert answer.message["engine"] == arguments
    line = json.loads(capfd.readouterr().err.splitlines()[-1])
    assert (line["rid"], line["process"], arguments in line["why"]) == ("the-rid", "agent", True)


def test_a_refused_create_of_a_container_that_is_there(stage: Stage, agent: Agent) -> None:
    image = {"status": 200, "json": {"Id": IMAGE_ID, "Config": {"Cmd": ["/bin/bash"]}}}
    refused = {"status": 500, "json": {"cause": "that name is already in use", "message": "x"}}
    stage.answer({IMAGE: image, CREATE: refused, INSPECT: {"status": 200, "json": FOUND}})
    assert agent.call("ctr.create", **CREATE_ARGS).data["container_id"] == CONTAINER_ID
    stage.answer({IMAGE: image, CREATE: refused, INSPECT: {"status": 200, "json": FOUND | {"Config": None}}})
    assert agent.call("ctr.create", **CREATE_ARGS).code == "container_name_taken"
    stage.answer({IMAGE: image, CREATE: refused})
    assert agent.call("ctr.create", **CREATE_ARGS).code == "failed"
    stage.answer({})
    assert agent.call("ctr.create", **CREATE_ARGS).code == "image_missing"


def test_a_process_that_ends_while_podman_looks_at_it(stage: Stage, agent: Agent) -> None:
    """Podman 4.3 refuses then, and answers a moment later; it is not asked for ever."""
    text = "read /proc/13021/cgroup: no such process"
    refused = {"status": 500, "json": {"cause": "no such process", "message": text}}
    stage.answer({INSPECT: [refused, {"status": 200, "json": FOUND}]})
    assert agent.call("ctr.inspect", id=WS).data["container_id"] == CONTAINER_ID
    stage.answer({INSPECT: refused})
    answer = agent.call("ctr.inspect", id=WS)
    assert (answer.code, answer.message["engine"]) == ("failed", text)
    assert stage.lines("requests").count(INSPECT) == 2 + 3


def test_a_hanging_podman_is_left_at_the_deadline_and_on_hang_up(stage: Stage, agent: Agent) -> None:
    stage.answer({INSPECT: {"hang": True}})
    began = time.monotonic()
    assert agent.call("ctr.inspect", id=WS, deadline_s=1).code == "timeout"
    assert 1 <= time.monotonic() - began < 2
    call = agent.begin("ctr.inspect", id=WS)
    call.cancel()
    assert call.answer(2).code == "cancelled"
    agent.begin("ctr.inspect", id=WS).hang_up()
    stage.answer({INSPECT: {"status": 200, "json": FOUND}})
    assert agent.call("ctr.inspect", id=WS).data["exists"]


def end_podman(stage: Stage) -> None:
    """End Podman and see it end: what it takes while it dies is a request cut off, none that waits."""
    pidfd = os.pidfd_open(int((stage.directory / "pid").read_text()))
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        assert select.select([pidfd], [], [], 10)[0]
    finally:
        os.close(pidfd)


def test_a_podman_that_ended_is_started_again_and_nothing_is_sent_twice(stage: Stage, agent: Agent) -> None:
    stage.answer({INSPECT: {"status": 200, "json": FOUND}})
    assert agent.call("ctr.inspect", id=WS).data
    end_podman(stage)
    calls = [agent.begin("ctr.inspect", id=WS) for _ in range(8)]
    assert all(call.answer(10).data["exists"] for call in calls)
    assert len(stage.lines("requests")) == 9
    assert stage.lines("commands") == ["system service --time=300"] * 2


def test_a_connection_that_waits_for_a_stopped_podman_goes_to_the_next(stage: Stage, agent: Agent) -> None:
    """The idle end of Podman while a request is in the listener: taken by nobody, lost by nobody."""
    stage.answer({START: {"status": 204}, INSPECT: {"status": 200, "json": FOUND}})
    assert agent.call("ctr.inspect", id=WS).data
    pid = int((stage.directory / "pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    while any(file.read_text().rpartition(") ")[2][0] != "T" for file in tasks.glob("*/stat")):
        time.sleep(0.01)  # until then it may accept the connection
    call = agent.begin("ctr.start", id=WS)
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    assert call.answer(10).data["pid"] == PID
    assert stage.lines("requests").count(START) == 1


def test_a_death_amid_a_request_is_not_repeated(stage: Stage, agent: Agent) -> None:
    stage.answer({START: {"die": True}})
    assert agent.call("ctr.start", id=WS).code == "unavailable"
    assert stage.lines("requests") == [START]


def test_podmans_own_remedy_is_used_once(stage: Stage) -> None:
    arguments = 'invalid internal status, try resetting the pause process with "podman system migrate": x'
    (stage.directory / "start-failures.json").write_text(json.dumps([arguments]))
    stage.answer({INSPECT: {"status": 200, "json": FOUND}})
    agent = stage.begin()
    assert agent.call("ctr.inspect", id=WS).data["exists"]
    start = "system service --time=300"
    assert stage.lines("commands") == [start, "system migrate", "container cleanup --all", start]


def test_a_podman_that_never_starts_is_unavailable(stage: Stage) -> None:
    failures = stage.directory / "start-failures.json"
    failures.write_text(json.dumps(["some secret reason"] * 100))
    agent = stage.begin()
    answer = agent.call("ctr.inspect", id=WS)
    assert (answer.code, answer.message["message"]) == ("unavailable", "Podman does not start")
    assert answer.message["engine"].strip() == "some secret reason", "for its owner"
    assert len(stage.lines("commands")) <= 4, "it is not tried for ever"
    failures.unlink()
    stage.answer({INSPECT: {"status": 200, "json": FOUND}})
    assert agent.call("ctr.inspect", id=WS).data["exists"], "the next call may find it mended"


def test_what_a_podman_that_does_not_start_was_asked_is_not_done_later(stage: Stage) -> None:
    """A request left in the queue would be done when Podman starts again; 65 of them keep all others out."""
    failures = stage.directory / "start-failures.json"
    failures.write_text(json.dumps(['Error: default OCI runtime "crun" not found: invalid argument'] * 100))
    agent = stage.begin()
    stop = f"POST {LIBPOD}/containers/svc-{WS}/stop"
    calls = [agent.begin("ctr.inspect", id=WS) for _ in range(3)]
    answers = [agent.call("ctr.start", id=WS), agent.call("ctr.stop", id=WS, grace_s=0)]
    for answer in (*answers, *(call.answer(10) for call in calls)):
        assert answer.code == "programs_missing", answer
        assert answer.message["message"].startswith("crun is missing on this host")
    failures.unlink()
    stage.answer({INSPECT: {"status": 200, "json": FOUND}, START: {"status": 204}, stop: {"status": 204}})
    assert agent.call("ctr.inspect", id=WS).data["exists"]
    assert stage.lines("requests") == [INSPECT]


def test_a_podman_of_another_uid_is_told_with_the_way_out(stage: Stage) -> None:
    words = (
        'level=warning msg="RunRoot is pointing to a path (/run/user/1028/containers) which is not writable.'
        ' Most likely podman will fail.: permission denied"\n'
        "Error: creating events dirs: mkdir /run/user/1028/libpod: permission denied"
    )
    (stage.directory / "start-failures.json").write_text(json.dumps([words] * 100))
    answer = stage.begin().call("ctr.inspect", id=WS)
    assert answer.code == "podman_moved"
    assert "without its bolt_state.db" in answer.message["message"]


MALFORMED: list[dict[str, Any]] = [
    {},
    {"verb": "ctr.inspect", "args": {"id": WS}, "rid": "x", "timeout_s": 5, "more": 1},
    {"verb": "ctr.nothing", "args": {}, "rid": "x", "timeout_s": 5},
    {"verb": "account.ensure", "args": {"administrator": True}, "rid": "x", "timeout_s": 5},
    {"verb": ["ctr.inspect"], "args": {"id": WS}, "rid": "x", "timeout_s": 5},
    {"verb": "ctr.inspect", "args": {"id": "../../etc"}, "rid": "x", "timeout_s": 5},
    {"verb": "ctr.inspect", "args": {"id": WS, "x": 1}, "rid": "x", "timeout_s": 5},
    {"verb": "ctr.inspect", "args": {}, "rid": "x", "timeout_s": 5},
    {"verb": "ctr.inspect", "args": {"id": WS}, "rid": "x\n", "timeout_s": 5},
    {"verb": "ctr.inspect", "args": {"id": WS}, "rid": "x", "timeout_s": True},
    {"verb": "ctr.inspect", "args": {"id": WS}, "rid": "x", "timeout_s": 10**9},
    {"verb": "image.pull", "args": {"image": "dir:/etc"}, "rid": "x", "timeout_s": 5},
    {"verb": "image.pull", "args": {"image": "-v"}, "rid": "x", "timeout_s": 5},
    {"verb": "ctr.exec", "args": {"id": WS, "command": [], "timeout_s": 5}, "rid": "x", "timeout_s": 5},
    {"verb": "ctr.exec", "args": {"id": WS, "command": ["\0"], "timeout_s": 5}, "rid": "x", "timeout_s": 5},
]


@pytest.mark.parametrize("message", MALFORMED)
def test_malformed_calls_are_refused_before_podman(
    stage: Stage, agent: Agent, message: dict[str, Any]
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        protocol.send(agent.channel, message, [theirs.fileno()])
        theirs.close()
        assert protocol.receive(ours).message["code"] == "protocol"
    assert stage.lines("requests") == []


def test_frames_that_no_helper_sends_do_not_stop_the_loop(stage: Stage, agent: Agent) -> None:
    for frame in (b"{", b"x" * 70_000, b'{"a":NaN}', b"[]"):
        agent.channel.send(frame)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        good = {"verb": "ctr.inspect", "args": {"id": WS}, "rid": "x", "timeout_s": 5}
        protocol.send(agent.channel, good, [])
        protocol.send(agent.channel, good, [theirs.fileno(), theirs.fileno()])
        theirs.close()
        with pytest.raises(EOFError):
            protocol.receive(ours)
    stage.answer({INSPECT: {"status": 200, "json": FOUND}})
    assert agent.call("ctr.inspect", id=WS).data["exists"]


def test_more_calls_than_places_are_refused_not_lost(stage: Stage, agent: Agent) -> None:
    stage.answer({INSPECT: {"hang": True}})
    calls = [agent.begin("ctr.inspect", id=WS, deadline_s=15) for _ in range(AGENT_CALLS_MAX + 1)]
    assert calls[-1].answer(8).code == "unavailable"
    for call in calls[:-1]:
        call.hang_up()


def test_an_idle_agent_ends_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, idle_s=0.3)
    stage.answer({INSPECT: {"status": 200, "json": FOUND}})
    agent = stage.begin()
    answered = 0
    try:
        for _ in range(200):
            assert agent.call("ctr.inspect", id=WS).data["exists"]
            answered += 1
            time.sleep(0.29 if answered % 3 else 0.31)  # at the very moment
    except (BrokenPipeError, ConnectionError):
        pass  # the helper starts another agent now
    stage.thread.join(5)
    assert not stage.thread.is_alive()
    assert answered >= 1
    stage.end()


@pytest.mark.parametrize(
    ("first", "running", "ends"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_a_look_at_all_users_leaves_only_agents_that_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool, running: bool, ends: bool
) -> None:
    stage = Stage(tmp_path, monkeypatch, idle_s=60)
    row = ROW | ({"State": "running", "Pid": PID} if running else {"ExitCode": 0})
    stage.answer({LIST: {"status": 200, "json": [row]}, INSPECT: {"status": 200, "json": FOUND}})
    agent = stage.begin()
    if not first:
        assert agent.call("ctr.inspect", id=WS).data["exists"]
    assert len(agent.call("ctr.list", ends_agent=True).data["containers"]) == 1
    stage.thread.join(10 if ends else 0.5)
    assert stage.thread.is_alive() is not ends
    stage.end()


def test_a_busy_agent_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, idle_s=0.2)
    stage.answer({INSPECT: {"hang": True}})
    agent = stage.begin()
    call = agent.begin("ctr.inspect", id=WS, deadline_s=1)
    assert call.answer(5).code == "timeout"
    stage.thread.join(5)
    assert not stage.thread.is_alive()
    stage.end()


def test_the_helpers_death_lets_calls_finish(stage: Stage, agent: Agent) -> None:
    stage.answer({INSPECT: [{"hang": True}, {"status": 200, "json": FOUND}]})
    call = agent.begin("ctr.inspect", id=WS, deadline_s=1)
    time.sleep(0.1)
    agent.channel.close()
    assert call.answer(5).code == "timeout", "it was answered, by an agent without a helper"
    stage.thread.join(5)
    assert not stage.thread.is_alive()


def test_progress_that_nobody_reads_does_not_block(stage: Stage, agent: Agent) -> None:
    from svc_helper.agent.calls import Call

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        call = Call("x", "image.pull", 5, theirs)
        for number in range(5000):
            call.progress({"current": number, "total": 5000, "unit": "bytes", "text": "x" * 50})
        reader = threading.Timer(0.2, call.answer, [{"done": True}])
        reader.start()
        time.sleep(0.4)  # the queue is full when the answer is given
        last: dict[str, Any] = {}
        while "ok" not in last:
            last = protocol.receive(ours).message
        assert last == {"ok": True, "data": {"done": True}}
        reader.join()


def test_each_verb_of_an_agent_is_done_by_something() -> None:
    """Also those that are loaded by their first call only."""
    for name, verb in protocol.VERBS.items():
        if verb.side == "agent":
            assert callable(handler_of(name)), name
