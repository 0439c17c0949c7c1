"""Directories of other users, as the tests of svc.db have them."""

from __future__ import annotations

from unit.db.conftest import nobodys, place  # noqa: F401  (fixtures)
