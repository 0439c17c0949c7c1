"""The depths of a run: which tests are left out, and when the machine suite runs at a change."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import depths
import pytest

RUN = Path(__file__).parents[1] / "run.d"
TREE = ("packaging/install", "svc/server/supervisor.py", "svc/web/app.py")


class Item:
    """A test with marks, as pytest has it."""

    def __init__(self, *which: str) -> None:
        self.marks = [pytest.mark.depth(one, "because it is slow").mark for one in which]
        self.nodeid = "test_it"

    def iter_markers(self, name: str) -> list[Any]:
        """Its marks of depth."""
        return self.marks


class Hook:
    """What pytest is told."""

    def __init__(self) -> None:
        self.hook, self.left = self, []

    def pytest_deselected(self, items: list[Any]) -> None:
        """Tests that are left out."""
        self.left = items


@pytest.mark.parametrize(("chosen", "kept"), [("change", 1), ("merge", 2), ("release", 4)])
def test_deeper_tests_are_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen: str, kept: int
) -> None:
    monkeypatch.setattr(depths, "CHOSEN", chosen)
    monkeypatch.setenv("SVC_TEST_LEFT_OUT", str(tmp_path / "left"))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    items = [Item(), Item("merge"), Item("release"), Item("release", "merge")]
    config = Hook()
    depths.leave_out(config, items)  # type: ignore[arg-type]
    assert (len(items), len(config.left)) == (kept, 4 - kept)
    assert sum(Counter(depths.json.loads((tmp_path / "left").read_text())).values()) == 4 - kept


@pytest.mark.parametrize("mark", [("merge",), ("change", "why"), ("never", "why"), ("merge", "")])
def test_a_mark_names_a_depth_and_a_reason(mark: tuple[str, ...]) -> None:
    item = Item()
    item.marks = [pytest.mark.depth(*mark).mark]
    with pytest.raises(pytest.UsageError, match="test_it"):
        depths.depth_of(item)  # type: ignore[arg-type]


def test_a_sample_is_spread() -> None:
    found = depths.sample(range(10), 3, "a reason for it")
    assert [one.values for one in found if not one.marks] == [(0,), (3,), (6,)]
    assert len(found) == 10
    assert depths.sample([("a", 1), ("b", 2)], 1, "a reason for it")[1].values == ("b", 2)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A branch of a tree that has what the machine suite is about, and the web."""
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    git(tmp_path, "init", "-q", "-b", "main")
    for message in ("first", "second"):
        (tmp_path / "README.md").write_text(message)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-q", "-m", message)
    git(tmp_path, "checkout", "-q", "-b", "work")
    return tmp_path


def machine_runs(checkout: Path, depth: str = "change") -> bool:
    """The verdict of tests/run."""
    script = f'say() {{ echo "$*"; }}; . {RUN}/depth.sh; wants_machine'
    environ = {"SOURCE": str(checkout), "DEPTH": depth, "PATH": "/usr/bin:/bin"}
    return subprocess.run(["bash", "-c", script], env=environ, check=False).returncode == 0


@pytest.mark.allow_commands("git", "bash")
class TestMachine:
    """Whether the machine suite runs."""

    def test_nothing_changed(self, checkout: Path) -> None:
        assert not machine_runs(checkout)
        assert machine_runs(checkout, "merge")

    def test_a_change_elsewhere(self, checkout: Path) -> None:
        (checkout / "svc/web/app.py").write_text("2")
        git(checkout, "commit", "-q", "-a", "-m", "web")
        assert not machine_runs(checkout)

    def test_a_commit_of_the_branch(self, checkout: Path) -> None:
        (checkout / "packaging/install").write_text("2")
        git(checkout, "commit", "-q", "-a", "-m", "packaging")
        git(checkout, "commit", "-q", "--allow-empty", "-m", "another")
        assert machine_runs(checkout)

    def test_what_is_not_committed(self, checkout: Path) -> None:
        (checkout / "svc/server/supervisor.py").write_text("2")
        assert machine_runs(checkout)

    def test_a_new_file(self, checkout: Path) -> None:
        (checkout / "packaging/new").write_text("1")
        assert machine_runs(checkout)

    def test_the_last_commit_of_main(self, checkout: Path) -> None:
        git(checkout, "checkout", "-q", "main")
        (checkout / "packaging/install").write_text("2")
        git(checkout, "commit", "-q", "-a", "-m", "packaging")
        assert machine_runs(checkout)

    def test_no_history(self, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        shallow = tmp_path_factory.mktemp("shallow") / "clone"
        git(checkout, "clone", "-q", "--depth", "1", f"file://{checkout}", str(shallow))
        assert machine_runs(shallow)
        assert machine_runs(checkout.parent)
