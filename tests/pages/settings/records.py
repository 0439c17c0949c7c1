"""What the settings show: those of the mock-up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pages.canned import Canned
from pages.records import GIB, ago, capacity, page


def ahead(**amount: float) -> str:
    """A time so far ahead."""
    return (datetime.now(UTC) + timedelta(**amount)).isoformat().replace("+00:00", "Z")


def me(**more: Any) -> dict[str, Any]:
    """GET users/me."""
    return {
        "name": "ada", "uid": 1001, "display_name": "Ada Lovelace", "superuser": False,
        "linux_account": {"name": "ada", "uid": 1001, "home": "/home/ada"}, "via": "session",
        "roots": ["home", "work"], "notices": [],
    } | more  # fmt: skip


def usage(**more: Any) -> dict[str, Any]:
    """GET usage/me."""
    room = capacity()
    return room["used"] | {"quota": room["quota"] | {"max_image_bytes": 120 * GIB}} | more


def token(name: str, prefix: str, days: float, **more: Any) -> dict[str, Any]:
    """A token that expires in so many days, or did."""
    return {
        "id": f"tok-{prefix[-5:].lower()}abc", "name": name, "prefix": prefix,
        "status": "active" if days > 0 else "expired", "expires_soon": 0 < days <= 7,
        "created_at": ago(days=25), "expires_at": ahead(days=days),
        "last_used_at": None, "last_used_from": None,
    } | more  # fmt: skip


def tokens() -> list[dict[str, Any]]:
    """The four of the mock-up."""
    used = {"last_used_at": ago(minutes=3), "last_used_from": "10.20.7.88"}
    return [
        token("ci-eval", "svc_pat_4Kq9x", 4.5, **used),
        token("laptop", "svc_pat_b71Lm", 67.5, last_used_at=ago(days=1), last_used_from="10.20.4.17"),
        token("grafana", "svc_pat_Zt03c", 322),
        token("thesis-cluster", "svc_pat_9wQe2", -20, last_used_at=ago(days=21), last_used_from="192.0.2.44"),
    ]


def session(number: int, browser: str, *, current: bool = False, **more: Any) -> dict[str, Any]:
    """A session of a browser."""
    return {
        "id": f"ses-{number}", "address": f"10.20.4.{number}", "browser": browser, "current": current,
        "created_at": ago(hours=number), "last_used_at": ago(minutes=3 * number),
        "idle_ends_at": ahead(hours=12 - number), "ends_at": ahead(days=6),
    } | more  # fmt: skip


def sessions() -> list[dict[str, Any]]:
    """This browser and two others."""
    return [session(1, "Chromium on Linux", current=True), session(2, "Firefox on Windows"), session(3, "")]


def serve(canned: Canned) -> None:
    """Have all of them."""
    attention = {"tokens_expiring": 1, "reviews_waiting": 0, "gpus_lost": 0, "operations_failed": 0}
    canned.answers |= {
        "GET /api/users/me": me(),
        "GET /api/usage/me": usage(),
        "GET /api/tokens": page(tokens()),
        "GET /api/auth/sessions": page(sessions()),
        "GET /api/auth/session": {
            "session": sessions()[0],
            "user": {"name": "ada", "display_name": "Ada Lovelace", "superuser": False},
            "attention": attention,
            "events_after": 0,
        },
    }
