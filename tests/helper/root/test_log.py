"""Root's log: JSON, ASCII, one line, whatever a name held."""

from __future__ import annotations

import json
import os

import pytest

from svc_helper.root.log import log


def test_a_line_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    log("call", "error", user="a\n\x1b[2J\u202e\x9b", ms=1.5)
    text = capfd.readouterr().err
    assert text.isascii()
    assert text.count("\n") == 1
    assert text.rstrip("\n").isprintable()
    said = json.loads(text)
    assert (said["level"], said["process"], said["message"], said["ms"]) == ("error", "helper", "call", 1.5)
    assert said["user"] == "a\n\x1b[2J\u202e\x9b"


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    kept = os.dup(2)
    os.close(2)
    try:
        log("call")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
