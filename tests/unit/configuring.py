"""The domain's configuration in tests: each test begins with the defaults and a secret that is nobody's."""

from __future__ import annotations

from typing import Any

from svc.domain import configuration

SECRET = b"0123456789abcdef0123456789abcdef"


def configured(**changes: Any) -> None:
    """Put these values in force for the rest of the test, beside those in force."""
    configuration.current = configuration.current._replace(**changes)
