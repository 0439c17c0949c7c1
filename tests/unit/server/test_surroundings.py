"""The app keeps what it needs below a hidden directory, and loses the rest."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from unit.forking import forked

from svc.server import surroundings
from svc.settings import Settings

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


def settings_at(base: Path) -> Settings:
    """Settings whose paths are below a directory."""
    for name in ("data", "state", "certificates", "home/ada"):
        (base / name).mkdir(parents=True)
    (base / "data" / "svc.db").touch()
    (base / "certificates" / "key.pem").touch()
    environ = {
        "SVC_DB": str(base / "data" / "svc.db"),
        "SVC_STATE_DIR": str(base / "state"),
        "SVC_TLS_CERT": str(base / "certificates" / "cert.pem"),
        "SVC_TLS_KEY": str(base / "certificates" / "key.pem"),
    }
    return Settings(environ=environ, file={})


def writes(path: Path) -> bool:
    """Whether a file can be created there."""
    try:
        (path / "probe").touch()
    except OSError:
        return False
    return True


@needs_root
def test_what_is_needed_stays_and_only_the_data_is_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_at(tmp_path)
    monkeypatch.setattr(surroundings, "HIDDEN", (str(tmp_path),))
    monkeypatch.setattr(surroundings, "PRIVATE", {"/dev/shm": "1m"})

    def look() -> dict[str, Any]:
        surroundings.enter(settings)
        return {
            "names": sorted(os.listdir(tmp_path)),
            "data": writes(tmp_path / "data"),
            "state": writes(tmp_path / "state"),
            "certificates": os.listdir(tmp_path / "certificates"),
            "host": writes(Path("/run")),
            "shm": writes(Path("/dev/shm")),
            "interfaces": os.listdir("/sys/class/net") and Path("/proc/self/net/dev").read_text().count(":"),
        }

    found = forked(look)
    if isinstance(found, str) or "host" not in found:
        pytest.skip(f"this kernel refuses namespaces: {json.dumps(found)}")
    assert found == {
        "names": ["certificates", "data", "state"],
        "data": True,
        "state": False,
        "certificates": ["key.pem"],
        "host": False,
        "shm": True,
        "interfaces": 1,
    }
    assert not (tmp_path / "state" / "probe").exists() and (tmp_path / "data" / "probe").exists()


@needs_root
def test_the_first_process_takes_all_others_along() -> None:
    def start() -> list[int]:
        with surroundings.process_namespace() as is_own:
            if not is_own:
                return []
            reading, writing = os.pipe()
            first = os.fork()
            if first == 0:
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(30)
                os._exit(os.getpid())
        os.close(writing)
        _, status = os.waitpid(first, 0)
        os.read(reading, 1)  # its end: nobody has the other one any more
        ours = os.fork()
        if ours == 0:
            os._exit(0)
        os.waitpid(ours, 0)
        return [os.waitstatus_to_exitcode(status), ours > 2]

    found = forked(start)
    if found == []:
        pytest.skip("this kernel refuses process namespaces")
    assert found == [1, True]


def test_the_program_itself_is_needed(tmp_path: Path) -> None:
    paths = [path for path, _ in surroundings.needed(settings_at(tmp_path))]
    assert os.path.dirname(os.path.dirname(sys.executable)) in paths
    assert any(Path(path, "svc", "app.py").exists() for path in paths)


@needs_root
def test_what_the_kernel_refuses_is_logged_and_no_more(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(surroundings, "_unshare", lambda _flags: os.close(-1))
    surroundings.enter(settings_at(tmp_path))
    with surroundings.process_namespace() as is_own:
        assert not is_own
    assert capfd.readouterr().err.count("cannot be its own") == 4


@pytest.mark.parametrize(("of_the_unit", "of_the_app"), [("-500\n", "0"), ("0\n", "0"), ("300\n", "300")])
def test_the_app_gives_up_what_the_unit_has_over_others(
    tmp_path: Path, of_the_unit: str, of_the_app: str
) -> None:
    """OOMScoreAdjust=-500 was the app's too: others were killed first, for memory that it took."""
    file = tmp_path / "oom_score_adj"
    file.write_text(of_the_unit)
    surroundings._forgo_preference(str(file))
    assert file.read_text().strip() == of_the_app
