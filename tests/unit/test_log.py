"""One line for each message, and no token's secret in any."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from svc.log import log, redacted

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
