"""`svc ws run` with the installed program: output, exit codes, and what is left of each end."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from e2e.installation import SVC, Call, Service
from e2e.registries import Gate
from e2e.surroundings import must, podman, template_of
from waiting import until

USER = "tse-alice"
Line = Callable[..., "subprocess.Popen[bytes]"]
Record = Callable[[str], dict[str, Any]]


@pytest.fixture
def line(service: Service, template: str) -> Iterator[Line]:
    """line(options, *command) begins a run of Alice's."""
    begun: list[subprocess.Popen[bytes]] = []

    def begin(options: str, *command: str) -> subprocess.Popen[bytes]:
        account = pwd.getpwnam(USER)
        process = subprocess.Popen(
            [SVC, "ws", "run", *([] if "--template" in options else ["--template", template]),
             *options.split(), "--", *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=account.pw_dir,
            env=service.env | {"HOME": account.pw_dir}, user=account.pw_uid, group=account.pw_gid,
            extra_groups=[],
        )  # fmt: skip
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def result(process: subprocess.Popen[bytes], content: bytes = b"") -> tuple[int, bytes, bytes]:
    out, err = process.communicate(content, timeout=120)
    return process.returncode, out, err


def names(alice: Call) -> list[str]:
    return [each["name"] for each in must(alice("ws", "list", "--json")).json()["items"]]


def containers() -> list[str]:
    """Alice's containers, by name."""
    return sorted(must(podman(USER, "ps", "--all", "--format", "{{.Names}}")).out.split())


def test_output_and_code_are_the_commands(line: Line, alice: Call) -> None:
    before, kept = names(alice), containers()
    script = "echo out; echo err >&2; echo $MODE; tr '\\0' '\\n' </proc/$$/environ | grep ^disc; exit 7"
    options = "--rm --quiet --env MODE=batch --env discovery.type=single-node"
    code, out, err = result(line(options, "sh", "-c", script))
    assert (code, out, err) == (7, b"out\nbatch\ndiscovery.type=single-node\n", b"err\n")
    code, out, err = result(line("--rm --quiet --json", "sh", "-c", script))
    record = json.loads(out)
    assert (code, record["exit_code"], record["status"]) == (7, 7, "stopped")
    assert sorted(err.splitlines()) == [b"", b"err", b"out"], "two pipes: conmon has them in any order"
    # One that is still there after the first moments, and a batch job that is not an error.
    code, out, _ = result(line("--rm", "sh", "-c", "sleep 1; printf end"))
    assert (code, out) == (0, b"end")
    assert names(alice) == before
    assert containers() == kept


def test_an_end_before_the_command_has_codes_of_its_own(line: Line, alice: Call) -> None:
    before = names(alice)
    for options, command, code in (
        ("--rm", "no-such-program", 127),
        ("--rm", "/etc/passwd", 126),
        ("--rm --gpu-count 63", "true", 125),
        ("--rm --name Bad_Name", "true", 125),
    ):
        found, out, err = result(line(options, command))
        assert (found, out) == (code, b""), err
        assert b"svc: " in err
    assert names(alice) == before


def test_bytes_both_ways(line: Line, alice: Call) -> None:
    before = names(alice)
    content = os.urandom(1 << 20)
    assert result(line("--rm -i --quiet", "cat"), content) == (0, content, b"")
    assert result(line("--rm -i", "sh", "-c", "cat >/dev/null; exit 9"), content)[0] == 9
    assert result(line("--rm -i", "no-such-program"))[0] == 127
    assert names(alice) == before


def test_a_run_that_stays_is_stopped_with_its_code(line: Line, alice: Call, record: Record) -> None:
    process = line("--name kept", "sh", "-c", "echo begun; sleep 300")
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    assert record("kept")["command"] == ["sh", "-c", "echo begun; sleep 300"]
    process.send_signal(signal.SIGINT)
    assert result(process)[0] == 130
    kept = record("kept")
    assert (kept["status"], kept["status_reason"]) == ("stopped", "user_requested")
    # Another command needs another container.
    refused = alice("ws", "edit", "kept", "--command", "exit 3", "--json")
    assert refused.json()["error"]["code"] == "replacement_required"
    must(alice("ws", "edit", "kept", "--command", "sleep 1; exit 3", "--replace-container"))
    must(alice("ws", "start", "kept"))
    assert alice("ws", "wait", "kept", "--exit-status").code == 3
    assert record("kept")["exit_code"] == 3
    must(alice("ws", "delete", "kept", "--yes"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(line: Line, alice: Call, number: signal.Signals) -> None:
    before = names(alice)
    process = line("--rm", "sh", "-c", "echo begun; exec sleep 300")
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(number)
    assert result(process)[0] == 128 + number
    assert names(alice) == before


@pytest.mark.usefixtures("policy")
def test_a_signal_during_the_set_up_cancels_it(line: Line, alice: Call, service: Service, gate: Gate) -> None:
    before = names(alice)
    template_of(USER, gate.address, service.env, "held")
    gate.hold_after(1)
    process = line("--rm --template held", "true")
    until(gate.holds, 60)
    process.send_signal(signal.SIGTERM)
    assert result(process)[:2] == (143, b"")
    newest = must(alice("operation", "list", "--json")).json()["items"][0]
    assert (newest["kind"], newest["status"]) == ("setup", "cancelled")
    assert names(alice) == before
    must(alice("template", "delete", "held", "--yes"))


def test_a_restart_of_the_service_ends_no_run(line: Line, service: Service) -> None:
    process = line("--rm --quiet", "sh", "-c", "echo begun; sleep 6; echo end; exit 5")
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    with service.stopped():
        pass
    assert result(process)[:2] == (5, b"end\n")
