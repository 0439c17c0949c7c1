"""Many users' transfers while parts of svc are killed: what was acknowledged is whole, the rest is absent."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

import pytest
from depths import rounds
from e2e import files
from e2e.accounts.test_audit import chain
from e2e.conftest import TRANSFERRING
from e2e.files import Endpoint, at, work
from e2e.installation import PASSWORD, Call, Process, Service, processes, processes_of, run
from e2e.surroundings import in_database, make_accounts, must
from waiting import until

THREADS = 3  # of each user
NAMES = 12  # in turn, so that an archive stays small
UNHEARD = (429, 502, 503, 504)  # what may be said while parts are away
SIZES = (0, 1, 70_000, 1 << 20, 5 << 20)
VICTIMS = ("agent",) * 6 + ("unix", "agent", "tls", "agent", "helper", "agent", "worker")
ROUNDS = rounds(len(VICTIMS), 25, 200)


def child(service: Service, name: str) -> int | None:
    """The pid of the app's process of that name, which holds connections or threads."""
    with contextlib.suppress(AssertionError, StopIteration):
        parent = service.member("svc.app").pid
        return next(
            one.pid for one in processes() if one.parent == parent and one.status["Name"] == f"svc-{name}"
        )
    return None


def descriptors(pid: int | None) -> int:
    """How many a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


class Transfers:
    """What one user's threads do, and what they were told."""

    def __init__(self, listeners: list[Endpoint], seed: int) -> None:
        self.listeners, self.seed = listeners, seed
        self.user = listeners[0].user
        self.whole: dict[str, set[str]] = {}  # name -> what may be there (SHA-256), "" for nothing
        self.sent: dict[str, set[str]] = {}  # name -> what has ever been sent there
        self.outcome = {"uploads": 0, "removals": 0, "downloads": 0, "archives": 0, "cut": 0}
        self.wrong: list[str] = []

    def run(self, thread: int, over: threading.Event) -> None:
        """Upload, replace, remove, download and archive, until it is over."""
        number, chance = 0, random.Random(f"{self.seed}.{thread}")
        while not over.is_set():
            number += 1
            listener = chance.choice(self.listeners)
            try:
                what = chance.choice(("new", "new", "replace", "download", "archive"))
                if what in ("new", "replace"):
                    name = f"k{thread}" if what == "replace" else f"n{thread}-{number % NAMES}"
                    if name in self.whole and what == "new":
                        self._remove(listener, name)
                    self._upload(listener, name, chance)
                elif what == "download":
                    self._download(listener, chance)
                else:
                    self._archive(listener)
            except (OSError, HTTPException):
                self.outcome["cut"] += 1
                over.wait(0.1)

    def _upload(self, listener: Endpoint, name: str, chance: random.Random) -> None:
        content = chance.randbytes(chance.choice(SIZES))
        sign = hashlib.sha256(content).hexdigest()
        self.sent.setdefault(name, set()).add(sign)
        self.whole.setdefault(name, {""}).add(sign)  # if no answer comes: it may have been complete by then
        path = at(f"up/{name}", "file", force="true" if name.startswith("k") else "false")
        answer = listener.ask("PUT", path, content, chunked=chance.random() < 0.3)
        if answer.status == 201:
            self.whole[name] = {sign}
            self.outcome["uploads"] += 1
        elif answer.status not in (409, *UNHEARD):
            self.wrong.append(f"PUT {name}: {answer}")

    def _remove(self, listener: Endpoint, name: str) -> None:
        self.whole[name].add("")
        answer = listener.ask("DELETE", at(f"up/{name}", "file"))
        if answer.status in (200, 404):
            self.whole[name] = {""}
            self.outcome["removals"] += 1
        elif answer.status not in UNHEARD:
            self.wrong.append(f"DELETE {name}: {answer}")

    def _download(self, listener: Endpoint, chance: random.Random) -> None:
        """What comes whole is what was sent."""
        name = chance.choice(sorted(self.sent) or ["none"])
        answer = listener.ask("GET", at(f"up/{name}", "download"))
        if answer.status == 200:
            if hashlib.sha256(answer.body).hexdigest() not in self.sent[name]:
                self.wrong.append(f"GET {name}: {len(answer.body)} bytes that nobody sent")
            self.outcome["downloads"] += 1
        elif answer.status not in (404, *UNHEARD):
            self.wrong.append(f"GET {name}: {answer}")

    def _archive(self, listener: Endpoint) -> None:
        with listener.begun(at("up", "archive")) as answer:
            if answer.status != 200:
                if answer.status not in UNHEARD:
                    self.wrong.append(f"archive: {answer.status} {answer.read()!r}")
                return
            with subprocess.Popen(["gzip", "-t"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as gzip:
                assert gzip.stdin is not None
                while part := answer.read(1 << 20):  # one that is cut raises
                    gzip.stdin.write(part)
            if gzip.returncode:
                self.wrong.append("an archive that gzip does not take")
            self.outcome["archives"] += 1

    def judge(self) -> None:
        """Every file is one that was sent whole, and each acknowledged one is there."""
        assert not self.wrong, self.wrong[:5]
        there = {path.name: files.digest(path) for path in (work(self.user) / "up").iterdir()}
        for name, sign in there.items():
            assert name.startswith(".svc-upload-") or sign in self.whole[name], f"{self.user}: {name}"
        for name, may in self.whole.items():
            assert there.get(name, "") in may, f"{self.user}: {name} is lost"


def strike(service: Service, victim: str) -> bool:
    """kill -9 of one part of svc, or of somebody's agent."""
    pid: int | None = None
    if victim == "agent":
        uids = {pwd.getpwnam(name).pw_uid for name in TRANSFERRING}
        found = [one for one in processes() if one.uid in uids and files.AGENT in one.args]
        pid = random.choice(found).pid if found else None
    elif victim == "helper":
        with contextlib.suppress(AssertionError):
            pid = service.member("svc_helper.root.__main__").pid
    else:
        pid = child(service, victim)
    with contextlib.suppress(ProcessLookupError):
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            return True
    return False


@pytest.fixture(scope="module")
def people(service: Service) -> list[str]:
    """The users, with accounts."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: make_accounts(service.env, {name: PASSWORD.strip()}), TRANSFERRING))
    return list(TRANSFERRING)


@pytest.fixture
def lines(service: Service, people: list[str]) -> list[Transfers]:
    """Every user's transfers, in an empty directory each; the first four are at the TLS listener too."""
    in_database(service.env, "DELETE FROM login_failures")
    created = []
    for number, name in enumerate(people):
        shutil.rmtree(work(name) / "up", ignore_errors=True)
        files.put(name, "up/first", b"")
        listeners = [files.socket_of(name, service.env)]
        if number < 4:
            listeners.append(files.session_of(name, service.env, PASSWORD))
        created.append(Transfers(listeners, number))
        created[-1].sent["first"] = created[-1].whole["first"] = {hashlib.sha256(b"").hexdigest()}
    return created


def left_of(people: list[str]) -> list[Process]:
    """The users' processes that are no agent and nothing that an agent has always."""
    own = ("svc_helper", "podman", "catatonit", "systemd", "(sd-pam)", "dbus")
    return [
        one
        for name in people
        for one in processes_of(name)
        if not any(argument in one.args for argument in own)
    ]


@contextlib.contextmanager
def transferring(lines: list[Transfers]) -> Iterator[None]:
    """All threads of all users, for as long as it lasts; a thread's own failure is one."""
    over = threading.Event()
    with ThreadPoolExecutor(len(lines) * THREADS) as pool:
        running = [pool.submit(one.run, thread, over) for one in lines for thread in range(THREADS)]
        try:
            yield
        finally:
            over.set()
        for one in running:
            one.result()


def test_what_was_acknowledged_survives(
    service: Service, svc: Call, people: list[str], lines: list[Transfers]
) -> None:
    until(service.answers, 30)
    struck = 0
    with transferring(lines):
        for number in range(ROUNDS):
            time.sleep(random.uniform(0.05, 0.4))
            struck += strike(service, VICTIMS[number % len(VICTIMS)])
        until(service.answers, 60, 0.3)
        time.sleep(1)  # some that nothing happens to
        until(lambda: all(sum(line.outcome[what] for line in lines) for what in lines[0].outcome), 60)
    outcome = {what: sum(line.outcome[what] for line in lines) for what in lines[0].outcome}
    print(f"{len(lines)} users, {struck} killed, {outcome}")
    assert struck > ROUNDS // 4  # some come while the part before is being started again
    for line in lines:
        line.judge()
    assert min(outcome.values()) > 0, outcome
    for name in people:  # the next upload in a directory takes away what a killed agent left there
        last = run(name, "fs", "upload", "-", "work/up/last", "--force", env=service.env, stdin="last")
        must(last)
        until(lambda name=name: not files.at_work(name), 30)  # type: ignore[misc]
        assert not files.unfinished(work(name) / "up")
        assert len(files.agents(name)) <= 1
    until(lambda: not left_of(people), 20)
    assert chain(svc)["level"] == "ok"


def test_nothing_is_left_in_the_listeners(
    service: Service, people: list[str], lines: list[Transfers]
) -> None:
    """Descriptors and threads of helper and listeners after some hundred transfers, whole or cut."""
    until(service.answers, 30)
    for line in lines:
        line.listeners[-1].ask("GET", at("up", "list"))
    members = [service.member("svc_helper.root.__main__").pid, child(service, "unix"), child(service, "tls")]
    before: list[int] = []
    for number in range(4):
        with transferring(lines):
            time.sleep(0.7)
        if number == 1:  # all threads of the listeners have their descriptors of the database
            before = [descriptors(pid) for pid in members]
        for line in lines:
            path, lost = at("up", "archive"), contextlib.suppress(OSError, HTTPException)
            with lost, line.listeners[-1].begun(path) as answer:
                answer.read(10)
    for line in lines:
        line.judge()
        until(lambda user=line.user: not files.at_work(user), 20)  # type: ignore[misc]
    until(lambda: all(descriptors(pid) < had + 8 for pid, had in zip(members, before, strict=True)), 30)


def test_a_helper_that_dies_cuts_no_transfer(service: Service, lines: list[Transfers]) -> None:
    """The bytes go between the agent and the listener."""
    until(service.answers, 30)
    user, listener = lines[0].user, lines[0].listeners[0]
    content = os.urandom(24 << 20)
    files.put(user, "up/first", content)
    with listener.begun(at("up/first", "download")) as answer:
        got = answer.read(100_000)
        os.kill(service.member("svc_helper.root.__main__").pid, signal.SIGKILL)
        assert got + answer.read() == content
    until(service.answers, 30)


@pytest.mark.parametrize("victim", ["agent", "listener"])
def test_a_killed_part_cuts_what_it_carries(service: Service, lines: list[Transfers], victim: str) -> None:
    """A download ends short of its length; an upload is not there, nor is anything of it."""
    until(service.answers, 30)
    user, listener = lines[-1].user, lines[-1].listeners[0]
    folder: Path = work(user) / "up"
    files.put(user, "up/first", os.urandom(24 << 20))

    def end() -> None:
        pid = files.agents(user)[0].pid if victim == "agent" else child(service, "unix")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    with listener.begun(at("up/first", "download")) as answer:
        got = len(answer.read(100_000))
        end()
        with contextlib.suppress(OSError, HTTPException):
            got += len(answer.read())
        assert got < 24 << 20
    until(service.answers, 30)
    before = sorted(os.listdir(folder))
    sock = listener.dial()
    with sock, contextlib.suppress(OSError):
        sock.sendall(
            listener.head("PUT", at("up/cut", "file"), f"Content-Length: {8 << 20}") + bytes(4 << 20)
        )
        until(lambda: files.at_work(user), 20)
        end()
        sock.sendall(bytes(4 << 20))
        answer_to_it = sock.recv(65536)
        assert b" 201 " not in answer_to_it
    until(service.answers, 30)
    until(lambda: not files.at_work(user), 20)
    assert sorted(os.listdir(folder)) == before


def test_a_stop_ends_transfers_in_time(service: Service, lines: list[Transfers]) -> None:
    """ "Everything of svc gone within 5" seconds, also when nobody reads what it sends."""
    until(service.answers, 30)
    files.put(lines[0].user, "up/first", os.urandom(24 << 20))
    with contextlib.ExitStack() as held:
        for line in lines[:4]:
            files.put(line.user, "up/first", os.urandom(24 << 20))
            for listener in line.listeners:
                assert held.enter_context(listener.begun(at("up/first", "download"))).status == 200
        assert service.stop() < 6
    service.start()
    for line in lines[:4]:
        until(lambda user=line.user: not files.at_work(user), 20)  # type: ignore[misc]
