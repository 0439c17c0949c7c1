"""A user without subordinate ids is told so, with the way out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from svc_helper.agent import subid_ranges
from svc_helper.agent.calls import Failure

HOME = SimpleNamespace(user="demo", uid=1234)


def require(tmp_path: Path, subuid: str, subgid: str) -> None:
    """ranges.require with these two files."""
    files = (tmp_path / "subuid", tmp_path / "subgid")
    for path, text in zip(files, (subuid, subgid), strict=True):
        path.write_text(text)
    subid_ranges.require(HOME, tuple(map(str, files)))


@pytest.mark.parametrize("owner", ["demo", "1234"])
def test_a_whole_range_in_both_files_will_do(tmp_path: Path, owner: str) -> None:
    require(tmp_path, f"other:1:9\n{owner}:100000:65536\n", f"{owner}:100000:65536\n")


@pytest.mark.parametrize(
    "row", ["", "demo:100000:1000\n", "demon:100000:65536\n", "demo:100000\n", "demo:1:-5\n"]
)
def test_anything_less_is_refused(tmp_path: Path, row: str) -> None:
    """With the code for which the app names the command that helps."""
    with pytest.raises(Failure, match=f"demo has no range .* in {tmp_path}/subgid") as raised:
        require(tmp_path, "demo:100000:65536\n", row)
    assert raised.value.code == "subids_missing"


def test_a_missing_file_is_a_missing_range(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="none-such"):
        subid_ranges.require(HOME, (str(tmp_path / "none-such"), str(tmp_path / "none-such")))
