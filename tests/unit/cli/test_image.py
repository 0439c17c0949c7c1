"""`svc image`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_service import Service, Svc

RECORD = {
    "template": {"id": "tpl-1", "name": "python"},
    "ref": "r/python",
    "status": "ready",
    "digest": "sha256:1",
    "size_bytes": 2**20,
    "used_by": ["demo", "paper"],
    "updated_at": "2025-01-02T03:04:05Z",
}
LINE = "python\tready\t1048576\tr/python\tdemo, paper\t2025-01-02T03:04:05Z\n"
PULL = "POST /api/templates/python/image/pull"
STATUS = "GET /api/templates/python/image"
WATCH = "GET /api/operations/op-1"


def operation(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "op-1", "kind": "pull", "status": status, "phase": "", "progress": {}, **more}


def test_list(service: Service, svc: Svc) -> None:
    service.answer("GET /api/images?limit=200", {"items": [RECORD, RECORD | {"template": None}]})
    assert svc("image", "list").out == LINE[:-1] + "\ttpl-1\n" + LINE[:-1].replace("python", "", 1) + "\t\n"
    assert "1.0 MiB" in svc("image", "list", terminal=True).out


def test_two_templates_of_one_name(service: Service, svc: Svc) -> None:
    """A private and a global one."""
    both = [RECORD, RECORD | {"template": {"id": "tpl-2", "name": "python"}}]
    other = RECORD | {"template": {"id": "tpl-3", "name": "torch"}}
    service.answer("GET /api/images?limit=200", {"items": [*both, other]})
    rows = svc("image", "list", terminal=True).out.splitlines()[1:]
    assert [row.split("  ")[0] for row in rows] == ["python (tpl-1)", "python (tpl-2)", "torch"]


def test_status(service: Service, svc: Svc) -> None:
    service.answer(STATUS, RECORD)
    assert "digest\tsha256:1" in svc("image", "status", "python").out.splitlines()
    assert svc("image", "status", "python", "--json").out == json.dumps(RECORD) + "\n"


def test_pull_returns_at_once(service: Service, svc: Svc) -> None:
    service.answer(PULL, {"operation": operation("queued")}, status=202)
    assert svc("image", "pull", "python") == (0, "op-1\tpull\tqueued\n", "")
    assert "svc operation watch op-1" in svc("image", "pull", "python", terminal=True).out
    assert service.sent == [PULL, PULL]


def test_pull_waits(service: Service, svc: Svc) -> None:
    service.answer(PULL, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("running", phase="pulling"), operation("succeeded"))
    service.answer(STATUS, RECORD)
    assert svc("image", "pull", "python", "--wait") == (0, LINE, "pulling\n")


@pytest.mark.parametrize("verb", ["pull", "build"])
def test_an_operation_under_way_is_joined(service: Service, svc: Svc, verb: str) -> None:
    running = operation("running") | {"kind": verb}
    for kind in (verb, verb, verb, "setup"):
        service.refuse(
            PULL.replace("pull", verb), 409, "operation_in_progress", f"a {kind} of r/python is in progress",
            details={"operation": running | {"kind": kind}},
        )  # fmt: skip
    service.answer(WATCH, operation("succeeded"), operation("failed", error={"message": "cut"}))
    service.answer(STATUS, RECORD)
    waiting = f"svc: a {verb} of this image is already in progress; waiting for its end\n"
    assert svc("image", verb, "python", "--wait") == (0, LINE, waiting)
    assert svc("image", verb, "python", "--wait") == (1, "", f"{waiting}svc: cut\n")
    assert svc("image", verb, "python").err == f"svc: a {verb} of r/python is in progress\n"
    done = svc("image", verb, "python", "--wait")  # what only needs the same image ends otherwise
    assert (done.code, done.err) == (1, "svc: a setup of r/python is in progress\n")


def test_pull_as_json(service: Service, svc: Svc) -> None:
    service.answer(PULL, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("succeeded"))
    assert json.loads(svc("image", "pull", "python", "--json").out) == {"operation": operation("queued")}
    printed = svc("image", "pull", "python", "--wait", "--json").out
    assert (json.loads(printed), printed[-1]) == ({"operation": operation("succeeded")}, "\n")


def test_a_pull_that_fails(service: Service, svc: Svc) -> None:
    failed = operation(
        "failed", error={"code": "engine_failed", "message": "no such image", "hint": "svc template get"}
    )
    service.answer(PULL, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, failed)
    assert svc("image", "pull", "python", "--wait") == (1, "", "svc: no such image\nhint: svc template get\n")
    done = svc("image", "pull", "python", "--wait", "--json")
    assert (done.code, json.loads(done.out)) == (1, {"operation": failed})


def test_a_status_names_the_way_to_the_image(service: Service, svc: Svc) -> None:
    missing = RECORD | {"status": "missing", "ref": "localhost/svc/tpl-1:0"}
    service.answer(STATUS, missing, missing)
    assert "svc image build python --wait" in svc("image", "status", "python", terminal=True).err
    assert svc("image", "status", "python").err == ""
    service.answer(STATUS, missing | {"ref": "r.example/python"})
    svc("image", "status", "python")
    assert "svc image pull python --wait" in svc("image", "status", "python", terminal=True).err


# --- builds -----------------------------------------------------------------------------

BUILD = "POST /api/templates/python/image/build"


def step(number: int, text: str) -> dict[str, Any]:
    progress = {"current": number - 1, "total": 7, "unit": "steps", "text": text}
    return operation("running", phase="building", progress=progress)


def test_build_shows_its_steps(service: Service, svc: Svc) -> None:
    service.answer(BUILD, {"operation": operation("queued", kind="build")}, status=202)
    service.answer(WATCH, step(3, "RUN make"), operation("succeeded"))
    service.answer(STATUS, RECORD)
    done = svc("image", "build", "python", "--wait", terminal=True)
    assert "building  [######                  ]  step 3 of 7  RUN make" in done.err
    assert done.out == "The image r/python is ready.\n"


def test_build_returns_at_once(service: Service, svc: Svc) -> None:
    service.answer(BUILD, {"operation": operation("queued") | {"kind": "build"}}, status=202)
    assert svc("image", "build", "python") == (0, "op-1\tbuild\tqueued\n", "")


def test_build_arguments(service: Service, svc: Svc) -> None:
    service.answer(BUILD, {"operation": operation("queued") | {"kind": "build"}}, status=202)
    given = ("--build-arg", "VERSION=3.12", "--build-arg", "EMPTY=")
    assert svc("image", "build", "python", *given).code == 0
    sent = [{"name": "VERSION", "value": "3.12"}, {"name": "EMPTY", "value": ""}]
    assert json.loads(service.requests[-1].body) == {"build_args": sent}
    assert svc("image", "build", "python", "--build-arg", "VERSION").code == 2
    assert svc("image", "build", "python", "--dry-run", *given).code == 2


def test_build_secrets(service: Service, svc: Svc, tmp_path: Path) -> None:
    """Any bytes of a file; never its words in a message."""
    service.answer(BUILD, {"operation": operation("queued") | {"kind": "build"}}, status=202)
    file = tmp_path / "pip.conf"
    file.write_bytes(b"hunter2\xff\n")
    done = svc("image", "build", "python", "--secret", f"id=pip,src={file}")
    assert (done.code, "hunter2" in done.out + done.err) == (0, False)
    assert service.last.json == {"secrets": [{"id": "pip", "value": "aHVudGVyMv8K"}]}
    for wrong in ("pip", "id=pip", "src=x,id=pip", f"id=,src={file}", "id=pip,env=HOME"):
        assert svc("image", "build", "python", "--secret", wrong).code == 2
    assert svc("image", "build", "python", "--dry-run", "--secret", f"id=pip,src={file}").code == 2
    assert svc("image", "build", "python", "--secret", f"id=pip,src={tmp_path}/none").code == 1


def test_a_build_that_fails_shows_the_end_of_its_log(service: Service, svc: Svc) -> None:
    hint = "svc operation log op-1"
    message = "step 3 of 7 (RUN make) failed: exit 2"
    failed = operation("failed", error={"code": "build_failed", "message": message, "hint": hint})
    lines = [{"at": "", "text": f"line {number}\x1b[2J"} for number in range(20)]
    service.answer(BUILD, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, failed)
    service.answer(WATCH + "/log", {"lines": [*lines, {"at": "", "text": message}]})
    done = svc("image", "build", "python", "--wait")
    assert (done.code, done.out) == (1, "")
    *log, said, hinted = done.err.splitlines()
    assert (said, hinted) == (f"svc: {message}", f"hint: {hint}")
    assert log == [f"  line {number}\\x1b[2J" for number in range(6, 20)]
    service.refuse(WATCH + "/log", 404, "not_found", "no such operation")
    svc("image", "build", "python", "--wait")
    assert svc("image", "build", "python", "--wait").err == f"svc: {message}\nhint: {hint}\n"


def said(*texts: str, first: int = 1, ended: bool = False) -> dict[str, Any]:
    """A part of an operation's log."""
    lines = [{"line": number, "at": "", "text": text} for number, text in enumerate(texts, first)]
    return {"lines": lines, "next": first + len(texts) - 1, "ended": ended}


@pytest.mark.parametrize("terminal", [False, True])
def test_a_build_prints_its_steps_as_they_run(service: Service, svc: Svc, terminal: bool) -> None:
    service.answer(BUILD, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("running", phase="checking"), step(1, "FROM x"), step(2, "RUN make"))
    service.answer(WATCH, operation("succeeded", phase="building"))
    service.answer(WATCH + "/log", said("checking", "building", "STEP 1/2: FROM x"))
    service.answer(WATCH + "/log?after=3", said("STEP 2/2: RUN make", "out\x1b[2J", first=4))
    service.answer(WATCH + "/log?after=5", said("COMMIT", first=6, ended=True))
    service.answer(STATUS, RECORD)
    done = svc("image", "build", "python", "--wait", terminal=terminal)
    output = done.err.replace("\r\x1b[K", "\n").splitlines()
    assert [line for line in output if line.startswith("  ")] == [
        "  STEP 1/2: FROM x", "  STEP 2/2: RUN make", "  out\\x1b[2J", "  COMMIT",
    ]  # fmt: skip
    assert done.out == ("The image r/python is ready.\n" if terminal else LINE)
    assert ("building  [###  " in done.err) is terminal


def test_a_quiet_build_prints_its_outcome(service: Service, svc: Svc) -> None:
    service.answer(BUILD, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, step(2, "RUN make"), operation("succeeded", phase="building"))
    service.answer(STATUS, RECORD)
    assert svc("image", "build", "python", "--wait", "--quiet") == (0, LINE, "")
    assert WATCH + "/log" not in service.sent


def test_a_failed_build_prints_its_output_once(service: Service, svc: Svc) -> None:
    message = "step 3 of 7 (RUN make) failed: exit 2"
    failed = operation("failed", phase="building", error={"code": "build_failed", "message": message})
    service.answer(BUILD, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, failed)
    service.answer(WATCH + "/log", said("building", "STEP 1/1: FROM x", "why", message, ended=True))
    done = svc("image", "build", "python", "--wait")
    assert done == (1, "", f"  STEP 1/1: FROM x\n  why\nsvc: {message}\n")
    done = svc("image", "build", "python", "--wait", "--quiet")
    assert done == (1, "", f"  building\n  STEP 1/1: FROM x\n  why\nsvc: {message}\n")


OPERATIONS = "GET /api/operations?subject=tpl-1&kind=build%2Cpull%2Csetup"


def test_log(service: Service, svc: Svc) -> None:
    source = {"type": "dockerfile", "image_ref": "localhost/svc/tpl-1:2"}
    service.answer("GET /api/templates/python", {"id": "tpl-1", "source": source})
    older = operation("succeeded", subject={"type": "image", "id": "localhost/svc/tpl-1:1"}) | {"id": "op-0"}
    newest = operation("failed", subject={"type": "image", "id": "localhost/svc/tpl-1:2"})
    setup = operation("succeeded", subject={"type": "workspace", "id": "ws-1"}) | {"id": "op-2"}
    service.answer(
        OPERATIONS,
        {"items": [setup, newest, older]},
        {"items": [setup, operation("running"), newest | {"id": "op-3"}]},
        {"items": [setup | {"id": "op-1"}, older]},
        {"items": []},
    )
    service.answer(WATCH + "/log", said("one", ended=True), said("one"), said("one", ended=True))
    service.answer(WATCH + "/log?after=1", said("two", first=2, ended=True))
    assert svc("image", "log", "python") == (0, "one\n", "")
    assert svc("image", "log", "python", "--follow") == (0, "one\ntwo\n", "")
    assert svc("image", "log", "python") == (0, "one\n", "")
    hint = "hint: svc image build python --wait"
    assert svc("image", "log", "python") == (
        1, "", f"svc: you have neither built nor pulled the image of python\n{hint}\n",
    )  # fmt: skip


def test_builds(service: Service, svc: Svc) -> None:
    built = operation("succeeded", template=None, subject={"type": "image", "id": "localhost/svc/x:1"})
    service.answer("GET /api/images/builds?limit=200", {"items": [built]})
    assert svc("image", "builds").out == "op-1\t\tsucceeded\t\t\t\tlocalhost/svc/x:1\t\n"


# --- the store --------------------------------------------------------------------------

OVERVIEW = "GET /api/images/overview"
PRUNE = "POST /api/images/prune"
STORED = {
    "image_id": "a" * 64, "names": ["r/x:1"], "size_bytes": 2**20, "unique_bytes": 2**19,
    "shared_bytes": 2**19, "reclaimable_bytes": 2**19, "unused": True, "used_by": [], "templates": [],
    "containers": 0, "created_at": None,
}  # fmt: skip
STORE = {
    "items": [STORED, STORED | {"image_id": "b" * 64, "names": [], "unused": False, "used_by": ["lab"]}],
    "total_bytes": 2**21, "reclaimable_bytes": 2**19, "free_bytes": 2**30, "quota_bytes": None,
}  # fmt: skip


def test_overview(service: Service, svc: Svc) -> None:
    service.answer(OVERVIEW, STORE)
    first, second = svc("image", "overview").out.splitlines()
    assert first == f"{'a' * 64}\tr/x:1\t1048576\t524288\t524288\t524288\t\t0\t"
    assert second.split("\t")[6] == "lab"
    printed = svc("image", "overview", terminal=True).out
    assert "2.0 MiB in all, 512 KiB reclaimable, 1.0 GiB free on the disk" in printed
    assert "a" * 13 not in printed
    service.answer(OVERVIEW, STORE | {"quota_bytes": 2**30})
    svc("image", "overview")
    assert "1.0 GiB allowed by your quota" in svc("image", "overview", terminal=True).out
    assert json.loads(svc("image", "overview", "--json").out)["quota_bytes"] == 2**30


def test_prune_shows_what_would_go_and_asks(service: Service, svc: Svc) -> None:
    service.answer(OVERVIEW, STORE)
    service.answer(PRUNE, {"removed": [STORED], "freed_bytes": 2**19})
    done = svc("image", "prune", terminal=True, stdin=b"y\n")
    assert "  r/x:1  1.0 MiB\nRemove 1 image, at least 512 KiB? [y/N]" in done.err
    assert done.out == "1 image removed, 512 KiB freed.\n"
    assert svc("image", "prune", terminal=True, stdin=b"n\n").code == 1
    assert service.sent.count(PRUNE) == 1


def test_prune_without_a_terminal_needs_yes(service: Service, svc: Svc) -> None:
    service.answer(OVERVIEW, STORE, STORE | {"items": []})
    service.answer(PRUNE, {"removed": [STORED], "freed_bytes": 2**19})
    for _ in range(2):
        done = svc("image", "prune")
        assert done.code == 1
        assert "--yes" in done.err
    assert service.sent == [OVERVIEW, OVERVIEW]
    assert svc("image", "prune", "--yes").out == f"{'a' * 64}\tr/x:1\t1048576\n"
    assert json.loads(svc("image", "prune", "--yes", "--json").out)["freed_bytes"] == 2**19


def test_prune_of_nothing(service: Service, svc: Svc) -> None:
    service.answer(OVERVIEW, STORE | {"items": []})
    done = svc("image", "prune", terminal=True)
    assert (done.code, done.err) == (0, "svc: no image in your store is unused\n")


def test_prune_of_volumes_alone(service: Service, svc: Svc) -> None:
    service.answer(OVERVIEW, STORE | {"items": [], "reclaimable_bytes": 0, "unused_volumes": 2})
    service.answer(PRUNE, {"removed": [], "freed_bytes": 0, "removed_volumes": 1})
    done = svc("image", "prune", terminal=True, stdin=b"y\n")
    assert "Remove 2 anonymous volumes? [y/N]" in done.err
    assert done.out == "1 anonymous volume removed.\n"


def test_delete(service: Service, svc: Svc) -> None:
    service.answer(STATUS, RECORD)
    service.answer("DELETE /api/templates/python/image", None, status=204)
    done = svc("image", "delete", "python", terminal=True, stdin=b"y\n")
    assert "Delete the image r/python (1.0 MiB) from your store?" in done.err
    assert done.out == "The image of python is deleted.\n"
    assert svc("image", "delete", "python", "--yes") == (0, "", "")
    assert svc("image", "delete", "python").code == 1


def test_root_has_no_images(service: Service, svc: Svc) -> None:
    service.refuse("GET /api/images?limit=200", 403, "root_not_allowed", "root has no images")
    assert svc("image", "list") == (1, "", "svc: root has no images\n")


def test_allowlist(service: Service, svc: Svc) -> None:
    allowed = {"items": [{"host": "r.example", "path_prefix": "lab/", "insecure": False}]}
    service.answer("GET /api/images/allowlist", allowed)
    assert svc("image", "allowlist") == (0, "r.example\tlab/\tfalse\n", "")
    assert json.loads(svc("image", "allowlist", "--json").out) == allowed


@pytest.mark.parametrize(
    "line", ["image", "image status", "image pull", "image pull a b", "image build", "image prune x"]
)
def test_wrong_usage(svc: Svc, line: str) -> None:
    assert svc(*line.split()).code == 2


# --- dry runs ------------------------------------------------------------------------------

LOOK = {
    "verb": "pull", "ref": "r/python", "images": ["r/python"],
    "download_bytes": 2**21, "present_bytes": 2**20,
    "needed_bytes": 2**22, "free_bytes": 2**30, "used_bytes": 0, "quota_bytes": None, "fits": True,
    "blocked_by": None, "message": None, "hint": None,
}  # fmt: skip


def test_a_dry_run_says_what_would_come(service: Service, svc: Svc) -> None:
    service.answer(STATUS + "/preflight", LOOK)
    done = svc("image", "pull", "python", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert "to_download\t2097152" in done.out.splitlines()
    assert "there_already\t1048576" in done.out.splitlines()
    assert json.loads(svc("image", "pull", "python", "--dry-run", "--json").out) == LOOK
    assert service.sent == [STATUS + "/preflight"] * 2


def test_a_dry_run_of_what_does_not_fit_fails(service: Service, svc: Svc) -> None:
    full = LOOK | {"fits": False, "message": "no room", "hint": "svc image prune"}
    service.answer(STATUS + "/preflight", full)
    done = svc("image", "pull", "python", "--dry-run")
    assert (done.code, done.err) == (1, "svc: no room\nhint: svc image prune\n")
    assert "fits\tfalse" in done.out


def test_a_dry_run_of_the_other_verb(service: Service, svc: Svc) -> None:
    service.answer(STATUS + "/preflight", LOOK)
    done = svc("image", "build", "python", "--dry-run")
    assert (done.code, done.out) == (1, "")
    assert "hint: svc image pull python --dry-run" in done.err


# --- one image -----------------------------------------------------------------------------

SPARES = [
    {"image_id": "a" * 64, "names": ["r.example/old:latest"], "size_bytes": 2**20},
    {"image_id": "a" * 12 + "b" * 52, "names": [], "size_bytes": 5},
]


@pytest.mark.parametrize("typed", ["r.example/old", "r.example/old:latest", "a" * 13])
def test_remove(service: Service, svc: Svc, typed: str) -> None:
    service.answer(OVERVIEW, {"items": SPARES})
    service.answer(f"DELETE /api/images/{'a' * 64}", None, status=204)
    assert svc("image", "remove", typed, "--yes") == (0, "", "")
    assert svc("image", "remove", typed, "--yes", terminal=True).out == f"The image {typed} is removed.\n"
    assert json.loads(svc("image", "remove", typed, "--yes", "--json").out) == {"removed": "a" * 64}
    service.refuse(f"DELETE /api/templates/{typed}/image", 404, "not_found", "no such template")
    assert svc("image", "rm", typed, "--yes") == (0, "", "")
    assert svc("image", "remove", typed).err.endswith(f"svc image remove {typed} --yes\n")


def test_remove_of_a_template_s(service: Service, svc: Svc) -> None:
    """`podman image rm NAME`, typed here: a template's name stands for its image."""
    service.answer(OVERVIEW, {"items": SPARES})
    service.answer("GET /api/templates/python/image", {"ref": "r.example/python:1", "size_bytes": 1})
    service.answer("DELETE /api/templates/python/image", None, status=204)
    for verb in ("rm", "remove", "delete"):
        assert json.loads(svc("image", verb, "python", "-y", "--json").out) == {"deleted": "python"}
        assert "svc image delete python --yes" in svc("image", verb, "python").err


def test_delete_of_neither_a_template_nor_an_image(service: Service, svc: Svc) -> None:
    service.answer(OVERVIEW, {"items": SPARES})
    service.refuse("DELETE /api/templates/bogus/image", 404, "not_found", "no template bogus")
    done = svc("image", "delete", "bogus", "--yes", "--json")
    assert (done.code, done.err) == (1, "svc: no template bogus\n")
    assert json.loads(done.out)["error"]["code"] == "not_found"


def test_remove_of_what_is_not_there(service: Service, svc: Svc) -> None:
    service.answer(OVERVIEW, {"items": SPARES})
    done = svc("image", "remove", "r.example/new:1", "--yes")
    assert (done.code, done.err.splitlines()[-1]) == (1, "hint: svc image overview")
    service.refuse(f"DELETE /api/images/{'a' * 12}", 404, "not_found", "2 images begin with it")
    assert svc("image", "remove", "a" * 12, "--yes").err == "svc: 2 images begin with it\n"
