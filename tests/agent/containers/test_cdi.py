"""What a GPU needs, out of specifications as an administrator's host has them; then in a real container."""

from __future__ import annotations

import base64
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.priv_ns import NO_LIMITS, Agent, Namespace, User

from svc_helper.agent.calls import Failure
from svc_helper.agent.containers import cdi

Make = Callable[..., str]
GPU = "nvidia.com/gpu="
NULL = Path("/dev/null").stat().st_rdev


def specification(*devices: dict[str, Any], **edits: Any) -> dict[str, Any]:
    """A specification of GPUs; `edits` is what all of them need."""
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "devices": list(devices),
        "containerEdits": edits,
    }


def device(name: str, **edits: Any) -> dict[str, Any]:
    """One device of it."""
    return {"name": name, "containerEdits": edits}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The two directories of specifications."""
    created = (tmp_path / "etc", tmp_path / "run")
    for place in created:
        place.mkdir()
    monkeypatch.setattr(cdi, "DIRECTORIES", tuple(str(place) for place in created))
    return created


def put(place: Path, name: str, spec: Any) -> None:
    """Write a specification; a text as it is."""
    place.joinpath(name).write_text(spec if isinstance(spec, str) else json.dumps(spec))


def failure(*devices: str) -> Failure:
    """Why these cannot be had."""
    with pytest.raises(Failure) as raised:
        cdi.resolve(list(devices))
    return raised.value


def test_all_parts(places: tuple[Path, Path]) -> None:
    common = {
        "env": ["NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [{"path": "/dev/nvidiactl", "hostPath": "/dev/null"}],
        "mounts": [{"hostPath": "/etc/hostname", "containerPath": "/usr/lib/x", "options": ["ro", "nosuid"]}],
        "hooks": [
            {
                "hookName": "createContainer",
                "path": "/usr/bin/nvidia-ctk",
                "args": ["nvidia-ctk", "hook"],
                "env": ["A=1"],
                "timeout": 5,
            }
        ],
        "additionalGids": [44],
    }
    own = {"path": "/dev/null", "type": "c", "major": 1, "minor": 3, "fileMode": 438, "permissions": "rw"}
    put(places[0], "nvidia.json", specification(device("0", deviceNodes=[own]), device("1"), **common))
    created = cdi.resolve([f"{GPU}0", f"{GPU}1"])
    assert created.env == ["NVIDIA_VISIBLE_DEVICES=void"], "what all need is taken once"
    assert [(mount["source"], mount["destination"]) for mount in created.mounts] == [
        ("/dev/null", "/dev/nvidiactl"),
        ("/etc/hostname", "/usr/lib/x"),
        ("/dev/null", "/dev/null"),
    ]
    assert created.mounts[1]["options"] == ["ro", "nosuid", "rbind"]
    assert created.hooks["createContainer"][0]["args"] == ["nvidia-ctk", "hook"]
    assert created.gids == [44]
    control, node = (cdi.Node(path, stat.S_IFCHR, NULL) for path in ("/dev/nvidiactl", "/dev/null"))
    assert created.nodes == {f"{GPU}0": [control, node], f"{GPU}1": [control]}
    assert cdi.missing(os.getpid(), created.nodes) == [f"{GPU}0", f"{GPU}1"], "this host has no nvidiactl"
    assert cdi.missing(os.getpid(), {f"{GPU}0": [node]}) == []
    assert cdi.missing(os.getpid(), {f"{GPU}0": [node._replace(rdev=NULL + 1)]}) == [f"{GPU}0"]
    assert cdi.missing(2**22 + 1, {f"{GPU}0": [node]}) == [f"{GPU}0"], "nobody there any more"


def test_the_later_directory_wins(places: tuple[Path, Path]) -> None:
    put(places[0], "a.json", specification(device("0", env=["FROM=etc"])))
    put(places[1], "z.json", specification(device("0", env=["FROM=run"])))
    put(places[1], "other.json", specification(device("0")) | {"kind": "other.example/gpu"})
    assert cdi.resolve([f"{GPU}0"]).env == ["FROM=run"]


def test_what_is_not_there(places: tuple[Path, Path]) -> None:
    assert (failure(f"{GPU}0").code, failure(f"{GPU}0").message) == (
        "conflict",
        "this host has no CDI device nvidia.com/gpu=0",
    )
    put(places[0], "a.json", specification(device("1")))
    assert failure(f"{GPU}0").code == "conflict"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"kind": 1}',
        "[" * 100_000,
        '{"kind": "nvidia.com/gpu", "devices": {}}',
        "x" * (1 << 21),
    ],
)
def test_a_broken_file_is_named(places: tuple[Path, Path], content: str) -> None:
    put(places[0], "a.json", content)
    broken = failure(f"{GPU}0")
    assert broken.code == "failed"
    assert f"{places[0]}/a.json" in broken.message
    assert "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml" in broken.message
    put(places[0], "b.json", specification(device("0")))
    assert cdi.resolve([f"{GPU}0"]), "and does not matter where another one has the device"


def test_a_file_that_is_none(places: tuple[Path, Path]) -> None:
    os.mkfifo(places[0] / "a.json")
    assert failure(f"{GPU}0").code == "failed", "and nothing waits for it"


@pytest.mark.parametrize(
    "edits",
    [
        {"env": ["=x"]},
        {"env": "A=1"},
        {"env": [1]},
        {"deviceNodes": [{"path": "dev/null"}]},
        {"deviceNodes": [{"path": "/dev/../null"}]},
        {"deviceNodes": [{"path": "/dev/null", "type": "q"}]},
        {"deviceNodes": [{"path": "/dev/null", "type": "b"}]},
        {"deviceNodes": [{"path": "/dev/null", "major": 195, "minor": 0}]},
        {"deviceNodes": [{"path": "/dev/nvidia-not-there"}]},
        {"deviceNodes": [{"path": "/dev/nvidia0", "hostPath": "/etc/hostname"}]},
        {"deviceNodes": ["x"]},
        {"mounts": [{"hostPath": "/etc/hostname"}]},
        {"mounts": [{"hostPath": "/not/there", "containerPath": "/x"}]},
        {"mounts": [{"hostPath": "/etc/hostname", "containerPath": "/x", "options": "ro"}]},
        {"hooks": [{"hookName": "whenever", "path": "/bin/true"}]},
        {"hooks": [{"hookName": "prestart", "path": "true"}]},
        {"hooks": [{"hookName": "prestart", "path": "/bin/true", "timeout": "1"}]},
        {"additionalGids": ["44"]},
    ],
)
def test_a_specification_that_does_not_fit(places: tuple[Path, Path], edits: dict[str, Any]) -> None:
    put(places[0], "a.json", specification(device("0", **edits)))
    broken = failure(f"{GPU}0")
    assert (broken.code, "does not fit this host" in broken.message) == ("failed", True)
    put(places[0], "a.json", specification(device("0"), **edits))
    assert failure(f"{GPU}0").code == "failed"


def test_a_device_described_twice(places: tuple[Path, Path]) -> None:
    for name in ("a.json", "b.json"):
        put(places[0], name, specification(device("0")))
    assert "more than once" in failure(f"{GPU}0").message


YAML = """\
---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits: &edits
    env:
    - GPU=from-yaml
    deviceNodes:
    - path: /dev/nvidia0
      hostPath: /dev/null
- name: "1"
  containerEdits: *edits
"""


def test_yaml(places: tuple[Path, Path]) -> None:
    put(places[0], "nvidia.yaml", YAML)
    created = cdi.resolve([f"{GPU}0", f"{GPU}1"])
    assert created.env == ["GPU=from-yaml"] * 2
    assert created.mounts[0]["destination"] == "/dev/nvidia0"


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize("content", ["{", "a: b: c", "!!python/object/apply:os.getpid []", BOMB, "\x00"])
def test_broken_yaml(places: tuple[Path, Path], content: str) -> None:
    put(places[0], "nvidia.yml", content)
    broken = failure(f"{GPU}0")
    assert (broken.code, "nvidia.yml" in broken.message) == ("failed", True)


# --- in a container ---------------------------------------------------------------------------


@pytest.fixture
def installed(namespace: Namespace) -> Iterator[Path]:
    """/etc/cdi of the agents, with two nodes in it that are as harmless as /dev/null."""
    place = Path(f"/proc/{namespace.holder.pid}/root/etc/cdi")
    for number in range(2):
        os.mknod(place / f"node{number}", 0o666 | stat.S_IFCHR, NULL)
        place.joinpath(f"node{number}").chmod(0o666)
    yield place
    for path in place.iterdir():
        path.unlink()


def gpu(number: int) -> dict[str, Any]:
    """A fake GPU, whose node lies elsewhere on the host."""
    node = {"path": f"/dev/nvidia{number}", "hostPath": f"/etc/cdi/node{number}"}
    return device(str(number), env=[f"FAKE_GPU_{number}=1"], deviceNodes=[node])


INSPECT = """ls /dev | grep -E '^(nvidia|fuse)'; env | grep -E '^(FAKE|NVIDIA)' | sort
if test -e /dev/nvidia1; then echo x >/dev/nvidia1; fi"""


def inspect(agent: Agent, ws: str) -> list[str]:
    """The GPUs that a command in the workspace sees."""
    done = agent.call("ctr.exec", id=ws, command=["sh", "-c", INSPECT], timeout_s=20).data
    assert done["exit_code"] == 0, base64.b64decode(done["stderr"])
    return base64.b64decode(done["stdout"]).decode().split()


@pytest.mark.root
@pytest.mark.parametrize("run_as", [None, {"uid": 1234, "gid": 1234}], ids=["root", "keep-id"])
def test_in_a_container(
    agent: Agent, make: Make, installed: Path, run_as: dict[str, int] | None, user: User
) -> None:
    common = {
        "env": ["NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [{"path": "/dev/fuse"}],
        "mounts": [
            {
                "hostPath": "/etc/hostname",
                "containerPath": "/usr/lib/fake-nvidia.txt",
                "options": ["ro", "nosuid", "nodev", "bind"],
            }
        ],
        "hooks": [
            {
                "hookName": "createContainer",
                "path": "/bin/sh",  # a hook must read the state that crun writes to it: broken pipe
                "args": ["sh", "-c", f"cat >/dev/null; touch {user.home}/work/hooked"],
            }
        ],
    }
    put(installed, "nvidia.json", specification(gpu(0), gpu(1), **common))
    ws = make(start=False, run_as=run_as)
    started = agent.call("ctr.start", id=ws, devices=[f"{GPU}1"]).data
    assert started["devices_missing"] == []
    assert inspect(agent, ws) == ["fuse", "nvidia1", "FAKE_GPU_1=1", "NVIDIA_VISIBLE_DEVICES=void"]
    assert Path(user.home, "work", "hooked").exists()
    assert agent.call("ctr.start", id=ws, devices=[f"{GPU}1"]).data == started
    again = agent.call("ctr.start", id=ws, devices=[f"{GPU}0"]).data
    assert again["devices_missing"] == [f"{GPU}0"], "it runs with another one"
    agent.call("ctr.stop", id=ws, grace_s=5)
    both = agent.call("ctr.start", id=ws, devices=[f"{GPU}0", f"{GPU}1"], env={"A": "1"}, resources=NO_LIMITS)
    assert both.data["devices_missing"] == []
    assert {"nvidia0", "nvidia1"} <= set(inspect(agent, ws))
    agent.call("ctr.stop", id=ws, grace_s=5)
    assert agent.call("ctr.start", id=ws).data["devices_missing"] == []
    assert inspect(agent, ws) == [], "without a lease there is no GPU"
    agent.call("ctr.stop", id=ws, grace_s=5)
    Path(user.home, "work", "hooked").unlink()


@pytest.mark.root
def test_in_a_container_by_yaml(agent: Agent, make: Make, installed: Path, directory: Path) -> None:
    """PyYAML lies where svc_helper does, as in an installation."""
    yaml = pytest.importorskip("yaml")
    shutil.copytree(Path(yaml.__file__).parent, directory / "site" / "yaml", dirs_exist_ok=True)
    put(installed, "nvidia.yaml", YAML.replace("/dev/null", "/etc/cdi/node0"))
    ws = make(start=False)
    assert agent.call("ctr.start", id=ws, devices=[f"{GPU}0"]).data["devices_missing"] == []
    assert "nvidia0" in inspect(agent, ws)


@pytest.mark.root
def test_a_gpu_that_has_gone(agent: Agent, make: Make, installed: Path) -> None:
    put(installed, "nvidia.json", specification(gpu(0), gpu(7)))
    ws = make(start=False)
    lost = agent.call("ctr.start", id=ws, devices=[f"{GPU}7"])
    assert (lost.code, "/etc/cdi/node7 does not exist" in lost.message["message"]) == ("failed", True)
    assert agent.call("ctr.inspect", id=ws).data["status"] == "created"
