"""Rows of the audit: those that the mock-up of the activity screen shows, and more of each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from pages.canned import Canned
from pages.records import GIB, ago

ADDRESS = "10.20.4.17"


def audited(number: int, action: str, target: str, outcome: str = "ok", **more: Any) -> dict[str, Any]:
    """One row; the lower its number, the older."""
    return {
        "id": number, "at": ago(minutes=10_000 - number), "user": "ada", "via": "session", "address": ADDRESS,
        "action": action, "target": target, "target_name": "", "target_owner": None, "outcome": outcome,
        "request_id": f"req-{number:012}", "detail": {},
    } | more  # fmt: skip


def of_the_mock_up() -> list[dict[str, Any]]:
    """Newest first."""
    build = {"request_id": "req-08f851414f97", "target_name": "my-torch"}
    path = "work/runs/7b/corpus-02.parquet"
    return [
        audited(
            99, "fs.upload", path, request_id="req-a825", detail={"bytes": int(12.6 * GIB), "size": 1}
        ),
        audited(98, "fs.upload", path, "begun", request_id="req-a825"),
        audited(97, "image.pull", "tpl-1", "begun", target_name="vllm"),
        audited(96, "workspace.start", "ws-1", "gpu_unavailable", target_name="vllm-serve", via="socket"),
        audited(95, "image.build", "tpl-2", "build_failed", via="worker", address="", **build),
        audited(
            94, "workspace.reconcile", "ws-1", "stopped", target_name="vllm-serve", via="worker", address="",
            detail={"from": "running", "reason": "oom_killed", "exit_code": 137},
        ),
        audited(93, "image.build", "tpl-2", "begun", **build),
        audited(
            92, "workspace.exec", "ws-2", target_name="train-7b", via="token",
            detail={"program": "pytest", "exit_code": 0, "token": "tok-ab12cd34"},
        ),
        audited(
            91, "workspace.idle", "ws-3", "stop", target_name="notebook", via="worker",
            detail={"after_minutes": 120},
        ),
        audited(90, "token.revoke", "tok-00000000", detail={"name": "old-laptop"}),
        audited(
            89, "workspace.stop", "ws-4", user="grace", target_name="label-tool", target_owner="ada",
            address="",
        ),
        audited(
            88, "admin.set_password", "ada", user="root", target_owner="ada", via="admin", address="",
        ),
        audited(87, "auth.login", "ada"),
        audited(86, "auth.login", "ada", "unauthenticated"),
        audited(85, "fs.move", "work/a", detail={"to": "work/b"}),
        audited(84, "workspace.delete", "ws-9", "interrupted", target_name="lost"),
        audited(83, "audit.count", "ada", "counted", request_id="", detail={"calls": 1234}),
        audited(82, "future.deed", "thing"),
    ]  # fmt: skip


def answers(canned: Canned, rows: list[dict[str, Any]]) -> Callable[[], tuple[int, Any, dict[str, str]]]:
    """GET audit, by its limit, offset, action and search; `rows` may grow meanwhile."""

    def answer() -> tuple[int, Any, dict[str, str]]:
        asked = {key: values[0] for key, values in parse_qs(canned.present.environ["QUERY_STRING"]).items()}
        found = [
            row
            for row in rows
            if row["action"].startswith(asked.get("action", ""))
            and asked.get("q", "") in f"{row['action']} {row['target']} {row['address']}"
            and asked.get("since", "") <= row["at"]
            and (row["at"] < asked["until"] if "until" in asked else True)
        ]
        limit, offset = int(asked["limit"]), int(asked.get("offset", 0))
        return 200, {
            "items": found[offset : offset + limit], "total": len(found), "limit": limit, "offset": offset,
            "next_offset": offset + limit if offset + limit < len(found) else None,
        }, {}  # fmt: skip

    return answer
