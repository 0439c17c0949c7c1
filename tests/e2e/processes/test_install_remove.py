"""`packaging/install` leaves settings that were changed, and what another svc on the host needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.installation import PREFIX, ROOT
from e2e.processes.host_copies import copied

KEYS = "/var/cache/svc-tests"
INSTALL = (
    f"{ROOT}/packaging/install", "--prefix", str(PREFIX), "--license-keys", f"{KEYS}/license-keys",
    "--release-keys", f"{KEYS}/release-keys",
)  # fmt: skip
SETTINGS = ("/etc/pam.d/svc", "/etc/logrotate.d/svc")
REMOVE = f"{ROOT}/packaging/install --prefix /opt/none --remove; [ ! -e /etc/pam.d/svc ] || echo it is there"
OTHER = "(exec -a 'python3 -m svc_helper.root.__main__' sleep 60) >/dev/null 2>&1 & sleep 0.1;"


@pytest.mark.parametrize("other", [False, True])
def test_the_pam_service_stays_for_another_svc(tmp_path: Path, other: bool) -> None:
    """Without it PAM refuses every account of a service that goes on, at once."""
    with copied(tmp_path) as host:
        said = host("bash", "-ec", (OTHER if other else "") + REMOVE)
    assert ("it is there" in said.splitlines()) is other
    assert ("/etc/pam.d/svc stays" in said) is other
    assert Path("/etc/pam.d/svc").exists()


def test_settings_that_were_changed_stay(tmp_path: Path) -> None:
    """Others become those of this version, also where the version before had different ones."""
    with copied(tmp_path) as host:
        host(*INSTALL)
        contents = [host("cat", path) for path in SETTINGS]
        for path in SETTINGS:
            host(
                "sed",
                "-i",
                "1i # as the version before had it",
                path,
                f"{PREFIX}/.settings{path.replace('/', '-')}",
            )
        assert "stays as this host has changed it" not in host(*INSTALL)
        assert [host("cat", path) for path in SETTINGS] == contents
        for path in SETTINGS:
            host("sed", "-i", "1i # ours", path)
        assert host(*INSTALL).count("stays as this host has changed it") == 2
        assert [host("head", "-n", "1", path) for path in SETTINGS] == ["# ours\n"] * 2
