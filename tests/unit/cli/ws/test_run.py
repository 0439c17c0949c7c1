"""`svc ws run`: what it asks of the service, its exit codes, and what it says of what is left."""

from __future__ import annotations

import errno
import json
import os
import signal
from typing import Any

import pytest
from fake_service import Service, Svc

from svc.cli.ws import exec as exec_command
from svc.cli.ws import piping

SETUP, START = "POST /api/workspaces/setup", "POST /api/workspaces/ws-1/start"
ONE, DELETE = "GET /api/workspaces/ws-1", "DELETE /api/workspaces/ws-1"
WATCH, STREAM = "GET /api/operations/op-1", "GET /api/workspaces/ws-1/logs/stream"
LINE = ("ws", "run", "--template", "python", "--name", "job")
ENDED = b"event: end\ndata: {}\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def operation(status: str, **more: Any) -> dict[str, Any]:
    subject = {"type": "workspace", "id": "ws-1", "name": "job"}
    return {"id": "op-1", "kind": "setup", "subject": subject, "status": status, "phase": "pulling",
            "progress": {}, **more}  # fmt: skip


def record(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "ws-1", "name": "job", "status": status, "status_reason": "container_exited", **more}


@pytest.fixture
def ready(service: Service) -> Service:
    """A service that sets it up, and whose command ends with 5."""
    service.answer(SETUP, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("succeeded", result={"workspace_id": "ws-1"}))
    service.answer(START, record("running"))
    service.raw(STREAM, HEAD + ENDED)
    service.answer(ONE, record("running"), record("stopped", exit_code=5))
    service.answer(DELETE, None, status=204)
    return service


def test_from_the_set_up_to_the_deletion(ready: Service, svc: Svc) -> None:
    done = svc(*LINE, "--rm", "--quiet", "--memory", "1g", "--", "train", "--rm")
    assert done == (5, "", "")
    assert ready.requests[0].json == {
        "name": "job", "template": "python", "resources": {"memory_bytes": 2**30},
        "command": ["train", "--rm"], "delete_when_stopped": True,
    }  # fmt: skip
    assert ready.sent[-1] == DELETE


def test_a_lost_answer_deletes_nothing_of_a_given_name(service: Service, svc: Svc) -> None:
    """A workspace of that name may be older than the run; one of a random name can only be its own."""
    service.raw(SETUP, b"")
    done = svc(*LINE, "--rm", "--", "train")
    assert (done.code, [each for each in service.sent if each.startswith("DELETE")]) == (125, [])
    assert "svc: whether job was created is not known: svc ws get job\n" in done.err
    service.raw(SETUP, b"")
    svc("ws", "run", "--template", "python", "--rm", "--", "train")
    assert service.sent[-1].startswith("DELETE /api/workspaces/run-")


def test_a_service_that_is_not_there_has_begun_nothing(svc: Svc) -> None:
    done = svc("ws", "run", "--template", "python", "--rm", "--", "train")
    assert (done.code, done.out) == (1, "")
    message, hint = done.err.splitlines()
    assert message.startswith("svc: cannot connect to the service: ")
    assert hint.startswith("hint: ") and "run-" not in done.err
    named = svc(*LINE, "--json", "--", "train")
    assert (named.code, json.loads(named.out)["error"]["code"]) == (1, "unreachable")
    assert "job" not in named.err


def test_without_rm_it_stays(ready: Service, svc: Svc) -> None:
    done = svc(*LINE, "--", "train")
    assert (done.code, DELETE in ready.sent) == (5, False)
    assert "delete_when_stopped" not in ready.requests[0].json
    assert done.err.endswith("svc: job stays; to delete it: svc ws delete job --yes\n")


def test_the_record_as_json(ready: Service, svc: Svc) -> None:
    done = svc(*LINE, "--rm", "--json", "--quiet", "--", "train")
    assert (done.code, json.loads(done.out)["exit_code"]) == (5, 5)


def test_without_a_name_it_gets_one(service: Service, svc: Svc) -> None:
    service.refuse(SETUP, 404, "not_found", "no template python")
    for _ in range(2):
        assert svc("ws", "run", "--template", "python", "--rm", "--", "true").code == 125
    first, second = (request.json["name"] for request in service.requests)
    assert first.startswith("run-") and len(first) == 12 and first != second


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("command_not_found", 127), ("command_not_executable", 126), ("gpu_unavailable", 125)],
)
def test_what_did_not_begin_is_deleted(service: Service, svc: Svc, code: str, exit_code: int) -> None:
    service.answer(SETUP, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("succeeded", result={"workspace_id": "ws-1"}))
    service.refuse(START, 409, code, "it cannot")
    service.answer(DELETE, None, status=204)
    done = svc(*LINE, "--rm", "--quiet", "--", "train")
    assert (done.code, done.out, done.err.splitlines()[0]) == (exit_code, "", "svc: it cannot")
    assert service.sent[-1] == DELETE


def test_a_set_up_that_fails_leaves_nothing(service: Service, svc: Svc) -> None:
    service.answer(SETUP, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("failed", error={"code": "engine_error", "message": "no disk"}))
    assert svc(*LINE, "--rm", "--quiet", "--", "train") == (125, "", "svc: no disk\n")
    assert set(service.sent) == {SETUP, WATCH}


def test_a_set_up_that_cannot_be_watched_is_cancelled(service: Service, svc: Svc) -> None:
    service.answer(SETUP, {"operation": operation("queued")}, status=202)
    service.refuse(WATCH, 403, "account_disabled", "the account is disabled")
    service.refuse(WATCH, 403, "account_disabled", "the account is disabled")
    service.answer(WATCH, operation("cancelled"))
    service.answer("POST /api/operations/op-1/cancel", operation("running"))
    service.answer(DELETE, None, status=204)
    assert svc(*LINE, "--rm", "--quiet", "--", "train") == (125, "", "svc: the account is disabled\n")
    assert service.sent[-3:] == ["POST /api/operations/op-1/cancel", WATCH, DELETE]


def test_input_that_is_not_passed_on_is_noted(
    ready: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_command, "_has_input", lambda: True)
    err = svc(*LINE, "--quiet", "--rm", "--", "train").err
    assert err.endswith("the command's own is empty\nhint: svc ws run --help  # -i passes it on\n")


def test_one_that_ends_at_once_is_no_error_of_svc(ready: Service, svc: Svc) -> None:
    ready.replies[START].clear()
    ready.refuse(START, 422, "exited_at_once", "job has exited at once", details={"exit_code": 5})
    assert svc(*LINE, "--rm", "--quiet", "--", "false") == (5, "", "")


def test_what_cannot_be_deleted_is_named(ready: Service, svc: Svc) -> None:
    ready.replies[DELETE].clear()
    ready.refuse(DELETE, 502, "engine_error", "Podman does not answer")
    done = svc(*LINE, "--rm", "--quiet", "--", "train")
    assert done.code == 5
    assert done.err == (
        "svc: Podman does not answer\nsvc: job may still be there; to end that: svc ws delete job --yes\n"
    )


def test_a_signal_cancels_the_set_up(service: Service, svc: Svc) -> None:
    service.answer(SETUP, {"operation": operation("queued")}, status=202)

    def interrupt(connection: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        body = json.dumps(operation("running")).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    service.raw(WATCH, interrupt)
    service.answer(WATCH, operation("cancelled"))
    service.answer("POST /api/operations/op-1/cancel", operation("running"))
    service.refuse(DELETE, 404, "not_found", "no workspace ws-1")
    before = signal.getsignal(signal.SIGTERM)
    assert svc(*LINE, "--rm", "--quiet", "--", "train") == (143, "", "")
    assert service.sent[-3:] == ["POST /api/operations/op-1/cancel", WATCH, DELETE]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--rm"], "the command is written after --"),
        (["--rm", "--"], "no command after --"),
        (["-i", "--json", "--", "cat"], "-i passes the output on as it comes, --json prints a record"),
    ],
)
def test_usage(svc: Svc, line: list[str], message: str) -> None:
    done = svc(*LINE, *line)
    assert (done.code, message in done.err) == (2, True)


@pytest.mark.parametrize("options", [["--rm"], []])
def test_output_that_cannot_be_written_leaves_nothing_running(
    ready: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """As `svc ws run ... > file` on a full disk."""
    piece = b'event: log\ndata: {"stream": "stdout", "text": "epoch 1"}\n\n'
    ready.replies[STREAM].clear()
    ready.raw(STREAM, HEAD + piece + ENDED)
    ready.answer("POST /api/workspaces/ws-1/stop", record("stopped"))

    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(piping, "write", full)
    done = svc(*LINE, "--quiet", *options, "--", "train")
    assert (done.code, done.err) == (1, "svc: No space left on device\n")
    assert ready.sent[-1] == (DELETE if options else "POST /api/workspaces/ws-1/stop")


def test_what_has_taken_its_name_is_another_workspace(ready: Service, svc: Svc) -> None:
    """Deleted meanwhile, and its name given to another one: that one is neither waited for nor deleted."""
    ready.replies[ONE].clear()
    ready.refuse(ONE, 404, "not_found", "no workspace ws-1")
    ready.refuse(DELETE, 404, "not_found", "no workspace ws-1")
    done = svc(*LINE, "--rm", "--quiet", "--", "train")
    assert (done.code, done.err) == (125, "svc: no workspace ws-1\n")
    assert not [sent for sent in ready.sent if sent.startswith("DELETE /api/workspaces/job")]
