"""What the activity screen can look like."""

from __future__ import annotations

from pages.activity.records import answers, audited, of_the_mock_up
from pages.canned import Canned
from pages.files.records import refusal
from pages.states import State

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe"


def _mock_up(canned: Canned) -> None:
    canned.answers["GET /api/audit"] = answers(canned, of_the_mock_up())


def _hostile(canned: Canned) -> None:
    rows = [
        audited(9, "fs.upload", f"work/{'n' * 200}", "o" * 60, request_id="r" * 60),
        audited(
            8, "workspace.stop", "ws-1", user=HOSTILE, target_name=HOSTILE, target_owner="ada", via="session"
        ),
        audited(7, HOSTILE, HOSTILE, HOSTILE, detail={"name": HOSTILE}),
    ]
    canned.answers["GET /api/audit"] = answers(canned, rows)


def _empty(canned: Canned) -> None:
    canned.answers["GET /api/audit"] = answers(canned, [])


def _refused(canned: Canned) -> None:
    canned.answers["GET /api/audit"] = refusal(403, "account_disabled", "the account is disabled")


def _unavailable(canned: Canned) -> None:
    canned.answers["GET /api/audit"] = refusal(503, "unavailable", "starting", retryable=True, after=60)


def _long(canned: Canned) -> None:
    canned.answers["GET /api/audit"] = answers(
        canned, [audited(number, "fs.list", "work") for number in range(900, 0, -1)]
    )


STATES: dict[str, State] = {
    "rows": State("/activity", "tbody tr[data-id]", _mock_up),
    "long": State("/activity", "tbody tr[data-id]", _long),
    "hostile": State("/activity", "tbody tr[data-id]", _hostile),
    "nothing-yet": State("/activity", ".empty", _empty),
    "nothing-like-that": State("/activity?kind=token&text=nothing", ".empty", _mock_up),
    "refused": State("/activity", ".notice", _refused),
    "unavailable": State("/activity", "[data-countdown]", _unavailable),
}
