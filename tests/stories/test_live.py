"""Terminal, logs and monitor of a workspace of the installed service, in a real browser."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from e2e.installation import PASSWORD, Call, Service
from e2e.surroundings import must, new_template
from pages.chromium import Driver, complaints, find, press, says, until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from stories.conftest import USER

LEAVE = Keys.CONTROL + Keys.SHIFT + Keys.ARROW_UP + Keys.NULL


@pytest.fixture
def signed_in(browser: Driver, origin: str, workspaces: list[str]) -> Iterator[Driver]:
    """The list of workspaces, signed in."""
    browser.set_window_size(1440, 900)
    browser.get(f"{origin}/api/version")
    browser.execute_script("localStorage.clear()")
    browser.delete_all_cookies()
    complaints(browser)
    browser.get(f"{origin}/sign-in")
    find(browser, "[name=username]").send_keys(USER + Keys.TAB)
    browser.switch_to.active_element.send_keys(PASSWORD.strip() + Keys.ENTER)
    says(browser, "first", "tbody")
    yield browser
    browser.get("about:blank")


def screen(driver: Driver) -> str:
    """What the chosen shell shows."""
    return find(driver, ".screen:not([hidden]) .xterm-rows").text


def shows(driver: Driver, text: str) -> None:
    """Wait until the chosen shell shows it."""
    until(driver, lambda: text in screen(driver), f"{text!r} on the screen")


def keys(driver: Driver, text: str) -> None:
    """Type, once the shell is there."""
    until(
        driver,
        lambda: driver.execute_script("return document.activeElement.matches('.xterm-helper-textarea')"),
        "the focus",
    )
    driver.switch_to.active_element.send_keys(text)


def line(driver: Driver) -> list[str]:
    """The command at the foot, as words for svc."""
    return find(driver, "[data-command]").text.split()[1:]


def test_a_shell_from_the_list(signed_in: Driver, svc: Call, service: Service) -> None:
    """From the press to the prompt; what is typed comes out; a reload and a restart find it as it was."""
    driver = signed_in
    press(driver, "[data-key=terminal]")
    began = time.monotonic()
    says(driver, "Connected", "[data-status]")
    until(driver, lambda: screen(driver).strip(), "a prompt")
    print(f"from the list to the prompt: {time.monotonic() - began:.2f} s")
    keys(driver, "echo $((6 * 7)) herons; cd /tmp; me=ada" + Keys.ENTER)
    shows(driver, "42 herons")
    (found,) = must(svc("ws", "shell", "first", "--list", "--json")).json()["items"]
    assert line(driver) == ["ws", "shell", "first", "--attach", found["id"]]
    cols, rows = found["cols"], found["rows"]
    assert find(driver, "[data-size]").text == f"{cols} \u00d7 {rows}"

    driver.refresh()
    shows(driver, "42 herons")
    keys(driver, "echo $me at $PWD" + Keys.ENTER)
    shows(driver, "ada at /tmp")

    driver.execute_script("window.same = true")
    with service.stopped():
        until(
            driver,
            lambda: find(driver, "[data-screens]").get_attribute("data-dim") is not None,
            "the dimmed screen",
        )
        assert "ada at /tmp" in screen(driver)
    says(driver, "Connected", "[data-status]")
    keys(driver, "echo $((me == me)) still $me" + Keys.ENTER)
    shows(driver, "still ada")
    assert driver.execute_script("return window.same") is True

    keys(driver, "exit 3" + Keys.ENTER)
    says(driver, "Its program has ended with exit code 3.", "[data-status]")
    assert not [entry for entry in complaints(driver) if "WebSocket" not in entry]


def test_a_program_of_the_whole_screen(signed_in: Driver, svc: Call) -> None:
    """Drawn by escape sequences at the size of the window, found again after a reload, and what follows."""
    driver = signed_in
    press(driver, "[data-key=terminal]")
    says(driver, "Connected", "[data-status]")
    keys(driver, "top" + Keys.ENTER)
    shows(driver, "Mem")
    shows(driver, "COMMAND")
    driver.refresh()
    shows(driver, "COMMAND")
    keys(driver, "q")
    until(driver, lambda: "COMMAND" not in screen(driver).splitlines()[-1], "the shell")
    keys(driver, "echo $((1 + 1)) back" + Keys.ENTER)
    shows(driver, "2 back")
    before = find(driver, "[data-size]").text
    driver.set_window_size(900, 600)
    until(driver, lambda: find(driver, "[data-size]").text != before, "the new size")
    keys(driver, "clear; stty size" + Keys.ENTER)
    shows(driver, " ".join(reversed(find(driver, "[data-size]").text.split(" \u00d7 "))))
    assert not complaints(driver)


def test_two_shells_and_their_ends(signed_in: Driver, svc: Call) -> None:
    """Another one beside the first; one is closed here, one on the host, and the workspace stops."""
    driver = signed_in
    press(driver, "[data-key=terminal]")
    says(driver, "Connected", "[data-status]")
    keys(driver, "echo first one" + Keys.ENTER)
    shows(driver, "first one")
    press(driver, "[data-another]")
    until(driver, lambda: len(driver.find_elements(By.CSS_SELECTOR, "[role=tab]")) == 2, "two tabs")
    says(driver, "Connected", "[data-status]")
    keys(driver, "echo second one" + Keys.ENTER)
    shows(driver, "second one")
    keys(driver, LEAVE)
    until(driver, lambda: driver.switch_to.active_element.get_attribute("role") == "tab", "its tab")
    closing = find(driver, "[data-close]").get_attribute("data-cmd")
    assert closing
    must(svc(*closing.split()[1:]))  # as the button's line says
    says(driver, "It was closed.", "[data-status]")
    press(driver, "[data-status] [data-key=close]")
    shows(driver, "first one")
    must(svc("ws", "stop", "first"))
    says(driver, "It ended with the workspace.", "[data-status]")
    assert "first one" in screen(driver)
    must(svc("ws", "start", "first"))
    press(driver, "[data-status] [data-key=again]")
    until(driver, lambda: "first one" not in screen(driver) and screen(driver).strip(), "a new shell")


def test_endless_output_is_followed(signed_in: Driver, svc: Call) -> None:
    """The page does not fall behind for good: it can be ended by a key, and its last lines are right."""
    driver = signed_in
    press(driver, "[data-key=terminal]")
    says(driver, "Connected", "[data-status]")
    keys(driver, "seq 1 2000000; echo counted" + Keys.ENTER)
    shows(driver, "1999999")
    shows(driver, "counted")
    keys(driver, "yes hello" + Keys.ENTER)
    shows(driver, "hello\nhello")
    until(
        driver, lambda: (keys(driver, Keys.CONTROL + "c" + Keys.NULL), "^C" in screen(driver))[1], "its end"
    )
    keys(driver, "clear; echo $((40 + 2)) done" + Keys.ENTER)
    shows(driver, "42 done")


LINES = 2000
COUNT = (
    "until test -e /go; do sleep 0.1; done; i=0; "
    f"while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i; [ $((i % 40)) != 0 ] || sleep 0.1; done; "
    "until test -e /done; do sleep 0.1; done"
)


@pytest.fixture
def counter(svc: Call, service: Service) -> Iterator[str]:
    """A running workspace whose container and launcher count to 2,000 when they are told; its name."""
    source = must(svc("template", "get", "base", "--json")).json()["source"]
    source = {"type": "registry", "image_ref": source["image_ref"]}
    launcher = {"name": "counter", "command": ["sh", "-c", COUNT]}
    command = ["sh", "-c", f"{COUNT}; exec sleep infinity"]
    new_template(USER, service.env, "counting", source, command=command, launchers=[launcher])
    must(svc("ws", "setup", "--template", "counting", "--name", "counter"))
    must(svc("ws", "start", "counter"))
    yield "counter"
    svc("ws", "delete", "counter", "--yes")
    must(svc("template", "delete", "counting", "--yes"))


def printed(driver: Driver) -> list[str]:
    """The lines of the log that are shown."""
    words = "document.querySelectorAll('[data-out] .part > div:not(.between) > :last-child')"
    return [str(text) for text in driver.execute_script(f"return [...{words}].map(line => line.textContent)")]


@pytest.mark.parametrize("launcher", ["", "counter"])
def test_two_thousand_lines_over_two_restarts(
    signed_in: Driver, svc: Call, service: Service, origin: str, counter: str, launcher: str
) -> None:
    """Each once and in order, without a hand; the shown line prints the same."""
    driver = signed_in
    if launcher:
        must(svc("ws", "launcher", "start", counter, launcher))
    driver.get(f"{origin}/workspaces/{counter}/logs{'?launcher=counter' * bool(launcher)}")
    says(driver, "Following", "[data-stream]")
    press(driver, "[data-tail] option[value='5000']")
    says(driver, "Following", "[data-stream]")
    must(svc("ws", "exec", counter, "--", "touch", "/go"))
    for count in (LINES // 4, LINES // 2):
        until(driver, lambda count=count: len(printed(driver)) >= count, f"{count} lines", 120)
        with service.stopped():
            pass
    until(driver, lambda: len(printed(driver)) >= LINES, "all lines", 120)
    assert printed(driver) == [f"line {number}" for number in range(1, LINES + 1)]
    press(driver, "[data-follow]")
    driver.execute_script("document.activeElement.blur()")
    until(driver, lambda: "--follow" not in line(driver), "the line of what is there")
    assert must(svc(*line(driver))).out.split("\n")[:-1] == printed(driver)
    press(driver, "[data-follow]")
    says(driver, "Following", "[data-stream]")
    if launcher:
        must(svc("ws", "exec", counter, "--", "touch", "/done"))
        says(driver, "It has ended", "[data-stream]")
    else:
        must(svc("ws", "stop", counter))
        says(driver, "It does not run", "[data-stream]")
        must(svc("ws", "start", counter))
        says(driver, "Following", "[data-stream]")
    assert not [entry for entry in complaints(driver) if "ERR_" not in entry]


def test_what_a_workspace_uses(signed_in: Driver, svc: Call, service: Service, origin: str) -> None:
    """Numbers that grow with what runs, over a restart, until it stops; the line says the same."""
    driver = signed_in
    driver.get(f"{origin}/workspaces/first/monitor")
    says(driver, "Live", "[data-stream]")
    says(driver, "sleep infinity", "[data-processes]")
    assert driver.find_elements(By.CSS_SELECTOR, "[data-charts] canvas")
    must(svc("ws", "exec", "first", "--", "sh", "-c", "sleep 4711 >/dev/null 2>&1 &"))
    says(driver, "sleep 4711", "[data-processes]")
    snapshot = must(svc(*line(driver), "--json")).json()
    shown = {row.get_attribute("data-pid") for row in driver.find_elements(By.CSS_SELECTOR, "[data-pid]")}
    found = {str(one["pid"]) for one in snapshot["processes"] if "sleep" in one["command"]}
    assert found <= shown
    with service.stopped():
        pass
    says(driver, "Live", "[data-stream]")
    must(svc("ws", "stop", "first"))
    says(driver, "It has stopped", "[data-stream]")
    assert not [entry for entry in complaints(driver) if "ERR_" not in entry]
