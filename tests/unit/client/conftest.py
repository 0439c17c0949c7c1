"""The service that answers from a table, as the commands have it."""

from __future__ import annotations

from unit.cli.conftest import plain_settings, service, svc  # noqa: F401  (fixtures)
