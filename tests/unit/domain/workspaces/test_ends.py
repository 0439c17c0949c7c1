"""Programs that end right after their start: the row, the error, and what a hostile agent says."""

from __future__ import annotations

from typing import Any

import pytest
from unit.domain.gpu_rows import Gpus
from unit.serving import CONTAINER, FarEnd, make_workspace

from svc import engine_errors, errors
from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.workspaces import ends, leases, workspaces

STARTED = {"container_id": CONTAINER, "pid": None, "started_at": None, "devices_missing": []}
ENDED = {"exit_code": 3, "oom_killed": False, "output": "one\ntwo\n", "code": None, "message": None}


@pytest.fixture
def lab(ada: Caller, far: FarEnd, gpus: Gpus, template: str) -> str:
    """A stopped workspace of ada's that wants two GPUs; its id."""
    return make_workspace(ada.user_id, template, gpu_count=2, container_id=CONTAINER)


def start(ada: Caller, far: FarEnd, **ended: Any) -> errors.SvcError:
    """The error of a start whose container ends like this."""
    far.answers["ctr.start"] = STARTED | {"ended": ENDED | ended}
    with pytest.raises(errors.SvcError) as caught:
        workspaces.start(ada, "lab")
    return caught.value


def test_one_that_exits(ada: Caller, far: FarEnd, lab: str) -> None:
    error = start(ada, far)
    assert (error.code, error.hint) == ("exited_at_once", "svc ws logs lab")
    assert error.message == "lab has exited at once, with exit code 3"
    assert error.details == {"exit_code": 3, "output": ["one", "two"]}
    record = workspaces.get(ada, "lab")
    assert (record["status"], record["status_reason"], record["exit_code"]) == (
        "stopped", "container_exited", 3,
    )  # fmt: skip
    assert not leases.of(lab)
    assert far.verbs() == ["ctr.start", "ctr.stop"], "GPUs are free behind a confirmed stop, never before"
    rows = database.execute_sql("SELECT outcome, detail_json FROM audit WHERE target = ?", (lab,)).fetchall()
    assert rows[-1][0] == "exited_at_once"
    assert "two" not in str(rows)
    assert start(ada, far, output="\n").message.endswith("exit code 3, and has printed nothing")


def test_a_batch_job(ada: Caller, far: FarEnd, lab: str) -> None:
    far.answers["ctr.start"] = STARTED | {"ended": ENDED | {"exit_code": 0}}
    record = workspaces.start(ada, "lab")
    assert (record["status"], record["exit_code"]) == ("stopped", 0)
    assert not leases.of(lab)
    assert "launcher.start" not in far.verbs()


def test_one_whose_command_never_began(ada: Caller, far: FarEnd, lab: str) -> None:
    words = "ERROR (catatonit:2): failed to exec pid1: No such file or directory"
    error = start(ada, far, code="command_not_found", message="the command is missing", output=f"{words}\n")
    assert isinstance(error, engine_errors.CommandNotFound)
    assert error.message == "lab cannot run: the command is missing"
    assert error.hint == "svc template get base"
    assert error.details == {"exit_code": 3, "engine": words}


def test_one_that_its_memory_limit_killed(ada: Caller, far: FarEnd, lab: str) -> None:
    error = start(ada, far, exit_code=137, oom_killed=True)
    assert (error.code, error.details) == ("memory_too_small", {"exit_code": 137})
    assert "svc ws edit lab" in error.hint
    assert workspaces.get(ada, "lab")["status_reason"] == "oom_killed"


def test_a_stop_that_fails_keeps_its_gpus(ada: Caller, far: FarEnd, lab: str) -> None:
    """What says that a container has ended is its user's own agent; only a confirmed stop counts."""
    far.answers |= {"ctr.stop": "unavailable", "ctr.inspect": {"exists": True, "status": "stopped"}}
    assert start(ada, far).code == "engine_unavailable"
    assert leases.of(lab)


def test_a_stop_that_is_refused_keeps_them_too(ada: Caller, far: FarEnd, lab: str) -> None:
    """Of errors after which nothing runs that did not before, none may come from this stop."""
    far.answers |= {"ctr.stop": "account", "ctr.inspect": {"exists": True, "status": "stopped"}}
    assert start(ada, far).code == "engine_failed"
    assert leases.of(lab)
    assert workspaces.get(ada, "lab")["status"] == "failed"


@pytest.mark.parametrize(
    "hostile",
    [{"output": "x" * 9000}, {"output": 7}, {"exit_code": "0"}, {"exit_code": True}, {"exit_code": 2**70}],
)
def test_hostile_replies(ada: Caller, far: FarEnd, lab: str, hostile: dict[str, Any]) -> None:
    far.answers["ctr.inspect"] = {"exists": True, "status": "stopped"}
    assert start(ada, far, **hostile).code == "engine_failed"


@pytest.mark.parametrize("code", ["internal_error", "account", "refused", "no such code", 7, ["x"], None])
def test_a_code_that_is_no_cause(code: Any) -> None:
    ended = ends.of_start({"ended": ENDED | {"code": code}})
    assert ended is not None
    assert ended.cause is None


def test_lines_are_printable_and_bounded() -> None:
    lines = ends.last_lines({"output": "\n".join(["\x1b[2J" + "x" * 700] * 11)})
    assert len(lines) == ends.LINES_MAX
    assert all(len(line) == ends.LINE_MAX and line.startswith("\\x1b[2J") for line in lines)
    assert ends.last_lines({"output": "a:\n\t at b\n\n"}) == ["a:", "     at b"]
    for ended in (None, [], "x", 7):
        assert ends.of_start({"ended": ended}) is None
