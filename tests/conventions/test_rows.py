"""A tuple made from a row has the columns of its statement: in their order, of their types, with their NULLs.

The columns are those of the schema after all migrations (schema/current.sql).
"""

from __future__ import annotations

import ast
import re
import sqlite3
from functools import cache
from typing import Any, NamedTuple, get_args, get_type_hints

import pytest
from conventions.inspection import ROOT, modules, tree

from svc.db import check, migrate
from svc.domain import events
from svc.domain.accounts import disk_usage, removal, sessions, tickets, users
from svc.domain.apps import visits
from svc.domain.audit import audit, chain, subjects
from svc.domain.images import build_secrets
from svc.domain.quotas import quotas
from svc.domain.templates import rows as templates
from svc.domain.workspaces import idle, launchers, leases, ports, reconcile_rules, states
from svc.worker import stopped

STATEMENTS: dict[type[Any], str] = {
    audit.Actor: "SELECT user_id, user_name, via, address FROM audit",
    build_secrets.Left: build_secrets._ENDED,
    chain.Head: "SELECT id, hash FROM audit",
    check.Head: "SELECT id, hash FROM audit",
    disk_usage.Waiting: disk_usage._WAITING,
    events.Event: f"SELECT {events._COLUMNS} {events._SOURCE}",
    idle.Watched: idle._WATCHED,
    launchers.Run: launchers._STARTED,
    leases.Holder: leases._HOLDERS.replace("l.gpu, ", ""),
    migrate.Applied: migrate._APPLIED,
    ports.Port: f"SELECT {', '.join(ports.Port._fields)} FROM ports",
    quotas.Quota: f"SELECT {', '.join(quotas.Quota._fields)} FROM quotas",
    reconcile_rules.Row: reconcile_rules._SELECT.replace(", w.work", ""),
    sessions._Row: sessions._SESSION,
    states.Workspace: states._SELECT,
    stopped.Due: stopped._DUE,
    templates.Template: f"SELECT {templates.COLUMNS} {templates.FROM}",
    tickets.Holder: "SELECT kind, credential, user_id FROM tickets",
    users.Account: users._SELECT,
    visits.Visit: visits._SELECT,
}
# From no columns of one table: counts, the name of a target, and what an agent says of a port.
COMPUTED = {quotas.Used, removal.Holdings, subjects.Subject, ports.Traffic}
NEVER_NULL = {
    (users.Account, "uid")
}  # NULL only where nobody acts as the account: it is incomplete or retired
TYPES = {"INTEGER": {int, bool}, "TEXT": {str}, "REAL": {float}}


class Column(NamedTuple):
    """A column of a table."""

    name: str
    types: set[type]
    may_be_null: bool


@cache
def columns_of(table: str) -> dict[str, Column]:
    """The columns of a table after all migrations."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate.apply(connection)
    rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
    connection.close()
    return {name: Column(name, TYPES[kind], not (needed or key)) for _, name, kind, needed, _, key in rows}


def expressions(statement: str) -> list[str]:
    """What stands between SELECT and its FROM."""
    depth, found = 0, [""]
    for token in re.findall(r"[(),]|[^(),\s]+|\s+", statement.strip().removeprefix("SELECT ")):
        depth += (token == "(") - (token == ")")
        if depth == 0 and token == "FROM":
            break
        if depth == 0 and token == ",":
            found.append("")
        else:
            found[-1] += token
    return [expression.strip() for expression in found]


def columns(statement: str) -> list[Column | None]:
    """The columns that a statement reads; None for what it computes."""
    tables = re.findall(r"(LEFT )?(?:FROM|JOIN) (\w+)(?: AS)?(?: (?!WHERE|ORDER)(\w+))?", statement)
    places = {alias or table: (table, bool(left)) for left, table, alias in reversed(tables)}
    first = tables[0][2] or tables[0][1]
    found: list[Column | None] = []
    for expression in expressions(statement):
        simple = re.fullmatch(r"(?:(\w+)\.)?(\w+)", expression)
        if not simple:
            found.append(None)
            continue
        table, is_left = places[simple[1] or first]
        column = columns_of(table)[simple[2]]
        name = "owner" if (table, column.name) == ("users", "name") else column.name
        found.append(Column(name, column.types, column.may_be_null or is_left))
    return found


@pytest.mark.parametrize("row", STATEMENTS, ids=lambda row: f"{row.__module__}.{row.__name__}")
def test_the_fields_are_the_columns(row: type[Any]) -> None:
    read, hints = columns(STATEMENTS[row]), get_type_hints(row)
    fields = list(row._fields)
    assert len(fields) - len(row._field_defaults) <= len(read) <= len(fields)  # the last ones are set later
    faults = []
    for field, column in zip(fields, read, strict=False):
        if column is None:
            continue
        if column.name in fields and column.name != field:
            faults.append(f"{field} is filled with {column.name}")
        stated = set(get_args(hints[field])) or {hints[field]}
        if not stated - {type(None)} <= column.types:
            faults.append(f"{field} is {' or '.join(sorted(kind.__name__ for kind in column.types))}")
        if (type(None) in stated) != column.may_be_null and (row, field) not in NEVER_NULL:
            faults.append(f"{field} {'may' if column.may_be_null else 'cannot'} be NULL")
    assert not faults


def test_an_account_is_a_whole_row() -> None:
    """But for what a user's images take, which each start and pull would read."""
    assert set(columns_of("users")) - set(users.Account._fields) == {"image_bytes"}
    assert set(quotas.Quota._fields) == set(columns_of("quotas"))
    assert set(columns_of("ports")) - set(ports.Port._fields) == {"workspace_id", "created_at"}


def test_every_tuple_of_a_row_is_here() -> None:
    """In the modules that read the database: `Name(*row)` and `Name._make`."""
    found = set()
    for path in modules():
        if "execute" not in path.read_text():
            continue
        nodes = list(ast.walk(tree(path)))
        tuples = {
            node.name
            for node in nodes
            if isinstance(node, ast.ClassDef) and "NamedTuple" in [ast.unparse(base) for base in node.bases]
        }
        dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in nodes:
            if isinstance(node, ast.Call) and any(isinstance(one, ast.Starred) for one in node.args):
                found |= {f"{dotted}.{name}" for name in {ast.unparse(node.func)} & tuples}
            if isinstance(node, ast.Attribute) and node.attr == "_make":
                found |= {f"{dotted}.{name}" for name in {ast.unparse(node.value)} & tuples}
    known = {f"{row.__module__}.{row.__name__}" for row in (*STATEMENTS, *COMPUTED)}
    assert found == known


def test_a_column_that_has_moved_is_found() -> None:
    assert columns("SELECT u.quota, count(*) FROM users u") == [Column("quota", {str}, True), None]
    (owner,) = columns("SELECT u.name FROM templates t LEFT JOIN users u ON u.id = t.owner_id")
    assert owner == Column("owner", {str}, True)
