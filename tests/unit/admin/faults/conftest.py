"""A database, its snapshot and an installed program, as the tests of backups have them."""

from __future__ import annotations

from unit.admin.backup.conftest import (  # noqa: F401  (fixtures)
    folder,
    place,
    recovery,
    serve,
    snapshot,
)
