"""What of a record is not as it was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from svc.cli.existing import differences


@pytest.mark.parametrize(
    ("requested", "present", "found"),
    [
        ({}, {"name": "demo"}, []),
        ({"name": "demo", "cpu": 4}, {"name": "demo", "cpu": 4.0, "memory": 1}, []),
        ({"source": {"type": "registry"}}, {"source": {"type": "dockerfile"}}, ["source.type"]),
        ({"gpu": {"a": 1}}, {"gpu": None}, ["gpu"]),
        ({"run_as": None}, {}, []),
        ({"env": [{"name": "A"}]}, {"env": [{"name": "A", "value": "1"}]}, []),
        ({"env": [{"name": "A"}, {"name": "B"}]}, {"env": [{"name": "C"}, {"name": "D"}]}, ["env"]),
        ({"ports": [1]}, {"ports": [1, 2]}, ["ports"]),
        ({"on": True, "off": 0}, {"on": 1, "off": False}, ["on", "off"]),
    ],
)
def test_differences(requested: Any, present: Any, found: list[str]) -> None:
    assert differences(requested, present) == found
