"""Models match the schema: tables, columns, types, nullability, keys and references."""

from __future__ import annotations

import peewee
import pytest

from svc.db.connect import database, open_database
from svc.db.models import MODELS, Row

NOT_MODELLED = {"schema_migrations"}  # the runner's own


@pytest.fixture(autouse=True)
def opened(migrated: str) -> None:
    open_database(migrated)


def columns_of(table: str) -> dict[str, tuple[str, bool, int]]:
    """Name: type, may be null, place in the primary key."""
    rows = database.execute_sql(f"PRAGMA table_info({table})").fetchall()
    return {name: (kind, not notnull and not key, key) for _, name, kind, notnull, _, key in rows}


def fields_of(model: type[Row]) -> dict[str, tuple[str, bool, int]]:
    meta = model._meta
    key = [field.column_name for field in meta.get_primary_keys()]
    kinds = {"AUTO": "INTEGER", "INT": "INTEGER", "BOOL": "INTEGER", "TEXT": "TEXT", "BLOB": "BLOB"}
    return {
        field.column_name: (
            kinds[(field.rel_field if isinstance(field, peewee.ForeignKeyField) else field).field_type],
            field.null,
            key.index(field.column_name) + 1 if field.column_name in key else 0,
        )
        for field in meta.sorted_fields
    }


def test_every_table_has_one_model() -> None:
    tables = set(database.get_tables()) - NOT_MODELLED
    assert tables == {model._meta.table_name for model in MODELS}
    assert set(MODELS) == set(Row.__subclasses__())


@pytest.mark.parametrize("model", MODELS)
def test_columns_match(model: type[Row]) -> None:
    assert fields_of(model) == columns_of(model._meta.table_name)


@pytest.mark.parametrize("model", MODELS)
def test_references_match(model: type[Row]) -> None:
    rows = database.execute_sql(f"PRAGMA foreign_key_list({model._meta.table_name})").fetchall()
    in_schema = {
        (column, table, to, None if rule == "NO ACTION" else rule)
        for _, _, table, column, to, _, rule, _ in rows
    }
    in_model = {
        (field.column_name, field.rel_model._meta.table_name, field.rel_field.column_name, field.on_delete)
        for field in model._meta.sorted_fields
        if isinstance(field, peewee.ForeignKeyField)
    }
    assert in_model == in_schema


@pytest.mark.parametrize("model", MODELS)
def test_defaults_match(model: type[Row]) -> None:
    rows = database.execute_sql(f"PRAGMA table_info({model._meta.table_name})").fetchall()
    in_schema = {name: default for _, name, _, _, default, _ in rows if default is not None}
    in_model = {
        field.column_name: str(int(field.default))
        if not isinstance(field.default, str)
        else repr(field.default)
        for field in model._meta.sorted_fields
        if field.default is not None
    }
    assert in_model == in_schema


@pytest.mark.parametrize("model", MODELS)
def test_tables_are_strict(model: type[Row]) -> None:
    strict = database.execute_sql(
        "SELECT strict FROM pragma_table_list WHERE name = ?", (model._meta.table_name,)
    )
    assert strict.fetchone() == (1,)
