"""How `svc ws get` prints what a workspace has."""

from __future__ import annotations

from typing import Any

import pytest

from svc.cli.ws.fields import FIELDS
from svc.commandline import output

RECORD: dict[str, Any] = {
    "name": "demo",
    "limits_missing": ["memory_bytes"],
    "resources": {"memory_bytes": 2**30},
    "gpus": [{"uuid": "GPU-1", "mode": "exclusive"}, {"uuid": "GPU-2", "mode": "shared"}],
    "launchers": [
        {"name": "lab", "title": "Lab", "port": "web", "autostart": True},
        {"name": "job", "title": "", "port": None, "autostart": False},
    ],
    "ports": [{"name": "web", "container_port": 8888, "connect": "ssh -p 20001 root@127.0.0.1"}],
    "idle": {"since": None, "keep_until": None, "action": "stop", "after_minutes": 60},
    "restart_on_boot": True,
}


def printed(record: Any, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    output.details(FIELDS, record)
    return dict(line.split("\t") for line in capsys.readouterr().out.splitlines())


def test_each_part_in_few_words(capsys: pytest.CaptureFixture[str]) -> None:
    fields = printed(RECORD, capsys)
    assert fields["gpus"] == "GPU-1 (exclusive), GPU-2 (shared)"
    assert fields["launchers"] == "lab (port web, autostart), job"
    assert fields["ports"] == "web 8888 at ssh -p 20001 root@127.0.0.1"
    assert fields["idle_policy"] == "stop after 60 minutes"
    assert (fields["limits_missing"], fields["memory"]) == ("memory_bytes", str(2**30))
    assert fields["restart_on_boot"] == "true"


@pytest.mark.parametrize("record", [{}, None, {"gpus": 5, "ports": [None], "launchers": {}, "idle": "x"}])
def test_an_answer_of_another_shape_is_no_crash(record: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(record, capsys)["idle_policy"] == ""
