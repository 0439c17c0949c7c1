"""The gallery of templates, and what makes one, before a canned API."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import records as shared
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.templates import records
from pages.templates.states import HOSTILE, STATES
from pages.visiting import NARROW, each_look, focused, overflow, visit
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


def texts(driver: Driver, selector: str) -> list[str]:
    """The texts of all such elements at one moment."""
    script = "return [...document.querySelectorAll(arguments[0])].map(element => element.innerText)"
    return list(driver.execute_script(script, selector))


def line(driver: Driver) -> str:
    """The command at the foot."""
    return texts(driver, "[data-command]")[0]


def names(driver: Driver) -> list[str]:
    """The cards that are seen."""
    return [name for name in texts(driver, "section:not([hidden]) > .cards .name") if name]


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.gallery(canned)
    visit(browser, canned, "/templates", theme=theme, size=size)
    for name, text in {
        "torch": "1 GPU, 16 CPUs, 128 GiB; at most 4 GPUs", "vllm": "pulling, 61 %",
        "jupyter": "1 shared GPU, 8 CPUs, 64 GiB", "my-torch": "build failed, 11 min ago",
        "eval": "building, step 3 of 6", "rstudio-2": "not in your store",
        "debian-tools": "in your store, 0.4 GiB",
    }.items():  # fmt: skip
        says(browser, text, f"[data-id=tpl-{name}]")
    says(browser, "train-7b", "[data-id=tpl-torch]")
    says(browser, "cloned from torch", "[data-id=tpl-my-torch]")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_filter_and_search(browser: Driver, canned: Canned) -> None:
    """By whose they are, and by name, description and image; the counts follow."""
    records.gallery(canned)
    visit(browser, canned, "/templates")
    until(browser, lambda: len(names(browser)) == 7, "all cards")
    press(browser, "[data-filter=private]")
    assert names(browser) == ["eval", "my-torch", "rstudio-2"]
    find(browser, "body").send_keys("/")
    assert focused(browser) == "Search templates"
    browser.switch_to.active_element.send_keys("ROCKER")
    until(browser, lambda: names(browser) == ["rstudio-2"], "that image")
    assert texts(browser, "[data-filter] .num") == ["1", "0", "1"]
    browser.switch_to.active_element.send_keys("nothing")
    says(browser, "No template matches.")
    assert line(browser) == "svc template list"


def test_each_button_has_its_command(browser: Driver, canned: Canned) -> None:
    records.gallery(canned)
    visit(browser, canned, "/templates")
    until(browser, lambda: len(names(browser)) == 7, "all cards")
    for key, command in {
        "use-tpl-torch": "svc ws setup --template torch --name torch-1",
        "clone-tpl-torch": "svc template clone torch --name my-torch",
        "build-tpl-my-torch": "svc image build my-torch --wait",
        "see-tpl-eval": "svc operation watch op-build",
        "enable-tpl-rstudio-2": "svc template enable rstudio-2 --revision 1",
        "name-tpl-vllm": "svc template get vllm",
    }.items():
        browser.execute_script("arguments[0].focus()", find(browser, f"[data-key={key}]"))
        assert line(browser) == command
    assert find(browser, "[data-key=use-tpl-torch]").get_attribute("href").endswith("/new?template=torch")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".btn.primary")) == 1


def test_two_of_one_name(browser: Driver, canned: Canned) -> None:
    """Everybody's is called by its id where one's own has its name: a command means one of them."""
    canned.answers |= {
        "GET /api/templates": shared.page(
            [records.everybodys("torch"), records.template("torch", id="tpl-own")]
        ),
        "GET /api/images": shared.page([]),
    }
    visit(browser, canned, "/templates")
    own, other = find(browser, "[data-key=name-tpl-own]"), find(browser, "[data-key=name-tpl-torch]")
    assert own.get_attribute("data-cmd") == "svc template get torch"
    assert other.get_attribute("data-cmd") == "svc template get tpl-torch"
    assert str(other.get_attribute("href")).endswith("/templates/tpl-torch")


def test_enable_from_a_card(browser: Driver, canned: Canned) -> None:
    records.gallery(canned)
    canned.refuse(
        "POST /api/templates/tpl-rstudio-2/enable", 409, "registry_not_allowed",
        "docker.io is not on the registry allowlist", hint="svc image allowlist",
    )  # fmt: skip
    visit(browser, canned, "/templates")
    press(browser, "[data-key=enable-tpl-rstudio-2]")
    says(
        browser,
        "rstudio-2 was not enabled. docker.io is not on the registry allowlist.",
        ".notice[role=alert]",
    )
    says(browser, "svc image allowlist", ".notice .cmd")

    def enabled() -> object:
        found = [one | {"status": "enabled"} for one in records.of_the_mock_up()]
        canned.answers["GET /api/templates"] = shared.page(found)
        return found[-1]

    canned.answers["POST /api/templates/tpl-rstudio-2/enable"] = enabled
    press(browser, "[data-key=enable-tpl-rstudio-2]")
    says(browser, "New workspace", "[data-id=tpl-rstudio-2]")
    assert [body for body, _ in canned.sent("POST /api/templates/tpl-rstudio-2/enable")] == [
        {"revision": 1}
    ] * 2
    assert not browser.find_elements(By.CSS_SELECTOR, ".notice[role=alert]")


def test_a_build_from_a_card(browser: Driver, canned: Canned) -> None:
    """It is begun, and its page shows the log."""
    records.gallery(canned)
    record = records.my_torch()
    build = records.operation(record)

    def begun() -> object:
        records.one(canned, record, status="building", build=build, texts=records.LOG[:3])
        return 202, {"operation": build}, {}

    canned.answers["POST /api/templates/tpl-my-torch/image/build"] = begun
    visit(browser, canned, "/templates")
    press(browser, "[data-key=build-tpl-my-torch]")
    says(browser, "STEP 2/6", "[data-log]")
    assert browser.current_url.endswith("/templates/my-torch/dockerfile")


def test_import_of_a_bundle(browser: Driver, canned: Canned, tmp_path: Path) -> None:
    """The command follows the file; a refusal stays in the dialog; what came is shown."""
    records.gallery(canned)
    records.failed_build(canned)
    bundle = tmp_path / "torch lab.tar"
    bundle.write_bytes(b"not really a tar")
    canned.refuse("POST /api/templates/import", 400, "invalid_bundle", "the bundle has no manifest.json")
    visit(browser, canned, "/templates")
    press(browser, "[data-key=import]")
    says(browser, "svc template import FILE --build-later", "dialog[open] .cmd code")
    assert find(browser, "dialog[open] [type=submit]").get_attribute("aria-disabled") == "true"
    find(browser, "dialog[open] input[type=file]").send_keys(str(bundle))
    says(browser, "svc template import 'torch lab.tar' --build-later", "dialog[open] .cmd code")
    press(browser, "dialog[open] [type=submit]")
    says(browser, "torch lab.tar was not imported. The bundle has no manifest.json.", "dialog[open] .notice")
    canned.answers["POST /api/templates/import"] = (201, records.my_torch(), {})
    press(browser, "dialog[open] [type=submit]")
    until(browser, lambda: browser.current_url.endswith("/templates/my-torch/dockerfile"), "its page")
    assert not complaints(browser)


def test_what_an_import_sends(browser: Driver, canned: Canned, tmp_path: Path) -> None:
    """The bytes of the file, as a tar."""
    records.gallery(canned)
    (tmp_path / "one.tar").write_bytes(bytes(range(256)))
    canned.refuse("POST /api/templates/import", 400, "invalid_bundle", "no")
    visit(browser, canned, "/templates")
    press(browser, "[data-key=import]")
    find(browser, "dialog[open] input[type=file]").send_keys(str(tmp_path / "one.tar"))
    press(browser, "dialog[open] [type=submit]")
    ((body, headers),) = until(browser, lambda: canned.sent("POST /api/templates/import"), "the request")
    assert body == bytes(range(256))
    assert headers["X_SVC_SESSION"] == "canned"


def test_a_new_template(browser: Driver, canned: Canned) -> None:
    """From an image or from a Dockerfile: the command follows; the API's words come to their fields."""
    records.gallery(canned)
    visit(browser, canned, "/templates")
    press(browser, "[data-key=new]")
    until(browser, lambda: focused(browser) == "name", "the focus in the dialog")
    find(browser, "dialog [name=name]").send_keys("own")
    find(browser, "dialog [name=image_ref]").send_keys("registry.example/a:1")
    source = '{"type":"registry","image_ref":"registry.example/a:1"}'
    command = f"""echo '{{"name":"own","source":{source}}}' | svc template create --file -"""
    says(browser, command, "dialog .cmd code")
    fields = [{"field": "name", "code": "taken", "message": "There is one of this name."}]
    canned.refuse("POST /api/templates", 422, "validation_failed", "name: taken", fields=fields)
    press(browser, "dialog [type=submit]")
    says(browser, "There is one of this name.", "dialog .field-error")
    assert focused(browser) == "name"
    assert find(browser, "dialog [name=name]").get_attribute("aria-invalid") == "true"
    browser.execute_script("document.querySelector('dialog [value=dockerfile]').click()")
    find(browser, "dialog [name=dockerfile]").send_keys("FROM scratch\n")
    says(browser, "svc template create --dockerfile Dockerfile --name own", "dialog .cmd code")
    record = records.template("own", dockerfile=True, status="disabled", reviewed_revision=None)
    records.one(canned, record)
    canned.answers["POST /api/templates"] = (201, record, {})
    press(browser, "dialog [type=submit]")
    until(browser, lambda: browser.current_url.endswith("/templates/own/dockerfile"), "its page")


def test_clone_of_a_card(browser: Driver, canned: Canned) -> None:
    records.gallery(canned)
    record = records.template("mine")
    records.one(canned, record)
    records.gallery(canned)
    canned.answers["POST /api/templates/tpl-torch/clone"] = (201, record, {})
    visit(browser, canned, "/templates")
    press(browser, "[data-key=clone-tpl-torch]")
    name = find(browser, "dialog [name=name]")
    assert name.get_property("value") == "my-torch"
    name.clear()
    name.send_keys("mine")
    says(browser, "svc template clone torch --name mine", "dialog .cmd code")
    name.send_keys(Keys.ENTER)
    until(browser, lambda: browser.current_url.endswith("/templates/mine"), "its page")


def test_many(browser: Driver, canned: Canned) -> None:
    """A long list is not built at once."""
    canned.answers |= {
        "GET /api/templates": shared.page([records.everybodys(f"t{number:03}") for number in range(180)]),
        "GET /api/images": shared.page([]),
    }
    visit(browser, canned, "/templates")
    until(browser, lambda: len(names(browser)) == 60, "the first")
    press(browser, "[data-key=rest]")
    until(browser, lambda: len(names(browser)) == 180, "all")
    find(browser, "[data-search]").send_keys("t179")
    until(browser, lambda: names(browser) == ["t179"], "one that was not shown at first")


def test_live(browser: Driver, canned: Canned) -> None:
    """What happens elsewhere is seen; what has the focus keeps it."""
    records.gallery(canned)
    visit(browser, canned, "/templates")
    until(browser, lambda: len(names(browser)) == 7, "all cards")
    until(browser, lambda: canned.streams, "the stream")
    browser.execute_script("document.querySelector('[data-key=clone-tpl-torch]').focus()")
    canned.answers["GET /api/templates"] = shared.page([*records.of_the_mock_up(), records.template("fresh")])
    canned.event("template.created", subject={"type": "template", "id": "tpl-fresh", "name": "fresh"})
    until(browser, lambda: "fresh" in names(browser), "the new one")
    assert focused(browser) == "Clone torch"


@pytest.mark.parametrize("state", [name for name in STATES if name.startswith("templates_")])
def test_states(browser: Driver, canned: Canned, state: str) -> None:
    path, shows, prepare, script, signed_in = STATES[state]
    prepare(canned)
    visit(browser, canned, path, size=NARROW, signed_in=signed_in)
    find(browser, shows)
    if script:
        browser.execute_script(script)
        find(browser, "dialog[open]")
    assert overflow(browser) == 0
    assert not complaints(browser)
    canned.is_closed = True


def test_hostile_text_is_text(browser: Driver, canned: Canned) -> None:
    STATES["templates_hostile"].prepare(canned)
    visit(browser, canned, "/templates")
    says(browser, HOSTILE[:20], ".card")
    assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script")
    assert not complaints(browser)
