"""A database, its snapshot and their directories, as the tests of backups have them."""

from __future__ import annotations

from unit.admin.backup.conftest import folder, recovery, snapshot  # noqa: F401  (fixtures)
from unit.admin.backup.test_host_files import settings  # noqa: F401  (a fixture)
