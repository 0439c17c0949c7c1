"""One template: its Dockerfile, its build, its fields, its revisions, before a canned API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pages import records as shared
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.templates import records
from pages.templates.states import STATES, building, enabled, read_only
from pages.visiting import NARROW, each_look, focused, line, overflow, visit
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

PAGE = "/templates/my-torch"
EDITOR = "textarea[data-key=dockerfile]"
PATH = "/api/templates/tpl-my-torch"


def text(driver: Driver) -> str:
    """What is in the editor."""
    return str(find(driver, EDITOR).get_property("value"))


def at_editor(driver: Driver, canned: Canned) -> None:
    """The tab of the Dockerfile, its build failed."""
    records.failed_build(canned)
    visit(driver, canned, f"{PAGE}/dockerfile")
    says(driver, "saved", ".line-tag")


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.failed_build(canned)
    visit(browser, canned, f"{PAGE}/dockerfile", theme=theme, size=size)
    says(browser, "step 5 of 6 (RUN pip install", "[data-steps] .bad")
    says(browser, "Build again", "[data-steps]")
    says(browser, "Build of revision 3", "[data-operation]")
    says(browser, "ModuleNotFoundError: No module named 'packaging'", "[data-log]")
    says(browser, "names no USER", "[data-findings]")
    says(browser, "Saving makes revision 4. Built with 1 file, 412 bytes.")
    assert text(browser) == records.DOCKERFILE
    assert find(browser, ".nums").get_property("textContent").split("\n")[-1] == "17"
    assert line(browser) == "svc image build my-torch --wait && svc template enable my-torch --revision 3"
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_saving(browser: Driver, canned: Canned) -> None:
    """Ctrl S sends the text with the version that was read; the tag says what is not saved."""
    at_editor(browser, canned)
    find(browser, EDITOR).send_keys(Keys.CONTROL + Keys.END)
    find(browser, EDITOR).send_keys("RUN true\nRUN false")
    says(browser, "2 lines changed, not saved", ".line-tag")
    assert line(browser).startswith(
        "svc template dockerfile my-torch --set --file Dockerfile --revision 3 && svc"
    )
    fresh = records.tagged(
        {"dockerfile": f"{records.DOCKERFILE}RUN true\nRUN false", "read_only": False}, '"new"'
    )

    def put() -> Any:
        canned.answers[f"GET {PATH}/dockerfile"] = fresh
        return records.my_torch(revision=4)

    canned.answers[f"PUT {PATH}/dockerfile"] = put
    find(browser, EDITOR).send_keys(Keys.CONTROL + "s")
    says(browser, "saved", ".line-tag")
    until(browser, lambda: "not saved" not in find(browser, ".line-tag").text, "saved")
    ((body, headers),) = canned.sent(f"PUT {PATH}/dockerfile")
    assert body == {"dockerfile": f"{records.DOCKERFILE}RUN true\nRUN false"}
    assert headers["IF_MATCH"] == records.TAG
    assert focused(browser) == "Dockerfile of my-torch" or focused(browser) == "Dockerfile"


def test_tab_leaves_and_undo_gives_back(browser: Driver, canned: Canned) -> None:
    at_editor(browser, canned)
    find(browser, EDITOR).send_keys("# x" + Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("data-key") != "dockerfile"
    assert text(browser).count("\t") == 0
    press(browser, "[data-key=undo]")
    assert text(browser) == records.DOCKERFILE
    says(browser, "What you had typed", "[data-conflict]")
    press(browser, "[data-key=exchange]")
    assert "# x" in text(browser)


def test_leaving_with_unsaved_text_asks(browser: Driver, canned: Canned) -> None:
    """Another place asks; another tab of this page does not, and keeps what was typed."""
    at_editor(browser, canned)
    find(browser, EDITOR).send_keys("# typed")
    press(browser, "[data-tab='1']")
    says(browser, "What it is", "[data-part='']")
    assert browser.current_url.endswith(PAGE)
    browser.back()
    until(browser, lambda: "# typed" in text(browser), "the text")
    assert asks(browser)
    press(browser, "[data-key=undo]")
    assert not asks(browser)
    press(browser, ".crumb a")
    until(browser, lambda: browser.current_url.endswith("/templates"), "the gallery")


def asks(driver: Driver) -> bool:
    """Whether the browser would ask before it leaves: WebDriver answers that question by itself."""
    return bool(
        driver.execute_script(
            "const event = new Event('beforeunload', {cancelable: true});"
            "window.dispatchEvent(event); return event.defaultPrevented"
        )
    )


def test_a_refused_save_shows_both(browser: Driver, canned: Canned) -> None:
    """412: what is stored is beside what was typed, each can be edited on, and nothing is lost."""
    at_editor(browser, canned)
    find(browser, EDITOR).send_keys(Keys.CONTROL + Keys.END)
    find(browser, EDITOR).send_keys("# mine")

    def refuse() -> Any:
        theirs = {"dockerfile": "FROM other\n# theirs\n", "read_only": False}
        canned.answers[f"GET {PATH}/dockerfile"] = records.tagged(theirs, '"theirs"')
        error = {"code": "precondition_failed", "message": "it has changed since", "hint": ""}
        more = {"fields": [], "details": {}, "retryable": False, "request_id": "r", "action": None}
        return 412, {"error": error | more}, {}

    canned.answers[f"PUT {PATH}/dockerfile"] = refuse
    press(browser, "[data-key=save]")
    says(browser, "Saved elsewhere meanwhile", "[data-conflict] [role=alert]")
    says(browser, "# theirs", "[data-conflict] pre")
    assert text(browser) == f"{records.DOCKERFILE}# mine"
    find(browser, EDITOR).send_keys(Keys.CONTROL + "s")  # nothing is saved before it was seen
    assert focused(browser) == "Save mine over it"
    assert len(canned.sent(f"PUT {PATH}/dockerfile")) == 1
    press(browser, "[data-key=exchange]")
    assert text(browser) == "FROM other\n# theirs\n"
    says(browser, "# mine", "[data-conflict] pre")
    press(browser, "[data-key=exchange]")
    assert text(browser) == f"{records.DOCKERFILE}# mine"
    canned.answers[f"PUT {PATH}/dockerfile"] = records.my_torch(revision=5)
    press(browser, "[data-key=save]")
    until(browser, lambda: len(canned.sent(f"PUT {PATH}/dockerfile")) == 2, "the second save")
    assert canned.sent(f"PUT {PATH}/dockerfile")[1][1]["IF_MATCH"] == '"theirs"'


def test_what_others_save_while_one_types(browser: Driver, canned: Canned) -> None:
    """It does not take the place of what is typed; without a change it does."""
    at_editor(browser, canned)
    until(browser, lambda: canned.streams, "the stream")
    other = {"dockerfile": "FROM other\n", "read_only": False}
    canned.answers[f"GET {PATH}/dockerfile"] = records.tagged(other, '"two"')
    event = {"type": "template", "id": "tpl-my-torch", "name": "my-torch"}
    canned.event("template.updated", subject=event)
    until(browser, lambda: text(browser) == "FROM other\n", "their text")
    find(browser, EDITOR).send_keys("# mine ")
    canned.answers[f"GET {PATH}/dockerfile"] = records.tagged(
        other | {"dockerfile": "FROM third\n"}, '"three"'
    )
    canned.event("template.updated", subject=event)
    says(browser, "FROM third", "[data-conflict] pre")
    assert "# mine" in text(browser)


def test_a_refused_dockerfile(browser: Driver, canned: Canned) -> None:
    """The API's words, and the text as it was typed."""
    at_editor(browser, canned)
    find(browser, EDITOR).send_keys("FORM ")
    canned.refuse(
        f"PUT {PATH}/dockerfile", 422, "validation_failed", "Dockerfile: line 1: unknown instruction FORM"
    )
    press(browser, "[data-key=save]")
    says(
        browser,
        "The Dockerfile was not saved. Dockerfile: line 1: unknown instruction FORM.",
        ".notice[role=alert]",
    )
    assert "FORM" in text(browser)


def test_saved_and_not_read_again(browser: Driver, canned: Canned) -> None:
    """What is saved is not called unsaved because reading it again fails."""
    at_editor(browser, canned)
    find(browser, EDITOR).send_keys("RUN true\n")

    def put() -> Any:
        canned.refuse(f"GET {PATH}/dockerfile", 500, "internal", "the service failed")
        return records.my_torch(revision=4)

    canned.answers[f"PUT {PATH}/dockerfile"] = put
    find(browser, EDITOR).send_keys(Keys.CONTROL + "s")
    says(browser, "The Dockerfile was saved, and could not be read again.", ".notice[role=alert]")
    until(browser, lambda: "not saved" not in find(browser, ".line-tag").text, "saved")


def test_save_and_build(browser: Driver, canned: Canned) -> None:
    """Saved, then begun; its log comes line by line, and the steps follow to the end."""
    at_editor(browser, canned)
    find(browser, EDITOR).send_keys("# x\n")
    record = records.my_torch(revision=4)
    build = records.operation(record, id="op-new")
    canned.answers[f"PUT {PATH}/dockerfile"] = record

    def begin() -> Any:
        records.one(canned, record, status="building", build=build, texts=["STEP 1/6: FROM x"])
        return 202, {"operation": build}, {}

    canned.answers[f"POST {PATH}/image/build"] = begin
    press(browser, "[data-key=save-build]")
    says(browser, "STEP 1/6: FROM x", "[data-log]")
    says(browser, "building, step 3 of 6", "[data-steps] .now")
    done = records.operation(record, "succeeded", id="op-new")
    records.one(canned, record, status="ready", build=done, texts=["STEP 1/6: FROM x", "STEP 2/6: RUN y"])
    until(browser, lambda: canned.streams, "the stream")
    canned.event("operation.finished", subject={"type": "operation", "id": "op-new", "name": ""}, data={})
    says(browser, "Revision 4 is built", "[data-steps]")
    says(browser, "STEP 2/6: RUN y", "[data-log]")
    assert find(browser, "[data-steps] [data-key=enable]").get_attribute("class") == "btn sm primary"
    command = find(browser, "[data-steps] [data-key=enable]").get_attribute("data-cmd")
    assert command == "svc template enable my-torch --revision 4"


def test_a_log_is_read_on_from_its_last_line(browser: Driver, canned: Canned) -> None:
    building(canned)
    visit(browser, canned, f"{PAGE}/dockerfile")
    says(browser, "--> Using cache", "[data-log]")
    lines = len(browser.find_elements(By.CSS_SELECTOR, "[data-log] span"))
    request = "GET /api/operations/op-mf3kfwbz/log"
    seen = len(canned.sent(request))
    until(browser, lambda: len(canned.sent(request)) > seen + 1, "two more questions")
    assert len(browser.find_elements(By.CSS_SELECTOR, "[data-log] span")) == lines == 4
    assert all(headers["X_SVC_BACKGROUND"] == "1" for _, headers in canned.sent(request))


def test_where_a_build_failed_is_its_error_s_word(browser: Driver, canned: Canned) -> None:
    """The last figures may be of the step before."""
    records.failed_build(canned)
    visit(browser, canned, f"{PAGE}/dockerfile")
    says(browser, "Failed at step 5 of 6", "[data-operation]")


def test_the_step_of_a_build_comes_with_its_log(browser: Driver, canned: Canned) -> None:
    """Where no figures have come yet."""
    record = records.my_torch()
    build = records.operation(record, progress={})
    records.one(canned, record, status="building", build=build, texts=records.LOG[:4])
    visit(browser, canned, f"{PAGE}/dockerfile")
    says(browser, "Building, step 2 of 6", "[data-operation] .state")


def test_a_template_whose_registry_is_not_allowed(browser: Driver, canned: Canned) -> None:
    """An enabled one cannot be used before its image is there, and offers nothing that would be refused."""
    finding = records.finding("registry_not_allowed", "docker.io is not on the registry allowlist")
    records.one(canned, records.my_torch(status="enabled", findings=[finding]))
    visit(browser, canned, PAGE)
    says(browser, "registry not allowed", "[data-head] .tag")
    says(browser, "docker.io is not on the registry allowlist", "[data-steps]")
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-head] [data-key=use]")


def test_cancel(browser: Driver, canned: Canned) -> None:
    building(canned)
    record = records.my_torch()
    cancelled = records.operation(record, "cancelled")

    def cancel() -> Any:
        records.one(canned, record, build=cancelled)
        return cancelled

    canned.answers["POST /api/operations/op-mf3kfwbz/cancel"] = cancel
    visit(browser, canned, f"{PAGE}/dockerfile")
    button = find(browser, "[data-steps] [data-key=cancel]")
    assert button.get_attribute("data-cmd") == "svc operation cancel op-mf3kfwbz"
    press(browser, "[data-steps] [data-key=cancel]")
    says(browser, "Cancel the build of my-torch?", "dialog[open]")
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "Cancelled", "[data-operation]")
    says(browser, "8.4 GiB to load, 120 GiB free", "[data-steps]")


def test_steps_that_cannot_be_done_yet(browser: Driver, canned: Canned) -> None:
    """Each says why; and a press does nothing."""
    finding = records.finding("registry_not_allowed", "ghcr.io is not on the registry allowlist", 1)
    records.one(canned, records.my_torch(findings=[finding]))
    visit(browser, canned, PAGE)
    says(browser, "ghcr.io is not on the registry allowlist", "[data-steps] .bad")
    says(browser, "Administrators say which", "[data-steps] .bad")
    for key in ("build", "enable"):
        button = find(browser, f"[data-steps] [data-key={key}]")
        assert button.get_attribute("aria-disabled") == "true"
        reason = find(browser, f"#{button.get_attribute('aria-describedby')}").text
        assert reason == "The registry is not allowed here."
        button.click()
    assert not [request for request, *_ in canned.requests if request.startswith("POST")]


def test_a_finding_leads_to_its_line(browser: Driver, canned: Canned) -> None:
    records.failed_build(canned)
    visit(browser, canned, PAGE)
    press(browser, "[data-key=line-image_not_pinned-1]")
    until(browser, lambda: focused(browser).startswith("Dockerfile"), "the editor")
    chosen = browser.execute_script(
        "const t = arguments[0]; return [t.selectionStart, t.selectionEnd]", find(browser, EDITOR)
    )
    assert chosen == [0, len(records.DOCKERFILE.split("\n")[0])]


def test_the_files_of_the_build(browser: Driver, canned: Canned, tmp_path: Path) -> None:
    """Added under a path, replaced, removed; each with its command."""
    at_editor(browser, canned)
    says(browser, "412 bytes", "[data-context]")
    (tmp_path / "requirements.txt").write_bytes(b"torch==2.7.1\n")
    find(browser, "[data-key=context-file]").send_keys(str(tmp_path / "requirements.txt"))
    says(browser, "Replace it", "[data-context]")
    path = find(browser, "[data-key=context-path]")
    path.clear()
    path.send_keys("lab/more.txt")
    says(browser, "Add it", "[data-context]")
    command = find(browser, "[data-key=context-put]").get_attribute("data-cmd")
    assert command == "svc template context my-torch --set lab/more.txt --file requirements.txt"
    canned.answers[f"PUT {PATH}/context/file"] = records.my_torch(revision=4)
    press(browser, "[data-key=context-put]")
    ((body, _),) = until(browser, lambda: canned.sent(f"PUT {PATH}/context/file"), "the request")
    assert body == b"torch==2.7.1\n"
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "[data-chosen]"), "the end of it")
    canned.answers[f"DELETE {PATH}/context/file"] = records.my_torch(revision=5)
    press(browser, "[data-key='remove-requirements.txt']")
    says(browser, "svc template context my-torch --remove requirements.txt", "dialog[open] .cmd code")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: canned.sent(f"DELETE {PATH}/context/file"), "the request")
    assert not complaints(browser)


def test_everybodys_is_read_only(browser: Driver, canned: Canned) -> None:
    """Its Dockerfile is seen; a clone is what can be changed."""
    read_only(canned)
    visit(browser, canned, "/templates/vllm/dockerfile")
    says(browser, "read-only", "[data-editor] header")
    assert find(browser, EDITOR).get_property("readOnly")
    assert not browser.find_elements(
        By.CSS_SELECTOR, "[data-key=save], [data-key=delete], [data-key=disable]"
    )
    press(browser, "[data-key=clone-text]")
    says(browser, "svc template clone vllm --name my-vllm", "dialog .cmd code")
    assert focused(browser) == "name"
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")


def test_fields(browser: Driver, canned: Canned) -> None:
    """Only what was changed is sent, with the version that was read; the line is the same edit."""
    records.failed_build(canned)
    visit(browser, canned, PAGE)
    press(browser, "[data-key=edit]")
    for name, value in {
        "description": "it's new",
        "limits.gpu_count": "2",
        "defaults.memory_bytes": "64",
    }.items():
        control = find(browser, f'[data-field="{name}"]')
        control.clear()
        control.send_keys(value)
    press(browser, "[data-variable]:first-child [type=checkbox]")
    defaults = {"cpu_limit": 16.0, "memory_bytes": 64 * shared.GIB, "gpu_count": 1}
    patch = {
        "description": "it's new",
        "env": [{"name": "HF_TOKEN", "value": "hf_abc", "secret": True}, {"name": "KEY", "secret": True}],
        "defaults": defaults,
        "limits": {"gpu_count": 2},
    }
    assert line(browser).startswith("echo '{\"description\":\"it'\\''s new\"")
    assert line(browser).endswith("| svc template edit my-torch --file - --revision 3")
    canned.answers[f"PATCH {PATH}"] = records.my_torch(revision=4, description="it's new")
    press(browser, "[data-key=save-fields]")
    ((body, headers),) = until(browser, lambda: canned.sent(f"PATCH {PATH}"), "the request")
    assert body == patch
    assert headers["IF_MATCH"] == records.TAG
    says(browser, "it's new", "[data-part='']")


def test_ports_and_a_network(browser: Driver, canned: Canned) -> None:
    """Row by row; one without a number has that of the host."""
    records.failed_build(canned)
    visit(browser, canned, PAGE)
    press(browser, "[data-key=edit]")
    press(browser, "[data-key=add-port]")
    browser.switch_to.active_element.send_keys("lab")
    press(browser, "[data-key=add-port]")
    browser.switch_to.active_element.send_keys("login", Keys.TAB, "22")
    row = "#ports-fields .form-row:last-child"
    Select(find(browser, f"{row} [data-part=kind]")).select_by_value("ssh")
    find(browser, f"{row} [data-part=user]").send_keys("ada")
    find(browser, "[data-field=network]").send_keys("lab")
    canned.answers[f"PATCH {PATH}"] = records.my_torch(revision=4)
    until(browser, lambda: '"network":"lab"' in line(browser), "the line")
    press(browser, "[data-key=save-fields]")
    ((body, _),) = until(browser, lambda: canned.sent(f"PATCH {PATH}"), "the request")
    plain = {"container_port": None, "access": "owner", "kind": "http", "user": None}
    assert body == {
        "network": "lab",
        "ports": [
            plain | {"name": "lab"},
            plain | {"name": "login", "container_port": 22, "kind": "ssh", "user": "ada"},
        ],
    }


def test_fields_that_are_refused(browser: Driver, canned: Canned) -> None:
    """Each message at its field, the focus in the first; JSON that is none is said before it is sent."""
    records.failed_build(canned)
    visit(browser, canned, PAGE)
    press(browser, "[data-key=edit]")
    control = find(browser, "[data-field=rest]")
    control.clear()
    control.send_keys("{")
    press(browser, "[data-key=save-fields]")
    says(browser, "JSON", ".field-error")
    assert not canned.sent(f"PATCH {PATH}")
    control.clear()
    control.send_keys('{"command": null}')
    find(browser, "[data-field='idle.after_minutes']").send_keys("5")
    find(browser, "[data-field='idle.action']").send_keys("Stop")
    fields = [
        {"field": "idle.after_minutes", "code": "invalid", "message": "Must be at least 10."},
        {"field": "env.0.name", "code": "invalid", "message": "No such name."},
    ]
    canned.refuse(f"PATCH {PATH}", 422, "validation_failed", "2 values are not valid", fields=fields)
    press(browser, "[data-key=save-fields]")
    says(browser, "Must be at least 10.", "[data-form]")
    says(browser, "0.name: No such name.", "#env-fields")
    assert browser.switch_to.active_element.get_attribute("data-field") == "idle.after_minutes"


def test_fields_that_two_change(browser: Driver, canned: Canned) -> None:
    """412: both values are seen, the form keeps its own, and the next save is over the other."""
    records.failed_build(canned)
    visit(browser, canned, PAGE)
    press(browser, "[data-key=edit]")
    control = find(browser, "[data-field=description]")
    control.clear()
    control.send_keys("mine")

    def refuse() -> Any:
        canned.answers[f"GET {PATH}"] = records.tagged(
            records.my_torch(description="theirs", revision=4), '"two"'
        )
        error = shared_refusal("precondition_failed", "my-torch has changed since it was read: description")
        return 412, {"error": error}, {}

    canned.answers[f"PATCH {PATH}"] = refuse
    press(browser, "[data-key=save-fields]")
    says(browser, "Revision 4 was saved elsewhere meanwhile.", "[data-form] [role=alert]")
    says(browser, "theirs", "[data-form] [role=alert]")
    assert control.get_property("value") == "mine"
    canned.answers[f"PATCH {PATH}"] = records.my_torch(description="mine", revision=5)
    press(browser, "[data-key=save-fields]")
    until(browser, lambda: len(canned.sent(f"PATCH {PATH}")) == 2, "the second")
    assert canned.sent(f"PATCH {PATH}")[1][1]["IF_MATCH"] == '"two"'


def shared_refusal(code: str, message: str) -> dict[str, Any]:
    """The body of an error."""
    return records.records_error(code, message) | {"request_id": "req-1"}


def test_revisions_are_compared(browser: Driver, canned: Canned) -> None:
    records.failed_build(canned)
    visit(browser, canned, f"{PAGE}/changes")
    says(browser, "ENV WANDB_API_KEY=changeme", ".diff")
    says(browser, "min_vram_bytes", ".diff")
    assert line(browser) == "svc template diff my-torch --from 2 --to 3"
    canned.answers[f"GET {PATH}/diff"] = records.difference(before=1, after=3, dockerfile=None, fields=[])
    press(browser, "[data-key=compare-1]")
    says(browser, "Nothing differs.")
    assert line(browser) == "svc template diff my-torch --from 1 --to 3"
    assert not complaints(browser)


def test_delete_says_what_stays(browser: Driver, canned: Canned) -> None:
    records.failed_build(canned)
    canned.answers[f"DELETE {PATH}"] = (204, None, {})
    visit(browser, canned, PAGE)
    press(browser, "[data-key=more]")
    press(browser, "[data-key=delete]")
    says(browser, "Images stay in the stores that have them", "dialog[open]")
    says(browser, "svc template delete my-torch --yes", "dialog[open] code")
    assert focused(browser) == "Cancel"
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: browser.current_url.endswith("/templates"), "the gallery")


def test_delete_that_would_be_refused(browser: Driver, canned: Canned) -> None:
    """It is said before; and the refusal has its next step."""
    record = records.my_torch()
    records.one(canned, record)
    canned.answers[f"GET {PATH}/revisions"] = shared.page([records.revision(3, record, workspaces=2)])
    action = {"label": "Disable it", "method": "POST", "path": f"{PATH}/disable", "body": {}}
    canned.refuse(
        f"DELETE {PATH}",
        409,
        "conflict",
        "2 workspaces were made from my-torch",
        hint="svc template disable my-torch",
        action=action,
    )
    canned.answers[f"POST {PATH}/disable"] = record
    visit(browser, canned, PAGE)
    press(browser, "[data-key=more]")
    press(browser, "[data-key=delete]")
    says(browser, "2 workspaces were made from it, so it will be refused", "dialog[open]")
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "my-torch was not deleted. 2 workspaces were made from my-torch.", ".notice[role=alert]")
    press(browser, ".notice [data-key=act]")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: canned.sent(f"POST {PATH}/disable"), "the action")


def test_menu_of_an_enabled_one(browser: Driver, canned: Canned) -> None:
    """Everybody's, for who is no administrator: no edit, no delete; its image can be removed."""
    enabled(canned)
    canned.answers["DELETE /api/templates/tpl-torch/image"] = (204, None, {})
    visit(browser, canned, "/templates/torch")
    says(browser, "It can be used", "[data-steps]")
    press(browser, "[data-key=more]")
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-key=delete], [data-key=edit-menu]")
    press(browser, "[data-key=remove-image]")
    says(browser, "These workspaces of yours need it, so it will be refused: train-7b", "dialog[open]")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: canned.sent("DELETE /api/templates/tpl-torch/image"), "the request")


def test_export(browser: Driver, canned: Canned) -> None:
    """A plain link with a ticket for just that."""
    records.failed_build(canned)
    canned.answers["POST /api/tickets"] = (
        201,
        {"url": f"{PATH}/export?ticket=t", "expires_at": shared.ago()},
        {},
    )
    visit(browser, canned, PAGE)
    assert (
        find(browser, "[data-key=export]").get_attribute("data-cmd")
        == "svc template export my-torch --out my-torch.tar"
    )
    press(browser, "[data-key=export]")
    until(browser, lambda: canned.sent(f"GET {PATH}/export"), "the link")
    ((body, _),) = canned.sent("POST /api/tickets")
    assert body == {"url": f"{PATH}/export"}


def test_tabs_by_keys(browser: Driver, canned: Canned) -> None:
    records.failed_build(canned)
    visit(browser, canned, PAGE)
    says(browser, "What it is")
    find(browser, "body").send_keys("3")
    says(browser, "Revisions", "[data-part=changes]")
    assert browser.current_url.endswith(f"{PAGE}/changes")
    find(browser, "body").send_keys("2")
    until(browser, lambda: find(browser, EDITOR).is_displayed(), "the editor")


def test_gone(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/templates/none")
    says(browser, "There is no such template")
    says(browser, "none", "[data-gone]")


def test_while_the_service_is_away(browser: Driver, canned: Canned) -> None:
    """Buttons wait, and what is typed stays."""
    at_editor(browser, canned)
    until(browser, lambda: canned.streams, "the stream")
    for request in ("GET /api/health", "GET /api/events"):
        canned.refuse(request, 503, "unavailable", "stopping", retryable=True)
    canned.event("restarting")
    canned.streams[0].end()
    find(browser, "[data-steps] [data-key=build][aria-disabled=true]")
    find(browser, EDITOR).send_keys("# x")
    find(browser, EDITOR).send_keys(Keys.CONTROL + "s")
    assert not canned.sent(f"PUT {PATH}/dockerfile")
    assert "# x" in text(browser)
    del canned.answers["GET /api/events"]
    canned.answers["GET /api/health"] = {"status": "ok"}
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, ".banner"), "no banner")
    find(browser, "[data-steps] [data-key=build]:not([aria-disabled])")


@pytest.mark.parametrize("state", [name for name in STATES if name.startswith("template_")])
def test_states(browser: Driver, canned: Canned, state: str) -> None:
    path, shows, prepare, script, signed_in = STATES[state]
    prepare(canned)
    visit(browser, canned, path, size=NARROW, signed_in=signed_in)
    find(browser, shows)
    if script:
        browser.execute_script(script)
    assert overflow(browser) == 0
    assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script")
    assert not complaints(browser)
    canned.is_closed = True
