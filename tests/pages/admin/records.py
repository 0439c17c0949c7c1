"""Records of the administration, as the API gives them."""

from __future__ import annotations

from typing import Any

from pages import records
from pages.canned import REFUSED, Canned
from pages.records import GIB, ago, page
from pages.records import workspace as workspace

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>'\"${7*7}\u202egnp.exe"

GRACE = {
    "session": records.SESSION["session"],
    "user": {"name": "grace", "display_name": "Grace Hopper", "superuser": True},
    "attention": {"tokens_expiring": 0, "reviews_waiting": 2, "gpus_lost": 1, "operations_failed": 0},
    "events_after": 0,
}


def account(name: str, person: str = "", **more: Any) -> dict[str, Any]:
    """An account with what it uses."""
    return {
        "name": name,
        "uid": 1000 + len(name),
        "display_name": person,
        "superuser": False,
        "disabled": False,
        "retired": False,
        "status": "READY",
        "note": "",
        "has_password": True,
        "password_closed": False,
        "quota": None,
        "created_at": ago(hours=900),
        "updated_at": ago(hours=20),
        "workspaces": 0,
        "running": 0,
        "gpus": 0,
        "image_bytes": 0,
        "templates": 0,
        "sessions": 0,
        "tokens": 0,
        "last_login_at": None,
        "last_action_at": ago(minutes=3),
    } | more


def accounts() -> list[dict[str, Any]]:
    """The accounts of the mock-up."""
    return [
        account(
            "ada", "Ada Lovelace", quota="lab", workspaces=7, running=3, gpus=3, image_bytes=41 * GIB,
            sessions=2, tokens=1, last_login_at=ago(hours=30),
        ),
        account("alan", "Alan Turing", disabled=True, status="DISABLED", has_password=False,
                last_action_at=None),
        account("emmy", "Emmy Noether", quota="heavy", workspaces=4, running=1, gpus=2, image_bytes=80 * GIB),
        account("grace", "Grace Hopper", superuser=True, sessions=1, last_action_at=ago(seconds=20)),
        account(
            "hedy", "Hedy Lamarr", status="PROVISIONING_CLEANUP_REQUIRED", has_password=False, uid=None,
            note="the Linux account hedy was there already with another home directory",
            last_action_at=None,
        ),
        account("katherine", "Katherine Johnson", quota="lab", workspaces=1, running=1, gpus=1,
                password_closed=True),
        account("radia", "Radia Perlman", quota="lab", workspaces=2, running=1, image_bytes=3 * GIB),
        account("joan:1012", "Joan Clarke", status="PROVISIONING_CLEANUP_REQUIRED", disabled=True,
                retired=True, uid=None,
                note="the Linux account joan (uid 1012) was removed; on record: 2 workspaces",
                last_action_at=ago(hours=4000)),
    ]  # fmt: skip


def quota(name: str, users: int = 0, **limits: Any) -> dict[str, Any]:
    """A policy: limits that are not named are none."""
    keys = ("max_workspaces", "max_running", "max_gpus", "max_cpu", "max_memory_bytes", "max_image_bytes")
    return {"name": name, "users": users} | dict.fromkeys(keys) | limits


def quotas() -> list[dict[str, Any]]:
    """The policies of the mock-up."""
    return [
        quota("course-2025", 0, max_workspaces=2, max_running=1, max_gpus=1, max_cpu=8.0,
              max_memory_bytes=32 * GIB, max_image_bytes=20 * GIB),
        quota("default", 5, max_workspaces=20, max_running=2, max_gpus=1, max_cpu=16.0,
              max_memory_bytes=128 * GIB, max_image_bytes=60 * GIB),
        quota("heavy", 1, max_running=6, max_gpus=4, max_cpu=96.0, max_memory_bytes=768 * GIB),
        quota("lab", 3, max_workspaces=12, max_running=4, max_gpus=4, max_cpu=64.0,
              max_memory_bytes=512 * GIB, max_image_bytes=120 * GIB),
    ]  # fmt: skip


def disk(name: str, *gib: float, hours: float | None = 12, **more: Any) -> dict[str, Any]:
    """What a user's disks hold: GiB in the order of the columns; without them it was never measured."""
    keys = ("images", "mapped", "cache", "containers", "volumes", "files")
    amounts: list[int | None] = [int(amount * GIB) for amount in gib] if gib else [None] * len(keys)
    return {
        "name": name, **{f"{key}_bytes": amount for key, amount in zip(keys, amounts, strict=True)},
        "total_bytes": sum(int(amount * GIB) for amount in gib) if gib else None,
        "files": 51_204 if gib else None, "complete": True if gib else None,
        "quota_image_bytes": 60 * GIB, "measured_at": ago(hours=hours or 0) if gib else None,
        "waiting": False, "error": None,
    } | more  # fmt: skip


def disks(*users: dict[str, Any]) -> dict[str, Any]:
    """The list of these users, or of some in all states."""
    items = list(users) or [
        disk("emmy", 80.4, 12, 6.5, 3.2, 0, 410, quota_image_bytes=None),
        disk("ada", 41, 0, 2.2, 0.04, 1, 96.5),
        disk("hedy", 12, 0, 0, 0, 0, 30, complete=False),
        disk("katherine", 8.5, 0, 0.5, 0, 0, 2, hours=60, error="the agent did not answer in 600 s"),
        disk("radia", 3, 0, 0, 0, 0, 1, waiting=True),
        disk("alan"),
    ]
    keys = [key for key in items[0] if key.endswith("_bytes") and not key.startswith("quota")]
    measured = [item["measured_at"] for item in items if item["measured_at"]]
    return page(items) | {
        "sums": {key: sum(item[key] or 0 for item in items) for key in keys},
        "waiting": sum(item["waiting"] for item in items),
        "oldest_measured_at": min(measured, default=None),
    }


def administrator(canned: Canned) -> None:
    """Have grace, an administrator, signed in, and the administration's answers."""
    canned.answers |= {
        "GET /api/auth/session": GRACE,
        "GET /api/admin/users": page(accounts()),
        "GET /api/admin/quotas": page(quotas()),
        "GET /api/admin/disk": disks(),
        "GET /api/servers/hardware": hardware(),
        "GET /api/images/allowlist": {"items": allowlist()},
        "GET /api/admin/audit": audit(),
        "GET /api/admin/host": report(findings()),
        "GET /api/admin/backups": report(backups()),
        "GET /api/admin/recovery-sets": report(recovery_sets(), hours=3),
        "GET /api/admin/updates": {"report": about(hours=3), "updates": updates()},
        "GET /api/admin/license": licence(),
        "GET /api/admin/audit/chain": chain(),
        "GET /api/events/history": page(lost_and_back()),
    }


def away() -> dict[str, Any]:
    """An error that is asked again by itself."""
    return REFUSED | {"code": "database_busy", "message": "the database is busy", "retryable": True}


def gpus() -> dict[str, Any]:
    """The GPUs of the mock-up: leased, lost, shared, used outside svc, free."""
    found = records.capacity()

    def held(owner: str, workspace: str, **age: float) -> dict[str, Any]:
        identity = {"workspace_id": f"ws-{workspace}", "since": ago(**age), "mine": False}
        return records.holder(owner, workspace) | identity

    train, sweep = held("ada", "train-7b", hours=3.2), held("emmy", "sweep-3", hours=26)
    shared = [held("ada", "notebook", hours=28), held("katherine", "stats", hours=4)]
    outside = {"pid": 388201, "owner": "hedy", "used_bytes": int(61.2 * GIB)}
    changes: list[dict[str, Any]] = [
        {"holders": [train], "use_percent": 97, "used_bytes": int(71.4 * GIB)},
        {"holders": [train], "use_percent": 96, "used_bytes": int(71.4 * GIB)},
        {"holders": [sweep], "use_percent": 4, "used_bytes": int(2.1 * GIB)},
        {"holders": [sweep], "state": "lost", "index": None, "use_percent": None, "used_bytes": None},
        {"holders": shared, "use_percent": 12, "used_bytes": 18 * GIB},
        {"processes": [outside], "use_percent": 71, "used_bytes": outside["used_bytes"]},
        {},
        {"state": "unusable", "use_percent": None, "used_bytes": None},
    ]
    found["gpus"] = [gpu | change for gpu, change in zip(found["gpus"], changes, strict=True)]
    return found


def hardware() -> dict[str, Any]:
    """Driver and GPUs."""
    return {
        "provider": "nvml",
        "driver": "570.133.20",
        "max_cuda": "12.8",
        "gpus": [],
        "cdi": {"ready": True, "problem": None, "remedy": None},
    }


def lost_and_back() -> list[dict[str, Any]]:
    """Events of GPUs, of somebody else."""

    def event(number: int, kind: str, **age: float) -> dict[str, Any]:
        return {
            "id": number,
            "ts": ago(**age),
            "type": kind,
            "owner": "emmy",
            "actor": {"user": None, "via": None},
            "subject": {"type": "workspace", "id": "ws-sweep-3", "name": "sweep-3"},
            "reason": None,
            "data": None,
        }

    return [
        event(3, "gpu.lost", hours=5),
        event(2, "gpu.restored", hours=200),
        event(1, "gpu.lost", hours=201),
    ]


def allowlist() -> list[dict[str, Any]]:
    """The registries of the mock-up."""
    return [
        {"host": "registry.lab.example", "path_prefix": "", "insecure": False},
        {"host": "docker.io", "path_prefix": "", "insecure": False},
        {"host": "quay.io", "path_prefix": "jupyter/", "insecure": False},
        {"host": "10.20.0.5:5000", "path_prefix": "", "insecure": True},
    ]


def about(**age: float) -> dict[str, Any]:
    """How old a report is."""
    hours = age.get("hours", 0) + age.get("minutes", 0) / 60
    return {
        "written_at": ago(**age),
        "age_s": int(hours * 3600),
        "old": hours > 26,
        "command": "sudo svc admin doctor",
    }


def chain(level: str | None = "ok", **age: float) -> dict[str, Any]:
    """The state of the audit's chain."""
    return {
        "report": about(**(age or {"minutes": 2})),
        "level": level,
        "found": "48112 rows, unbroken since the last look",
        "remedy": "",
        "head": {"id": 48112, "hash": "9f2c" + "0" * 58 + "a1"},
        "archived": {"id": 1200, "hash": "77" * 32},
    }


def audit_row(number: int, action: str, **more: Any) -> dict[str, Any]:
    """A row of the audit."""
    return {
        "id": number,
        "at": ago(seconds=(48112 - number) * 63),
        "user": "ada",
        "via": "session",
        "address": "10.20.4.17",
        "action": action,
        "target": f"ws-{number}",
        "target_name": "",
        "target_owner": None,
        "outcome": "ok",
        "request_id": f"req-{number}",
        "detail": {},
        "hash": f"{number:064x}",
    } | more


def audit(total: int = 48112) -> dict[str, Any]:
    """The newest rows of the mock-up, of tens of thousands."""
    pair = {"request_id": "req-1", "target": "ws-x81mfq2c", "user": "grace"}
    rows = [
        audit_row(48112, "fs.upload", target="work/runs/corpus-02.parquet", detail={"bytes": 13529146982}),
        audit_row(48111, "workspace.exec", via="token", detail={"token": "tok-4k2m9x7p", "exit": 0}),
        audit_row(48110, "workspace.start", outcome="gpu_unavailable", via="socket", address="",
                  target_name="eval-harness", detail={"requested": 4, "free": 2}),
        audit_row(48109, "workspace.stop", target_name="sweep-3", target_owner="emmy", **pair),
        audit_row(48108, "workspace.stop", outcome="begun", target_name="sweep-3", **pair),
        audit_row(48107, "auth.login", user="(unknown)", target="root", outcome="unauthenticated",
                  address="203.0.113.9"),
        audit_row(48106, "image.build", outcome="interrupted", via="worker", address=""),
        audit_row(48105, "workspace.start", outcome="begun"),
    ]  # fmt: skip
    rows += [audit_row(number, "fs.read") for number in range(48104, 48062, -1)]
    return page(rows) | {"total": total, "limit": 50, "next_offset": 50}


def report(items: list[dict[str, Any]], **age: float) -> dict[str, Any]:
    """A report of root's."""
    return page(items) | {"report": about(**(age or {"minutes": 2}))}


def no_report() -> dict[str, Any]:
    """None yet."""
    return page([]) | {"report": about() | {"written_at": None, "age_s": None, "old": True}}


def finding(code: str, level: str, found: str, remedy: str = "") -> dict[str, Any]:
    """A finding of the doctor."""
    return {"code": code, "level": level, "found": found, "remedy": remedy}


def findings() -> list[dict[str, Any]]:
    """The findings of the mock-up."""
    fine = [finding(f"check_{number}", "ok", "as it should be") for number in range(20)]
    return [
        *fine[:10],
        finding("docker_group", "warn", "hedy is in the group docker, which equals root",
                "sudo svc admin doctor --repair"),
        finding("cdi", "fail", "the specification is of driver 565.57.01, the driver is 570.133.20",
                "sudo svc admin report"),
        finding("clock", "warn", "the clock is not synchronised", "see the time service of the host"),
        *fine[10:],
    ]  # fmt: skip


def backups() -> list[dict[str, Any]]:
    """A snapshot of each night."""
    return [
        {
            "name": f"svc-{number}.db",
            "created_at": ago(hours=11 + 24 * number),
            "size_bytes": 41 << 20,
            "schema": 30,
            "commit": "cbb2249f00",
            "refused": "its schema is newer" if number == 1 else None,
            "host_files": number != 2,
        }
        for number in range(9)
    ]


def recovery_sets() -> list[dict[str, Any]]:
    """Two sets, of which one cannot be applied."""
    shared = {"kind": "upgrade", "created_at": ago(days=9), "why": "before the upgrade to 0.2.0",
              "version": "0.1.0", "commit": "cbb2249f00", "next_version": "0.2.0", "schema": 29,
              "size_bytes": 300 << 20}  # fmt: skip
    return [
        shared | {"id": "upgrade-20261114T164523.123Z", "applicable": True, "problem": "", "remedy": ""},
        shared
        | {
            "id": "restore-20261001T090000.000Z",
            "applicable": False,
            "problem": "its package is not here any more",
            "remedy": "sudo svc admin restore /var/lib/svc/recovery/x/svc.db",
        },
    ]


def updates(**more: Any) -> dict[str, Any]:
    """A release that is out."""
    return {
        "installed_version": "0.1.0",
        "installed_commit": "cbb2249f00aa",
        "installed_by": "package",
        "source": "https://releases.example/svc",
        "release_keys": 1,
        "checked_at": ago(hours=3),
        "problem": "",
        "available": "0.2.0",
        "notes": "Pages for the browser.",
        "applied_at": None,
        "outcome": "",
        "reason": "",
    } | more


def licence(**more: Any) -> dict[str, Any]:
    """A trial that ends soon."""
    notice = {"code": "license_ending", "message": "the trial ends in 12 days"}
    return {
        "kind": "trial",
        "state": "ending",
        "starts_at": ago(days=18),
        "ends_at": ago(days=-12),
        "days_left": 12,
        "id": None,
        "holder": None,
        "limits": {"users": None, "gpus": None},
        "used": {"users": 7, "gpus": 5},
        "problem": None,
        "request_code": "SVC1-4K2M-9X7P",
        "keys": ["k1"],
        "notices": [notice | {"hint": "sudo svc admin license request"}],
    } | more
