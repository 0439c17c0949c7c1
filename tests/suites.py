"""Suites that cannot run here are skipped as a whole, with the command that can run them."""

from __future__ import annotations

import pytest


def skip(items: list[pytest.Item], suite: str, reason: str) -> None:
    """Skip the collected tests of a suite."""
    for item in items:
        if suite in item.path.parts:
            item.add_marker(pytest.mark.skip(reason=reason))
