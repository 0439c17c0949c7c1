"""The audit of a running service: what users, administrators, the worker and `svc admin` did is one chain."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from e2e.installation import Call, Service
from e2e.surroundings import must


def rows(call: Call, user: str, path: str) -> list[dict[str, Any]]:
    return list(must(call(user, "api", "GET", f"{path}limit=200")).json()["items"])


def chain(svc: Call) -> dict[str, str]:
    """What the doctor says of it, run by root."""
    [finding] = [
        finding
        for finding in json.loads(svc("root", "admin", "doctor", "--json").out)["items"]
        if finding["code"] == "audit_chain"
    ]
    return dict(finding)


def test_what_everybody_does_at_once_is_one_chain(svc: Call, workspace: str, service: Service) -> None:
    assert chain(svc)["level"] == "ok"
    calls = [("tse-alice", "ws", "exec", workspace, "--", "true")] * 6
    calls += [("tse-bob", "api", "PATCH", "/api/users/tse-bob", "--body", '{"display_name": "Bob"}')] * 6
    calls += [("root", "admin", "revoke-tokens", "tse-bob")] * 3
    with ThreadPoolExecutor(6) as pool:
        for outcome in pool.map(lambda call: svc(*call), calls):
            must(outcome)
    found = chain(svc)
    assert found["level"] == "ok", found
    newest = rows(svc, "root", "/api/admin/audit?")[0]
    assert found["found"].endswith(f"it ends with row {newest['id']}, {newest['hash']}")


def test_each_begun_row_has_its_end(svc: Call, workspace: str) -> None:
    """ "written before and completed after": of a set-up too, whose end the worker sees."""
    must(svc("tse-alice", "ws", "exec", workspace, "--", "true"))
    own = rows(svc, "tse-alice", "/api/audit?")
    assert {"workspace.setup", "workspace.create", "workspace.start", "workspace.exec"} <= {
        row["action"] for row in own
    }
    ends = {(row["request_id"], row["action"], row["target"]) for row in own if row["outcome"] != "begun"}
    begun = {(row["request_id"], row["action"], row["target"]) for row in own if row["outcome"] == "begun"}
    mine = {row["request_id"] for row in own[:6]}  # what other tests cut short has none
    assert begun and not {row for row in begun - ends if row[0] in mine}


def test_users_see_their_own_rows_and_what_was_done_to_them(svc: Call, workspace: str) -> None:
    must(svc("tse-bob", "api", "PATCH", "/api/users/tse-bob", "--body", '{"display_name": "Bob"}'))
    for user in ("tse-alice", "tse-bob"):
        own = rows(svc, user, "/api/audit?")
        assert user in {row["user"] for row in own}
        assert {user} == {row["target_owner"] or row["user"] for row in own}
        assert svc(user, "api", "GET", "/api/admin/audit").code == 1
    everybody = {row["user"] for row in rows(svc, "root", "/api/admin/audit?")}
    assert {"tse-alice", "tse-bob"} <= everybody


def test_old_rows_move_to_a_file_while_the_service_runs(svc: Call, service: Service, tmp_path: Path) -> None:
    """The chain goes on; users go on; what is archived is no longer listed."""
    file, copy = str(tmp_path / "audit.jsonl"), str(tmp_path / "copy.jsonl")
    must(svc("root", "admin", "audit", "export", "--out", copy))
    count = len(Path(copy).read_text().splitlines()) - 2
    with ThreadPoolExecutor(2) as pool:
        edits = [
            pool.submit(
                svc, "tse-bob", "api", "PATCH", "/api/users/tse-bob", "--body", '{"display_name": "B"}'
            )
            for _ in range(6)
        ]
        argv = ("admin", "audit", "archive", "--before", "2999-01-01", "--out", file)
        assert svc("root", *argv).code == 1, "it asks"
        must(svc("root", *argv, "--yes"))
        for edit in edits:
            must(edit.result())
    said = must(svc("root", "admin", "audit", "verify", file)).out
    assert said.endswith("the database goes on from there\n")
    assert f", to row {len(Path(file).read_text().splitlines()) - 2}, " in said
    assert len(Path(file).read_text().splitlines()) - 2 >= count - 1
    found = chain(svc)
    assert found["level"] == "ok", found
    assert "are in archives" in found["found"]


def test_an_owner_sees_who_stopped_and_deleted(svc: Call, workspace: str) -> None:
    """By an administrator over the socket; with the name of then, also when it is gone."""
    must(svc("tse-alice", "ws", "rename", workspace, "--name", f"{workspace}-x"))
    must(svc("root", "ws", "stop", f"{workspace}-x", "--owner", "tse-alice"))
    must(svc("root", "ws", "delete", f"{workspace}-x", "--owner", "tse-alice", "--yes"))
    path = "/api/audit?action=workspace&"
    seen = [
        row
        for row in rows(svc, "tse-alice", path)
        if row["target_owner"] and row["target_name"] == f"{workspace}-x"
    ]
    assert [(row["action"], row["outcome"]) for row in reversed(seen)] == [
        (f"workspace.{verb}", outcome) for verb in ("stop", "delete") for outcome in ("begun", "ok")
    ]
    assert {row["user"] for row in seen} == {"root"}
    assert not [row for row in rows(svc, "tse-bob", path) if row["target"] == seen[0]["target"]]
    assert chain(svc)["level"] == "ok"
