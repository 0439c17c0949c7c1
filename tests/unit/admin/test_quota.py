"""`svc admin quota`: policies that are made, changed and deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest


def limits(svc: Any, name: str) -> dict[str, Any]:
    """The policy as `quota list --json` has it."""
    rows = json.loads(svc("quota", "list", "--json")[1])["items"]
    return next(dict(row) for row in rows if row["name"] == name)


def test_only_named_limits_change(svc: Any, database: str) -> None:
    code, out, err = svc("quota", "set", "lab", "--gpus", "2", "--memory", "1.5g", "--cpu", "0")
    assert code == 0 and "running unlimited, gpus 2, cpu 0, memory 1.5 GiB" in out
    assert "sudo svc admin edit-user NAME --quota lab" in err
    assert svc("quota", "set", "lab", "--gpus", "unlimited", "--workspaces", "3")[0] == 0
    lab = limits(svc, "lab")
    assert (lab["max_gpus"], lab["max_memory_bytes"], lab["max_workspaces"], lab["users"]) == (
        None, 3 << 29, 3, 0,
    )  # fmt: skip
    assert svc("quota", "delete", "lab", "--yes")[0] == 0
    code, _, err = svc("quota", "delete", "lab", "--yes")
    assert (code, err) == (1, "svc: there is no quota lab\nhint: sudo svc admin quota list\n")


def test_the_next_command_is_of_the_same_database(svc: Any, database: str) -> None:
    _, _, err = svc("quota", "set", "lab", "--gpus", "2", "--db", database)
    assert f"sudo svc admin edit-user NAME --quota lab --db {database}\n" in err
    _, _, err = svc("quota", "delete", "lab", "--db", database)
    assert f"sudo svc admin quota delete lab --db {database}" in err


@pytest.mark.parametrize(
    ("line", "exit_code", "says"),
    [
        ("set lab", 2, "name at least one limit"),
        ("set lab --gpus two", 2, "whole number"),
        ("set lab --memory 2000000t", 2, "whole number"),
        ("set Lab --gpus 2", 1, "a-z, 0-9"),
        ("delete default --yes", 1, "cannot be deleted"),
        ("delete lab", 1, "needs --yes"),
    ],
)
def test_what_is_refused(svc: Any, database: str, line: str, exit_code: int, says: str) -> None:
    code, _, err = svc("quota", *line.split())
    assert code == exit_code and says in err
