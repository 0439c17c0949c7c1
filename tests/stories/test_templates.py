"""Templates of the installed service in the browser: imported, edited, built, enabled; and on the host."""

from __future__ import annotations

import json
import pwd
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.installation import IMAGE, PASSWORD, Call, Outcome, Service, run
from e2e.surroundings import must
from pages.chromium import Driver, complaints, find, press, says, until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from stories.conftest import USER

Go = Callable[[str], Driver]


@pytest.fixture
def home() -> Path:
    """Where the person's commands run."""
    return Path(pwd.getpwnam(USER).pw_dir)


@pytest.fixture
def registry(svc: Call) -> str:
    """The one that the service allows."""
    return str(must(svc("image", "allowlist", "--json")).json()["items"][0]["host"])


@pytest.fixture
def go(browser: Driver, origin: str) -> Iterator[Go]:
    """go(path): that page, in a browser that has just signed in."""
    browser.set_window_size(1440, 1000)
    browser.get(f"{origin}/api/version")
    browser.execute_script("localStorage.clear()")
    browser.delete_all_cookies()
    browser.get(f"{origin}/sign-in")
    find(browser, "[name=username]").send_keys(USER + Keys.TAB)
    browser.switch_to.active_element.send_keys(PASSWORD.strip() + Keys.ENTER)
    until(browser, lambda: browser.current_url == f"{origin}/workspaces", "the list of workspaces")

    def open_page(path: str) -> Driver:
        browser.get(f"{origin}{path}")
        return browser

    yield open_page
    browser.execute_script("window.onbeforeunload = null")
    browser.get("about:blank")


@pytest.fixture
def clean(svc: Call) -> Iterator[None]:
    """No template is left but the one of the fixtures."""
    yield
    for one in svc("template", "list", "--json").json()["items"]:
        if one["name"] != "base" and one["scope"] == "private":
            svc("image", "delete", one["name"], "--yes")
            svc("template", "delete", one["name"], "--yes")


def recipe(svc: Call, name: str, text: str) -> None:
    """A new template of the person with this Dockerfile."""
    must(svc("template", "create", "--dockerfile", "-", "--name", name, stdin=text))


def line(driver: Driver) -> str:
    """The command at the foot."""
    return find(driver, "[data-command]").text


def run_line(svc: Call, text: str) -> Outcome:
    """What a line says, run by the command line: its last outcome."""
    outcome = None
    for part in text.split(" && "):
        words = shlex.split(part)
        if words[0] == "echo":
            outcome = must(svc(*words[words.index("|") + 2 :], stdin=words[1]))
        else:
            assert words[0] == "svc", part
            outcome = must(svc(*words[1:]))
    assert outcome is not None
    return outcome


def record(svc: Call, name: str) -> dict[str, object]:
    """A template as the command line has it."""
    return dict(must(svc("template", "get", name, "--json")).json())


def test_a_bundle_is_imported_edited_built_and_enabled(
    go: Go, svc: Call, registry: str, home: Path, clean: None
) -> None:
    """The whole way in the browser; the command line sees the same at its end."""
    recipe(svc, "baked", f"FROM {registry}/{IMAGE}\nRUN true\n")
    bundle = home / "baked.tar"
    must(svc("template", "export", "baked", "--out", str(bundle), "--force"))
    must(svc("template", "delete", "baked", "--yes"))

    driver = go("/templates")
    says(driver, "base", "[data-list=private]")
    press(driver, "[data-key=import]")
    find(driver, "dialog [data-import] input[type=file]").send_keys(str(bundle))
    says(driver, "svc template import baked.tar --build-later", "dialog[open] .cmd code")
    press(driver, "dialog[open] [type=submit]")
    until(driver, lambda: driver.current_url.endswith("/templates/baked/dockerfile"), "its page")
    says(driver, "needs a build")
    assert record(svc, "baked")["status"] == "disabled"

    text = find(driver, "textarea[data-key=dockerfile]")
    assert text.get_property("value") == f"FROM {registry}/{IMAGE}\nRUN true\n"
    text.send_keys(Keys.CONTROL + Keys.END)
    text.send_keys("RUN echo made in the browser > /made\n")
    says(driver, "1 line changed, not saved")
    assert line(driver) == (
        "svc template dockerfile baked --set --file Dockerfile --revision 1"
        " && svc image build baked --wait && svc template enable baked"
    )
    press(driver, "[data-key=save-build]")
    says(driver, "STEP 3/3: RUN echo made in the browser", "[data-log]")
    says(driver, "Revision 2 is built", "[data-steps]")
    assert must(svc("template", "dockerfile", "baked")).out.endswith("RUN echo made in the browser > /made\n")

    press(driver, "[data-steps] [data-key=enable]")
    says(driver, "It can be used", "[data-steps]")
    listed = [row.split("\t") for row in must(svc("template", "list")).out.splitlines()]
    assert ["baked", "private", "enabled"] in [row[1:4] for row in listed]
    assert find(driver, "[data-key=use]").get_attribute("href").endswith("/new?template=baked")
    assert not complaints(driver)


def test_a_build_goes_on_over_a_closed_page(go: Go, svc: Call, registry: str, clean: None) -> None:
    """Whoever comes back finds its log from the first line, and its end; another is cancelled."""
    recipe(svc, "slow", f"FROM {registry}/{IMAGE}\nRUN echo begun; sleep 8; echo gone on\n")
    driver = go("/templates/slow/dockerfile")
    press(driver, "[data-steps] [data-key=build]")
    says(driver, "begun", "[data-log]")
    driver.get("about:blank")
    assert must(svc("image", "status", "slow", "--json")).json()["status"] == "building"
    driver = go("/templates/slow/dockerfile")
    says(driver, "STEP 1/2: FROM", "[data-log]")
    says(driver, "gone on", "[data-log]")
    says(driver, "Revision 1 is built", "[data-steps]")
    shown = [span.text for span in driver.find_elements(By.CSS_SELECTOR, "[data-log] span")]
    operation = must(svc("operation", "list", "--json")).json()["items"][0]["id"]
    kept = must(svc("api", "GET", f"/api/operations/{operation}/log")).json()["lines"]
    until(driver, lambda: len(driver.find_elements(By.CSS_SELECTOR, "[data-log] span")) == len(kept), "all")
    assert shown == [one["text"] for one in kept][: len(shown)]

    must(
        svc(
            "template",
            "dockerfile",
            "slow",
            "--set",
            "--file",
            "-",
            stdin=f"FROM {registry}/{IMAGE}\nRUN sleep 60\n",
        )
    )
    says(driver, "Build revision 2", "[data-steps]")
    press(driver, "[data-steps] [data-key=build]")
    press(driver, "[data-steps] [data-key=cancel]")
    press(driver, "dialog[open] button[value=confirm]")
    says(driver, "Cancelled", "[data-operation]")
    assert must(svc("operation", "list", "--json")).json()["items"][0]["status"] == "cancelled"


def test_two_who_write_lose_nothing(go: Go, svc: Call, registry: str, clean: None) -> None:
    """What the host saves meanwhile is shown beside what is typed; neither is lost."""
    first = f"FROM {registry}/{IMAGE}\nRUN true\n"
    recipe(svc, "shared", first)
    driver = go("/templates/shared/dockerfile")
    text = find(driver, "textarea[data-key=dockerfile]")
    says(driver, "saved", ".line-tag")
    text.send_keys(Keys.CONTROL + Keys.END)
    text.send_keys("# mine\n")
    must(svc("template", "dockerfile", "shared", "--set", "--file", "-", stdin=first + "# theirs\n"))
    press(driver, "[data-key=save]")
    says(driver, "# theirs", "[data-conflict] pre")
    assert text.get_property("value") == f"{first}# mine\n"
    assert must(svc("template", "dockerfile", "shared")).out == f"{first}# theirs\n"
    press(driver, "[data-key=save-over]")
    until(driver, lambda: must(svc("template", "dockerfile", "shared")).out == f"{first}# mine\n", "mine")
    assert must(svc("template", "revisions", "shared", "--revision", "2")).out == f"{first}# theirs\n"


def test_the_lines_are_the_commands(go: Go, svc: Call, registry: str, clean: None) -> None:
    """Each command that the pages show, run as it stands, does what its button says."""
    recipe(svc, "kiln", f"FROM {registry}/{IMAGE}\nRUN true\n")
    driver = go("/templates/kiln/dockerfile")
    until(driver, lambda: line(driver).startswith("svc image build kiln"), "the line")
    run_line(svc, line(driver))
    assert record(svc, "kiln")["status"] == "enabled"
    says(driver, "It can be used", "[data-steps]")  # by the events

    go("/templates/kiln")
    for key, status in (("disable", "disabled"), ("enable", "enabled")):
        says(driver, {"disabled": "enabled", "enabled": "not enabled"}[status], "[data-head] .tag")
        run_line(svc, str(find(driver, f"[data-key={key}]").get_attribute("data-cmd")))
        assert record(svc, "kiln")["status"] == status
    run_line(svc, str(find(driver, "[data-key=clone]").get_attribute("data-cmd")))
    assert record(svc, "my-kiln")["cloned_from"] == record(svc, "kiln")["id"]

    press(driver, "[data-key=edit]")
    words = find(driver, "[data-field=description]")
    words.send_keys("It's for the reading group")
    until(driver, lambda: "reading group" in line(driver), "the line of the form")
    run_line(svc, line(driver))
    assert record(svc, "kiln")["description"] == "It's for the reading group"
    press(driver, "[data-key=cancel-edit]")
    find(driver, "body").send_keys("3")
    says(driver, "description", ".diff")
    until(driver, lambda: line(driver).startswith("svc template diff"), "its line")
    assert "reading group" in run_line(svc, line(driver)).out

    go("/templates")
    says(driver, "kiln", "[data-list=private]")
    buttons = driver.find_elements(By.CSS_SELECTOR, "[data-list=private] [data-cmd*='template get']")
    for command in [str(button.get_attribute("data-cmd")) for button in buttons]:
        run_line(svc, command)
    run_line(svc, line(driver))


def test_fields_are_edited_and_a_bundle_is_saved(
    go: Go, svc: Call, registry: str, tmp_path: Path, home: Path, clean: None
) -> None:
    """The form's edit is the record's; the export is the very bytes of `svc template export`."""
    spec = {"name": "plain", "source": {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}}
    spec |= {"env": [{"name": "KEY", "value": "never shown", "secret": True}]}
    must(svc("template", "create", "--file", "-", stdin=json.dumps(spec)))
    driver = go("/templates/plain")
    press(driver, "[data-key=edit]")
    for name, value in (("defaults.cpu_limit", "2"), ("limits.memory_bytes", "8"), ("name", "plainer")):
        control = find(driver, f'[data-field="{name}"]')
        control.clear()
        control.send_keys(value)
    press(driver, "[data-key=save-fields]")
    says(driver, "plainer", "h1")
    until(driver, lambda: driver.current_url.endswith("/templates/plainer"), "its new address")
    found = record(svc, "plainer")
    assert found["defaults"] == {"cpu_limit": 2.0}
    assert found["limits"] == {"memory_bytes": 8 << 30}
    assert found["env"] == [{"name": "KEY", "value": None, "secret": True, "is_set": True}]

    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    press(driver, "[data-key=export]")
    saved = tmp_path / "plainer.tar"
    until(driver, saved.exists, "the bundle")
    must(svc("template", "export", "plainer", "--out", str(home / "plainer.tar"), "--force"))
    assert saved.read_bytes() == (home / "plainer.tar").read_bytes()

    press(driver, "[data-key=more]")
    press(driver, "[data-key=delete]")
    says(driver, "No workspace was made from it", "dialog[open]")
    press(driver, "dialog[open] button[value=confirm]")
    until(driver, lambda: driver.current_url.endswith("/templates"), "the gallery")
    assert svc("template", "get", "plainer").code == 1


@pytest.fixture
def superuser(service: Service) -> Iterator[None]:
    """The person administers, for a while."""
    must(run("root", "admin", "edit-user", USER, "--superuser", env=service.env))
    yield
    must(run("root", "admin", "edit-user", USER, "--no-superuser", "--last-administrator", env=service.env))


def test_a_review_in_the_browser(
    superuser: None, go: Go, svc: Call, service: Service, registry: str, home: Path, clean: None
) -> None:
    """A bundle with a Dockerfile comes in for everybody, is built by who reviews it, and enabled."""
    recipe(svc, "common", f"FROM {registry}/{IMAGE}\nENV API_KEY=0123456789\nRUN true\n")
    bundle = home / "common.tar"
    must(svc("template", "export", "common", "--out", str(bundle), "--force"))
    must(svc("template", "delete", "common", "--yes"))
    driver = go("/admin/templates")
    says(driver, "Nothing waits for a review")
    press(driver, "[data-key=import]")
    find(driver, "dialog [data-import] input[type=file]").send_keys(str(bundle))
    press(driver, "dialog[open] [type=submit]")
    says(driver, "revision 1: no revision of it was enabled before", "[data-diff]")
    says(driver, "ENV API_KEY=0123456789", "[data-diff]")
    says(driver, "bundle_digest", "[data-findings]")
    try:
        assert run_line(svc, "svc template list --review").out.split("\t")[1] == "common"
        press(driver, "[data-steps] [data-key=build]")
        says(driver, "Revision 1 is built", "[data-steps]")
        press(driver, "[data-steps] [data-key=enable]")
        says(driver, "Nothing waits for a review")
        says(driver, "enabled", "[data-global]")
        found = record(svc, "common")
        assert (found["scope"], found["status"]) == ("global", "enabled")
        assert not complaints(driver)
    finally:
        svc("image", "delete", "common", "--yes")
        must(svc("template", "delete", "common", "--yes"))


def test_a_review_is_for_administrators(go: Go) -> None:
    says(go("/admin/templates"), "For administrators")
