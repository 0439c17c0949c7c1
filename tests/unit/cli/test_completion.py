"""What the shells' completion asks for: quick, silent, and nothing that a terminal would obey."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_service import Service, Svc

from svc.cli import completion
from svc_helper.wire.limits import FILES_LISTED_MAX

WORKSPACES = "GET /api/workspaces?limit=200"


def named(*names: object) -> dict[str, object]:
    """A page of a list."""
    return {"items": [{"name": name} for name in names]}


def listing(path: str) -> str:
    """The request for the entries of a directory of the root `work`."""
    return f"GET /api/fs/work/list?limit={FILES_LISTED_MAX}&path={path}"


@pytest.mark.parametrize(
    ("kind", "path"),
    [("workspace", "/api/workspaces"), ("template", "/api/templates"), ("token", "/api/tokens")],
)
def test_names_that_begin_so(service: Service, svc: Svc, kind: str, path: str) -> None:
    service.answer(f"GET {path}?limit=200", named("lab", "paper", "paper-2"))
    assert svc("__complete", kind, "pa") == (0, "paper\npaper-2\n", "")
    assert svc("__complete", kind).out == "lab\npaper\npaper-2\n"


def test_operations_have_ids(service: Service, svc: Svc) -> None:
    service.answer("GET /api/operations?limit=200", {"items": [{"id": "op-1"}, {"id": "op-2"}]})
    assert svc("__complete", "operation", "op-").out == "op-1\nop-2\n"


def test_terminals_of_running_workspaces(service: Service, svc: Svc) -> None:
    found = [("ws-1", "running"), ("ws-2", "stopped"), ("ws-3", "running")]
    service.answer(WORKSPACES, {"items": [{"id": ref, "status": status} for ref, status in found]})
    for number in (1, 3):
        path = f"GET /api/workspaces/ws-{number}/terminals"
        service.answer(path, {"items": [{"id": f"t-{number}"}, {"id": f"x-{number}"}]})
    assert svc("__complete", "terminal", "t-").out == "t-1\nt-3\n"


def test_all_pages_of_a_list(service: Service, svc: Svc) -> None:
    service.answer(WORKSPACES, named("a") | {"next_offset": 200})
    service.answer(f"{WORKSPACES}&offset=200", named("b") | {"next_offset": 200})
    assert svc("__complete", "workspace").out == "a\nb\n"


def test_a_name_that_is_no_word_is_left_out(service: Service, svc: Svc) -> None:
    service.answer(
        WORKSPACES, named("-rf", "new\nline", "bell\a", "\u202e", "", None, 7, "$(id)", "a b", "ok")
    )
    assert svc("__complete", "workspace").out == "$(id)\na b\nok\n"  # the shells quote these


@pytest.mark.parametrize("body", [{}, {"items": 7}, {"items": [None, 7, "x", {}]}, [1], None])
def test_an_odd_answer_is_none(service: Service, svc: Svc, body: object) -> None:
    service.answer(WORKSPACES, body)
    assert svc("__complete", "workspace") == (0, "", "")


@pytest.mark.parametrize("line", ["", "workspace", "template x", "path work/", "bogus", "workspace a b c"])
def test_without_a_service_nothing_is_said(svc: Svc, line: str) -> None:
    assert svc("__complete", *line.split()) == (0, "", "")


def test_a_refusal_is_silent(service: Service, svc: Svc) -> None:
    service.refuse(WORKSPACES, 403, "no_account", "no service account")
    assert svc("__complete", "workspace") == (0, "", "")


def test_file_roots_are_those_of_the_settings(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request: the agent, which would be asked for their sizes, may have to be started first."""
    monkeypatch.setenv("SVC_FILE_ROOTS", "work=%h/work,models=/srv/models:ro")
    assert svc("__complete", "path", "").out == "work/\nmodels/\n"
    assert svc("__complete", "path", "mo").out == "models/\n"
    monkeypatch.setenv("SVC_FILE_ROOTS", "none")
    assert svc("__complete", "path", "") == (0, "", "")


def test_entries_of_the_typed_directory(service: Service, svc: Svc) -> None:
    entries = [
        {"name": "data", "type": "directory"},
        {"name": "data.csv", "type": "file"},
        {"name": "dat\\xff", "type": "file", "utf8": False},
        {"name": "notes", "type": "file"},
        {"type": "file"},
        None,
    ]
    service.answer(listing(""), {"items": entries})
    service.answer(listing("a%20b%2Fc"), {"items": [{"name": "it's", "type": "file"}]})
    assert svc("__complete", "path", "work/da").out == "work/data/\nwork/data.csv\n"
    assert svc("__complete", "path", "work/a b/c/").out == "work/a b/c/it's\n"
    assert svc("__complete", "path", "other/x") == (0, "", "")


@pytest.fixture
def deaf(tmp_path: Path) -> Iterator[Callable[[int], None]]:
    """A socket on which nobody answers; its function fills so many places of its queue."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "svc.sock"))
    listener.listen(0)
    waiting: list[socket.socket] = []

    def fill(places: int) -> None:
        for _ in range(places):
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].connect(str(tmp_path / "svc.sock"))

    yield fill
    for each in (*waiting, listener):
        each.close()


@pytest.mark.parametrize("queued", [0, 1], ids=["no answer", "no place in the queue"])
def test_it_gives_up_soon(
    deaf: Callable[[int], None], svc: Svc, monkeypatch: pytest.MonkeyPatch, queued: int
) -> None:
    monkeypatch.setattr(completion, "WAIT_S", 0.2)
    deaf(queued)
    began = time.monotonic()
    assert svc("__complete", "workspace") == (0, "", "")
    assert 0.1 < time.monotonic() - began < 2  # 5 s for a place, with any other command
