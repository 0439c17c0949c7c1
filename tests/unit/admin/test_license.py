"""`svc admin license`, built with a vendor's key and run as it is run."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unit.admin.conftest import Svc
from unit.licensing import CODE, Vendor, build

from svc.domain.licence import trial
from svc.host import clock
from svc.host.ids import after, now

pytestmark = pytest.mark.allow_commands(os.path.basename(sys.executable))
License = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Vendor:
    """A vendor with a key pair."""
    return Vendor(tmp_path_factory.mktemp("vendor"))


@pytest.fixture(scope="session")
def built_program(vendor: Vendor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the vendor's key baked in."""
    return build(vendor, tmp_path_factory.mktemp("program"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the licence is installed."""
    return tmp_path / "etc" / "license.json"


@pytest.fixture
def license(built_program: Path, tmp_path: Path, place: Path) -> License:
    """license(*argv): exit code, output, errors of `svc admin license`; keys=False is a checkout."""

    def run(*argv: object, keys: bool = True, stdin: str = "") -> tuple[int, str, str]:
        root = built_program if keys else Path(__file__).parents[3]
        own = {
            "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": str(root),
            "SVC_DB": str(tmp_path / "data/svc.db"), "SVC_STATE_DIR": str(tmp_path / "state"),
            "SVC_LICENSE_PATH": str(place),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "svc", "admin", "license", *map(str, argv)],
            env=own, cwd="/", capture_output=True, text=True, input=stdin,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def signed(vendor: Vendor, license: License, tmp_path: Path) -> Callable[..., Path]:
    """A licence for this host in a file."""

    def sign(name: str = "new.json", **options: Any) -> Path:
        path = tmp_path / name
        path.write_bytes(vendor.sign(**{"request": license("request")[1].strip()} | options))
        return path

    return sign


def shown(license: License) -> dict[str, Any]:
    """What `license show --json` prints."""
    code, out, err = license("show", "--json")
    assert code == 0, err
    return dict(json.loads(out))


def test_request_prints_the_code_alone(license: License) -> None:
    """ "Prints the host activation request code." """
    code, out, err = license("request")
    assert (code, err) == (0, "")
    assert json.loads(license("request", "--json")[1]) == {"request_code": out.strip()}


def test_a_licence_is_verified_installed_and_shown(
    svc: Svc, database: str, license: License, signed: Callable[..., Path], place: Path, tmp_path: Path
) -> None:
    """ "Validates a license file without installing it", "Verifies and installs the file to
    `SVC_LICENSE_PATH`", "Shows the resolved trial or signed entitlement"."""
    assert shown(license)["kind"] == "trial"
    path = signed(users=7, gpus=2)
    code, out, err = license("verify", path)
    assert (code, "users\t7" in out) == (0, True), err
    assert not place.exists()
    assert f"to install it: sudo svc admin license install {path}\n" in err
    assert license("verify", "-", "--json", stdin=path.read_text())[0] == 0
    _, _, err = license("verify", "-", stdin=path.read_text())
    assert "svc: to install it, the same again with: sudo svc admin license install -\n" in err
    assert not place.exists()
    code, out, err = license("install", path)
    assert (code, err) == (0, "")
    assert "users: 7, GPUs: 2" in out
    assert place.read_bytes() == path.read_bytes()
    assert stat.S_IMODE(place.stat().st_mode) == 0o644
    record = shown(license)
    assert (record["kind"], record["state"], record["holder"]) == ("signed", "active", "Example Ltd")
    assert record["limits"] == {"users": 7, "gpus": 2}
    assert record["used"] == {"users": 0, "gpus": 0}
    issued = json.loads(path.read_text())["license"]["issued"]
    assert clock.read_file(str(tmp_path / "state")).issued[:19] == issued[:19]
    rows = (
        __import__("sqlite3")
        .connect(database)
        .execute("SELECT outcome FROM audit WHERE action = 'admin.license_install' ORDER BY id")
    )
    assert rows.fetchall() == [("begun",), ("ok",)]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"request": CODE}, "is for another host"),
        ({"not_before": "2020-01-01", "not_after": "2020-12-31"}, "ended on 2021-01-01"),
        ({"not_before": "2099-01-01"}, "is valid only from 2099-01-01"),
    ],
)
def test_what_is_not_valid_replaces_nothing(
    database: str,
    license: License,
    signed: Callable[..., Path],
    place: Path,
    options: dict[str, str],
    why: str,
) -> None:
    assert license("install", good := signed("good.json"))[0] == 0
    bad = signed("bad.json", **options)
    for word in ("verify", "install"):
        code, out, err = license(word, bad)
        assert (code, out) == (1, "")
        assert why in err
        assert "hint: sudo svc admin license request" in err
    assert place.read_bytes() == good.read_bytes()


@pytest.mark.parametrize("content", [b"", b"{}", b"\0" * 20_000, b"[" * 9000])
def test_a_file_that_is_no_licence(database: str, license: License, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    code, out, err = license("install", path)
    assert (code, out, "licence" in err) == (1, "", True)
    assert license("install", tmp_path / "missing.json")[0] == 1
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in license("install", tmp_path / "pipe")[2]


def test_a_build_without_a_key(database: str, license: License, signed: Callable[..., Path]) -> None:
    """Nothing can be installed, and the trial runs as in every build."""
    path = signed()
    code, _, err = license("install", path, keys=False)
    assert (code, "this build has no licence key" in err) == (1, True)
    assert json.loads(license("show", "--json", keys=False)[1])["kind"] == "trial"


def test_a_lapsed_trial_is_said_and_a_licence_ends_it(
    database: str, license: License, signed: Callable[..., Path], tmp_path: Path
) -> None:
    trial.write_file(str(tmp_path / "state"), after(now(), -91 * 86400))
    code, out, err = license("show")
    assert (code, "state\tlapsed" in out) == (0, True)
    assert "svc: the trial ended on" in err
    assert "\nhint: sudo svc admin license request\n" in err
    assert license("install", signed())[0] == 0
    assert shown(license)["state"] == "active"


def test_it_works_without_a_database(
    svc: Svc, database: str, license: License, signed: Callable[..., Path], tmp_path: Path
) -> None:
    """ "Break-glass": with a damaged one root's files decide, and a licence can be installed."""
    trial.write_file(str(tmp_path / "state"), after(now(), -91 * 86400))
    Path(database).write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    code, out, err = license("show")
    assert (code, "state\tlapsed" in out, "the database is left out" in err) == (0, True, True)
    assert license("install", signed())[0] == 0
    assert shown(license)["state"] == "active"


def test_a_newer_licence_mends_a_clock_that_was_ahead_and_an_old_one_does_not(
    database: str, license: License, signed: Callable[..., Path], tmp_path: Path
) -> None:
    state, path = str(tmp_path / "state"), signed("new.json", not_after="2030-12-31")
    clock.write_file(state, clock.Record("2040-01-01T00:00:00.000Z", "2025-01-01T00:00:00.000Z"))
    assert shown(license)["state"] == "lapsed"
    assert license("install", path)[0] == 0
    assert shown(license)["state"] == "active"
    record = clock.read_file(state)
    clock.write_file(state, record._replace(seen="2040-01-01T00:00:00.000Z"))
    assert "ended on 2031-01-01" in license("install", path)[2]
    assert shown(license)["state"] == "lapsed"
