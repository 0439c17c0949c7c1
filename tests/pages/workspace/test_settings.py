"""The settings of a workspace, before a canned API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pages import records as shared
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.visiting import NARROW, each_look, focused, overflow, visit
from pages.workspace import records
from pages.workspace.states import HOSTILE
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

STOPPED, RUNNING = "/workspaces/vllm-serve/settings", "/workspaces/train-7b/settings"
VLLM = "/api/workspaces/ws-vllm-serve"
MEMORY = "[data-field='resources.memory_bytes']"
COMMAND = "[name=command]"
CPUS = "[data-field='resources.cpu_limit']"


def line(driver: Driver) -> str:
    """The command at the foot."""
    return find(driver, "[data-command]").text


def type_in(driver: Driver, selector: str, text: str) -> None:
    """Write a text instead of what is there."""
    field = find(driver, selector)
    field.send_keys(Keys.CONTROL + "a")
    field.send_keys(text or Keys.DELETE)


def value(driver: Driver, selector: str) -> str:
    """What a field says."""
    return str(find(driver, selector).get_property("value"))


def edited(record: dict[str, Any], **resources: Any) -> dict[str, Any]:
    """The record with other resources."""
    return record | {"resources": record["resources"] | resources}


@each_look
def test_what_a_stopped_one_has(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    env = [{"name": "MODE", "value": "fast"}]
    records.serve_all(canned, records.vllm(env=env, restart_on_boot=True))
    visit(browser, canned, STOPPED, theme=theme, size=size)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    assert value(browser, CPUS) == "16"
    assert value(browser, "[data-field='resources.shm_bytes']") == "16"
    assert value(browser, "[data-field=display_name]") == "Llama for the reading group"
    assert value(browser, ".env-row [data-part=value]") == "fast"
    assert find(browser, "[name=restart_on_boot]").is_selected()
    assert line(browser) == "svc ws edit vllm-serve --file patch.json"
    says(browser, "Nothing is changed")
    primary = [button.text for button in browser.find_elements(By.CSS_SELECTOR, "main .btn.primary")]
    assert primary == ["Save"]
    until(browser, lambda: canned.streams, "the stream")
    assert overflow(browser) == 0
    assert not complaints(browser)


@pytest.mark.parametrize("count", [0, 2])
def test_a_host_without_gpus(browser: Driver, canned: Canned, count: int) -> None:
    """No question of GPUs there, but for a workspace that asks for some: it can be given up."""
    records.without_gpus(canned)
    records.serve_all(canned, edited(records.vllm(), gpu_count=count))
    visit(browser, canned, STOPPED)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    for name in ("gpu_count", "gpu_mode"):
        assert find(browser, f"[data-field='resources.{name}']").is_displayed() == (count > 0)
    says(browser, "Nothing is changed")
    type_in(browser, MEMORY, "128")
    assert "gpu" not in line(browser)
    assert not complaints(browser)


def test_a_host_that_cannot_be_asked(browser: Driver, canned: Canned) -> None:
    """Refused, or not answered in time: the fields are there."""
    records.serve_all(canned, records.vllm())
    canned.refuse(
        "GET /api/workspaces/capacity", 503, "database_busy", "the database is busy", retryable=True
    )
    visit(browser, canned, STOPPED)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    assert find(browser, "[data-field='resources.gpu_count']").is_displayed()
    canned.answers["GET /api/workspaces/capacity"] = shared.capacity()
    canned.hold("GET /api/workspaces/capacity")
    visit(browser, canned, STOPPED)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    assert find(browser, "[data-field='resources.gpu_count']").is_displayed()


def test_save_sends_what_has_changed(browser: Driver, canned: Canned) -> None:
    """And no more; the line is the same on the command line, while it is typed."""
    record = records.vllm()
    records.serve_all(canned, record)
    saved = edited(record, memory_bytes=128 * shared.GIB, pids_limit=None) | {
        "env": [{"name": "A", "value": "it's"}]
    }

    def save() -> tuple[int, Any, dict[str, str]]:
        canned.answers[f"GET {VLLM}"] = records.answer(saved, '"new"')
        return records.answer(saved, '"new"')

    canned.answers[f"PATCH {VLLM}"] = save
    visit(browser, canned, STOPPED)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    type_in(browser, MEMORY, "128")
    wanted = {"resources": {"memory_bytes": 128 * shared.GIB}}
    assert (
        line(browser) == f"svc ws edit vllm-serve --file - <<< '{json.dumps(wanted, separators=(',', ':'))}'"
    )
    type_in(browser, "[data-field='resources.pids_limit']", "unlimited")
    press(browser, "[data-add]")
    browser.switch_to.active_element.send_keys("A" + Keys.TAB)
    browser.switch_to.active_element.send_keys("it's")
    assert "'\\''" in line(browser)
    says(browser, "3 not saved")
    press(browser, "[data-key=save]")
    says(browser, "Nothing is changed")
    ((body, headers),) = canned.sent(f"PATCH {VLLM}")
    assert body == {
        "resources": {"memory_bytes": 128 * shared.GIB, "pids_limit": "unlimited"},
        "env": [{"name": "A", "value": "it's"}],
    }
    assert headers["IF_MATCH"] == records.VERSION
    assert value(browser, "[data-field='resources.pids_limit']") == "unlimited"


def test_what_is_typed_during_a_save_stays(browser: Driver, canned: Canned) -> None:
    """It is for the next save: the answer fills only what it was asked for."""
    record = records.vllm()
    records.serve_all(canned, record)
    saved = edited(record, memory_bytes=128 * shared.GIB)

    def save() -> tuple[int, Any, dict[str, str]]:
        canned.answers[f"GET {VLLM}"] = records.answer(saved, '"new"')
        return records.answer(saved, '"new"')

    canned.answers[f"PATCH {VLLM}"] = save
    canned.hold(f"PATCH {VLLM}")
    visit(browser, canned, STOPPED)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    type_in(browser, MEMORY, "128")
    press(browser, "[data-key=save]")
    until(browser, lambda: canned.sent(f"PATCH {VLLM}"), "the request")
    type_in(browser, "[data-field='resources.pids_limit']", "77")
    canned.release()
    says(browser, "1 not saved")
    assert value(browser, "[data-field='resources.pids_limit']") == "77"
    assert value(browser, MEMORY) == "128"


def test_a_network(browser: Driver, canned: Canned) -> None:
    """The first one of a workspace that has run needs another container: that is asked for, and said."""
    record = records.vllm()
    records.serve_all(canned, record)
    canned.answers[f"PATCH {VLLM}"] = records.answer(record | {"network": "lab"})
    visit(browser, canned, STOPPED)
    control = find(browser, "[data-field=network]")
    assert not find(browser, "[data-replace]").is_displayed()
    control.send_keys("lab")
    says(browser, "what was installed in it is lost", "[data-replace]")
    until(browser, lambda: line(browser).endswith('<<< \'{"network":"lab"}\''), "the line")
    press(browser, "[data-replace] input")
    until(browser, lambda: '"replace_container":true' in line(browser), "the box")
    says(browser, "1 not saved", "[data-unsaved]")
    press(browser, "[data-key=save]")
    until(browser, lambda: canned.sent(f"PATCH {VLLM}"), "the request")
    assert canned.sent(f"PATCH {VLLM}")[0][0] == {"network": "lab", "replace_container": True}


def test_a_command_of_its_own(browser: Driver, canned: Canned) -> None:
    """One argument a line; the container that it needs is asked for; empty is the template's again."""
    record = records.vllm()
    records.serve_all(canned, record)
    words = ["python3", "/work/train.py", "--title=it's long"]
    saved = record | {"command": words, "started_at": None}

    def save() -> tuple[int, Any, dict[str, str]]:
        canned.answers[f"GET {VLLM}"] = records.answer(saved, '"new"')
        return records.answer(saved, '"new"')

    canned.answers[f"PATCH {VLLM}"] = save
    visit(browser, canned, STOPPED)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    says(browser, "Mounts, apps, command and image", "[data-rules]")
    type_in(browser, COMMAND, "  python3\n/work/train.py\n--title=it's long\n")
    says(browser, "what was installed in it is lost", "[data-replace]")
    says(browser, "1 not saved", "[data-unsaved]")
    press(browser, "[data-replace] input")
    until(browser, lambda: '"replace_container":true' in line(browser), "the box")
    assert "'\\''" in line(browser)
    press(browser, "[data-key=save]")
    says(browser, "Nothing is changed")
    assert canned.sent(f"PATCH {VLLM}")[0][0] == {"command": words, "replace_container": True}
    assert value(browser, COMMAND) == "\n".join(words)
    says(browser, "Mounts, apps and image", "[data-rules]")
    saved = record | {"started_at": None}
    type_in(browser, COMMAND, "")
    assert not find(browser, "[data-replace]").is_displayed()
    press(browser, "[data-key=save]")
    says(browser, "Nothing is changed")
    assert canned.sent(f"PATCH {VLLM}")[1][0] == {"command": None}


def test_arguments_that_are_no_lines(browser: Driver, canned: Canned) -> None:
    """Those of several lines, and empty ones, are shown and taken as a JSON list."""
    words = ["sh", "-c", "echo a\necho b", "", "[x"]
    records.serve_all(canned, records.vllm(command=words, started_at=None))
    visit(browser, canned, STOPPED)
    until(browser, lambda: json.loads(value(browser, COMMAND) or "null") == words, "the list")
    for wrong in ("a\n\nb", '["a", 1]', "[a", "[]"):
        type_in(browser, COMMAND, wrong)
        press(browser, "[data-key=save]")
        says(browser, "Use one argument a line", ".field:has([data-field=command])")
        assert focused(browser) == "command"
    type_in(browser, COMMAND, json.dumps(words, indent=1))
    says(browser, "Nothing is changed", "[data-unsaved]")
    type_in(browser, COMMAND, json.dumps([*words, "c"]))
    canned.refuse(f"PATCH {VLLM}", 422, "validation_failed", "no", fields=[
        {"field": "command", "code": "invalid", "message": "the command is too long"}])  # fmt: skip
    press(browser, "[data-key=save]")
    says(browser, "the command is too long", ".field:has([data-field=command])")
    assert canned.sent(f"PATCH {VLLM}")[0][0] == {"command": [*words, "c"]}


def test_what_is_no_number(browser: Driver, canned: Canned) -> None:
    """Said beside the field before anything is sent; what the service refuses is said there too."""
    records.serve_all(canned, records.vllm())
    visit(browser, canned, STOPPED)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    type_in(browser, MEMORY, "much")
    press(browser, "[data-key=save]")
    says(browser, "Use a number of GiB", ".field:has([data-field='resources.memory_bytes'])")
    assert not canned.sent(f"PATCH {VLLM}")
    type_in(browser, MEMORY, "512m")
    fields = [
        {"field": "resources.memory_bytes", "code": "template", "message": "the template asks for 1 GiB"}
    ]
    canned.refuse(f"PATCH {VLLM}", 422, "validation_failed", "no", fields=fields)
    press(browser, "[data-key=save]")
    says(browser, "the template asks for 1 GiB", ".field:has([data-field='resources.memory_bytes'])")
    assert canned.sent(f"PATCH {VLLM}")[0][0] == {"resources": {"memory_bytes": 512 << 20}}
    assert value(browser, MEMORY) == "512m"


def test_a_refusal_keeps_what_was_typed(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned, records.vllm())
    canned.refuse(
        f"PATCH {VLLM}", 409, "quota_exceeded", "your quota allows 64 GiB", hint="svc ws stop train-7b"
    )
    visit(browser, canned, STOPPED)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    type_in(browser, MEMORY, "128")
    press(browser, "[data-key=save]")
    says(browser, "vllm-serve was not changed. Your quota allows 64 GiB.", "[data-answer]")
    assert value(browser, MEMORY) == "128"


def test_changed_elsewhere_while_it_is_typed(browser: Driver, canned: Canned) -> None:
    """412: what has changed is shown, what was typed is kept, what was not typed follows."""
    record = records.vllm()
    records.serve_all(canned, record)
    theirs = edited(record, memory_bytes=192 * shared.GIB, cpu_limit=8)

    def refuse() -> tuple[int, Any, dict[str, str]]:
        for ref in ("ws-vllm-serve", "vllm-serve"):
            canned.answers[f"GET /api/workspaces/{ref}"] = records.answer(theirs, '"theirs"')
        canned.refuse(
            "x", 412, "precondition_failed", "vllm-serve has changed since it was read: resources",
            details={"changed": ["resources"], "version": '"theirs"'},
        )  # fmt: skip
        return canned.answers["x"]  # type: ignore[no-any-return]

    canned.answers[f"PATCH {VLLM}"] = refuse
    visit(browser, canned, STOPPED)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    type_in(browser, MEMORY, "128")
    press(browser, "[data-key=save]")
    says(browser, "Memory: it was 96 GiB, now it is 192 GiB; you typed 128 GiB", "[data-conflict]")
    assert value(browser, MEMORY) == "128"
    assert value(browser, CPUS) == "8"
    press(browser, "[data-key=mine]")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "[data-conflict]"), "no notice")
    mine = edited(theirs, memory_bytes=128 * shared.GIB)
    canned.answers[f"PATCH {VLLM}"] = records.answer(mine, '"mine"')
    canned.answers[f"GET {VLLM}"] = records.answer(mine, '"mine"')
    press(browser, "[data-key=save]")
    says(browser, "Nothing is changed")
    body, headers = canned.sent(f"PATCH {VLLM}")[-1]
    assert body == {"resources": {"memory_bytes": 128 * shared.GIB}}
    assert headers["IF_MATCH"] == '"theirs"'


def test_an_event_says_it_before_the_save(browser: Driver, canned: Canned) -> None:
    record = records.vllm()
    records.serve_all(canned, record)
    visit(browser, canned, STOPPED)
    until(browser, lambda: value(browser, MEMORY) == "96", "its memory")
    type_in(browser, MEMORY, "128")
    until(browser, lambda: canned.streams, "the stream")
    canned.answers[f"GET {VLLM}"] = records.answer(edited(record, memory_bytes=192 * shared.GIB), '"theirs"')
    canned.event("workspace.updated", subject={"type": "workspace", "id": "ws-vllm-serve", "name": ""})
    says(browser, "now it is 192 GiB; you typed 128 GiB", "[data-conflict]")
    press(browser, "[data-key=theirs]")
    until(browser, lambda: value(browser, MEMORY) == "192", "what is there now")
    says(browser, "Nothing is changed")


def test_one_that_runs_is_stopped_first(browser: Driver, canned: Canned) -> None:
    """Its name changes at any time; all else is shown, and closed until it is stopped."""
    records.serve_all(canned)
    visit(browser, canned, RUNNING)
    says(browser, "It runs.", "[data-reasons]")
    assert not find(browser, MEMORY).is_enabled()
    assert find(browser, "[name=name]").is_enabled()
    press(browser, "[data-key=stop-and-edit]")
    says(browser, "svc ws stop train-7b", "dialog[open] code")

    def stop() -> dict[str, Any]:
        stopped = records.running(status="stopped", allowed_actions=shared.ACTIONS["stopped"])
        records.serve_all(canned, stopped)
        return stopped

    canned.answers[f"POST {records.PATH}/stop"] = stop
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: find(browser, MEMORY).is_enabled(), "an open form")
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-reasons] .notice")


def test_rename(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned)
    visit(browser, canned, RUNNING)
    until(browser, lambda: value(browser, "[name=name]") == "train-7b", "its name")
    type_in(browser, "[name=name]", "paper")
    assert line(browser) == "svc ws rename train-7b --name paper"
    renamed = records.running(name="paper")

    def rename() -> tuple[int, Any, dict[str, str]]:
        records.serve_all(canned, renamed)
        return records.answer(renamed)

    canned.answers[f"POST {records.PATH}/rename"] = rename
    find(browser, "[name=name]").send_keys(Keys.ENTER)
    until(browser, lambda: browser.current_url.endswith("/workspaces/paper/settings"), "the new address")
    assert value(browser, "[name=name]") == "paper"
    until(browser, lambda: line(browser) == "svc ws edit paper --file patch.json", "the line")


def test_a_name_that_is_taken(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned)
    field = {"field": "name", "code": "taken", "message": "you have a workspace notebook"}
    canned.refuse(f"POST {records.PATH}/rename", 409, "name_taken", "taken", fields=[field])
    visit(browser, canned, RUNNING)
    until(browser, lambda: value(browser, "[name=name]") == "train-7b", "its name")
    type_in(browser, "[name=name]", "notebook")
    press(browser, "[data-key=rename]")
    says(browser, "you have a workspace notebook", "[data-renaming] .field-error")
    assert value(browser, "[name=name]") == "notebook"


def test_delete_says_what_is_lost(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned)
    canned.answers[f"DELETE {records.PATH}"] = (204, None, {})
    visit(browser, canned, RUNNING)
    press(browser, "[data-ending] [data-key=delete]")
    says(browser, "It runs: its programs are ended first.", "dialog[open]")
    says(browser, "Files in /work stay.", "dialog[open]")
    assert focused(browser) == "Cancel"
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: browser.current_url.endswith("/workspaces"), "the list")


def test_remove_a_variable(browser: Driver, canned: Canned) -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": HOSTILE}]
    records.serve_all(canned, records.vllm(env=env))
    visit(browser, canned, STOPPED, size=NARROW)
    press(browser, "[aria-label='Remove the variable A']")
    says(browser, "1 not saved")
    assert overflow(browser) == 0
    canned.answers[f"PATCH {VLLM}"] = records.answer(records.vllm(env=env[1:]))
    canned.answers[f"GET {VLLM}"] = records.answer(records.vllm(env=env[1:]))
    press(browser, "[data-key=save]")
    says(browser, "Nothing is changed")
    assert canned.sent(f"PATCH {VLLM}")[0][0] == {"env": env[1:]}
    assert not complaints(browser)
