"""One line for each message, and no token's secret in any."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from svc import log as module
from svc.log import BURST, BYTES_A_SECOND, PATH_MAX, RESERVED, Counted, log, redacted, shortened

SECRET = "Ab1" * 14 + "Z" + "000000"
TOKEN = f"svc_pat_{SECRET}"


def said(capfd: pytest.CaptureFixture[str], *arguments: str, **facts: Any) -> Any:
    log(*arguments, **facts)
    [line] = capfd.readouterr().err.splitlines()
    return json.loads(line)


def test_a_line_is_json_whatever_was_said(capfd: pytest.CaptureFixture[str]) -> None:
    line = said(capfd, "web", "a\n\x1b[31mline", path="/x\r\ny", error=ValueError("no"))
    assert (line["process"], line["level"], line["message"]) == ("web", "info", "a\n\x1b[31mline")
    assert (line["path"], line["error"]) == ("/x\r\ny", "no")
    assert line["at"].endswith("Z")


@pytest.mark.parametrize(
    "text",
    [TOKEN, f"GET /{TOKEN} HTTP/9.9", f"b'{TOKEN}'", f"a{TOKEN},{TOKEN}", TOKEN.lower(), TOKEN.upper(),
     TOKEN.replace("_", "%5F"), TOKEN.replace("_", "%5f"), TOKEN[:20], TOKEN + "x" * 100],
)  # fmt: skip
def test_a_tokens_secret_is_not_said(capfd: pytest.CaptureFixture[str], text: str) -> None:
    line = said(capfd, "web", text, facts={"list": [text]}, **{text: 1})
    for part in (SECRET[4:12], SECRET[4:12].lower(), SECRET[4:12].upper(), SECRET[-12:]):
        assert part not in json.dumps(line)
    assert line["message"].count("[redacted]") == text.lower().count("pat")


def test_a_tickets_secret_is_not_said() -> None:
    assert (
        redacted(f"GET /x?ticket=svc_tkt_{'ab12' * 16} HTTP/9.9")
        == "GET /x?ticket=svc_tkt_ab12[redacted] HTTP/9.9"
    )


@pytest.mark.parametrize(
    "text", ["", "a path of svc", "svc_pat_", "svc_pat_Ab1A", "svc_pattern", "svc_pat_ Ab1Ab1Ab1", "état"]
)
def test_all_else_is_left_alone(text: str) -> None:
    assert redacted(text) == text


def test_a_full_disk_under_the_log_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    full = open("/dev/full", "w")  # noqa: SIM115  closing it would fail as well
    monkeypatch.setattr("sys.stderr", full)
    log("test", "a line that finds no room")
    monkeypatch.undo()
    with contextlib.suppress(OSError):
        full.close()


def test_who_sends_many_does_not_fill_the_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Counted("tls", "malformed request", 5)
    for number in range(100):
        lines.write("warning", number=number)
    monkeypatch.setattr(module.time, "monotonic", lambda: lines.began + 2)
    lines.write("warning", number="later")
    written = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert len(written) == 5 + 2
    assert written[-2]["count"] == 100 - 5
    assert written[-1]["number"] == "later"


def test_a_path_in_the_log_is_short_and_printable() -> None:
    assert shortened("/api/workspaces/état") == "/api/workspaces/état"
    assert shortened("/\x01\x9b" * 4000) == "/??" * 66 + "/?..."
    assert len(shortened("x" * 8000)) == PATH_MAX + 3


def test_a_process_writes_so_many_bytes_and_keeps_room_for_what_is_wrong(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """486 requests a second with 8 KB of control characters wrote 2.4 MB a second."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module, "_budget", None)
    module.bound()
    for _ in range(50 * 50):
        now[0] += 0.02
        log("tls", "request", path="/" + "x" * 2000)
    written = len(capfd.readouterr().err)
    assert 40 * BYTES_A_SECOND < written < BURST - RESERVED + 51 * BYTES_A_SECOND
    now[0] += 1
    log("tls", "unexpected exception", "error")
    left_out, error = (json.loads(line) for line in capfd.readouterr().err.splitlines())
    assert left_out["message"] == "lines left out"
    assert left_out["count"] > 10
    assert error["message"] == "unexpected exception"
