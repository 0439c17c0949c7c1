"""Which of what was seen is offered."""

from __future__ import annotations

from typing import Any

import pytest

from svc.admin.release.installation import Installed
from svc.admin.release.status import available

SEEN = {"version": "0.2.0", "commit": "b" * 40}


@pytest.mark.allow_commands("dpkg")
@pytest.mark.parametrize(
    ("seen", "version", "commit", "expected"),
    [
        (None, "0.1.0", "a" * 40, ""),
        (SEEN, "0.1.0", "a" * 40, "0.2.0"),
        (SEEN, "0.1.0", "b" * 40, ""),  # it is installed, whatever it is called
        (SEEN, "0.2.0", "a" * 40, ""),
        (SEEN, "0.10.0", "a" * 40, ""),
        (SEEN, "", "a" * 40, "0.2.0"),  # a checkout has no version
    ],
)
def test_what_is_available(seen: dict[str, Any] | None, version: str, commit: str, expected: str) -> None:
    by = "package" if version else "checkout"
    assert available(seen, Installed(by, "/usr/lib/svc", version, commit, "debian-12", "amd64")) == expected
