"""The forwarder and its loop, over real sockets of this host."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
from agent.containers.test_ports import connected, everything
from agent.priv_ns import wait_for

from svc_helper.agent.calls import Failure
from svc_helper.shim.clients import Clients
from svc_helper.shim.inside import Inside, start
from svc_helper.shim.loop import IN, Loop
from svc_helper.shim.ports import Ports


class Forwarder:
    """A loop in a thread, with ports that lead to this host's own loopback."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.line, self.pid = child = self.child()
        self.ports = Ports(self.loop, Inside(self.loop, child, self.child), Clients(os.getuid(), ()))
        self.asked, self.asks = os.pipe()
        self.todo: list[object] = []
        self.loop.watch(self.asked, IN, self._do)
        self.thread = threading.Thread(target=self.loop.run)
        self.thread.start()

    @staticmethod
    def child() -> tuple[socket.socket, int]:
        """A child in this very network."""
        return start(os.open("/proc/self/ns/net", os.O_RDONLY))

    def _do(self, events: int) -> None:
        os.read(self.asked, 1)
        self.todo.pop(0)()  # type: ignore[operator]  # a list of callables

    def ask(self, act: object) -> None:
        """Have it done in the loop."""
        done = threading.Event()
        self.todo.append(lambda: (act(), done.set()))  # type: ignore[operator]  # a callable
        os.write(self.asks, b"x")
        assert done.wait(30)

    def open(self, container_port: int, access: str = "owner") -> int:
        """A port that leads there."""
        listener = socket.create_server(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
        self.ask(lambda: self.ports.open(port, container_port, access, listener))
        return port

    def close(self) -> None:
        """End the loop and the child."""
        self.ask(self.ports.close_all)
        self.ask(lambda: setattr(self.loop, "ending", True))
        self.thread.join()
        self.loop.close()
        self.line.close()
        os.waitpid(self.pid, 0)
        os.close(self.asked)
        os.close(self.asks)


@pytest.fixture
def forwarder() -> Iterator[Forwarder]:
    """A running one."""
    created = Forwarder()
    yield created
    created.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Where it leads to."""
    with socket.create_server(("127.0.0.1", 0)) as created:
        created.settimeout(30)
        yield created


def test_bytes_and_ends_go_both_ways(forwarder: Forwarder, listener: socket.socket) -> None:
    port = forwarder.open(listener.getsockname()[1])
    with connected(port) as client:
        server = listener.accept()[0]
        with server:
            client.sendall(b"there")
            assert server.recv(100) == b"there"
            client.shutdown(socket.SHUT_WR)
            assert server.recv(100) == b""
            server.sendall(b"and back")
            assert client.recv(100) == b"and back"
        assert client.recv(100) == b""
    wait_for(lambda: forwarder.ports.rows()[0]["connections"] == 0)
    assert forwarder.ports.rows()[0]["bytes"] == 13


@pytest.mark.parametrize("who", ["client", "server"])
def test_who_breaks_off_breaks_both_off(forwarder: Forwarder, listener: socket.socket, who: str) -> None:
    port = forwarder.open(listener.getsockname()[1])
    with connected(port) as client, listener.accept()[0] as server:
        gone, left = (client, server) if who == "client" else (server, client)
        left.settimeout(30)
        left.sendall(b"unread")
        wait_for(lambda: gone.recv(6, socket.MSG_PEEK) == b"unread")
        gone.close()  # with something unread: an abort
        with pytest.raises(ConnectionError):
            while left.recv(100):
                pass
            left.sendall(b"x")
            left.recv(100)
    wait_for(lambda: forwarder.ports.rows()[0]["connections"] == 0)


def test_both_sides_deaf_and_one_gone(forwarder: Forwarder, listener: socket.socket) -> None:
    port = forwarder.open(listener.getsockname()[1])
    block = bytes(1 << 16)
    with connected(port) as client, listener.accept()[0] as server:
        for sock in (client, server):
            sock.setblocking(False)
            full = 0
            while full < 50:  # until nothing has been taken for a while
                try:
                    sock.send(block)
                    full = 0
                except BlockingIOError:
                    full += 1
                    threading.Event().wait(0.005)
        client.close()
        wait_for(lambda: forwarder.ports.rows()[0]["connections"] == 0)


def test_without_descriptors_it_waits_and_goes_on(forwarder: Forwarder, listener: socket.socket) -> None:
    port = forwarder.open(listener.getsockname()[1])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = max(int(name) for name in os.listdir("/proc/self/fd"))
    clients = [socket.socket() for _ in range(8)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files + 10, before[1]))
        for client in clients:
            client.settimeout(30)
            with contextlib.suppress(ConnectionResetError):  # it was accepted, and got no socket inside
                client.connect(("127.0.0.1", port))  # the kernel's queue takes the others
        threading.Event().wait(0.5)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for client in clients:
        client.close()

    def serves() -> bool:
        with connected(port) as client:
            client.sendall(b"back")
            while True:  # those of before come first
                with listener.accept()[0] as server, contextlib.suppress(ConnectionResetError):
                    server.settimeout(30)
                    if server.recv(4) == b"back":
                        return True

    assert serves()


def test_a_timer_and_a_number_that_is_given_away_again() -> None:
    loop = Loop()
    done: list[str] = []
    loop.later(0.02, lambda: done.append("later"))
    loop.later(0.01, lambda: done.append("sooner"))
    loop.later(0.015, lambda: done.append("never")).drop()
    pairs = [socket.socketpair() for _ in range(2)]

    def swap(events: int) -> None:
        """Close the other, and watch another socket under its number: it has no events yet."""
        other = pairs[1][0].fileno()
        loop.unwatch(other)
        pairs[1][0].close()
        fresh = socket.socketpair()
        pairs.append(fresh)
        os.dup2(fresh[0].fileno(), other)
        loop.watch(other, IN, lambda events: done.append("wrong"))
        loop.unwatch(pairs[0][0].fileno())

    loop.watch(pairs[0][0].fileno(), IN, swap)
    loop.watch(pairs[1][0].fileno(), IN, lambda events: done.append("first"))
    for pair in pairs:
        pair[1].sendall(b"x")
    wait_for(lambda: loop.turn(0.01) or {"later", "sooner"} <= set(done))
    assert done[-2:] == ["sooner", "later"] and "wrong" not in done and "never" not in done
    loop.close()
    for pair in pairs:
        for sock in pair:
            sock.close()


def test_everything_of_a_port_goes_with_it(forwarder: Forwarder, listener: socket.socket) -> None:
    port = forwarder.open(listener.getsockname()[1])
    with connected(port) as client, listener.accept()[0] as server:
        forwarder.ask(lambda: forwarder.ports.close(port))
        for sock in (client, server):
            sock.settimeout(30)
            with pytest.raises(ConnectionError):
                everything(sock)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


class Asker:
    """The request of an agent, which waits for its reply."""

    def __init__(self, port: int, stream: socket.socket) -> None:
        self.args = {"container_port": port}
        self.fds = [stream.detach()]
        self.reply: dict[str, Any] | Failure | None = None

    def answer(self, data: dict[str, Any]) -> None:
        self.reply = data

    def fail(self, failure: Failure) -> None:
        self.reply = failure


def test_a_stream_needs_the_shim_until_it_ends(forwarder: Forwarder, listener: socket.socket) -> None:
    """And is answered once: not again when it ends."""
    ours, theirs = socket.socketpair()
    asker = Asker(listener.getsockname()[1], theirs)
    forwarder.ask(lambda: forwarder.ports.connect(cast("Any", asker)))
    with ours, listener.accept()[0] as server:
        wait_for(lambda: asker.reply == {})
        assert forwarder.ports
        server.sendall(b"inside")
        assert ours.recv(6) == b"inside"
    wait_for(lambda: not forwarder.ports)
    assert asker.reply == {}


def test_a_refused_stream_leaves_nothing(forwarder: Forwarder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as ended:
        port = ended.getsockname()[1]
    ours, theirs = socket.socketpair()
    asker = Asker(port, theirs)
    forwarder.ask(lambda: forwarder.ports.connect(cast("Any", asker)))
    with ours:
        ours.settimeout(30)
        assert ours.recv(1) == b""
    wait_for(lambda: isinstance(asker.reply, Failure) and asker.reply.code == "not_listening")
    assert not forwarder.ports
