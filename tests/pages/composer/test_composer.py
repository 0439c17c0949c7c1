"""The composer before a canned API: what follows the typing, and what is refused."""

from __future__ import annotations

import json
import shlex
import threading
from typing import Any

import pytest
from pages import records
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.composer import records as composer
from pages.composer.records import CHECK, OVER, RECOMMEND, SETUP
from pages.visiting import NARROW, WIDE, focused, line, overflow, visit
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from svc.commandline import arguments

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202egnp.exe"
LINE = (
    "svc ws setup --template vllm --name vllm-1 --cpus 16 --memory 125g --shm-size 16g --gpu-count 1"
    " --gpu-mode exclusive"
)


@pytest.fixture
def pages(canned: Canned) -> Canned:
    """The API of the mock-up."""
    composer.serve(canned)
    return canned


def field(name: str) -> str:
    """The selector of a field."""
    return f"[data-field='{name}']"


def has_focus(driver: Driver) -> str | None:
    """The field that has the focus."""
    return driver.switch_to.active_element.get_attribute("data-field")


def enter(driver: Driver, name: str, text: str) -> None:
    """Type into a field, instead of what is there."""
    control = find(driver, field(name))
    control.send_keys(Keys.CONTROL, "a")
    control.send_keys(text)


def opened(driver: Driver, pages: Canned, query: str = "?template=vllm", **more: Any) -> None:
    """Open the composer, and wait until it has been filled."""
    visit(driver, pages, f"/new{query}", **more)
    until(driver, lambda: "--memory" in line(driver), "the recommended values")
    says(driver, "412 GiB free", ".a-plan")
    until(driver, lambda: pages.sent(CHECK), "the check")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW, (1920, 1080)])
def test_as_the_mock_up_shows(browser: Driver, pages: Canned, theme: str, size: tuple[int, int]) -> None:
    opened(browser, pages, theme=theme, size=size)
    assert line(browser) == f"{LINE} && svc ws start vllm-1"
    says(browser, "8.4 GiB to load, 3.1 GiB of its layers are there", ".a-plan")
    says(browser, "your images may take 81.4 GiB more", ".a-plan")
    says(browser, "Now 6. Nothing is reserved until then.", ".a-plan")
    says(browser, "8.4 GiB to pull", ".pick[data-id='tpl-vllm']")
    says(browser, "Mounts data at /data, read-only", ".pick[data-id='tpl-vllm']")
    says(browser, "Pull, create and start", ".btn.primary")
    says(browser, "recommended 16, at most 32", ".a-form")
    meters = {
        one.get_attribute("data-meter"): one.text for one in browser.find_elements(By.CSS_SELECTOR, ".gauge")
    }
    assert meters["gpus"].split("\n")[1] == "4 of 4"
    assert meters["memory_bytes"].split("\n")[1] == "461 of 512 GiB"
    until(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, ".slot.would")) == 1, "the GPU")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".btn.primary")) == 1
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_the_line_and_the_meters_follow_in_the_task_of_the_key(browser: Driver, pages: Canned) -> None:
    """No frame and no answer in between: what is read right after the event is up to date."""
    opened(browser, pages)
    shown = browser.execute_script(
        """const input = document.querySelector("[data-field='resources.memory_bytes']");
        input.value = '300';
        const began = performance.now();
        input.dispatchEvent(new Event('input', { bubbles: true }));
        const meter = document.querySelector('[data-meter=memory_bytes]');
        return { line: document.querySelector('[data-command]').textContent, meter: meter.textContent,
            says: meter.getAttribute('aria-valuetext'), over: Boolean(meter.querySelector('.now.over')),
            took: performance.now() - began };"""
    )
    assert "--memory 300g" in shown["line"]
    assert shown["meter"] == "Memory300 GiB wanted, 176 GiB left"
    assert shown["over"]
    print(f"a key takes {shown['took']:.2f} ms")


def test_what_is_no_number_is_said_at_once(browser: Driver, pages: Canned) -> None:
    opened(browser, pages)
    enter(browser, "resources.cpu_limit", "many")
    says(browser, "Use a number of cores, such as 4 or 0.5.", ".a-form")
    assert find(browser, field("resources.cpu_limit")).get_attribute("aria-invalid") == "true"
    assert "--cpus many" in line(browser)
    press(browser, "[data-key=go]")
    until(browser, lambda: has_focus(browser) == "resources.cpu_limit", "the field")
    assert not pages.sent(SETUP)
    enter(browser, "resources.cpu_limit", "0.5")
    until(browser, lambda: "--cpus 0.5" in line(browser), "the number")
    assert find(browser, field("resources.cpu_limit")).get_attribute("aria-invalid") is None


@pytest.mark.parametrize(
    ("typed", "word"),
    [("1.5", "1536m"), ("32GiB", "32g"), ("512m", "512m"), ("1000000000b", "1000000000"), (".5", "512m")],
)
def test_amounts_of_memory(browser: Driver, pages: Canned, typed: str, word: str) -> None:
    opened(browser, pages)
    enter(browser, "resources.memory_bytes", typed)
    until(browser, lambda: f"--memory {word} " in line(browser), word)


def test_the_name_is_checked_while_it_is_typed(browser: Driver, pages: Canned) -> None:
    opened(browser, pages)
    for typed, said in {
        "train-7b": "You have a workspace train-7b.",
        "Tr": "Use a-z, 0-9 and - (inside), at most 63.",
        "setup": "This name is reserved.",
    }.items():
        enter(browser, "name", typed)
        says(browser, said, ".a-form")
    enter(browser, "name", "mine")
    until(browser, lambda: line(browser).endswith("&& svc ws start mine"), "the name in the line")
    pages.answers[CHECK] = composer.checked(
        {"code": "name_taken", "message": "there is a workspace mine-too", "hint": "", "action": None}
    )
    enter(browser, "name", "mine-too")
    says(browser, "there is a workspace mine-too", ".a-form")
    says(browser, "What will happen", ".a-plan")  # it is a thing of the field


def test_levels_and_back_to_what_is_recommended(browser: Driver, pages: Canned) -> None:
    """A level fills the sizes without a further answer; what was changed goes back by a button."""
    opened(browser, pages)
    press(browser, "[name=level][value=max]")
    until(
        browser, lambda: "--cpus 20 --memory 176g --shm-size 44g --gpu-count 2" in line(browser), "its sizes"
    )
    says(browser, "2 GPUs, not now", "[data-level=max]")
    until(browser, lambda: pages.sent(RECOMMEND)[-1][0]["gpu_use_case"] == "max", "it is asked anew")
    assert not find(browser, "[data-back]").is_displayed()
    enter(browser, "resources.cpu_limit", "3")
    until(browser, lambda: "--cpus 3 " in line(browser), "the number")
    press(browser, "[data-back]")
    until(browser, lambda: "--cpus 20 " in line(browser), "what is recommended")


def test_another_template_has_other_values(browser: Driver, pages: Canned) -> None:
    opened(browser, pages)
    pages.answers[RECOMMEND] = composer.recommendation("none")
    pages.answers[CHECK] = composer.checked(gpus=(), image_status="ready", resources=composer.LEVELS["none"])
    press(browser, ".pick[data-id='tpl-debian-tools']")
    shown = "svc ws setup --template debian-tools --name debian-tools-1 --cpus 8 --memory 64g --gpu-count 0"
    until(browser, lambda: line(browser).startswith(f"{shown} &&"), "its line")
    says(browser, "Create and start", ".btn.primary")
    until(browser, lambda: pages.sent(CHECK)[-1][0]["template"] == "tpl-debian-tools", "its check")
    assert not browser.find_elements(By.CSS_SELECTOR, ".slot.would")
    enter(browser, "name", "kept")
    press(browser, ".pick[data-id='tpl-vllm']")
    until(browser, lambda: "--template vllm --name kept" in line(browser), "the name that was typed")


def test_templates_are_searched_for(browser: Driver, pages: Canned) -> None:
    """/ goes there; Enter takes the first that was found."""
    items = [composer.template(f"t-{number:03}") for number in range(300)]
    pages.answers["GET /api/templates"] = records.page([*items, *composer.templates()])
    opened(browser, pages)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".pick")) == 3
    press(browser, "details.more > summary")
    says(browser, "203 more: search for them.", "details.more")
    find(browser, "body").send_keys("/")
    assert focused(browser) == "Search templates"
    browser.switch_to.active_element.send_keys("note", Keys.ENTER)
    until(browser, lambda: "--template jupyter" in line(browser), "what was found")
    find(browser, "[data-search]").send_keys("no such thing")
    says(browser, "No template matches.")
    assert not pages.sent(SETUP)


def test_what_cannot_start_says_so_with_the_button_that_mends_it(browser: Driver, pages: Canned) -> None:
    opened(browser, pages)
    over = composer.checked(OVER, gpus=(), resources=composer.size(16, 125, 2, shm=16))
    pages.answers[CHECK] = lambda: (
        over if pages.sent(CHECK)[-1][0]["resources"]["gpu_count"] == 2 else composer.checked()
    )
    enter(browser, "resources.gpu_count", "2")
    says(
        browser,
        "This would not start. Your quota (lab) has 4 GPUs, 3 taken; vllm-1 needs 2 more.",
        ".notice.warn",
    )
    says(browser, "svc ws stop train-7b", ".notice .cmd")
    says(browser, "quota_exceeded", ".notice .code")
    says(browser, "2 wanted, 1 left", "[data-meter=gpus]")
    assert not browser.find_elements(By.CSS_SELECTOR, ".btn.primary")
    find(browser, field("name")).send_keys(Keys.ENTER)
    until(browser, lambda: "This would not start" in browser.switch_to.active_element.text, "the notice")
    assert not pages.sent(SETUP)

    press(browser, "[data-key=act-0]")
    says(browser, "Its programs end", "dialog[open]")
    assert focused(browser) == "Let it run"
    pages.answers["POST /api/workspaces/train-7b/stop"] = records.workspace("train-7b")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: pages.sent("POST /api/workspaces/train-7b/stop"), "the stop")

    press(browser, "[data-key=mend-gpu_count]")
    until(browser, lambda: "--gpu-count 1 " in line(browser), "one GPU")
    says(browser, "What will happen", ".a-plan")
    assert has_focus(browser) == "resources.gpu_count"


def test_an_image_that_does_not_fit_is_in_the_way(browser: Driver, pages: Canned) -> None:
    message = "8.4 GiB are to be downloaded and need 16.8 GiB; the disk of your images has 2.0 GiB free"
    why = {"fits": False, "blocked_by": "storage_full", "message": message, "hint": "svc image prune"}
    pages.answers["GET /api/templates/tpl-vllm/image/preflight"] = composer.preflight(**why)
    visit(browser, pages, "/new?template=vllm")
    says(browser, f"This would not be created. {message}.", ".notice.warn")
    says(browser, "svc image prune", ".notice .cmd")


def test_a_registry_that_is_not_allowed_is_in_the_way(browser: Driver, pages: Canned) -> None:
    """Nothing could be pulled: nothing is offered that would be."""
    message = "docker.io is not on the registry allowlist"
    found = composer.templates()
    for one in found:
        one["findings"] = (
            [{"code": "registry_not_allowed", "message": message}] if one["name"] == "vllm" else []
        )
    pages.answers["GET /api/templates"] = records.page(found)
    pages.refuse(
        "GET /api/templates/tpl-vllm/image/preflight", 403, "registry_not_allowed", message,
        hint="svc image allowlist",
    )  # fmt: skip
    visit(browser, pages, "/new?template=vllm")
    says(browser, "This would not be created. docker.io is not on the registry allowlist.", ".notice.warn")
    says(browser, "svc image allowlist", ".notice .cmd")
    says(browser, "Its registry is not allowed", ".pick[data-id='tpl-vllm']")
    says(browser, "This would not be created.", "[data-go]")
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-key=go], [data-key=only]")


def test_a_quota_of_workspaces_forbids_to_create(browser: Driver, pages: Canned) -> None:
    """What cannot be started now can be created; what cannot be created cannot."""
    capacity = records.capacity()
    capacity["remaining"]["workspaces"] = 0
    pages.answers["GET /api/workspaces/capacity"] = capacity
    block = OVER | {"message": "your quota (lab) has 20 workspaces; you have 20"}
    pages.answers[CHECK] = composer.checked(block, gpus=())
    visit(browser, pages, "/new?template=vllm")
    says(
        browser, "This would not be created. Your quota (lab) has 20 workspaces; you have 20.", ".notice.warn"
    )
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-key=go], [data-key=only]")


def test_without_a_limit_nothing_is_refused(browser: Driver, pages: Canned) -> None:
    """What the host has is said, and that it is more; not as what a quota forbids."""
    capacity = records.capacity()
    capacity["quota"] |= {"max_cpu": None}
    capacity["host"] |= {"cpus": 48}
    pages.answers["GET /api/workspaces/capacity"] = capacity
    opened(browser, pages)
    enter(browser, "resources.cpu_limit", "64")
    says(browser, "108; the host has 48", "[data-meter=cpu]")
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-meter=cpu] .is-danger, [data-meter=cpu] .over")
    assert browser.find_elements(By.CSS_SELECTOR, "[data-meter=cpu] .warn")


def test_the_buttons_are_above_the_line(browser: Driver, pages: Canned) -> None:
    """On the screen of a small notebook too, wherever the page is scrolled to; Enter sends the form."""
    opened(browser, pages, size=(1366, 650))
    script = (
        "const box = document.querySelector('[data-key=go]').getBoundingClientRect();"
        "return document.elementFromPoint(box.x + 5, box.y + 5)?.closest('[data-key]')?.dataset.key"
    )
    for where in ("0", "document.body.scrollHeight"):
        browser.execute_script(f"scrollTo(0, {where})")
        assert browser.execute_script(script) == "go"
    says(browser, "Pulls the image, creates vllm-1 and starts it on a free GPU", "[data-go]")
    find(browser, field("name")).send_keys(Keys.ENTER)
    until(browser, lambda: pages.sent(SETUP), "the set-up")


def test_a_port_without_a_number(browser: Driver, pages: Canned) -> None:
    found = composer.templates()
    for one in found:
        one["ports"] = [{"name": "web"}]
    pages.answers["GET /api/templates"] = records.page(found)
    visit(browser, pages, "/new?template=vllm")
    says(browser, "Ports: web.", ".pick[data-id='tpl-vllm']")


def test_a_registry_that_cannot_be_asked_is_no_obstacle(browser: Driver, pages: Canned) -> None:
    pages.refuse("GET /api/templates/tpl-vllm/image/preflight", 502, "engine_failed", "no route to docker.io")
    visit(browser, pages, "/new?template=vllm")
    says(browser, "What there is to load is not known. No route to docker.io.", ".a-plan .notice")
    says(browser, "Pull, create and start", ".btn.primary")


def test_errors_of_fields_go_to_their_fields(browser: Driver, pages: Canned) -> None:
    """The focus goes to the first, which is unfolded where it must be; what has no field is a notice."""
    opened(browser, pages)
    fields = [
        {"field": "resources.shm_bytes", "code": "over_limit", "message": "at most 8589934592"},
        {"field": "display_name", "code": "invalid", "message": "Contains a control character."},
        {"field": "template", "code": "invalid", "message": "not this one"},
    ]
    pages.refuse(SETUP, 422, "validation_failed", "the request has invalid fields", fields=fields)
    press(browser, "[data-key=go]")
    says(browser, "at most 8589934592", ".a-form")
    says(browser, "Contains a control character.", ".a-form")
    says(browser, "The request has invalid fields.", ".a-plan .notice")
    until(browser, lambda: has_focus(browser) == "resources.shm_bytes", "the first")


def test_answers_out_of_order_are_dropped(browser: Driver, pages: Canned) -> None:
    opened(browser, pages)
    late, asked = threading.Event(), []

    def check() -> dict[str, Any]:
        asked.append(True)
        if len(asked) == 1:
            late.wait(20)
            return composer.checked(OVER)
        return composer.checked()

    pages.answers[CHECK] = check
    enter(browser, "resources.cpu_limit", "3")
    until(browser, lambda: asked, "the first question")
    enter(browser, "resources.cpu_limit", "4")
    until(browser, lambda: len(asked) == 2, "the second question")
    late.set()
    until(browser, lambda: pages.sent(CHECK)[-1][0]["resources"]["cpu_limit"] == 4, "the newest")
    says(browser, "What will happen", ".a-plan")


def test_what_the_service_puts_off_is_asked_again(browser: Driver, pages: Canned) -> None:
    opened(browser, pages)
    answers: list[Any] = [
        (
            429,
            {"error": {"code": "too_many_requests", "message": "slow down", "retryable": True}},
            {"Retry-After": "1"},
        ),
        composer.checked(OVER),
    ]
    pages.answers[CHECK] = lambda: answers.pop(0) if len(answers) > 1 else answers[0]
    enter(browser, "resources.gpu_count", "2")
    says(browser, "This would not start.", ".notice.warn")
    assert len(answers) == 1


def test_what_is_left_is_read_again(browser: Driver, pages: Canned) -> None:
    """Others take and give back: the meters and the GPUs follow, and what was typed stays."""
    opened(browser, pages)
    enter(browser, "resources.cpu_limit", "2")
    until(browser, lambda: pages.streams, "the stream")
    capacity = records.capacity()
    capacity["used"]["cpu"], capacity["remaining"]["cpu"] = 10, 54
    pages.answers["GET /api/workspaces/capacity"] = capacity
    pages.event("capacity.changed", subject={"type": "host", "id": "", "name": ""})
    says(browser, "12 of 64", "[data-meter=cpu]")
    assert "--cpus 2 " in line(browser)


def test_what_this_host_has_not(browser: Driver, pages: Canned) -> None:
    """No question of GPUs where there are none; and a limit that is not applied says so at its field."""
    host = records.capacity()["host"] | {"gpus": 0, "gpus_free": 0}
    pages.answers["GET /api/workspaces/capacity"] = records.capacity() | {"gpus": [], "host": host}
    items = [records.workspace("lab", "running", limits_missing=["memory_bytes"])]
    pages.answers["GET /api/workspaces"] = records.page(items)
    visit(browser, pages, "/new?template=debian-tools")
    says(browser, "not applied on this host", "#f-resources-memory_bytes-h")
    assert "not applied" not in find(browser, "#f-resources-cpu_limit-h").text
    for name in ("gpu_count", "gpu_mode"):
        until(browser, lambda name=name: not find(browser, f"#f-resources-{name}").is_displayed(), name)


def test_variables_and_ports(browser: Driver, pages: Canned) -> None:
    """In the line as a shell needs them; what the template gives is said beside."""
    opened(browser, pages)
    press(browser, "[data-rest] > summary")
    says(browser, "api 8000", "[data-template-facts]")
    says(browser, "stopped after 120 min", "[data-template-facts]")
    press(browser, "[data-key=add-env]")
    browser.switch_to.active_element.send_keys("GREETING", Keys.TAB, "it's two words")
    press(browser, "[data-key=add-ports]")
    browser.switch_to.active_element.send_keys("web", Keys.TAB, "80000")
    says(browser, "Use a number from 1 to 65535.", "[data-rest]")
    number = find(browser, "[data-rows=ports] [data-part=container_port]")
    number.send_keys(Keys.BACKSPACE)
    Select(find(browser, "[data-rows=ports] [data-part=access]")).select_by_value("host")
    press(browser, "[data-field=restart_on_boot]")
    until(browser, lambda: "--restart-on-boot" in line(browser), "the check box")
    words = shlex.split(line(browser))
    assert words[words.index("--env") + 1] == "GREETING=it's two words"
    assert words[words.index("--port") + 1] == "web=8000:host"
    says(browser, "1 variable, 1 port besides the template's", "[data-rest] > summary")
    until(browser, lambda: pages.sent(CHECK)[-1][0].get("restart_on_boot"), "the check")
    body = pages.sent(CHECK)[-1][0]
    assert body["env"] == [{"name": "GREETING", "value": "it's two words"}]
    assert body["ports"] == [{"name": "web", "container_port": 8000, "access": "host"}]
    press(browser, "[data-rows=env] .form-row button")
    until(browser, lambda: "GREETING" not in line(browser), "no variable")


def test_kinds_of_ports_and_a_network(browser: Driver, pages: Canned) -> None:
    """What is behind a port and who logs in there, as the program itself reads the line."""
    opened(browser, pages)
    press(browser, "[data-rest] > summary")
    press(browser, "[data-key=add-ports]")
    browser.switch_to.active_element.send_keys("login", Keys.TAB, "22")
    row = "[data-rows=ports] .form-row"
    assert not find(browser, f"{row} [data-part=user]").is_displayed()
    find(browser, f"{row} [data-part=kind]").send_keys("s")
    find(browser, f"{row} [data-part=user]").send_keys("ada")
    says(browser, "1 port besides", "[data-rest] > summary")
    press(browser, "[data-key=add-ports]")
    browser.switch_to.active_element.send_keys("lab")
    find(browser, "[data-field=network]").send_keys("Lab!")
    says(browser, "Use a-z, 0-9 and - (inside), at most 63.", "#f-network-e")
    find(browser, "[data-field=network]").send_keys(Keys.BACKSPACE * 4, "tools")
    until(browser, lambda: "--network tools" in line(browser), "the network")
    says(browser, "2 ports, a network besides", "[data-rest] > summary")
    words = shlex.split(line(browser))
    shown = [arguments.port(words[at + 1]) for at, word in enumerate(words) if word == "--port"]
    assert shown == [
        {"name": "login", "container_port": 22, "kind": "ssh", "user": "ada"},
        {"name": "lab"},
    ]
    until(browser, lambda: pages.sent(CHECK)[-1][0].get("network") == "tools", "the check")
    assert pages.sent(CHECK)[-1][0]["ports"] == [port | {"access": "owner"} for port in shown]
    find(browser, f"{row} [data-part=kind]").send_keys("t")  # as a person: a click of the driver says it late
    until(browser, lambda: "--port login=22/tcp " in line(browser), "no login behind a plain port")
    assert not find(browser, f"{row} [data-part=user]").is_displayed()
    find(browser, "[data-field=network]").send_keys(Keys.BACKSPACE * 5, "none")
    until(browser, lambda: pages.sent(CHECK)[-1][0].get("network", "") is None, "none")
    assert overflow(browser) == 0


def test_a_command_of_its_own(browser: Driver, pages: Canned) -> None:
    opened(browser, pages)
    press(browser, "[data-rest] > summary")
    find(browser, "[data-field=command]").send_keys("sleep", Keys.ENTER * 2, "9")
    says(browser, "one argument a line", "#f-command-e")
    find(browser, "[data-field=command]").send_keys(Keys.BACKSPACE * 2, "9")
    until(browser, lambda: """'{"command":["sleep","9"]}'""" in line(browser), "the arguments")
    assert "--replace-container" in line(browser)
    until(browser, lambda: pages.sent(CHECK)[-1][0].get("command") == ["sleep", "9"], "the check")
    says(browser, "a command besides", "[data-rest] > summary")
    enter(browser, "command", '["sh", "-c", "sleep 9; date"]')
    until(browser, lambda: "--command 'sleep 9; date' &&" in line(browser), "a line for sh")
    assert overflow(browser) == 0


def test_the_values_of_another_workspace(browser: Driver, pages: Canned) -> None:
    source = records.workspace(
        "train-7b",
        "running",
        display_name="It's -v",
        template={"id": "tpl-vllm", "name": "vllm", "revision": 2},
        resources={
            "cpu_limit": 2.5,
            "memory_bytes": 3 << 29,
            "shm_bytes": None,
            "pids_limit": 99,
            "gpu_count": 1,
        },
        env=[{"name": "HF_HOME", "value": "/work/hf"}, {"name": "TEXT", "value": "a\nb"}],
        ports=[
            {"name": "api", "container_port": 8000, "host_port": 30000, "access": "owner"},
            {"name": "more", "container_port": 9000, "host_port": 30001, "access": "host"},
            {
                "name": "db",
                "container_port": 30002,
                "host_port": 30002,
                "access": "owner",
                "kind": "postgres",
                "user": None,
            },
        ],
        network="lab",
        command=["train", "--epochs", "it's 20"],
        restart_on_boot=True,
    )
    pages.answers["GET /api/workspaces"] = records.page([source])
    visit(browser, pages, "/new?from=train-7b")
    until(browser, lambda: "--memory" in line(browser), "the values")
    says(browser, "412 GiB free", ".a-plan")
    first, second, third = line(browser).split(" && ")
    assert shlex.split(first)[3:] == [
        *("--template", "vllm", "--name", "train-7b-1", "--display-name", "It's -v", "--cpus", "2.5"),
        *("--memory", "1536m", "--pids", "99", "--gpu-count", "1", "--gpu-mode", "exclusive"),
        *("--env", "TEXT=a\nb", "--port", "more=9000:host"),
        *("--port", "db/postgres", "--network", "lab", "--restart-on-boot"),
    ]  # fmt: skip
    assert second.startswith("svc ws edit train-7b-1 --file - --replace-container <<< ")
    assert json.loads(shlex.split(second)[-1]) == {
        "command": ["train", "--epochs", "it's 20"], "resources": {"shm_bytes": "unlimited"},
    }  # fmt: skip
    assert third == "svc ws start train-7b-1"
    press(browser, "[data-key=go]")
    until(browser, lambda: pages.sent(SETUP), "the set-up")
    ((body, _),) = pages.sent(SETUP)
    assert body == {
        "template": "tpl-vllm",
        "name": "train-7b-1",
        "display_name": "It's -v",
        "resources": {
            "cpu_limit": 2.5,
            "memory_bytes": 3 << 29,
            "shm_bytes": "unlimited",
            "pids_limit": 99,
            "gpu_count": 1,
            "gpu_mode": "exclusive",
        },
        "env": [{"name": "TEXT", "value": "a\nb"}],
        "ports": [
            {"name": "more", "container_port": 9000, "access": "host"},
            {"name": "db", "access": "owner", "kind": "postgres"},
        ],
        "network": "lab",
        "command": ["train", "--epochs", "it's 20"],
        "restart_on_boot": True,
    }


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?from=gone", "You have no workspace gone."),
        ("?template=off", "There is no template off that can be used."),
    ],
)
def test_what_is_not_there_is_said(browser: Driver, pages: Canned, query: str, said: str) -> None:
    visit(browser, pages, f"/new{query}")
    says(browser, said, "[data-lost]")
    until(browser, lambda: "--template debian-tools" in line(browser), "another one")


def test_no_template(browser: Driver, pages: Canned) -> None:
    pages.answers["GET /api/templates"] = records.page([composer.template("off", status="disabled")])
    visit(browser, pages, "/new")
    says(browser, "No template can be used yet", ".empty")


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (403, "forbidden", "There are no workspaces here for you. Not you."),
        (503, "unavailable", "A new workspace cannot be composed now. Not you."),
    ],
)
def test_no_form(browser: Driver, pages: Canned, status: int, code: str, said: str) -> None:
    pages.refuse("GET /api/workspaces/capacity", status, code, "not you", retryable=status == 503)
    visit(browser, pages, "/new")
    says(browser, said, ".notice")
    if status == 503:
        pages.answers["GET /api/workspaces/capacity"] = records.capacity()
        press(browser, "[data-key=retry]")
        find(browser, ".composer .pick")


def test_while_it_loads(browser: Driver, pages: Canned) -> None:
    come = threading.Event()

    def late() -> dict[str, Any]:
        come.wait(20)
        return records.capacity()

    pages.answers["GET /api/workspaces/capacity"] = late
    visit(browser, pages, "/new")
    find(browser, ".a-form[aria-busy=true] .skel")
    come.set()
    find(browser, ".composer .pick")
    assert not browser.find_elements(By.CSS_SELECTOR, ".skel")


def test_while_the_service_is_away(browser: Driver, pages: Canned) -> None:
    """Typing goes on; the buttons wait."""
    opened(browser, pages)
    until(browser, lambda: pages.streams, "the stream")
    for request in ("GET /api/health", "GET /api/events", CHECK):
        pages.refuse(request, 503, "unavailable", "stopping", retryable=True)
    pages.event("restarting")
    pages.streams[0].end()
    says(browser, "The service is restarting", ".banner")
    find(browser, "[data-key=go][aria-disabled=true]")
    enter(browser, "name", "later")
    until(browser, lambda: "--name later" in line(browser), "the line")
    press(browser, "[data-key=go]")
    assert not pages.sent(SETUP)
    pages.answers |= {CHECK: composer.checked(), "GET /api/health": {"status": "ok"}}
    del pages.answers["GET /api/events"]
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, ".banner"), "no banner")
    press(browser, "[data-key=go]")
    until(browser, lambda: pages.sent(SETUP), "the set-up")


def test_a_host_without_gpus(browser: Driver, pages: Canned) -> None:
    capacity = records.capacity() | {"gpus": []}
    capacity["host"] |= {"gpus": 0, "gpus_free": 0}
    pages.answers["GET /api/workspaces/capacity"] = capacity
    pages.answers[RECOMMEND] = composer.recommendation("none")
    visit(browser, pages, "/new?template=torch")
    says(browser, "this host has no GPUs", ".a-room")
    until(browser, lambda: "--gpu-count 0 &&" in line(browser), "no GPUs")
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-meter=gpus]")
    assert not find(browser, "[name=level]").is_displayed()
    assert pages.sent(RECOMMEND)[0][0]["gpu_use_case"] == "none"


def test_hostile_text_is_text(browser: Driver, pages: Canned) -> None:
    long = "x" * 200
    item = composer.template(
        HOSTILE,
        id="tpl-hostile",
        description=long + HOSTILE,
        ports=[{"name": HOSTILE, "container_port": 1}],
        env=[{"name": HOSTILE, "value": None, "secret": True, "is_set": True}],
    )
    pages.answers["GET /api/templates"] = records.page([item])
    pages.answers["GET /api/images"] = records.page([composer.image("hostile", "failed", error=HOSTILE)])
    pages.answers[CHECK] = composer.checked(
        {"code": HOSTILE, "message": HOSTILE, "hint": f"svc {HOSTILE}",
         "action": {"label": HOSTILE, "method": "POST", "path": "/api/x", "body": {}}}
    )  # fmt: skip
    setup = composer.operation(subject={"type": "workspace", "id": "w", "name": HOSTILE + long})
    pages.answers["GET /api/operations"] = records.page([setup])
    visit(browser, pages, "/new", size=NARROW)
    says(browser, "This would not start.", "[data-blocked]")
    says(browser, "is being set up", "[data-notes]")
    press(browser, "[data-rest] > summary")
    says(browser, "(secret)", "[data-template-facts]")
    assert overflow(browser) == 0
    assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script")
    assert not complaints(browser)
