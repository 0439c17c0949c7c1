"""What must be there before the app is started, and when it is ready."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from unit.forking import GROUP, ROLES, forked

from svc.errors import HostRefused
from svc.host.accounts import Accounts, Identity
from svc.host.owner import HARMLESS
from svc.server import seccomp
from svc.server.supervisor import _require_startable, both_ready
from svc.settings import Settings

ACCOUNTS = Accounts(
    64000, 64000, dict(zip(("unix", "tls", "worker"), ROLES[:3], strict=True)), Identity(ROLES[3], GROUP)
)


@pytest.mark.parametrize(
    ("received", "ready"),
    [(b"", False), (b"u", False), (b"t", False), (b"uu", False), (b"ut", True), (b"ttu", True)],
)
def test_one_listener_is_not_the_service(received: bytes, ready: bool) -> None:
    """Whichever is first, and however often it says so."""
    assert both_ready(received) is ready


def test_without_its_library_the_app_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parent would end at each start, and the supervisor would start it again for ever."""
    secret = tmp_path / "secret"
    secret.write_text("0" * 64 + "\n")
    secret.chmod(0o600)

    settings = Settings(
        flags={"SVC_DB": str(tmp_path / "svc.db")}, environ={"SVC_JWT_SECRET_FILE": str(secret)}, file={}
    )

    def refusal() -> list[str] | None:
        try:
            _require_startable(settings, ACCOUNTS)
        except HostRefused as error:
            return [error.message, error.hint]
        return None

    assert forked(refusal) is None
    monkeypatch.setattr(seccomp, "LIBRARY", "libseccomp.so.nowhere")
    message, hint = forked(refusal)
    assert "libseccomp.so.nowhere" in message
    assert hint == "install libseccomp2, then: sudo systemctl restart svc"
    assert HARMLESS.fullmatch(hint)
    secret.chmod(0o644)
    message, hint = forked(refusal)
    assert message.endswith("is readable by other users")
    assert hint == f"{'sudo ' if os.geteuid() == 0 else ''}svc admin doctor --repair --db {tmp_path}/svc.db"
