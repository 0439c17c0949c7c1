"""Records of one workspace's pages, as the API gives them."""

from __future__ import annotations

from typing import Any

from pages import records
from pages.canned import Canned

ID = "ws-train-7b"
PATH = f"/api/workspaces/{ID}"
VERSION = '"aaaa.bbbb.cccc"'


def of_the_mock_up(**more: Any) -> dict[str, Any]:
    """The running workspace of the mock-up."""
    found = next(item for item in records.of_the_mock_up() if item["name"] == "train-7b")
    return found | {"display_name": "7B from scratch, run 3"} | more


def answer(record: dict[str, Any], version: str = VERSION) -> tuple[int, Any, dict[str, str]]:
    """A record with its version."""
    return 200, record, {"ETag": version}


def serve(canned: Canned, record: dict[str, Any]) -> None:
    """Answer with this record, by its name and by its id."""
    for ref in (record["name"], record["id"]):
        canned.answers[f"GET /api/workspaces/{ref}"] = answer(record)


def launcher(name: str, title: str, state: str = "started", **more: Any) -> dict[str, Any]:
    """The state of a launcher."""
    record = {
        "name": name,
        "title": title,
        "port": None,
        "autostart": False,
        "state": state,
        "exit_code": None,
        "started_at": None if state == "stopped" else records.ago(hours=3),
        "finished_at": records.ago(minutes=22) if state == "exited" else None,
        **dict.fromkeys(("kind", "host_port", "url", "connect", "ssh", "token", "link")),
    }
    return record | more


def served(outside: int, kind: str = "http", connect: str = "") -> dict[str, Any]:
    """What the record of a launcher has of the port that it serves."""
    address = f"127.0.0.1:{outside}"
    url = f"{kind}://{address}" if kind.startswith("http") else None
    ssh = f"ssh -N -L {outside}:{address} ada@gpu-01.lab.example"
    return {"kind": kind, "host_port": outside, "url": url, "connect": connect or url or address, "ssh": ssh}


def port(name: str, inside: int, outside: int, **more: Any) -> dict[str, Any]:
    """The state of a port."""
    record = {
        "name": name,
        "container_port": inside,
        "host_port": outside,
        "access": "owner",
        "user": None,
        **served(outside),
        "state": "open",
        "connections": 0,
        "refused": 0,
    }
    return record | more


def launchers() -> list[dict[str, Any]]:
    """Two that run and one that has ended; times are counted from the call."""
    return [
        launcher("tensorboard", "TensorBoard", port="board", autostart=True, **served(20011)),
        launcher("train", "Trainer", started_at=records.ago(hours=3, minutes=-5)),
        launcher("jupyter", "JupyterLab", "exited", port="lab", exit_code=1, **served(20012)),
    ]


TOKEN = "b2e6c1f0d97a4c35"
SSHD = "ssh -p 20014 root@127.0.0.1"


def kinds() -> list[dict[str, Any]]:
    """A page with a token in its address, one with a password, an ssh server, a plain port."""
    link = f"http://127.0.0.1:20012/lab?token={TOKEN}"
    return [
        launcher("jupyter", "JupyterLab", port="lab", token=TOKEN, link=link, **served(20012)),
        launcher("code", "code-server", port="code", token=f"{TOKEN}-pw", **served(20013, "https")),
        launcher("sshd", "", port="login", **served(20014, "ssh", SSHD)),
        launcher("redis", "", port="cache", **served(20015, "tcp")),
    ]


def kinds_ports() -> list[dict[str, Any]]:
    """Their ports."""
    return [
        port(item["port"], item["host_port"], item["host_port"])
        | {key: item[key] for key in ("kind", "url", "connect", "ssh")}
        for item in kinds()
    ]


PORTS = [port("board", 6006, 20011, connections=2), port("lab", 8888, 20012)]
LINES = [
    "step 41860  loss 2.1147  lr 2.31e-04  tok/s 48 912  mem 71.4 GiB",
    "step 41870  loss 2.1139  lr 2.31e-04  tok/s 48 897  mem 71.4 GiB",
    "step 41880  loss 2.1151  lr 2.31e-04  tok/s 48 920  mem 71.4 GiB",
    "checkpoint written to /work/runs/7b/step-41880 in 38 s",
    "step 41890  loss 2.1128  lr 2.30e-04  tok/s 48 905  mem 71.4 GiB",
]


def log(*lines: str) -> dict[str, Any]:
    """The newest output."""
    text = "".join(f"{line}\n" for line in lines)
    return {"text": text, "truncated": False, "older_gone": False, "markers": []}


def row(action: str, minutes: float, **more: Any) -> dict[str, Any]:
    """One row of the activity of the mock-up's workspace."""
    record = {
        "id": 1,
        "at": records.ago(minutes=minutes),
        "user": "ada",
        "via": "session",
        "address": "10.20.4.17",
        "action": action,
        "target": ID,
        "target_name": "train-7b",
        "target_owner": None,
        "outcome": "ok",
        "request_id": f"req-{action}-{minutes}",
        "detail": {},
    }
    return record | more


ROWS = [
    row("terminal.open", 30),
    row("workspace.start", 192, via="socket", address=""),
    row(
        "workspace.start",
        193,
        via="socket",
        address="",
        outcome="begun",
        request_id="req-workspace.start-192",
    ),
    row("workspace.stop", 194, user="root", via="admin", address="", target_owner="ada"),
    row("workspace.edit", 195, detail={"keys": ["resources"]}),
    row("workspace.start", 196, outcome="gpu_unavailable"),
    row(
        "workspace.reconcile",
        197,
        via="worker",
        outcome="stopped",
        detail={"reason": "oom_killed", "exit_code": 137},
    ),
]


def begun_and_ended(action: str, minutes: float, **detail: Any) -> list[dict[str, Any]]:
    """The rows of an action: what it was done to stands in that of its beginning."""
    request = {"request_id": f"req-{action}"}
    return [row(action, minutes, **request), row(action, minutes, outcome="begun", detail=detail, **request)]


HISTORY = [
    row("terminal.attach", 1),
    *begun_and_ended("workspace.port_remove", 2, port="board"),
    *begun_and_ended("workspace.launcher_start", 3, launcher="tensorboard", autostart=False),
    row("terminal.attach", 4),
    row("workspace.edit", 5, detail={"keys": ["display_name", "replace_container", "resources"]}),
    row("workspace.launcher_stop", 6),
    row("workspace.rename", 7),
    row("workspace.launcher_end", 8, via="worker", outcome="exited"),
]


def gpu(number: int, percent: int) -> dict[str, Any]:
    """What the workspace uses of a GPU."""
    return {
        "uuid": records.UUIDS[number],
        "model": "NVIDIA H100 80GB HBM3",
        "vram_bytes": int(79.6 * records.GIB),
        "used_bytes": int(71.4 * records.GIB),
        "utilization_percent": percent,
        "processes": [],
    }


def snapshot() -> dict[str, Any]:
    """What it uses now."""
    return {
        "at": records.ago(seconds=1),
        "source": "cgroup",
        "cpu_percent": 1820.0,
        "cpu_limit": 32.0,
        "memory_bytes": 171 * records.GIB,
        "memory_limit_bytes": 256 * records.GIB,
        "pids": 40,
        "pids_limit": 4096,
        "gpus": [gpu(0, 97), gpu(1, 96)],
        "processes": [],
        "more_processes": 0,
    }


def running(**more: Any) -> dict[str, Any]:
    """The running workspace of the mock-up, with its apps and ports."""
    keys = ("name", "title", "port", "autostart", "url")
    open_keys = ("name", "container_port", "host_port", "access", "kind", "user", "url", "connect", "ssh")
    image = {"ref": "registry.lab.example/ml/torch:2.6-cuda12.6", "digest": "sha256:" + "f9a57e6f" * 8}
    facts = {
        "image": image,
        "launchers": [{key: item[key] for key in keys} for item in launchers()],
        "ports": [{key: item[key] for key in open_keys} for item in PORTS],
        "env": [{"name": "RUN", "value": "7b"}, {"name": "WANDB_MODE", "value": "offline"}],
        "mounts": [{"root": "work", "path": "/work", "read_only": False}],
        "idle": {"since": None, "keep_until": None, "action": "notify", "after_minutes": 240},
        "restart_on_boot": True,
    }
    record = of_the_mock_up(**(facts | more))
    record["resources"] |= {"shm_bytes": 64 * records.GIB}
    return record


def serve_kinds(canned: Canned) -> None:
    """Answer for a running workspace whose apps are reached in several ways, two of them with a token."""
    keys = ("name", "title", "port", "autostart", "url")
    serve_all(
        canned, running(launchers=[{key: item[key] for key in keys} for item in kinds()], ports=kinds_ports())
    )
    canned.answers |= {
        f"GET {PATH}/launchers": {"items": kinds()},
        f"GET {PATH}/ports": {"items": kinds_ports()},
    }
    for item in kinds():
        canned.answers[f"GET {PATH}/launchers/{item['name']}/logs"] = log(*LINES)


def failed_at_once(**more: Any) -> dict[str, Any]:
    """What a start answers whose autostart app has ended already."""
    output = ["Traceback (most recent call last):", "OSError: [Errno 98] Address already in use"]
    return running(launchers_failed=[{"name": "jupyter", "exit_code": 1, "output": output}]) | more


def vllm(**more: Any) -> dict[str, Any]:
    """The stopped workspace of the mock-up."""
    facts = {"display_name": "Llama for the reading group", "exit_code": 137, "status_reason": "oom_killed"}
    record = records.workspace(
        "vllm-serve",
        resources=records.size(16, 96, 1) | {"shm_bytes": 16 * records.GIB},
        template={"name": "vllm", "revision": 3},
        stopped_at=records.ago(minutes=14),
    )
    return record | facts | more


OUTPUT = [
    "INFO 11-24 14:16:40 model_runner.py: loading weights took 41.2 s",
    "INFO 11-24 14:17:02 gpu_executor.py: GPU blocks: 27896, CPU blocks: 131072",
    "INFO 11-24 14:17:55 engine.py: swap space 64 GiB is being pinned",
]


def without_gpus(canned: Canned) -> None:
    """A host without any, as the headroom says it."""
    found = records.capacity()
    found["host"] |= {"gpus": 0, "gpus_free": 0}
    canned.answers["GET /api/workspaces/capacity"] = found | {"gpus": []}


def serve_all(canned: Canned, record: dict[str, Any] | None = None) -> dict[str, Any]:
    """Answer for the running workspace of the mock-up, or for another, with all that its pages ask for."""
    record = record or running()
    serve(canned, record)
    path = f"/api/workspaces/{record['id']}"
    rows = [item | {"target": record["id"]} for item in ROWS]
    canned.answers |= {
        f"GET {path}/launchers": {"items": launchers() if record["launchers"] else []},
        f"GET {path}/ports": {"items": PORTS if record["ports"] else []},
        f"GET {path}/monitor": snapshot(),
        f"GET {path}/logs": log(*OUTPUT),
        "GET /api/audit": records.page(rows),
    }
    for item in launchers():
        canned.answers[f"GET {path}/launchers/{item['name']}/logs"] = log(*LINES)
    return record
