"""The four rules of the database's path, and the trap in the fourth."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.db import location
from svc.errors import DatabaseRefused
from svc.host.owner import Owner
from svc.settings import Settings


def settings(flag: str | None = None, environ: str | None = None, file: str | None = None) -> Settings:
    return Settings(
        flags={"SVC_DB": flag},
        environ={"SVC_DB": environ} if environ else {},
        file={"SVC_DB": file} if file else {},
    )


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: root's, and nobody else's to write."""
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize(
    ("supplied", "path"),
    [
        (("/a/flag.db", "/b/environ.db", "/c/file.db"), "/a/flag.db"),
        ((None, "/b/environ.db", "/c/file.db"), "/b/environ.db"),
        ((None, None, "/c/file.db"), "/c/file.db"),
    ],
)
def test_first_match_wins(supplied: tuple[str | None, ...], path: str) -> None:
    assert location.database_path(settings(*supplied)) == path


@pytest.mark.parametrize(
    ("supplied", "named"),
    [
        (("/a/flag.db", None, "/c/file.db"), "/a/flag.db"),
        ((None, "/b/environ.db", "/c/file.db"), "/b/environ.db"),
        ((None, "/b/environ.db", None), "/b/environ.db"),
        ((None, "/c/file.db", "/c/file.db"), ""),
        ((None, None, "/c/file.db"), ""),
    ],
)
def test_a_hint_names_the_database_that_sudo_would_not_find(
    supplied: tuple[str | None, ...], named: str
) -> None:
    """sudo passes no variable of the shell on; the server has the settings file's as variables."""
    assert location.named_database(settings(*supplied)) == named
    assert location.for_database("doctor", settings(*supplied)).endswith(
        f" --db {named}" if named else "doctor"
    )


def test_the_last_rule_is_the_working_directory(here: Path) -> None:
    assert location.database_path(settings()) == str(here / "svc.db")
    (here / "svc.db").touch()
    assert location.database_path(settings()) == str(here / "svc.db")
    location.refuse_foreign_directory(settings())


def plant_link(here: Path) -> None:
    (here / "svc.db").symlink_to("/etc/passwd")


def plant_foreign(here: Path) -> None:
    (here / "svc.db").touch()
    os.chown(here / "svc.db", 65534, 65534)


def plant_in_shared_directory(here: Path) -> None:
    (here / "svc.db").touch()
    here.chmod(0o1777)


def plant_in_foreign_directory(here: Path) -> None:
    (here / "svc.db").touch()
    os.chown(here, 65534, 65534)


@pytest.mark.parametrize(
    "plant", [plant_link, plant_foreign, plant_in_shared_directory, plant_in_foreign_directory]
)
def test_root_refuses_what_was_planted(here: Path, plant: object) -> None:
    plant(here)  # type: ignore[operator]
    with pytest.raises(DatabaseRefused, match="refusing to use") as refused:
        location.database_path(settings())
    assert "--db" in refused.value.hint


def test_the_services_own_file_is_trusted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant_foreign(here)
    monkeypatch.setattr(location, "service_owner", lambda: Owner(65534, 65534))
    assert location.database_path(settings()) == str(here / "svc.db")


def test_the_services_own_directory_is_trusted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `svc admin migrate` makes it: its group writes there, which only the app's accounts have."""
    plant_foreign(here)
    os.chown(here, 65534, 65534)
    here.chmod(0o2770)
    monkeypatch.setattr(location, "service_owner", lambda: Owner(65534, 65534))
    assert location.database_path(settings()) == str(here / "svc.db")
    os.chown(here, 65534, 100)
    with pytest.raises(DatabaseRefused, match="writable by other users"):
        location.database_path(settings())


def test_root_makes_no_database_where_others_write(here: Path) -> None:
    here.chmod(0o777)
    assert location.database_path(settings()) == str(here / "svc.db"), "saying the path is harmless"
    with pytest.raises(DatabaseRefused, match="writable by other users"):
        location.refuse_foreign_directory(settings())
    location.refuse_foreign_directory(settings("./svc.db"))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/null", path)])
@pytest.mark.parametrize("source", [0, 1, 2])
def test_what_is_no_file_is_refused_from_any_source(tmp_path: Path, make: object, source: int) -> None:
    path = str(tmp_path / "named.db")
    make(path)  # type: ignore[operator]
    supplied: list[str | None] = [None, None, None]
    supplied[source] = path
    with pytest.raises(DatabaseRefused):
        location.database_path(settings(*supplied))


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(DatabaseRefused, match="no longer exists"):
        location.database_path(settings())


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_root: None) -> Path:
    """Root's directory, with nothing in it yet; SVC_DB names a database."""
    created = tmp_path / "state"
    created.mkdir()
    monkeypatch.setenv("SVC_STATE_DIR", str(created))
    monkeypatch.setenv("SVC_DB", str(tmp_path / "svc.db"))
    return created


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_database_that_is_lost(state: Path, tmp_path: Path, is_empty: bool) -> None:
    path, other = str(tmp_path / "svc.db"), str(tmp_path / "other.db")
    if is_empty:
        Path(path).touch()
    what = "empty" if is_empty else "missing"
    assert location.lost_database(Settings(), path) == "", "a new host"
    (state / location.ENROLLED).write_text("ada 1001 user\nbob 1002 user\n")
    assert location.lost_database(Settings(), path) == (
        f"{path} is {what}; there was a database, for whose users 2 accounts are enrolled"
    )
    assert location.lost_database(Settings(flags={"SVC_DB": other}), other) == "", "it was never there"
    (state / location.HEADS).write_text(f"7 {'a' * 64} {other}\n")
    assert "whose audit root has recorded" in location.lost_database(Settings(), other)
    Path(path).write_bytes(b"x")
    assert location.lost_database(Settings(), path) == ""
