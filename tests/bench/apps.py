"""An app in the browser against the port of the same program: requests, WebSockets, bytes, and memory."""

from __future__ import annotations

import http.client
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import NamedTuple
from urllib.parse import urlsplit

from bench.pairs import Row
from bench.stage import USER, Stage
from e2e import served
from e2e.installation import run
from e2e.registries import REPOSITORY
from e2e.surroundings import must, new_template
from e2e.workspaces.browsing import Browser
from waiting import until

NAME = "bench-app"
LAUNCHER = {"name": "web", "command": ["python3", "/app/server.py"], "port": "web", "autostart": True}
ROUNDS, BULK_ROUNDS = 2000, 7
BULK = 64 << 20
SOCKETS = 100


class Way(NamedTuple):
    """A way to the program: its address, and what a browser sends there."""

    url: str
    headers: dict[str, str]

    def connect(self) -> http.client.HTTPConnection:
        """A kept connection."""
        return http.client.HTTPConnection("127.0.0.1", urlsplit(self.url).port or 80, timeout=60)

    def socket(self) -> served.Socket:
        """A WebSocket."""
        own = [f"{name}: {value}\r\n" for name, value in self.headers.items() if name != "Host"]
        return served.Socket(self.url, "".join(own))


def rows(set_up: Stage) -> Iterator[Row]:
    """In turn, so that a drift of the machine hits both ways."""
    process = set_up.service.named("svc-apps").pid
    idle = _private_mb(process)
    yield Row("memory that the process of apps adds, idle | bar", idle, 6, idle / 6, 1.0, "MB")
    direct, app = _ways(set_up)
    yield _median("app, GET on a kept connection | its port", app, direct, _gets, 0.5)
    yield _median("app, echo of a WebSocket | its port", app, direct, _echoes, 0.25)
    for name, send in (("from", False), ("to", True)):
        mine, other = [], []
        for _ in range(BULK_ROUNDS):
            mine.append(_rate(app, send))
            other.append(_rate(direct, send))
        ratio = statistics.median(one / two for one, two in zip(mine, other, strict=True))
        figures = statistics.median(mine), statistics.median(other), ratio
        yield Row(f"app, 64 MiB {name} the program | its port", *figures, None, "MB/s", higher_is_better=True)
    before = _private_mb(process)
    with ExitStack() as held:
        for _ in range(SOCKETS):
            one = held.enter_context(closing(app.socket()))
            one.echo(b"hello")
        grown = _private_mb(process) - before
    yield Row(f"memory of {SOCKETS} WebSockets of apps | bar", grown, 3, grown / 3, 1.0, "MB")


def _private_mb(pid: int) -> float:
    """What is the process's own: most of it is shared with the others of the app."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_")) / 1024


def _ways(set_up: Stage) -> tuple[Way, Way]:
    source: dict[str, object] = {
        "type": "registry",
        "image_ref": f"{set_up.registry}/{REPOSITORY}:{served.put(set_up.shelf)}",
    }
    ports = [{"name": "web", "container_port": 8888}]
    new_template(USER, set_up.env, NAME, source, ports=ports, launchers=[LAUNCHER])
    for arguments in (("setup", "--template", NAME, "--name", NAME), ("start", NAME)):
        must(run(USER, "ws", *arguments, env=set_up.env))
    (row,) = must(run(USER, "ws", "ports", NAME, "--json", env=set_up.env)).json()["items"]
    until(lambda: served.answers(row["url"]), 30, 0.1)
    link = must(run(USER, "ws", "open", NAME, "--link", "--path", "/lab", env=set_up.env)).out.strip()
    browser = Browser(link)
    if browser.follow(link).status != 200:
        raise RuntimeError("the link did not lead to the program")
    headers = {"Cookie": f"__Host-svc-app={browser.cookie}", "Origin": browser.origin}
    return Way(row["url"], {}), Way(f"{browser.origin}/", {"Host": browser.host, **headers})


def _median(name: str, app: Way, direct: Way, measure: Callable[[Way], Iterator[float]], slack: float) -> Row:
    """Medians of both ways, whose requests alternate; the bar is what the app may cost beside the port."""
    mine, other = measure(app), measure(direct)
    pairs = [(next(mine), next(other)) for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs[ROUNDS // 10 :], strict=True))
    return Row(name, ours, theirs, ours / theirs, 1.0, "ms", slack=slack)


def _gets(way: Way) -> Iterator[float]:
    """Milliseconds of each small GET."""
    with closing(way.connect()) as connection:
        while True:
            began = time.perf_counter()
            connection.request("GET", "/lab", headers=way.headers)
            connection.getresponse().read()
            yield (time.perf_counter() - began) * 1000


def _echoes(way: Way) -> Iterator[float]:
    """Milliseconds of each message there and back."""
    with closing(way.socket()) as one:
        while True:
            began = time.perf_counter()
            one.echo(b"x" * 64)
            yield (time.perf_counter() - began) * 1000


def _rate(way: Way, send: bool) -> float:
    """Megabytes a second of one body, sent to the program, or sent and returned."""
    body = bytes(BULK)
    with closing(way.connect()) as connection:
        began = time.perf_counter()
        connection.request("POST", "/echo", body, way.headers)
        answer = connection.getresponse()
        sent = time.perf_counter()
        received = len(answer.read())
        ended = time.perf_counter()
    if received != BULK:
        raise RuntimeError(f"only {received} bytes came back")
    return BULK / ((sent - began) if send else (ended - sent)) / 1e6
