"""The program that changes a container's configuration, without a container."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from svc_helper import interpreter
from svc_helper.agent.containers import hook

HOOK = interpreter.command("svc_helper.agent.containers.hook")


def config() -> dict[str, Any]:
    """What Podman hands over, as far as it matters."""
    return {
        "process": {"args": ["sh"], "env": ["PATH=/bin", "COLOUR=blue", "HOSTNAME=x"], "user": {"uid": 0}},
        "mounts": [
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid"]},
            {"destination": "/dev/shm", "type": "bind", "source": "/somewhere/shm", "options": ["bind"]},
        ],
        "linux": {"resources": {"memory": {"limit": 1, "swap": 1}, "pids": {"limit": 7}}},
        "hooks": {"poststop": [{"path": "/theirs"}]},
    }


def run(path: Path, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    """The hook as Podman runs it."""
    argv = [*HOOK, str(path)]
    return subprocess.run(argv, input=stdin, capture_output=True, check=False, timeout=60)


def test_nothing_to_change_changes_nothing() -> None:
    assert hook.apply(config(), {"token": "t"}) == config()


def test_variables() -> None:
    overrides = {"without": ["COLOUR", "ABSENT"], "env": {"PATH": "/opt:/bin", "NEW": "a=b c", "EMPTY": ""}}
    created = hook.apply(config(), overrides)["process"]["env"]
    assert created == ["HOSTNAME=x", "PATH=/opt:/bin", "NEW=a=b c", "EMPTY="]


def test_limits_are_replaced_and_taken_away() -> None:
    limits = {"memory": {"limit": 5, "swap": 5}, "pids": None, "cpu": {"period": 100_000, "quota": 50_000}}
    created = hook.apply(config(), {"limits": limits, "shm_bytes": 1 << 20})
    assert created["linux"]["resources"] == {"memory": limits["memory"], "cpu": limits["cpu"]}
    assert [mount["destination"] for mount in created["mounts"]] == ["/dev", "/dev/shm"], "in the same place"
    assert created["mounts"][1]["type"] == "tmpfs"
    assert "size=1048576" in created["mounts"][1]["options"]


def test_limits_where_there_were_none() -> None:
    bare = config() | {"linux": {}}
    assert hook.apply(bare, {"limits": {"cpu": {"quota": 1}}})["linux"]["resources"] == {"cpu": {"quota": 1}}
    with pytest.raises(LookupError):
        hook.apply(config() | {"mounts": []}, {"shm_bytes": 1 << 20})


def test_devices() -> None:
    mount = {"destination": "/dev/nvidia0", "type": "bind", "source": "/dev/null", "options": ["rbind"]}
    cdi = {
        "env": ["COLOUR=green", "NVIDIA_VISIBLE_DEVICES=void"],
        "mounts": [mount],
        "hooks": {"createContainer": [{"path": "/bin/true"}], "poststop": [{"path": "/bin/false"}]},
        "gids": [44],
    }
    created = hook.apply(config(), {"cdi": cdi})
    assert created["process"]["env"][-2:] == ["COLOUR=green", "NVIDIA_VISIBLE_DEVICES=void"]
    assert "COLOUR=blue" not in created["process"]["env"]
    assert created["mounts"][-1] == mount
    assert created["hooks"]["createContainer"] == [{"path": "/bin/true"}]
    assert [entry["path"] for entry in created["hooks"]["poststop"]] == ["/theirs", "/bin/false"]
    assert created["process"]["user"]["additionalGids"] == [44]


def test_as_podman_runs_it(tmp_path: Path) -> None:
    overrides = tmp_path / "o"
    overrides.write_text(json.dumps({"token": "secret", "env": {"NEW": "\u00fc\n"}}))
    done = run(overrides, json.dumps(config()).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["process"]["env"][-1] == "NEW=\u00fc\n"
    assert json.loads(Path(f"{overrides}.said").read_text()) == {"token": "secret", "done": True}


@pytest.mark.parametrize("stdin", [b"", b"{", b"[]", b"{}", b"\xff"])
def test_what_it_does_not_understand_fails_the_start(tmp_path: Path, stdin: bytes) -> None:
    overrides = tmp_path / "o"
    overrides.write_text(json.dumps({"token": "secret"}))
    done = run(overrides, stdin)
    assert (done.returncode, done.stdout) == (1, b"")
    said = json.loads(Path(f"{overrides}.said").read_text())
    assert (said["token"], said["done"]) == ("secret", False)
    assert said["why"]


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "\x00"])
def test_broken_overrides_fail_the_start(tmp_path: Path, content: str) -> None:
    overrides = tmp_path / "o"
    overrides.write_text(content)
    done = run(overrides, json.dumps(config()).encode())
    assert (done.returncode, done.stdout) == (1, b"")
    os.unlink(overrides)
    assert run(overrides, json.dumps(config()).encode()).returncode == 1
