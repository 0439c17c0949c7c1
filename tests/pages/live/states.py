"""The states of a workspace's terminal, logs and monitor."""

from __future__ import annotations

from pages.canned import Canned
from pages.live.canned_logs import Log
from pages.live.canned_samples import STREAM, Samples, sample
from pages.live.canned_terminal import Terminals
from pages.states import State
from pages.workspace import records

TERMINAL = "/workspaces/train-7b/terminal"
NAMES = ["vim train.py", "nvidia-smi -l 1"]


def _shells(canned: Canned) -> None:
    records.serve(canned, records.of_the_mock_up())
    Terminals(canned, NAMES)


def _no_shell(canned: Canned) -> None:
    _shells(canned)
    canned.answers[f"GET {records.PATH}/terminals"] = {"items": [], "max": 8}
    canned.refuse(f"POST {records.PATH}/terminals", 409, "workspace_outdated", "it began before an upgrade")


def _unread(canned: Canned) -> None:
    _shells(canned)
    canned.refuse(f"GET {records.PATH}/terminals", 403, "owner_only", "only its owner may")


def _stopped(canned: Canned) -> None:
    records.serve(canned, records.of_the_mock_up(status="stopped", allowed_actions=["start", "logs"]))


def _gone(canned: Canned) -> None:
    _shells(canned)
    canned.refuse("POST /api/tickets", 503, "unavailable", "stopping", retryable=True)


LOGS, MONITOR = (f"/workspaces/train-7b/{name}" for name in ("logs", "monitor"))
LAUNCHERS = [
    {"name": name, "title": "", "port": None, "autostart": False, "url": None}
    for name in ("train", "tensorboard")
]


def _log(canned: Canned) -> Log:
    records.serve(canned, records.of_the_mock_up(launchers=LAUNCHERS))
    log = Log(canned)
    for step in range(40):
        log.write(f"step {41650 + step}  loss 2.1148  lr 2.31e-04  tok/s 48 896  mem 71.4 GiB\n")
    log.write("WARNING  rank 1: loader waited 4.2 s for shard 0311\n", stream="stderr")
    log.write("started at 14:31", kind="marker")
    return log


def _logs(canned: Canned) -> None:
    _log(canned)


def _log_that_ended(canned: Canned) -> None:
    _log(canned).end = "end"


def _empty_log(canned: Canned) -> None:
    _log(canned).lines.clear()


def _many_logs(canned: Canned) -> None:
    _log(canned)
    many = [LAUNCHERS[0] | {"name": f"launcher-{number}"} for number in range(9)]
    records.serve(canned, records.of_the_mock_up(launchers=many))


def _no_log(canned: Canned) -> None:
    _log(canned)
    canned.refuse(f"GET {records.PATH}/logs/stream", 404, "not_found", "no such launcher")


def _samples(canned: Canned) -> None:
    records.serve(canned, records.of_the_mock_up())
    Samples(canned, [sample(2 * at, cpu_percent=1820 + 40 * (at % 7)) for at in range(60)])


def _no_samples(canned: Canned) -> None:
    _samples(canned)
    canned.refuse(STREAM, 403, "owner_only", "only its owner may")


def _stopped_monitor(canned: Canned) -> None:
    _samples(canned)
    _stopped(canned)


FIND = """
const search = document.querySelector('[data-search]');
search.value = 'step';
search.dispatchEvent(new Event('input'));
"""

STATES: dict[str, State] = {
    "terminal": State(TERMINAL, "[data-status] .state.ok", _shells),
    "terminal, read aloud": State(
        TERMINAL, "[data-status] .state.ok", _shells, "document.querySelector('[data-reader]').click()"
    ),
    "terminal, closing": State(
        TERMINAL, "[data-status] .state.ok", _shells, "document.querySelector('[data-close]').click()"
    ),
    "terminal, refused": State(TERMINAL, ".notice[role=alert]", _no_shell),
    "terminal, unread": State(TERMINAL, ".notice", _unread),
    "terminal, stopped": State(TERMINAL, "[data-not-running]:not([hidden])", _stopped),
    "terminal, no connection": State(TERMINAL, "[data-in]", _gone),
    "logs": State(LOGS, ".out .err", _logs),
    "logs, with times": State(LOGS, ".out .err", _logs, "document.querySelector('[data-times]').click()"),
    "logs, found": State(LOGS, ".out .err", _logs, FIND),
    "logs, ended": State(LOGS, "[data-stream] .stopped", _log_that_ended),
    "logs, empty": State(LOGS, "[data-empty]:not([hidden])", _empty_log),
    "logs, many launchers": State(LOGS, "[data-sources] select", _many_logs),
    "logs, refused": State(LOGS, ".notice", _no_log),
    "monitor": State(MONITOR, "[data-charts] canvas", _samples),
    "monitor, as tables": State(
        MONITOR, "[data-charts] canvas", _samples, "document.querySelector('[data-tables]').click()"
    ),
    "monitor, refused": State(MONITOR, ".notice", _no_samples),
    "monitor, stopped": State(MONITOR, "[data-not-running]:not([hidden])", _stopped_monitor),
}
