"""The check value of the signing secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.db import facts, secret_check
from svc.db.connect import close_database
from svc.errors import HostRefused
from svc.host.secret import ensure_secret, read_secret


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = str(tmp_path / "secret.key")
    ensure_secret(path)
    return path


def another(path: str) -> bytes:
    Path(path).unlink()
    ensure_secret(path)
    return read_secret(path)


def test_another_secret_is_noticed(migrated: str, secret: str) -> None:
    own = read_secret(secret)
    assert secret_check.is_own(own), "a database that has no check value yet"
    assert secret_check.ensure(own)
    assert secret_check.read_own(secret) == own
    foreign = another(secret)
    assert not secret_check.ensure(foreign), "the check value is not replaced by a start"
    assert secret_check.is_own(own)
    with pytest.raises(HostRefused, match="is not the signing secret that this database was used with"):
        secret_check.read_own(secret)
    secret_check.replace(foreign)
    assert secret_check.ensure(foreign)


def test_the_check_value_reveals_nothing(migrated: str, secret: str) -> None:
    """A keyed digest of a constant, which is no key of anything else."""
    value = read_secret(secret)
    secret_check.ensure(value)
    (stored,) = facts.find(secret_check.FACT).values()
    assert value.decode() not in stored and bytes.fromhex(stored) not in value
    assert secret_check.CONSTANT == b"svc check value", "keys of svc.domain.accounts.keys have other purposes"
    assert len(bytes.fromhex(stored)) == 32


def test_what_a_process_of_the_owner_finds(migrated: str, secret: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    assert secret_check.compare(migrated, secret) == secret_check.UNKNOWN
    secret_check.ensure(read_secret(secret))
    close_database()
    assert secret_check.compare(migrated, secret) == secret_check.OWN
    another(secret)
    assert secret_check.compare(migrated, secret) == secret_check.FOREIGN
    assert secret_check.compare(missing, secret) == secret_check.UNKNOWN
    assert secret_check.compare(migrated, missing) == secret_check.UNKNOWN
    Path(secret).chmod(0o666)
    assert secret_check.compare(migrated, secret) == secret_check.UNKNOWN
    Path(secret).chmod(0o600)
    Path(migrated).write_bytes(b"no database")
    assert secret_check.compare(migrated, secret) == secret_check.UNKNOWN
