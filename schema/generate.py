"""Write schema/current.sql: the schema after all migrations.

    python -m schema.generate            writes it
    python -m schema.generate --check    checks that it is up to date

For reading only: the migrations define the schema, and a test compares.
"""

from __future__ import annotations

import os
import sqlite3
import sys

from svc.db import migrate

HEADER = "-- Generated from schema/migrations by schema/generate.py; do not edit.\n"
TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "current.sql")


def current() -> str:
    """The statements of a freshly migrated database, tables before indexes, each by name."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate.apply(connection)
    rows = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
        " ORDER BY type <> 'table', type, name"
    )
    statements = [row[0] for row in rows]
    connection.close()
    return HEADER + "".join(f"\n{statement};\n" for statement in statements)


def main() -> int:
    """Write the file, or with --check compare it; returns the exit code."""
    text = current()
    if "--check" in sys.argv[1:]:
        with open(TARGET, encoding="utf-8") as file:
            return 0 if file.read() == text else 1
    with open(TARGET, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
