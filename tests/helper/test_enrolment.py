"""The enrolment list: root's alone, name and uid together, in force from the next call on."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helper.stage import Stage, code_of, enrolled

from svc import errors
from svc_helper.enrolment import Enrolment, Entry, read


@pytest.mark.parametrize(
    "change", ["group may write", "others may write", "not root's", "a link", "a directory"]
)
def test_an_enrolment_list_that_is_not_roots_alone(stage: Stage, change: str) -> None:
    path = stage.directory / "enrolled"
    if change == "not root's":
        os.chown(path, 65534, 0)
    elif change == "a link":
        path.rename(stage.directory / "elsewhere")
        path.symlink_to("elsewhere")
    elif change == "a directory":
        path.unlink()
        path.mkdir()
    else:
        path.chmod(0o664 if change == "group may write" else 0o646)
    os.utime(path, follow_symlinks=False)
    assert code_of(stage, "tsh-ada") == "refused"
    assert any(
        line["level"] == "critical" and "nobody is enrolled" in line["message"] for line in stage.log()
    )


def test_enrolment_counts_from_the_next_call_on(stage: Stage, uid: dict[str, int]) -> None:
    assert code_of(stage, "tsh-ada") == "ok"
    stage.enrol(f"tsh-ben {uid['tsh-ben']} user")
    assert code_of(stage, "tsh-ada") == "refused"
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    assert code_of(stage, "tsh-ada") == "ok"
    (stage.directory / "enrolled").unlink()
    assert code_of(stage, "tsh-ada") == "refused"


def test_reading_the_list(tmp_path: Path) -> None:
    assert read(str(tmp_path / "enrolled")) == []
    (tmp_path / "enrolled").write_text("ada 1001 user\nben 1002 administrator\n\nx\n")
    assert read(str(tmp_path / "enrolled")) == [Entry("ada", 1001, False), Entry("ben", 1002, True)]
    enrolment = Enrolment(str(tmp_path))
    assert enrolment.find_administrator(1002) == Entry("ben", 1002, True)
    assert enrolment.find_administrator(1001) is None


def test_a_list_that_cannot_be_trusted_is_not_built_upon(stage: Stage) -> None:
    (stage.directory / "enrolled").chmod(0o666)
    before = enrolled(stage)
    with pytest.raises(errors.EngineFailed, match="only root may write"):
        stage.client("admin").call("account.mark", "tsh-ada", {"administrator": True}, rid="r")
    assert enrolled(stage) == before


def test_changes_at_once_lose_nobody(stage: Stage) -> None:

    admin = stage.client("admin")
    with ThreadPoolExecutor(6) as pool:
        list(
            pool.map(
                lambda n: admin.call("account.mark", "tsh-ada", {"administrator": n % 2 == 0}, rid="r"),
                range(6),
            )
        )
    assert len(enrolled(stage)) == 3
