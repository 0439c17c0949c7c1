"""The entitlement as a record, and the notices that administrators get."""

from __future__ import annotations

from typing import Any

from svc.domain import configuration
from svc.domain.licence import entitlement, gate
from svc.domain.licence.documents import Licence, key_id
from svc.domain.licence.entitlement import ACTIVE, BEHIND_S, DAY_S, LAPSED, REQUEST, Entitlement

OK, ENDING_CODE, LAPSED_CODE = "ok", "license_ending", "license_lapsed"
HINTS = {  # by the code of the notice
    "license_ending": REQUEST,
    "license_lapsed": REQUEST,
    "license_not_in_force": REQUEST,
    "license_clock": "timedatectl status",
    "license_users": "sudo svc admin list-users",
    "license_gpus": "sudo svc admin license show",
}


def code_of(found: Entitlement) -> str:
    """The state for GET /api/health: ok, license_ending or license_lapsed."""
    return {ACTIVE: OK, LAPSED: LAPSED_CODE}.get(found.state, ENDING_CODE)


def current() -> dict[str, Any]:
    """The record of the entitlement now, with its notices."""
    return record(entitlement.resolve(), {"users": gate.users(), "gpus": gate.gpus()})


def record(found: Entitlement, used: dict[str, int | None]) -> dict[str, Any]:
    """{kind, state, starts_at, ends_at, days_left, id, holder, limits, used, problem, ..., notices}."""
    config, licence = configuration.current, found.licence
    return {
        "kind": found.kind,
        "state": found.state,
        "starts_at": found.starts_at,
        "ends_at": found.ends_at,
        "days_left": found.days_left,
        "id": licence.id if licence else None,
        "holder": licence.holder if licence else None,
        "limits": limits_of(licence),
        "used": used,
        "problem": found.problem or None,
        "request_code": config.request_code or None,
        "keys": [key_id(key) for key in config.license_keys],
        "notices": notices(found, used),
    }


def limits_of(licence: Licence | None) -> dict[str, int | None]:
    """The numbers of a licence; null is unlimited, as all are in the trial."""
    return {"users": licence.users if licence else None, "gpus": licence.gpus if licence else None}


def notices(found: Entitlement, used: dict[str, int | None]) -> list[dict[str, str]]:
    """What administrators should know: each {code, message, hint}; none when all is well."""
    several = [_of_time(found), _of_file(found), _of_clock(found)]
    several += [
        _of_limit(resource, count, limits_of(found.licence)[resource]) for resource, count in used.items()
    ]
    return [notice for notice in several if notice]


def _of_time(found: Entitlement) -> dict[str, str]:
    if found.state == ACTIVE:
        return {}
    ends = found.ends_at[:10]
    if found.state == LAPSED:
        message = f"{found.name} ended on {ends}: no workspace can be created or started"
    else:
        count = "1 day" if found.days_left == 1 else f"{found.days_left} days"
        message = f"{found.name} ends in {count}, on {ends}; then no workspace can be created or started"
    return _notice(code_of(found), message)


def _of_file(found: Entitlement) -> dict[str, str]:
    if not found.problem:
        return {}
    return _notice("license_not_in_force", f"the installed licence is not in force: {found.problem}")


def _of_clock(found: Entitlement) -> dict[str, str]:
    if found.clock_behind_s < BEHIND_S:
        return {}
    behind_s = found.clock_behind_s
    amount = f"{behind_s // DAY_S} days" if behind_s >= 2 * DAY_S else f"{behind_s // 3600} hours"
    return _notice(
        "license_clock",
        f"this host's clock is {amount} behind a time that the service has seen, which counts",
    )


def _of_limit(resource: str, count: int | None, limit: int | None) -> dict[str, str]:
    if limit is None or count is None or count <= limit:
        return {}
    effect = {
        "users": "the newest accounts beyond that create and start nothing",
        "gpus": "no workspace with a GPU starts until enough have stopped",
    }[resource]
    noun = {"users": "users", "gpus": "GPUs"}[resource]
    return _notice(
        f"license_{resource}", f"the licence is for {limit} {noun}, and there are {count}: {effect}"
    )


def _notice(code: str, message: str) -> dict[str, str]:
    return {"code": code, "message": message, "hint": HINTS[code]}
