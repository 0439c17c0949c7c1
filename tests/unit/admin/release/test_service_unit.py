"""The unit, by a `systemctl` that keeps its state in a file, and the health of what answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.admin.packages import PROGRAMS, Place

from svc.admin.release import service_unit
from svc.errors import HostRefused

pytestmark = pytest.mark.allow_commands(*PROGRAMS)


def test_a_failed_service_counts_as_one_that_should_run(place: Place) -> None:
    state = place.path / "unit-state"
    for text, expected in (("active", True), ("failed", True), ("activating", True), ("inactive", False)):
        state.write_text(text)
        assert service_unit.is_running() is expected, text
    (place.path / "was-active").touch()
    assert service_unit.is_running(), "the package's scripts stopped it for an upgrade that failed"
    service_unit.forget_upgrade()
    assert not service_unit.is_running()


def test_it_is_stopped_and_started(place: Place) -> None:
    service_unit.stop()
    assert not service_unit.is_running()
    service_unit.start()
    assert service_unit.is_running()
    assert place.calls == [
        "systemctl stop svc.service",
        "systemctl daemon-reload",
        "systemctl reset-failed svc.service",
        "systemctl start --no-block svc.service",
    ]


def test_without_systemd(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_unit, "SYSTEMD", "/nowhere")
    assert not service_unit.is_running()
    service_unit.stop()
    assert not place.calls


def test_its_health(place: Place, tmp_path: Path) -> None:
    socket = str(tmp_path / "run" / "svc.sock")
    service_unit.require_healthy(socket)
    (place.path / "sick").write_text("1")
    with pytest.raises(HostRefused, match="was not healthy within 0 s: status failing"):
        service_unit.require_healthy(socket)
    with pytest.raises(HostRefused, match="was not healthy"):
        service_unit.require_healthy(str(tmp_path / "none.sock"))
