"""A template's parts in few words, whatever the service sends."""

from __future__ import annotations

from typing import Any

import pytest

from svc.cli.template import columns

FINDINGS = [
    {"code": "ports", "message": "maps the ports web (80)", "diff": None},
    {"code": "refused", "message": "one", "diff": None},
    {"code": "refused", "message": "two", "diff": None},
]


@pytest.mark.parametrize(
    ("column", "value", "printed"),
    [
        (columns.variables, [{"name": "A", "value": "1"}, {"name": "B", "value": ""}], "A=1, B="),
        (
            columns.variables,
            [{"name": "K", "value": None, "secret": True, "is_set": True}, {"name": "N", "secret": True}],
            "K (secret), N (secret, not set)",
        ),
        (
            columns.launchers,
            [
                {"name": "lab", "command": ["jupyter", "lab"], "port": "web", "autostart": True},
                {"name": "sh", "command": ["sh"], "port": None, "autostart": False},
            ],
            "lab: jupyter lab (port web, autostart), sh: sh",
        ),
        (columns.ports, [{"name": "web", "container_port": 8888}], "web 8888"),
        (
            columns.mounts,
            [{"root": "data", "path": "/data", "read_only": True}, {"root": "tmp", "path": "/t"}],
            "data at /data (read-only), tmp at /t",
        ),
        (
            columns.needs,
            {
                "min_cuda": "12.4",
                "min_vram_bytes": 2**34,
                "min_compute_capability": "8.0",
                "allow_shared": True,
            },
            "CUDA 12.4, 16.0 GiB, compute capability 8.0, may be shared",
        ),
        (columns.needs, {"min_cuda": None, "allow_shared": False}, "-"),
        (columns.idle, {"action": "stop", "after_minutes": 60}, "stop after 60 minutes"),
        (columns.idle, {"action": "none", "after_minutes": None}, "-"),
        (columns.codes, FINDINGS, "ports, refused"),
        (columns.findings, FINDINGS, "ports, refused"),
    ],
)
def test_what_people_see(column: Any, value: Any, printed: str) -> None:
    assert column(value, True) == printed


def test_programs_get_the_words_too() -> None:
    assert columns.findings(FINDINGS, False) == "ports: maps the ports web (80); refused: one; refused: two"
    assert columns.ports([], False) == columns.needs({}, False) == columns.findings([], False) == ""


@pytest.mark.parametrize(
    "value", [None, "x", 7, [None], [[]], [{"name": {"a": [1]}}], {"a": 1}, [{"command": 7}]]
)
def test_an_answer_that_is_not_ours_is_no_traceback(value: Any) -> None:
    for name in ("variables", "launchers", "ports", "mounts", "needs", "idle", "codes", "findings"):
        for human in (True, False):
            assert isinstance(getattr(columns, name)(value, human), str)
