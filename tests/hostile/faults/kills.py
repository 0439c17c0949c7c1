"""kill -9 of every process of svc, round after round, under eight clients that change workspaces.

`test_kills.py` runs a few rounds. Many, by hand, as root in `tests/` of an installed tree:

    ../packaging/quickstart.d/private-namespace python3 -m hostile.faults.kills 200
    tests/run release -- kills 100 1 helper         # by the suite's own runner; SEED and VICTIM...

After each kill: how long until the next call is served, how long until no row is in a
transition and no audited action is open, and whether every row says what Podman says and
what its client was told.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from e2e.installation import Process, Service, environment, process, processes_of, run
from e2e.registries import registry_in
from e2e.surroundings import in_database, must, podman, served, template_of
from hostile.attackers.raw import Answer, ask, connect, request
from ports import free_port
from waiting import until

USERS = ("tsk-ann", "tsk-ben", "tsk-cay", "tsk-dot")
EACH = 2  # clients of one user, with a workspace each
STATE, RUN = Path("/var/lib/svc-kills"), Path("/run/svc-kills")
BUSY_S = (0.5, 2.5)  # of work before a kill
RESTART_S = 1.0  # of the unit
SETTLED_S = 10.0  # "every row is settled within 10 s of the next process being ready"
IN_TRANSITION = "SELECT id FROM workspaces WHERE status NOT IN ('stopped', 'running', 'failed')"
WITHOUT_OUTCOME = (
    "SELECT id FROM audit b WHERE outcome = 'begun' AND NOT EXISTS (SELECT 1 FROM audit e WHERE e.id > b.id"
    " AND e.request_id = b.request_id AND e.action = b.action AND e.target = b.target)"
)


class Round(NamedTuple):
    """What one kill came to; times in seconds."""

    victim: str
    served_s: float  # from the kill to the next answer
    settled_s: float  # from that answer until no row was in a transition
    ended_s: float  # from that answer until no audited action was without its outcome
    wrong: list[str]

    @property
    def late(self) -> bool:
        """Whether it took longer than it may."""
        return max(self.settled_s, self.ended_s) > SETTLED_S


class Client(threading.Thread):
    """Changes one workspace for as long as the gate is open, and remembers what it was told."""

    def __init__(self, socket_path: str, user: str, name: str, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.path, self.user, self.name, self.chance = socket_path, user, name, chance
        self.gate, self.over = threading.Event(), threading.Event()
        self.idle = threading.Event()
        self.told = ""  # the status that the last answer means; "" without one
        self.log: list[str] = []
        self.answers: Counter[str] = Counter()
        self.longest_s = 0.0  # of a call

    def call(self, method: str, path: str, body: object = None) -> Answer:
        """One request on a connection of its own; status 0 without an answer."""
        content = b"" if body is None else json.dumps(body).encode()
        try:
            sock = connect(self.path, self.user)
        except OSError:
            return Answer(0, "", b"")
        sock.settimeout(180)
        began = time.monotonic()
        answer = ask(sock, request(method, path, content))
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        self.answers[f"{answer.status} {answer.code}".strip()] += 1
        return answer

    def status(self) -> str:
        """The workspace's status; `gone` without one, "" without an answer."""
        answer = self.call("GET", f"/api/workspaces/{self.name}")
        if answer.status == 404:
            return "gone"
        return str(json.loads(answer.body)["status"]) if answer.status == 200 else ""

    def run(self) -> None:
        while not self.over.is_set():
            if not self.gate.wait(0.1):
                self.idle.set()
                continue
            self.idle.clear()
            self.step()
        self.idle.set()

    def step(self) -> None:
        """One change, as the workspace's status allows it."""
        here = self.told or self.status()
        path = f"/api/workspaces/{self.name}"
        choices = {
            "gone": [("POST", "/api/workspaces", {"name": self.name, "template": "base"}, 201, "stopped")],
            "stopped": [
                ("POST", f"{path}/start", {}, 200, "running"),
                ("POST", f"{path}/start", {}, 200, "running"),
                ("DELETE", path, None, 204, "gone"),
                ("PATCH", path, {"display_name": self.name}, 200, "stopped"),
            ],
            "running": [
                ("POST", f"{path}/stop", {"grace_s": 0}, 200, "stopped"),
                ("POST", f"{path}/exec", {"command": ["true"]}, 200, "running"),
            ],
            "failed": [("DELETE", path, None, 204, "gone")],
        }.get(here)
        if not choices:
            time.sleep(0.1)
            return
        method, target, body, good, status = self.chance.choice(choices)
        self.told = ""
        began = time.monotonic()
        answer = self.call(method, target, body)
        self.told = status if answer.status == good else ""
        took = time.monotonic() - began
        self.log.append(f"{method} {target.rpartition('/')[2]} {answer.status} {answer.code} {took:.2f} s")
        if answer.status != good:
            time.sleep(0.1)


class Harness:
    """A server, its clients, and the kills."""

    def __init__(self, service: Service, users: tuple[str, ...], seed: int) -> None:
        self.service, self.users = service, users
        self.chance = random.Random(seed)
        self.clients = [
            Client(
                service.env["SVC_SOCKET"], user, f"kill-{number}", random.Random(f"{seed} {user} {number}")
            )
            for user in users
            for number in range(EACH)
        ]
        for client in self.clients:
            client.start()

    def close(self) -> None:
        """End the clients, and take their workspaces away."""
        self.pause()
        for client in self.clients:
            client.over.set()
            client.gate.set()
            client.join()
        for client in self.clients:
            client.call("POST", f"/api/workspaces/{client.name}/stop", {"grace_s": 0})
            client.call("DELETE", f"/api/workspaces/{client.name}")

    def pause(self) -> None:
        """Let no client begin anything; returns when all have their answers."""
        for client in self.clients:
            client.gate.clear()
        for client in self.clients:
            assert client.idle.wait(200), client.log[-3:]

    def round(self, victim: str) -> Round:
        """Work, one kill, and what is so afterwards."""
        for client in self.clients:
            client.idle.clear()
            client.gate.set()
        time.sleep(self.chance.uniform(*BUSY_S))
        chosen = VICTIMS[victim](self)
        for client in self.clients:
            client.gate.clear()
        killed = time.monotonic()
        kill(chosen)
        if self.service.pid in {one.pid for one in chosen}:
            self.start_again()
        until(lambda: self.clients[0].call("GET", "/api/workspaces").status == 200, 60, 0.02)
        served = time.monotonic()
        self.pause()
        settled = self.empty_since(IN_TRANSITION, served + 200)
        ended = self.empty_since(WITHOUT_OUTCOME, max(served, settled) + 2 * SETTLED_S)
        wrong = self.wrong(victim == "containers too")
        while wrong and time.monotonic() < served + SETTLED_S:  # a container that ended is noticed by then
            time.sleep(0.5)
            wrong = self.wrong(victim == "containers too")
        for client in self.clients:
            client.told = ""
        return Round(victim, served - killed, settled - served, ended - served, wrong)

    def start_again(self) -> None:
        """Start the server a second later, as systemd does, until what is left of the former one lets it."""
        assert self.service.supervisor is not None
        self.service.supervisor.wait(20)
        while self.service.supervisor is None or self.service.supervisor.poll() is not None:
            time.sleep(RESTART_S)
            with contextlib.suppress(AssertionError):
                self.service.start()

    def empty_since(self, query: str, deadline: float) -> float:
        """When a query has no rows any more; at the deadline at the latest."""
        while in_database(self.service.env, query) and time.monotonic() < deadline:
            time.sleep(0.1)
        return time.monotonic()

    def wrong(self, containers_ended: bool) -> list[str]:
        """Rows that say something else than Podman, or than their client was told."""
        found = []
        for client in self.clients:
            status = client.status()
            running = self.runs(client)
            if running != (status == "running"):
                found.append(f"{client.user} {client.name}: the row says {status}, running: {running}")
            expected = client.told
            if containers_ended and expected == "running":
                expected = ""
            if expected and status != expected:
                found.append(f"{client.user} {client.name}: told {expected}, is {status}: {client.log[-3:]}")
        return found

    def runs(self, client: Client) -> bool:
        """By Podman's own word."""
        answer = client.call("GET", f"/api/workspaces/{client.name}")
        if answer.status != 200:
            return False
        identity = json.loads(answer.body)["id"]
        listed = must(podman(client.user, "ps", "--filter", f"name={identity}", "--quiet")).out
        return bool(listed.split())


def kill(victims: list[Process]) -> None:
    """kill -9 of all at once; returns when they are gone."""
    for one in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
    until(lambda: not any(process(one.pid) for one in victims), 20, 0.005)


def named(harness: Harness, name: str) -> list[Process]:
    """The process of svc with that name."""
    return [one for one in harness.service.members() if one.status["Name"] == name]


def of_users(harness: Harness, word: str) -> list[Process]:
    """The users' processes with that word among their arguments."""
    return [one for user in harness.users for one in processes_of(user) if word in one.args]


def everything(harness: Harness) -> list[Process]:
    """Everything of svc and the agents; containers stay."""
    return harness.service.members() + of_users(harness, "svc_helper.agent")


def with_containers(harness: Harness) -> list[Process]:
    """And every process of the users."""
    return harness.service.members() + of_users(harness, "")


VICTIMS = {
    "listener": lambda harness: named(harness, "svc-unix"),
    "worker": lambda harness: named(harness, "svc-worker"),
    "app": lambda harness: [harness.service.member("svc.app")],
    "helper": lambda harness: [harness.service.member("svc_helper")],
    "agents": lambda harness: of_users(harness, "svc_helper.agent"),
    "podman": lambda harness: of_users(harness, "system service"),
    "supervisor": lambda harness: [
        one for one in harness.service.members() if one.pid == harness.service.pid
    ],
    "everything": everything,
    "containers too": with_containers,
}


def figures(rounds: list[Round]) -> str:
    """One line for each victim: rounds, next call, settled, what was wrong."""
    lines = []
    for victim in VICTIMS:
        mine = [one for one in rounds if one.victim == victim]
        if mine:
            served, settled = [one.served_s for one in mine], [one.settled_s for one in mine]
            ended = [one.ended_s for one in mine]
            late = sum(one.late for one in mine)
            lines.append(
                f"{victim:18} {len(mine):4} rounds, next call {min(served):.2f} to {max(served):.2f} s,"
                f" settled after {statistics.median(settled):.2f} s (at most {max(settled):.2f} s),"
                f" audit after {statistics.median(ended):.2f} s (at most {max(ended):.2f} s),"
                f" {late} late, {sum(bool(one.wrong) for one in mine)} wrong"
            )
    return "\n".join(lines)


def database_is_sound(env: dict[str, str]) -> None:
    """SQLite's own check, and the chain of the audit."""
    assert in_database(env, "PRAGMA integrity_check") == [["ok"]]
    checks: Any = json.loads(run("root", "admin", "doctor", "--json", env=env).out)
    print(json.dumps([one for one in checks.get("checks", checks) if "audit" in json.dumps(one)][:3]))


def left_over(places: list[Path]) -> list[str]:
    """Drafts that a killed process has left in the service's own directories."""
    found = [path for place in places for path in place.rglob("*")]
    return [
        str(path) for path in found if path.name.startswith(".") or path.name.endswith((".partial", ".new"))
    ]


def main(count: int, seed: int, *victims: str) -> int:
    """Run so many rounds on a server of its own; 1 when anything was wrong, late or left behind."""
    rounds: list[Round] = []
    chosen = victims or tuple(VICTIMS)
    env = environment(free_port(), STATE, RUN)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with (
            registry_in(Path(folder)) as registry,
            served(env, registry, Path(folder, "log"), USERS) as service,
        ):
            for user in USERS:
                template = template_of(user, registry, env)
                must(run(user, "image", "pull", template, "--wait", env=env))
            harness = Harness(service, USERS, seed)
            try:
                for number in range(count):
                    victim = chosen[number % len(chosen)]
                    rounds.append(harness.round(victim))
                    last = rounds[-1]
                    print(
                        f"{number}: {victim}: next call {last.served_s:.2f} s, settled"
                        f" {last.settled_s:.2f} s, audit {last.ended_s:.2f} s {last.wrong or ''}",
                        flush=True,
                    )
                    if last.wrong:
                        Path("/tmp/kills.log").write_bytes(service.log.read_bytes())
            finally:
                harness.close()
            total = sum((client.answers for client in harness.clients), Counter[str]())
            longest = max(client.longest_s for client in harness.clients)
            print(f"{total.total()} calls, the longest {longest:.1f} s: {dict(total.most_common())}")
            print(f"left behind: {(left := left_over([STATE, RUN])) or 'nothing'}")
            database_is_sound(env)
    print(figures(rounds))
    return int(any(one.wrong or one.late for one in rounds) or bool(left))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(main(int((arguments or ["200"])[0]), int((*arguments[1:2], "1")[0]), *arguments[2:]))
