"""Files in the installed service: sent by the browser, seen by svc and in a workspace, and loaded again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.files import digest, put, work
from e2e.installation import PASSWORD, Call, Service
from e2e.surroundings import must
from pages.chromium import Driver, complaints, find, press, says, until
from pages.files.test_files import fill, line, menu, names, row
from pages.files.test_uploads import drop
from pages.looking import segments
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from stories.conftest import USER

NAME = "a \"b\" 'c'\n\u202e\u05d0 d.txt"
BIG = 192 << 20


@pytest.fixture
def driver(browser: Driver, origin: str, service: Service) -> Iterator[Driver]:
    """The files of a person who has just signed in."""
    browser.set_window_size(1440, 900)
    browser.get(f"{origin}/api/version")
    browser.execute_script("localStorage.clear()")
    browser.delete_all_cookies()
    complaints(browser)
    browser.get(f"{origin}/sign-in?next=%2Ffiles%2Fwork")
    find(browser, "[name=username]").send_keys(USER + Keys.TAB)
    browser.switch_to.active_element.send_keys(PASSWORD.strip() + Keys.ENTER)
    until(browser, lambda: browser.current_url == f"{origin}/files/work", "the files")
    until(browser, lambda: find(browser, ".who [data-user]").text == USER, "the frame")
    yield browser
    browser.execute_script(
        "for (const b of document.querySelectorAll('[data-key$=-Cancel]')) b.click();"
        "for (const b of document.querySelectorAll('dialog[data-ask] button[value=confirm]')) b.click()"
    )
    browser.get("about:blank")


@pytest.fixture
def downloads(driver: Driver, tmp_path: Path) -> Path:
    """Where the browser saves what it loads."""
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    return tmp_path


def loaded(driver: Driver, folder: Path) -> Path:
    """The one file that was saved, once it is whole."""
    found = until(
        driver, lambda: [path for path in folder.iterdir() if path.suffix != ".crdownload"], "the download"
    )
    return Path(found[0])


def run_line(svc: Call, text: str) -> str:
    """Run a shown line by the real command line; what it prints."""
    (words,) = segments(text)
    return must(svc(*words[1:])).out


def ls(svc: Call, place: str) -> dict[str, int]:
    """The names in a folder and their sizes, by the command line."""
    return {item["name"]: item["size"] for item in must(svc("fs", "ls", place, "--json")).json()["items"]}


def test_sent_seen_and_loaded_again(
    driver: Driver,
    downloads: Path,
    workspaces: list[str],
    svc: Call,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A name with quotes, a newline and marks of right-to-left text; and bytes that are not text."""
    content = os.urandom(3 << 20)
    source = tmp_path_factory.mktemp("source") / "blob.bin"
    source.write_bytes(content)
    press(driver, "[data-do=folder]")
    fill(driver, "in by browser")
    said = find(driver, "dialog[open] code").text
    find(driver, "#f-name").send_keys(Keys.ENTER)
    until(driver, lambda: "in by browser" in names(driver), "the folder")
    assert list(segments(said)) == [["svc", "fs", "mkdir", "work/in by browser"]]

    press(driver, f"{row('in%20by%20browser')} .name")
    says(driver, "Nothing in here yet", ".empty")
    driver.find_element(By.ID, "files").send_keys(str(source))
    drop(driver, NAME)
    until(driver, lambda: sorted(names(driver))[-1:] == ["blob.bin"] and len(names(driver)) == 2, "both rows")
    assert ls(svc, "work/in by browser") == {"blob.bin": len(content), NAME: 3 * len(NAME.encode())}
    assert json.loads(run_line(svc, f"{line(driver)} --json"))["total"] == 2
    inside = must(svc("ws", "exec", "first", "--", "sha256sum", "/work/in by browser/blob.bin")).out
    assert inside.split()[0] == hashlib.sha256(content).hexdigest()

    menu(driver, "in%20by%20browser/blob.bin", "download")
    assert digest(loaded(driver, downloads)) == hashlib.sha256(content).hexdigest()
    press(driver, "tbody tr:not([data-id$='blob.bin']) .name")
    says(driver, NAME[:4], ".preview pre")
    assert run_line(svc, line(driver)) == NAME * 3

    driver.back()
    menu(driver, "in%20by%20browser/blob.bin", "rename")
    fill(driver, "renamed.bin")
    find(driver, "#f-name").send_keys(Keys.ENTER)
    until(driver, lambda: "renamed.bin" in names(driver), "the new name")
    assert digest(work(USER) / "in by browser/renamed.bin") == hashlib.sha256(content).hexdigest()
    press(driver, "[data-crumbs] a")
    menu(driver, "in%20by%20browser", "remove")
    press(driver, "dialog[open] button[value=confirm]")
    until(driver, lambda: "in by browser" not in names(driver), "no row")
    assert "in by browser" not in ls(svc, "work")
    assert not complaints(driver)


def test_each_line_does_what_its_button_does(driver: Driver, svc: Call) -> None:
    """What is shown, run by the command line, is seen on the page."""
    put(USER, "lines/it's a file", b"kestrel")
    driver.refresh()
    menu_of = f"{row('lines')} summary"
    press(driver, menu_of)
    remove = find(driver, f"{row('lines')} [data-act=remove]").get_attribute("data-cmd")
    press(driver, f"{row('lines')} .name")
    until(driver, lambda: names(driver) == ["it's a file"], "the folder")
    press(driver, "[data-do=folder]")
    fill(driver, "b c/d")
    said = find(driver, "dialog[open] code").text
    find(driver, "#f-name").send_keys(Keys.ESCAPE)
    run_line(svc, said)
    rename = find(driver, "[data-data], tbody .name").get_attribute("data-cmd")
    assert run_line(svc, str(rename)) == "kestrel"
    run_line(svc, "svc fs mv \"work/lines/it's a file\" 'work/lines/b c/d/'")
    assert ls(svc, "work/lines/b c/d") == {"it's a file": 7}
    run_line(svc, str(remove))
    driver.refresh()
    says(driver, "work/lines is not there.", "#screen")
    press(driver, "[data-key=up]")
    until(driver, lambda: "lines" not in names(driver), "the folder above")


def test_a_big_upload_survives_a_restart(
    driver: Driver, service: Service, svc: Call, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The service stops in the middle of it, and comes back: the file is whole, without a press."""
    source = tmp_path_factory.mktemp("source") / "big.bin"
    with open(source, "wb") as file:
        for _ in range(BIG >> 20):
            file.write(os.urandom(1 << 20))
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 24 << 20}
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow)
    driver.execute_script("window.same = true")
    driver.find_element(By.ID, "files").send_keys(str(source))
    until(
        driver,
        lambda: float(find(driver, "[data-upload] rect").get_attribute("width").rstrip("%")) > 5,
        "a part of it",
    )
    with service.stopped():
        says(driver, "it begins again from the start", "[data-upload]")
        assert not (work(USER) / "big.bin").exists()
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow | {"uploadThroughput": -1})
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "[data-upload][data-state=done]"), "it", 240)
    assert driver.execute_script("return window.same") is True
    assert digest(work(USER) / "big.bin") == digest(source)
    assert ls(svc, "work")["big.bin"] == BIG
    must(svc("fs", "rm", "work/big.bin", "--yes"))


def test_a_folder_as_an_archive(driver: Driver, downloads: Path) -> None:
    put(USER, "packed/deep/a.txt", b"kestrel")
    driver.refresh()
    menu(driver, "packed", "archive")
    saved = loaded(driver, downloads)
    assert saved.name == "packed.tar.gz"
    assert saved.read_bytes()[:2] == b"\x1f\x8b"
