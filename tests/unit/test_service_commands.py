"""Hints that start, stop or show the service name what this host has."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc import service_commands


@pytest.mark.parametrize("has_systemd", [False, True])
def test_systemctl_only_where_systemd_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_systemd: bool
) -> None:
    monkeypatch.setattr(service_commands, "SYSTEMD", str(tmp_path if has_systemd else tmp_path / "none"))
    found = (
        service_commands.start_command(),
        service_commands.stop_command("   (or end that process)"),
        service_commands.status_command("sudo svc server"),
    )
    assert found == (
        (
            "sudo systemctl start svc",
            "sudo systemctl stop svc   (or end that process)",
            "sudo systemctl status svc",
        )
        if has_systemd
        else ("sudo svc server", "stop that process first", "sudo svc server")
    )
