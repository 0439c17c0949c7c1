"""The administration before the installed service: an administrator's day, and what others get.

tsw-ada is the ordinary user of the suite; tsw-grace is made an administrator here.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator

import pytest
from e2e.installation import PASSWORD, Outcome, Service, remove_user, run
from e2e.surroundings import must
from pages.chromium import Driver, complaints, find, press, says, until
from pages.workspaces.test_workspaces import texts
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from stories.conftest import USER

GRACE = "tsw-grace"
PAGES = ("users", "quotas", "disk", "gpus", "registries", "audit", "host")
# What an administrator may run at any time: it reads.
READS = (
    "svc api GET", "svc image allowlist", "svc servers hardware", "svc ws capacity", "svc ws list",
    "sudo svc admin registry list", "sudo svc admin disk",
)  # fmt: skip

Visit = Callable[[str, str], Driver]


@pytest.fixture(scope="module")
def grace(service: Service) -> Iterator[str]:
    """An administrator, made as administrators are: on the host."""
    remove_user(GRACE)
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", GRACE], check=True)
    must(run("root", "admin", "create-user", GRACE, "--superuser", env=service.env, stdin=PASSWORD))
    yield GRACE
    run("root", "admin", "delete-user", GRACE, "--yes", "--last-administrator", env=service.env)
    remove_user(GRACE)


@pytest.fixture
def visit(browser: Driver, origin: str) -> Iterator[Visit]:
    """visit(name, path): that page, in a browser where this person has signed in."""

    def visit(name: str, path: str) -> Driver:
        browser.set_window_size(1440, 900)
        browser.get(f"{origin}/api/version")
        browser.execute_script("localStorage.clear()")
        browser.delete_all_cookies()
        complaints(browser)
        browser.get(f"{origin}{path}")
        find(browser, "[name=username]").send_keys(name + Keys.TAB)
        browser.switch_to.active_element.send_keys(PASSWORD.strip() + Keys.ENTER)
        until(browser, lambda: browser.current_url == f"{origin}{path}", "the page that was asked for")
        return browser

    yield visit
    browser.get("about:blank")


def as_root(service: Service, *argv: str) -> Outcome:
    """`sudo svc admin …`."""
    return run("root", "admin", *argv, env=service.env)


def item(driver: Driver, name: str, label: str) -> None:
    """Open a row's menu and press an item of it."""
    press(driver, f'tr[data-id="{name}"] [data-key=more]')
    items = driver.find_elements(By.CSS_SELECTOR, f'tr[data-id="{name}"] details li > *')
    next(one for one in items if one.text.startswith(label)).click()


def test_an_administrator_sets_a_quota(visit: Visit, grace: str, service: Service) -> None:
    """Made and given to an account in the browser; `svc admin` and `svc api` see both."""
    driver = visit(grace, "/admin/quotas")
    says(driver, "default", "tbody")
    press(driver, "[data-key=new]")
    find(driver, "dialog[open] [name=name]").send_keys("story")
    find(driver, "dialog[open] [name=max_running]").send_keys("1")
    find(driver, "dialog[open] [name=max_memory_bytes]").send_keys("1.5")
    shown = texts(driver, "dialog[open] .cmd code")[0]
    press(driver, "dialog[open] [data-key=confirm]")
    says(driver, "1.5 GiB", 'tr[data-id="story"]')
    listed = {one["name"]: one for one in must(as_root(service, "quota", "list", "--json")).json()["items"]}
    assert (listed["story"]["max_running"], listed["story"]["max_memory_bytes"]) == (1, 3 << 29)
    must(run(grace, *shlex.split(shown)[1:], env=service.env))  # the line does the same

    driver.get(driver.current_url.replace("quotas", "users"))
    press(driver, f'tr[data-id="{USER}"] [data-key=edit]')
    find(driver, "dialog[open] [name=quota]").send_keys("story")
    says(driver, "1.5 GiB memory", "dialog[open]")
    press(driver, "dialog[open] [data-key=confirm]")
    says(driver, "story", f'tr[data-id="{USER}"]')
    accounts = must(run(grace, "api", "GET", "/api/admin/users", env=service.env)).json()["items"]
    assert {one["name"]: one["quota"] for one in accounts}[USER] == "story"
    capacity = must(run(USER, "ws", "capacity", "--json", env=service.env)).json()
    assert capacity["quota"]["max_running"] == 1

    driver.get(driver.current_url.replace("users", "quotas"))
    press(driver, 'tr[data-id="story"] [data-key=edit]')
    says(driver, f"Holds for {USER}.", "dialog[open]")
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    must(as_root(service, "edit-user", USER, "--quota", "default"))
    driver.refresh()
    press(driver, 'tr[data-id="story"] [data-key=remove]:not([aria-disabled])')
    press(driver, "dialog[open] button[value=confirm]")
    until(driver, lambda: "story" not in texts(driver, "tbody .name"), "no row of it")
    assert not complaints(driver)


def test_an_account_is_disabled_and_enabled(visit: Visit, grace: str, service: Service) -> None:
    """At once: the person's next command is refused, and works again afterwards."""
    driver = visit(grace, "/admin/users")
    says(driver, "administrator", f'tr[data-id="{grace}"]')
    item(driver, USER, "Disable")
    press(driver, "dialog[open] button[value=confirm]")
    says(driver, "Disabled", f'tr[data-id="{USER}"]')
    refused = run(USER, "ws", "list", env=service.env)
    assert refused.code != 0
    assert "disabled" in refused.err
    press(driver, f'tr[data-id="{USER}"] [data-key=enable]')
    says(driver, "Ready", f'tr[data-id="{USER}"]')
    must(run(USER, "ws", "list", env=service.env))
    item(driver, grace, "Disable")
    assert not driver.find_elements(By.CSS_SELECTOR, "dialog[open]")  # the own account: it says why not


def test_a_change_of_the_registries_is_the_command_that_is_shown(
    visit: Visit, grace: str, service: Service
) -> None:
    """Run by root as it stands there; the page sees that it is in force."""
    driver = visit(grace, "/admin/registries")
    find(driver, "[name=registry]").send_keys("quay.io/story" + Keys.ENTER)
    says(driver, "1 change, not in force")
    for line in ("sudo svc admin registry add quay.io/story", "sudo svc admin registry remove quay.io/story"):
        assert texts(driver, "[data-how] .cmd code") == [line]
        must(as_root(service, *shlex.split(line)[3:]))
        says(driver, "To change it", "[data-how-h]")
        if " add " in line:
            press(driver, 'tr[data-id="quay.io/story"] [data-key=turn]')
    until(driver, lambda: "story" not in find(driver, "tbody").text, "no row of it")


def test_the_audit_and_the_doctor(visit: Visit, grace: str, service: Service) -> None:
    """What was done is there with its hash; the doctor's report is seen once it has run."""
    must(run(USER, "ws", "list", env=service.env))
    must(as_root(service, "edit-user", USER, "--display-name", "Ada of the story"))
    driver = visit(grace, "/admin/audit")
    find(driver, "[data-key=action]").send_keys("admin.edit_user")
    until(driver, lambda: "action=admin.edit_user" in driver.current_url, "the filter")
    says(driver, USER, "tbody tr:first-child")
    wanted = shlex.split(find(driver, "[data-command]").text)[1:]
    rows = must(run(grace, *wanted, env=service.env)).json()["items"]
    assert texts(driver, "tbody tr:first-child [data-key=row]") == [str(rows[0]["id"])]

    as_root(service, "doctor")
    driver.get(driver.current_url.partition("/admin/")[0] + "/admin/host")
    says(driver, "fine", "[data-panel=doctor]")
    says(driver, "Healthy", "[data-panel=service]")
    says(driver, "trial", "[data-panel=licence]")
    findings = must(run(grace, "api", "GET", "/api/admin/host?limit=200", env=service.env)).json()["items"]
    bad = [one["code"] for level in ("fail", "warn") for one in findings if one["level"] == level]
    assert texts(driver, "[data-panel=doctor] > table .name") == bad
    driver.get(driver.current_url.replace("admin/host", "admin/audit"))
    says(driver, "checked", ".lede")
    assert not complaints(driver)


@pytest.mark.parametrize("name", PAGES)
def test_the_shown_commands_are_those_of_the_command_line(
    visit: Visit, grace: str, service: Service, name: str
) -> None:
    """Each that reads, as it is shown, is run: by the administrator, or by root on the host."""
    driver = visit(grace, f"/admin/{name}")
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#screen section, #screen table"), "the page")
    shown = driver.execute_script(
        "return [...document.querySelectorAll('#main [data-cmd]')].map(node => node.dataset.cmd)"
        ".concat([...document.querySelectorAll('#main .cmd code, [data-command]')].map(n => n.textContent))"
    )
    lines = {part.strip() for line in shown for part in line.split("&&")}
    reads = sorted(line for line in lines if line.startswith(READS))
    for line in reads[:12]:
        words = shlex.split(line)
        user, argv = ("root", words[2:]) if words[0] == "sudo" else (grace, words[1:])
        must(run(user, *argv, env=service.env))
    assert reads or name == "host"


@pytest.mark.parametrize("name", [*PAGES, "templates"])
def test_others_have_no_permission(visit: Visit, service: Service, grace: str, name: str) -> None:
    """No navigation to it, a page that says so, and an API that refuses anyway."""
    driver = visit(USER, f"/admin/{name}")
    until(driver, lambda: find(driver, ".who [data-user]").text == USER, "who it is")
    if name != "templates":
        says(driver, "For administrators", "[data-no-permission]")
    links = driver.find_elements(By.CSS_SELECTOR, "a[href^='/admin/']")
    assert links
    assert not [link for link in links if link.is_displayed()]
    answer = driver.execute_async_script(
        "const done = arguments[0], headers = {'X-Svc-Session': localStorage.getItem('svc.session')};"
        "fetch('/api/admin/users', {headers}).then(async r => done([r.status, await r.text()]))"
    )
    assert answer[0] == 403
    assert json.loads(answer[1])["error"]["code"] == "admin_only"
