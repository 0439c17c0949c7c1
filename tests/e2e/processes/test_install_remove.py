"""What `packaging/install --remove` leaves: a file that another svc on the host needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.installation import ROOT
from e2e.processes.host_copies import copied

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
