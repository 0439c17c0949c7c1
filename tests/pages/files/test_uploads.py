"""Uploads: four at once, what is asked, and what goes on by itself, before a canned API."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages.canned import BROKEN_OFF, Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.files.records import LIMITS, Disk, refusal, root
from pages.files.test_files import HOSTILE, names, row, texts
from pages.visiting import overflow, visit
from selenium.webdriver.common.by import By

# What a drop has in it: the browser's own events cannot be made by a driver.
DROP = """
const [names, kind] = arguments, transfer = new DataTransfer();
for (const name of names) transfer.items.add(new File([name.repeat(3)], name));
for (const type of kind === 'over' ? ['dragover'] : ['dragover', 'drop']) {
  const all = { dataTransfer: transfer, bubbles: true, cancelable: true };
  document.body.dispatchEvent(new DragEvent(type, all));
}
"""


@pytest.fixture
def disk(canned: Canned) -> Iterator[Disk]:
    """The root of the mock-up; no upload is left waiting."""
    found = Disk(canned)
    yield found
    if found.held:
        found.held.set()


@pytest.fixture(autouse=True)
def nothing_under_way(browser: Driver) -> Iterator[None]:
    """A page with uploads asks before it is left, which no later test expects."""
    yield
    browser.execute_script(
        "for (const b of document.querySelectorAll('[data-key$=-Cancel], [data-key$=-Skip]')) b.click();"
        "for (const b of document.querySelectorAll('dialog[data-ask] button[value=confirm]')) b.click()"
    )


def at_work(browser: Driver, canned: Canned, path: str = "/files/work", **more: Any) -> None:
    """The screen, with its rows."""
    visit(browser, canned, path, **more)
    until(browser, lambda: names(browser), "the rows")


def drop(browser: Driver, *names: str) -> None:
    """Drop files with these names onto the page."""
    browser.execute_script(DROP, names)


def states(browser: Driver) -> list[str]:
    """The states of the uploads that are shown."""
    script = "return [...document.querySelectorAll('[data-upload]')].map(row => row.dataset.state)"
    return list(browser.execute_script(script))


def all_done(browser: Driver, number: int) -> None:
    """Wait until so many are done."""
    until(browser, lambda: states(browser) == ["done"] * number, f"{number} that are done")


def put(canned: Canned) -> list[bytes]:
    """The bodies of all uploads so far."""
    return [body for body, _ in canned.sent("PUT /api/fs/work/file")]


def test_dropped_anywhere(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Where they go is said while they are held over the page; rows that are new come last."""
    at_work(browser, canned, "/files/work?path=runs/7b")
    browser.execute_script(DROP, ["a.txt"], "over")
    says(browser, "Drop into work/runs/7b", "[data-drop]")
    drop(browser, "b.txt", HOSTILE.replace("/", ""))
    all_done(browser, 2)
    assert not find(browser, "[data-drop]").is_displayed()
    until(browser, lambda: "b.txt" in names(browser), "the new row")
    assert names(browser).index("b.txt") > names(browser).index("step-41880.safetensors")
    assert disk.content["runs/7b/b.txt"] == b"b.txt" * 3
    assert f"runs/7b/{HOSTILE}" in disk.content
    says(browser, "2 of 2 done", "[data-up-count]")
    until(
        browser,
        lambda: "Uploads: 2 of 2 done" in find(browser, "[data-said]").get_property("textContent"),
        "it to be said",
    )
    assert overflow(browser) == 0
    assert not complaints(browser)
    press(browser, "[data-key=up-clear]")
    until(browser, lambda: not find(browser, "[data-uploads]").is_displayed(), "no panel")


def test_chosen_files_and_folders(browser: Driver, canned: Canned, disk: Disk, tmp_path: Path) -> None:
    """A folder's own folders are made first."""
    for name in ("set/a.txt", "set/deep/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name)
    at_work(browser, canned)
    browser.find_element(By.ID, "files").send_keys(str(tmp_path / "set/a.txt"))
    all_done(browser, 1)
    assert disk.content["a.txt"] == b"set/a.txt"
    browser.find_element(By.ID, "tree").send_keys(str(tmp_path / "set"))
    all_done(browser, 3)
    assert disk.content["set/deep"] is None
    assert disk.content["set/deep/b.txt"] == b"set/deep/b.txt"
    until(browser, lambda: "set" in names(browser), "the folder's row")


def test_four_at_once_and_on_to_another_folder(browser: Driver, canned: Canned, disk: Disk) -> None:
    """They go on while the person walks; leaving the page asks."""
    disk.held = threading.Event()
    at_work(browser, canned)
    drop(browser, *(f"f{number}" for number in range(6)))
    until(browser, lambda: states(browser) == ["running"] * 4 + ["waiting"] * 2, "four that run")
    stays = (
        "const e = new Event('beforeunload', {cancelable: true}); dispatchEvent(e); return e.defaultPrevented"
    )
    assert browser.execute_script(stays) is True
    press(browser, f"{row('runs')} .name")
    until(browser, lambda: names(browser) == ["7b"], "another folder")
    press(browser, "[data-upload]:last-child [data-key$=Cancel]")
    until(browser, lambda: len(states(browser)) == 5, "one fewer")
    disk.held.set()
    all_done(browser, 5)
    assert {f"f{number}" for number in range(5)} <= set(disk.content)
    assert "f5" not in disk.content
    assert names(browser) == ["7b"]
    assert browser.execute_script(stays) is False


def agree_if_asked(driver: Driver) -> None:
    """Cancel: it is asked about once something of it was sent."""
    for button in driver.find_elements(By.CSS_SELECTOR, "dialog[open] button[value=confirm]"):
        button.click()


def test_cancel_one_that_runs(browser: Driver, canned: Canned, disk: Disk) -> None:
    disk.held = threading.Event()
    at_work(browser, canned)
    drop(browser, "a", "b")
    until(browser, lambda: states(browser) == ["running"] * 2, "two that run")
    press(browser, "[data-upload] [data-key$=Cancel]")
    agree_if_asked(browser)
    until(browser, lambda: states(browser) == ["running"], "one")
    disk.held.set()
    all_done(browser, 1)


def test_a_name_that_is_taken(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Replace or skip, for one and for all."""
    at_work(browser, canned)
    disk.content |= {"a b": b"1", "b": b"1", "c": b"1", "d": b"1"}
    drop(browser, "a b", "b", "c", "d")
    until(browser, lambda: states(browser) == ["asking"] * 4, "the questions")
    says(browser, "a file of that name is there already", "[data-upload]")
    button = find(browser, "[data-upload] [data-key$=Replace]")
    assert button.get_attribute("data-cmd") == "svc fs upload 'a b' 'work/a b' --force"
    button.click()
    until(browser, lambda: states(browser)[0] == "done", "the one")
    says(browser, "Replaced", "[data-upload]")
    press(browser, "[data-upload]:nth-child(2) [data-key$=Skip]")
    until(browser, lambda: len(states(browser)) == 3, "one fewer")
    press(browser, "[data-key=up-replace]")
    all_done(browser, 3)
    assert disk.content | {"b": b"1"} == disk.content
    assert disk.content["c"] == b"ccc"


def test_a_taken_name_is_asked_about_before_much_is_sent(
    browser: Driver, canned: Canned, disk: Disk, tmp_path: Path
) -> None:
    """A large file: the service would say so only when the connection is full of it."""
    disk.content |= {"big": b"1", "folder": None}
    for name in ("big", "folder"):
        (tmp_path / name).write_bytes(b"x" * (2 << 20))
    at_work(browser, canned)
    browser.find_element(By.ID, "files").send_keys(f"{tmp_path / 'big'}\n{tmp_path / 'folder'}")
    until(browser, lambda: states(browser) == ["asking", "failed"], "the question")
    says(browser, "a folder of that name is there already", "[data-upload]:nth-child(2)")
    assert put(canned) == []
    press(browser, "[data-key=up-clear]")


def test_it_goes_on_after_a_broken_connection(browser: Driver, canned: Canned, disk: Disk) -> None:
    """From the start, which is said; and by itself."""
    canned.answers["PUT /api/fs/work/file"] = BROKEN_OFF
    canned.refuse("GET /api/fs/roots", 503, "unavailable", "starting")
    at_work_later(browser, canned)
    drop(browser, "a")
    says(browser, "The connection broke; it begins again from the start", "[data-upload]")
    until(browser, lambda: len(put(canned)) >= 2, "another try")
    canned.answers["PUT /api/fs/work/file"] = disk.upload
    all_done(browser, 1)
    assert disk.content["a"] == b"aaa"


def at_work_later(browser: Driver, canned: Canned) -> None:
    """The screen, read before the roots cannot be any more."""
    refused = canned.answers["GET /api/fs/roots"]
    canned.answers["GET /api/fs/roots"] = {"items": [root("work")], "limits": LIMITS}
    at_work(browser, canned)
    canned.answers["GET /api/fs/roots"] = refused


def test_it_goes_on_after_sleep(browser: Driver, canned: Canned, disk: Disk) -> None:
    """The connection says nothing any more, and nobody says that it is gone: soon it is begun anew."""
    disk.held = threading.Event()
    at_work(browser, canned)
    drop(browser, "a")
    until(browser, lambda: len(put(canned)) == 1, "the upload")
    browser.execute_script("const real = Date.now; Date.now = () => real() + 3_600_000")
    until(browser, lambda: len(put(canned)) == 2, "another try", 60)
    disk.held.set()
    until(browser, lambda: states(browser) in (["done"], ["asking"]), "its end")


def test_an_answer_that_was_lost(browser: Driver, canned: Canned, disk: Disk, tmp_path: Path) -> None:
    """The file is whole, and the answer alone did not come: that is seen, not asked about."""
    (tmp_path / "big").write_bytes(b"x" * (2 << 20))

    def lose() -> Any:
        disk.upload()
        return BROKEN_OFF

    canned.answers["PUT /api/fs/work/file"] = lose
    at_work(browser, canned)
    browser.find_element(By.ID, "files").send_keys(str(tmp_path / "big"))
    all_done(browser, 1)
    assert len(put(canned)) == 1


def test_it_is_given_up_when_it_breaks_again_and_again(browser: Driver, canned: Canned, disk: Disk) -> None:
    """While the service answers: then something else is wrong, and the person says when."""
    canned.answers["PUT /api/fs/work/file"] = BROKEN_OFF
    at_work(browser, canned)
    drop(browser, "a")
    for _ in range(5):
        press(browser, "[data-key$=Now]")
    says(browser, "the connection broke 6 times", "[data-upload]")
    canned.answers["PUT /api/fs/work/file"] = disk.upload
    press(browser, "[data-upload] [data-key$='Try again']")
    all_done(browser, 1)


def test_a_busy_service_is_waited_for(browser: Driver, canned: Canned, disk: Disk) -> None:
    answers = iter([refusal(429, "too_many_requests", "you already have 8 long calls in progress", after=1)])
    canned.answers["PUT /api/fs/work/file"] = lambda: next(answers, None) or disk.upload()
    at_work(browser, canned)
    drop(browser, "a")
    says(browser, "you already have 8 long calls in progress", "[data-upload]")
    all_done(browser, 1)


def test_a_service_that_stops_ends_it_by_a_conflict(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Begun again by itself; what is refused so twice at once is another conflict, which is said."""
    refused = refusal(409, "conflict", "the caller has gone")
    answers = iter([refused])
    canned.answers["PUT /api/fs/work/file"] = lambda: next(answers, None) or disk.upload()
    at_work(browser, canned)
    drop(browser, "a")
    all_done(browser, 1)
    canned.answers["PUT /api/fs/work/file"] = refused
    drop(browser, "b")
    says(browser, "the caller has gone", "[data-upload]:nth-child(2)")
    assert states(browser) == ["done", "failed"]


def test_a_session_that_ends(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Signed in again over the page, they go on."""
    canned.refuse("PUT /api/fs/work/file", 401, "unauthenticated", "a valid credential is needed")
    at_work(browser, canned)
    until(browser, lambda: find(browser, ".who [data-user]").text == "ada", "who it is")
    drop(browser, "a")
    says(browser, "Sign in again", "#signed-out")
    says(browser, "once you have signed in", "[data-upload]")
    canned.answers["PUT /api/fs/work/file"] = disk.upload
    browser.switch_to.active_element.send_keys("three kites above the weir\n")
    all_done(browser, 1)


def test_a_full_disk_holds_all_of_them(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Nothing fails one by one: it is said once, and goes on when there is room."""
    canned.refuse(
        "PUT /api/fs/work/file", 507, "storage_full", "there is no space left on the disk for this user"
    )
    at_work(browser, canned)
    drop(browser, *(f"f{number}" for number in range(6)))
    says(
        browser, "There is no room left. there is no space left on the disk for this user.", "[data-up-full]"
    )
    until(browser, lambda: states(browser) == ["waiting"] * 6, "all to wait")
    canned.answers["PUT /api/fs/work/file"] = disk.upload
    press(browser, "[data-up-full] button")
    all_done(browser, 6)


def test_a_disk_that_has_too_little_room_breaks_the_connection(
    browser: Driver, canned: Canned, disk: Disk
) -> None:
    """A refusal in mid-file may be lost with its connection: the free space says it too."""
    canned.answers["PUT /api/fs/work/file"] = BROKEN_OFF
    at_work(browser, canned)
    canned.answers["GET /api/fs/roots"] = {"items": [root("work", free_bytes=2)], "limits": LIMITS}
    drop(browser, "a")
    says(browser, "work has 2 B free, and a has 3 B", "[data-up-full]")


@pytest.mark.parametrize(
    "answer, words",
    [
        (refusal(404, "not_found", "there is no such directory"), "there is no such directory"),
        (refusal(403, "file_forbidden", "permission denied"), "permission denied"),
        (refusal(400, "invalid_request", "path: this name is reserved"), "this name is reserved"),
    ],
)
def test_refusals(browser: Driver, canned: Canned, disk: Disk, answer: Any, words: str) -> None:
    canned.answers["PUT /api/fs/work/file"] = answer
    at_work(browser, canned)
    drop(browser, "a")
    says(browser, words, "[data-upload]")
    says(browser, f"{answer[1]['error']['code']}, req-5b1c09aa41", "[data-upload]")
    press(browser, "[data-upload] [data-key$=Dismiss]")
    until(browser, lambda: states(browser) == [], "no row")


def test_too_large_is_said_before_a_byte_is_sent(browser: Driver, canned: Canned, disk: Disk) -> None:
    canned.answers["GET /api/fs/roots"] = {
        "items": [root("work")],
        "limits": LIMITS | {"upload_max_bytes": 2},
    }
    at_work(browser, canned)
    drop(browser, "a")
    says(browser, "one upload takes at most 2 B", "[data-upload]")
    assert put(canned) == []


def test_a_thousand_files(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Not all of them are rows."""
    disk.held = threading.Event()
    at_work(browser, canned)
    drop(browser, *(f"f{number}" for number in range(1000)))
    says(browser, "and 960 more", "[data-uploads] footer")
    assert len(states(browser)) == 40
    press(browser, "[data-key=up-cancel]")
    agree_if_asked(browser)
    until(browser, lambda: states(browser) == [], "none")


def test_into_what_is_read_only(browser: Driver, canned: Canned, disk: Disk) -> None:
    at_work(browser, canned, "/files/models")
    browser.execute_script(DROP, ["a"], "over")
    says(browser, "models is read-only", "[data-drop]")
    drop(browser, "a")
    says(browser, "models is read-only", ".toasts")
    assert texts(browser, "[data-upload]") == []
