"""`svc admin template import`: root opens the file, the database's owner reads it."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from unit.bundling import FILES, RECIPE, written
from unit.serving import IMAGE

from svc.db.connect import close_database, open_database
from svc.db.connect import database as connected
from svc.domain.accounts import users
from svc.domain.templates import bundles
from svc.limits import BUNDLE_MAX

REGISTRY = written({"name": "trainer", "source": {"type": "registry", "image_ref": IMAGE}}, None, {})
BUILT = written({"name": "trainer", "source": {"type": "dockerfile"}}, RECIPE, FILES)
DIGEST = bundles.read(io.BytesIO(REGISTRY)).digest


@pytest.fixture
def bundle(database: str, tmp_path: Path) -> str:
    """A registry bundle; and ada has an account."""
    open_database(database)
    users.create("ada", uid=4001, provisioning=users.READY)
    close_database()
    path = tmp_path / "trainer.tar"
    path.write_bytes(REGISTRY)
    return str(path)


def templates(path: str) -> list[tuple[Any, ...]]:
    open_database(path)
    rows: list[tuple[Any, ...]] = connected.execute_sql(
        "SELECT name, owner_id, status, managed, reviewed_revision FROM templates"
    ).fetchall()
    close_database()
    return rows


def test_a_global_one(svc: Any, database: str, bundle: str) -> None:
    """ "`--global` makes a managed template visible to everyone after review"."""
    code, out, err = svc("template", "import", bundle, "--global")
    ref = out.partition("(")[2].partition(")")[0]
    assert (code, out) == (0, f"the template trainer ({ref}) is imported for everyone, disabled\n")
    assert f"sudo svc template get {ref}" in err and f"sudo svc template enable {ref}" in err
    assert templates(database) == [("trainer", None, "disabled", True, None)]
    open_database(database)
    *row, detail = connected.execute_sql(
        "SELECT user_name, via, action, target, outcome, detail_json FROM audit ORDER BY id DESC"
    ).fetchone()
    close_database()
    assert row == ["root", "admin", "admin.template_import", ref, "ok"]
    assert json.loads(detail) == {"owner": "", "name": "trainer", "bundle": DIGEST, "target_name": "trainer"}


def test_a_users_own(svc: Any, database: str, bundle: str) -> None:
    for name in ("trainer", "trainer-2"):
        code, out, err = svc("template", "import", bundle, "--owner", "ada")
        assert (code, out.split()[2]) == (0, name)
        assert "ada enables it: svc template enable tpl-" in err
    assert [row[2] for row in templates(database)] == ["disabled", "disabled"]
    assert None not in [row[1] for row in templates(database)]


@pytest.mark.parametrize("whose", [["--global"], ["--owner", "ada"]])
def test_a_dockerfile_bundle_is_refused(svc: Any, database: str, bundle: str, whose: list[str]) -> None:
    """ "Dockerfile bundles are refused here (they need a build) and are imported from `/admin/templates`"."""
    Path(bundle).write_bytes(BUILT)
    code, out, err = svc("template", "import", bundle, *whose)
    assert (code, out) == (1, "")
    assert "needs a build" in err and "https://" in err and ":24680/admin/templates" in err
    assert templates(database) == []


@pytest.mark.parametrize(
    ("whose", "said"),
    [
        (["--owner", "nobody-here"], "nobody-here"),
        (["--owner", "root"], "use --global instead of root"),
    ],
)
def test_an_owner_who_cannot_be(svc: Any, database: str, bundle: str, whose: list[str], said: str) -> None:
    code, out, err = svc("template", "import", bundle, *whose)
    assert (code, out) == (1, "") and said in err
    assert templates(database) == []


def test_whose_it_becomes_is_said(svc: Any, bundle: str) -> None:
    for argv in ([bundle], [bundle, "--global", "--owner", "ada"], ["--global"]):
        assert svc("template", "import", *argv)[0] == 2
    assert svc("template")[0] == 2


def test_what_is_no_bundle(svc: Any, database: str, bundle: str, tmp_path: Path) -> None:
    """Refused in words, unopened where it is no file of its own; nothing stays behind."""
    (tmp_path / "link.tar").symlink_to(bundle)
    os.mkfifo(tmp_path / "pipe.tar")
    (tmp_path / "text.tar").write_text("hello")
    (tmp_path / "cut.tar").write_bytes(REGISTRY[:-512])
    with open(tmp_path / "large.tar", "wb") as file:
        file.truncate(BUNDLE_MAX + 1)
    before = set(os.listdir(Path(database).parent))
    for name in ("link.tar", "pipe.tar", "text.tar", "cut.tar", "large.tar", "none.tar", "a\0b", "."):
        code, out, err = svc("template", "import", str(tmp_path / name), "--global")
        assert (code, out, err[:5]) == (1, "", "svc: "), name
    assert templates(database) == []
    assert set(os.listdir(Path(database).parent)) - before <= {"svc.db-wal", "svc.db-shm"}


def test_a_template_that_is_none(svc: Any, database: str, bundle: str) -> None:
    """Checked as the listeners do, without their Flask."""
    Path(bundle).write_bytes(
        written({"name": "A b", "source": {"type": "registry", "image_ref": IMAGE}}, None, {})
    )
    code, _, err = svc("template", "import", bundle, "--global")
    assert code == 1 and "template.name" in err
    assert connected.is_closed()
