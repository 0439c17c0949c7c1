"""A workspace's shim: one, found by every agent, gone with the container, replaced when killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent.containers.test_exec import sleepers
from agent.containers.test_launchers import KIND, directory, start, state, stop, text
from agent.containers.test_ports import Serve, connected, everything, open_port, rows, serving
from agent.priv_ns import IN_EACH_STORE, Agent, User, proportional_set_kib, wait_for

from svc_helper.agent.scope import END_SIGNAL
from svc_helper.wire import protocol

pytestmark = pytest.mark.root
Make = Callable[..., str]
IDLE = "IDLE_S = 10  # without a port, a launcher or a terminal"


@pytest.fixture
def serve(agent: Agent, tmp_path: Path) -> Iterator[Serve]:
    """Starts a server on a loopback address in a workspace's network."""
    yield from serving(agent, tmp_path)


def shims(user: User, ws: str, comm: str = "svc-shim") -> list[int]:
    """The workspace's shim processes of that name."""
    return [
        pid
        for pid, arguments in user.processes().items()
        if "svc_helper.shim.__main__" in arguments and ws in arguments and name_of(pid) == comm
    ]


def name_of(pid: int) -> str:
    """What ps shows."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def only_shim(user: User, ws: str) -> int:
    """The pid of the one shim."""
    [pid] = wait_for(lambda: shims(user, ws))
    return pid


def socket_path(user: User, ws: str) -> Path:
    """The control socket, as seen from out here."""
    return Path(f"/proc/{user.namespace.holder.pid}/root{user.runtime}/svc/shims") / ws


def test_it_outlives_a_killed_agent(user: User, agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    mine = user.start_agent()
    row = start(mine, ws, "web", "sh", "-c", "echo one; sleep 4253")
    serve(ws, "127.0.0.1", 7100, "echo")
    port = open_port(mine, ws, 7100)
    shim = only_shim(user, ws)
    with connected(port) as sock:
        sock.sendall(b"before")
        assert sock.recv(6) == b"before"
        mine.kill()
        sock.sendall(b"after")
        assert sock.recv(5) == b"after"
    other = user.start_agent()
    assert state(other, ws, "web") == row
    assert [found["host_port"] for found in rows(other, ws)] == [port]
    assert start(other, ws, "web", "true") == row
    assert stop(other, ws, "web")["state"] == "stopped"
    assert shims(user, ws) == [shim]
    other.close()


@IN_EACH_STORE
def test_one_that_was_killed_is_replaced_and_settled(
    user: User, agent: Agent, make: Make, serve: Serve
) -> None:
    ws = make()
    start(agent, ws, "web", "sh", "-c", "trap '' TERM; (setsid sleep 4254 &); echo one; sleep 4255")
    serve(ws, "127.0.0.1", 7101, "echo")
    port = open_port(agent, ws, 7101)
    wait_for(lambda: len(sleepers(user)) >= 2)
    shim = only_shim(user, ws)
    os.kill(shim, signal.SIGKILL)
    wait_for(lambda: not shims(user, ws) and not shims(user, ws, "svc-shim-net"))
    assert rows(agent, ws) == [], "whoever opened them opens them again"
    row = state(agent, ws, "web")
    assert (row["state"], row["exit_code"], row["pid"]) == ("exited", 137, None)
    wait_for(lambda: not sleepers(user))
    assert "its shim was killed" in agent.logs(ws, "web").markers[-1][1]
    assert agent.call("port.open", id=ws, host_port=port, container_port=7101, access="owner").data == {}
    with connected(port) as sock:
        sock.sendall(b"again")
        assert sock.recv(5) == b"again"
    assert start(agent, ws, "web", "echo", "two")["state"] in ("started", "exited")
    wait_for(lambda: text(agent, ws, "web").endswith("two\n"))
    assert only_shim(user, ws) != shim


@IN_EACH_STORE
def test_it_ends_with_the_container(user: User, agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7102, "echo")
    port = open_port(agent, ws, 7102)
    start(agent, ws, "web", "sleep", "4256")
    only_shim(user, ws)
    with connected(port) as sock:
        sock.sendall(b"here")
        assert sock.recv(4) == b"here"
        agent.call("ctr.stop", id=ws, grace_s=1)
        with pytest.raises(ConnectionError):
            everything(sock)
            sock.sendall(b"gone")
            everything(sock)
    wait_for(lambda: not shims(user, ws) and not socket_path(user, ws).exists())
    assert not shims(user, ws, "svc-shim-net")
    with socket.create_server(("127.0.0.1", port)):
        pass
    agent.call("ctr.start", id=ws)
    assert rows(agent, ws) == []
    assert state(agent, ws, "web")["state"] == "stopped"
    assert start(agent, ws, "web", "sleep", "4257")["state"] == "started", "at once, by another shim"


@IN_EACH_STORE
def test_nothing_of_it_outlives_the_workspace(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    start(agent, ws, "web", "yes")
    assert directory(user, ws).exists()
    assert agent.call("ctr.remove", id=ws).data == {}
    wait_for(lambda: not shims(user, ws))
    assert not directory(user, ws).parent.exists()
    assert agent.call("launcher.list", id=ws).data == {"launchers": []}


def test_many_calls_at_once_start_one(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    other = user.start_agent()
    # Here both agents share one control group, and one that starts removes empty groups in it.
    assert other.call("ctr.inspect", id=ws).data["container_id"]
    calls = [
        side.begin(
            "launcher.start", id=ws, name=f"job-{number}", command=["sleep", "4258"], env={}, watch_ms=0
        )
        for number in range(6)
        for side in (agent, other)
    ]
    assert {call.answer(60).data["state"] for call in calls} == {"started"}
    only_shim(user, ws)
    assert (
        len([arguments for arguments in user.processes().values() if arguments.startswith("sleep 4258")]) == 6
    )
    other.close()


def test_it_is_small(user: User, agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7103, "echo")
    port = open_port(agent, ws, 7103)
    start(agent, ws, "loud", "sh", "-c", "head -c 5000000 /dev/zero; sleep 4259")
    for _ in range(20):
        with connected(port) as sock:
            sock.sendall(b"x" * 100_000)
            sock.shutdown(socket.SHUT_WR)
            assert len(everything(sock)) == 100_000
    [net] = shims(user, ws, "svc-shim-net")
    sizes = [proportional_set_kib(pid) for pid in (only_shim(user, ws), net)]
    print(f"shim and its child: {sizes} KiB")
    assert sizes[0] <= 10 * 1024 and sum(sizes) <= 12 * 1024


def test_it_listens_to_its_user_alone(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    start(agent, ws, "web", "sleep", "4260")
    path = socket_path(user, ws)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.connect(str(path))  # root may; its word counts for nothing
        sock.settimeout(30)
        try:
            protocol.send(sock, {"do": "launcher.list", "run": "", "args": {}})
            assert sock.recv(100) == b""
        except ConnectionError:
            pass
    assert state(agent, ws, "web")["state"] == "started"


RUBBISH = """
import socket, sys
for message in (b"", b"{", b"x" * 60000, b'{"do":"port.open","run":"%s","args":{}}' % sys.argv[2].encode(),
                b'{"do":"launcher.start","run":"%s","args":{"name":7}}' % sys.argv[2].encode(), b"[]",
                b'{"do":"nothing","run":"","args":3}'):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect(sys.argv[1])
    sock.sendall(message)
    sock.settimeout(30)
    print(sock.recv(1000) if message else "")
silent = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(30)]
for sock in silent:
    sock.connect(sys.argv[1])
"""


def test_rubbish_on_its_socket_harms_nobody(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    start(agent, ws, "web", "sleep", "4261")
    shim = only_shim(user, ws)
    said = user.run("/usr/bin/python3", "-c", RUBBISH, f"{user.runtime}/svc/shims/{ws}", "x:1").stdout
    assert said.count("stale") == 3 and "Traceback" not in said
    assert state(agent, ws, "web")["state"] == "started"
    assert shims(user, ws) == [shim]


USURPER = """
import os, socket, sys
path, answer = sys.argv[1], sys.argv[2].encode()
os.makedirs(os.path.dirname(path), exist_ok=True)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(path)
listener.listen(64)
print("listening", flush=True)
while True:
    sock, _ = listener.accept()
    if answer == b"silence":
        held = sock
        continue
    if sock.recv(70000) and answer != b"end":
        sock.sendall(answer)
    sock.close()
"""


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("silence", "timeout"),
        ("end", "unavailable"),
        ("{", "failed"),
        ('{"ok":true,"data":{"ports":7}}', ""),
        ('{"ok":true,"data":{}}', "failed"),
        ('{"ok":false,"code":"stale","message":""}', "unavailable"),
        ('{"ok":false,"code":["x"],"message":{}}', "failed"),
    ],
)
def test_a_false_keeper_harms_its_own_user_alone(
    user: User, agent: Agent, make: Make, answer: str, code: str
) -> None:
    ws, other = make(), make()
    path = f"{user.runtime}/svc/shims/{ws}"
    argv = user.namespace.enter(user, ["/usr/bin/python3", "-c", USURPER, path, answer])
    usurper = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert usurper.stdout is not None
    with usurper.stdout as out:
        assert out.readline() == b"listening\n"
    call = agent.begin("port.list", id=ws, deadline_s=3 if code == "timeout" else 15)
    assert start(agent, other, "web", "sleep", "4264")["state"] == "started", "meanwhile"
    done = call.answer(60)
    assert (done.message["code"] if code else done.data["ports"]) == (code or 7), "the app looks at it again"
    usurper.kill()
    usurper.wait()
    wait_for(lambda: rows(agent, ws) == [])
    assert start(agent, ws, "web", "sleep", "4265")["state"] == "started", "the dead socket was replaced"


def test_its_child_in_the_network_is_replaced(user: User, agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7104, "hello\n")
    port = open_port(agent, ws, 7104)

    def is_served() -> bool:
        with contextlib.suppress(ConnectionResetError), connected(port) as sock:  # it may have just ended
            return everything(sock) == b"hello\n"
        return False

    for _ in range(2):
        wait_for(is_served)
        [net] = shims(user, ws, "svc-shim-net")
        os.kill(net, signal.SIGKILL)
        wait_for(lambda net=net: net not in shims(user, ws, "svc-shim-net"))


def test_it_ends_when_nothing_needs_it(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    hasty = user.start_agent(sooner=("shim.run", IDLE, IDLE.replace("10", "2")))
    start(hasty, ws, "web", "echo", "done")
    hasty.close()
    wait_for(lambda: not shims(user, ws), 60)
    assert not socket_path(user, ws).exists()
    assert state(agent, ws, "web")["state"] == "exited"
    assert stop(agent, ws, "web")["state"] == "exited"
    assert not shims(user, ws), "to look it needs none"


def test_a_stop_ends_what_a_launcher_left_behind_without_a_shim(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    hasty = user.start_agent(sooner=("shim.run", IDLE, IDLE.replace("10", "2")))
    program = f"exec >/work/{ws} 2>&1; {KIND}"
    start(hasty, ws, "off", "sh", "-c", f"(setsid sh -c '{program}' &)")
    written = Path(user.home, "work", ws)
    wait_for(lambda: written.exists() and "ready" in written.read_text())
    hasty.close()
    wait_for(lambda: not shims(user, ws), 60)
    agent.call("ctr.stop", id=ws, grace_s=30, deadline_s=60)
    assert written.read_text().endswith("saved\n")
    written.unlink()


def test_a_shim_of_an_older_release_stops_its_launchers_too(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    row = '            "launcher.stop_all": self._stop_launchers,'
    older = user.start_agent(sooner=("shim.run", row, ""))
    start(older, ws, "web", "sh", "-c", KIND)
    older.close()
    wait_for(lambda: "ready" in text(agent, ws, "web"))
    agent.call("ctr.stop", id=ws, grace_s=30, deadline_s=60)
    assert text(agent, ws, "web").endswith("saved\n")


def test_a_shim_that_hangs_holds_up_no_stop(user: User, make: Make) -> None:
    ws = make()
    wait = "_KILL_S = 5  # for what has been killed to be gone; the end of the container does not wait longer"
    hasty = user.start_agent(sooner=("agent.containers.launchers", wait, "_KILL_S = 1"))
    start(hasty, ws, "web", "sleep", "4266")
    shim = only_shim(user, ws)
    os.kill(shim, signal.SIGSTOP)
    try:
        assert hasty.call("ctr.stop", id=ws, grace_s=1, deadline_s=60).data
        assert not sleepers(user)
    finally:
        os.kill(shim, signal.SIGCONT)
        hasty.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, END_SIGNAL])
def test_launchers_end_before_a_shim_that_is_to_end(
    user: User, agent: Agent, make: Make, number: signal.Signals
) -> None:
    ws = make()
    start(agent, ws, "web", "sh", "-c", KIND)
    wait_for(lambda: "ready" in text(agent, ws, "web"))
    os.kill(only_shim(user, ws), number)
    wait_for(lambda: not shims(user, ws))
    assert text(agent, ws, "web").endswith("saved\n")
    assert (state(agent, ws, "web")["state"], state(agent, ws, "web")["exit_code"]) == ("stopped", 0)


def test_a_stop_of_the_users_manager_ends_it_in_order(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    start(agent, ws, "web", "sh", "-c", "trap '' TERM; (setsid sleep 4262 &); sleep 4263")
    wait_for(lambda: len(sleepers(user)) >= 2)
    os.kill(only_shim(user, ws), signal.SIGTERM)
    wait_for(lambda: not shims(user, ws))
    assert not sleepers(user)
    assert state(agent, ws, "web")["state"] == "stopped"
