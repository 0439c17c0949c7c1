"""Answers of the images screen: those that the mock-up shows."""

from __future__ import annotations

from typing import Any

from pages import records
from pages.canned import Canned
from pages.composer import records as composer
from pages.records import GIB, ago, page

NAMES = ("torch", "jupyter", "debian-tools", "my-torch", "vllm", "rstudio", "eval")
PRUNE = "POST /api/images/prune"
OVERVIEW = "GET /api/images/overview"


def stored(number: int, names: list[str], size: float, alone: float, **more: Any) -> dict[str, Any]:
    """One image of the store; what nobody needs is unused."""
    record: dict[str, Any] = {
        "image_id": f"{number:064x}",
        "names": names,
        "size_bytes": int(size * GIB),
        "unique_bytes": int(alone * GIB),
        "shared_bytes": int((size - alone) * GIB),
        "reclaimable_bytes": 0,
        "unused": False,
        "created_at": ago(days=9),
        "used_by": [],
        "templates": [],
        "containers": 0,
    } | more
    if record["unused"]:
        record["reclaimable_bytes"] = record["unique_bytes"]
    return record


def of(name: str) -> list[dict[str, str]]:
    """The template of an image."""
    return [{"id": f"tpl-{name}", "name": name}]


def overview(items: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    """The store of the mock-up."""
    jupyter = "quay.io/jupyter/pytorch-notebook"
    found = items if items is not None else [
        stored(
            1, ["registry.lab.example/ml/torch:2.6"], 9.8, 6.7, used_by=["train-7b"], templates=of("torch")
        ),
        stored(
            2, [f"{jupyter}:cuda12-2025-11"], 7.1, 4.0,
            used_by=["notebook", "paper-figures"], templates=of("jupyter"),
        ),
        stored(3, ["docker.io/library/debian:12"], 0.4, 0.4, containers=1, templates=of("debian-tools")),
        stored(4, [f"{jupyter}:cuda12-2025-08"], 6.9, 6.9, unused=True),
        stored(5, ["localhost/svc/tpl-my-torch:b785f2ff"], 13.9, 4.2, unused=True, templates=of("my-torch")),
        stored(6, [], 3.1, 3.1, unused=True),
    ]  # fmt: skip
    return {
        "items": found,
        "total_bytes": int(38.6 * GIB),
        "reclaimable_bytes": sum(item["reclaimable_bytes"] for item in found),
        "free_bytes": 412 * GIB,
        "unused_volumes": 0,
        "quota_bytes": 120 * GIB,
    } | more


def images() -> list[dict[str, Any]]:
    """The image of each template."""
    return [
        composer.image("torch"),
        composer.image("jupyter"),
        composer.image("debian-tools"),
        composer.image("my-torch"),
        composer.image("vllm", "pulling", operation={"id": "op-1", "phase": "pulling"}),
        composer.image("rstudio", "missing"),
        composer.image("eval", "failed", ref="localhost/svc/tpl-eval:4a5c1f53", error="step 5 of 6: exit 1"),
    ]


def operations() -> list[dict[str, Any]]:
    """A pull and a build; and a set-up, which pulls for its workspace."""
    base = records.SETUP
    building = {"current": 3, "total": 6, "unit": "steps", "text": "RUN pip install -r requirements.txt"}
    return [
        base | {
            "id": "op-1", "kind": "pull",
            "subject": {"type": "image", "id": "i", "name": "docker.io/team/vllm:1"},
        },
        base | {
            "id": "op-2", "kind": "build", "phase": "building", "progress": building,
            "template": {"id": "tpl-eval", "name": "eval"},
            "subject": {"type": "image", "id": "j", "name": "localhost/svc/tpl-eval:4a5c1f53"},
        },
        base | {"id": "op-3", "status": "queued", "progress": {}},
    ]  # fmt: skip


def serve(canned: Canned) -> None:
    """The answers of the images screen."""
    canned.answers |= {
        OVERVIEW: overview(),
        "GET /api/images": page(images()),
        "GET /api/operations": page(operations()),
        "GET /api/templates": page([{"id": f"tpl-{name}", "name": name, "findings": []} for name in NAMES]),
    }
