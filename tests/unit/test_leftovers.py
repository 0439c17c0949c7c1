"""What a killed run of the tests leaves is found by the next one, and nothing else is."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "run.d/leftovers.py"
SLEEP = [sys.executable, "-I", "-c", "import time; print(flush=True); time.sleep(600)"]
pytestmark = pytest.mark.allow_commands(os.path.basename(sys.executable), "userdel")


@pytest.fixture
def leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, on a host whose places are folders of the test."""
    spec = importlib.util.spec_from_file_location("leftovers", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for place in ("tmp", "run", "limits.d", "cgroup", "etc", "user"):
        (tmp_path / place).mkdir()
    monkeypatch.setattr(module, "PLACES", (str(tmp_path / "tmp"), str(tmp_path / "run")))
    monkeypatch.setattr(module, "LIMITS", (tmp_path / "limits.d", module.LIMITS[1]))
    monkeypatch.setattr(module, "GROUPS", (tmp_path / "cgroup",))
    monkeypatch.setattr(module, "RUNTIME", (tmp_path / "user", module.RUNTIME[1]))
    monkeypatch.setattr(module, "ETC", tmp_path / "etc")
    return module


def sleeper() -> subprocess.Popen[bytes]:
    """A process that would last, and has begun."""
    started = subprocess.Popen(SLEEP, stdout=subprocess.PIPE)
    assert started.stdout
    started.stdout.readline()
    return started


def test_what_came_with_a_dead_run_goes_and_the_rest_stays(leftovers: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "run/svc-e2e").mkdir()  # of before: not this run's
    with sleeper() as dead:
        leftovers.begin(tmp_path / "record", dead.pid)
        (tmp_path / "run/svc-hostile/deep").mkdir(parents=True)
        (tmp_path / "run/svc").mkdir()
        (tmp_path / "tmp/tsa-1234").symlink_to(tmp_path)
        (tmp_path / "tmp/else").touch()
        (tmp_path / "limits.d/tsh.conf").touch()
        (tmp_path / "cgroup/user-1001/leaf").mkdir(parents=True)
        (tmp_path / "etc/passwd.lock").touch()
        (tmp_path / "etc/passwd").touch()
        for name in ("0", ".svc-0", "64009", ".svc-64009", ".svc-64009-x", "64009.former", "else"):
            (tmp_path / "user" / name).mkdir()
        leftovers.begin(tmp_path / "record", os.getpid())
        assert dead.wait(10) == -9
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.parent.name != "record"}
    assert left == {
        *("tmp", "run", "limits.d", "cgroup", "etc", "user", "record"),
        *("user/0", "user/.svc-0", "user/else"),
        *("run/svc-e2e", "run/svc", "tmp/else", "etc/passwd", "etc/.pwd.lock"),
    }
    leftovers.end(tmp_path / "record", os.getpid())
    assert not (tmp_path / "record").exists()


def test_another_process_of_the_same_number_is_left_alone(leftovers: ModuleType, tmp_path: Path) -> None:
    with sleeper() as other:
        pid, start, boot = leftovers.identity(other.pid).split()
        leftovers.end_process(f"{pid} {int(start) - 1} {boot}")
        assert other.poll() is None
        leftovers.end_process(f"{pid} {start} another-boot")
        assert other.poll() is None
        leftovers.end_process(f"{pid} {start} {boot}")
        assert other.wait(10) == -9
    assert leftovers.identity(other.pid) == ""


def test_a_run_that_was_killed_before_it_began_left_nothing(leftovers: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    (tmp_path / "record/before.new").write_text("{")
    (tmp_path / "tmp/tsa-kept").touch()
    leftovers.begin(tmp_path / "record", os.getpid())
    assert (tmp_path / "tmp/tsa-kept").exists()


def test_folders_of_dead_processes_go(tmp_path: Path) -> None:
    def called(*arguments: str) -> None:
        subprocess.run([sys.executable, "-I", SCRIPT, *arguments], check=True)

    mine, dead, unowned = (tmp_path / name for name in ("mine", "dead", "unowned"))
    for folder in (mine, dead, unowned):
        (folder / "deep").mkdir(parents=True)
    called("owner", str(mine), str(os.getpid()))
    with sleeper() as other:
        called("owner", str(dead), str(other.pid))
        called("folders", str(mine), str(dead), str(unowned), str(tmp_path / "none"))
        assert dead.exists()
        other.kill()
    called("folders", str(mine), str(dead), str(unowned), str(tmp_path / "none"))
    assert mine.exists() and unowned.exists() and not dead.exists()
