"""The files screen: folders, contents, what is done to files, before a canned API."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, says, until
from pages.files.records import MOCK_UP, Disk, entry, refusal, root
from pages.visiting import NARROW, each_look, focused, overflow, visit
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe\n'\"; rm -rf \u05d0"
SEVEN_B = "/files/work?path=runs/7b"


@pytest.fixture
def disk(canned: Canned) -> Disk:
    """The root of the mock-up."""
    return Disk(canned)


def texts(driver: Driver, selector: str) -> list[str]:
    """The texts of all such elements at one moment."""
    script = "return [...document.querySelectorAll(arguments[0])].map(element => element.innerText)"
    return list(driver.execute_script(script, selector))


def names(driver: Driver) -> list[str]:
    """The names in the list, from top to bottom."""
    return texts(driver, "#screen tbody .name")


def line(driver: Driver) -> str:
    """The command at the foot."""
    return texts(driver, "[data-command]")[0]


def press(driver: Driver, selector: str) -> None:
    """Click, away from what is sticky at the foot."""

    def pressed() -> bool:
        element = driver.find_elements(By.CSS_SELECTOR, selector)[0]
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()
        return True

    until(driver, pressed, f"{selector} to be clicked")


def row(path: str) -> str:
    """The selector of a row."""
    return f'tr[data-id="{path}"]'


def menu(driver: Driver, path: str, kind: str) -> None:
    """Choose from a row's menu."""
    press(driver, f"{row(path)} summary")
    press(driver, f"{row(path)} [data-act={kind}]")


def fill(driver: Driver, text: str) -> None:
    """Type into the dialog's field, instead of what is there."""
    field = find(driver, "dialog[open] #f-name")
    field.send_keys(Keys.CONTROL + "a")
    field.send_keys(text or Keys.DELETE)


@each_look
def test_as_the_mock_up_shows(
    browser: Driver, canned: Canned, disk: Disk, theme: str, size: tuple[int, int]
) -> None:
    disk.more["runs/7b"] = [
        entry("runs/7b/latest", 10, type="symlink", target="step-41880", mode="0777"),
        entry(b"runs/7b/caf\xe9.txt", 212),
    ]
    visit(browser, canned, SEVEN_B, theme=theme, size=size)
    says(browser, "1.8 TiB free", ".lede")
    until(browser, lambda: names(browser), "the rows")
    assert names(browser) == [
        "logs", "step-41000", "step-41880", "7b.yaml", "caf\\xe9.txt", "latest", "notes.md",
        "step-41880.safetensors",
    ]  # fmt: skip
    assert [" ".join(text.split()) for text in texts(browser, "[data-roots] a")] == [
        "work",
        "models read-only",
    ]
    assert texts(browser, "[data-crumbs]")[0].split() == ["work", "/", "runs", "/", "7b"]
    says(browser, "at /work/runs/7b in your workspaces", "[data-mounted]")
    says(browser, "leads to step-41880", row("runs/7b/latest"))
    says(browser, "bytes that are no UTF-8", row("runs/7b/caf%E9.txt"))
    says(browser, "3.1 KiB", row("runs/7b/7b.yaml"))
    assert find(browser, "tbody time").text.split(", ")[0] in ("today", "yesterday")
    assert line(browser) == "svc fs ls work/runs/7b"
    press(browser, f"{row('runs/7b/notes.md')} input")
    press(browser, f"{row('runs/7b/step-41880.safetensors')} input")
    says(browser, "2 chosen, 13.4 GiB", "[data-count]")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_walking(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Folders, breadcrumbs, back and forward, without another page."""
    visit(browser, canned, "/files")
    until(browser, lambda: names(browser) == ["runs", "notes.txt"], "the root")
    assert line(browser) == "svc fs ls work"
    browser.execute_script("window.same = true")
    press(browser, f"{row('runs')} .name")
    until(browser, lambda: names(browser) == ["7b"], "the folder")
    press(browser, f"{row('runs/7b')} .name")
    until(browser, lambda: "notes.md" in names(browser), "the next folder")
    assert browser.current_url.endswith(SEVEN_B)
    press(browser, "[data-crumbs] a")
    until(browser, lambda: names(browser) == ["runs", "notes.txt"], "the root")
    browser.back()
    until(browser, lambda: "notes.md" in names(browser), "the folder before")
    press(browser, "[data-roots] a:last-child")
    until(browser, lambda: names(browser) == ["llama"], "the other root")
    assert line(browser) == "svc fs ls models"
    for button in ("folder", "upload", "tree"):
        assert find(browser, f"[data-do={button}]").get_attribute("aria-disabled") == "true"
    says(browser, "at /srv/models on the host", "[data-mounted]")
    assert find(browser, "#barred").get_property("textContent") == "models is read-only"
    assert browser.execute_script("return window.same") is True


def test_a_folder_of_ten_thousand(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Some rows are built, more when they are scrolled to, and searching sees all."""
    disk.more[""] = [entry(f"f{number:05}.txt", number) for number in range(10_000)]
    visit(browser, canned, "/files/work")
    says(browser, "10002 entries", "[data-count]")
    says(browser, "10000 of 10002 are read", "[data-foot]")
    assert len(names(browser)) < 1000
    before = len(names(browser))
    browser.execute_script("scrollTo(0, document.body.scrollHeight)")
    until(browser, lambda: len(names(browser)) > before, "more rows")
    find(browser, "[data-search]").send_keys("f0999")
    until(browser, lambda: names(browser) == [f"f0999{n}.txt" for n in range(8)], "what is called that")
    press(browser, "[data-key=rest]")
    until(browser, lambda: len(names(browser)) == 10, "those that were read then")
    find(browser, "[data-search]").send_keys("nothing")
    says(browser, "Nothing in this folder is called that.")


def test_the_next_ones_are_read_once(browser: Driver, canned: Canned, disk: Disk) -> None:
    """A second press, while the first is under way, asks for nothing."""
    disk.more[""] = [entry(f"f{number:05}.txt", number) for number in range(10_000)]
    visit(browser, canned, "/files/work")
    says(browser, "10000 of 10002 are read", "[data-foot]")
    browser.execute_script(
        "const rest = document.querySelector('[data-key=rest]'); rest.click(); rest.click();"
    )
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "[data-key=rest]"), "all to be read")
    asked = [headers["QUERY"] for _, headers in canned.sent("GET /api/fs/work/list")]
    assert sum("offset=10000" in query for query in asked) == 1


def test_sorting(browser: Driver, canned: Canned, disk: Disk) -> None:
    visit(browser, canned, SEVEN_B)
    until(browser, lambda: names(browser), "the rows")
    press(browser, "[data-key=sort-Size]")
    until(browser, lambda: names(browser)[-1] == "step-41880.safetensors", "by size")
    press(browser, "[data-key=sort-Size]")
    until(browser, lambda: names(browser)[0] == "step-41880.safetensors", "the largest first")
    assert find(browser, "th.r").get_attribute("aria-sort") == "descending"
    assert focused(browser) == "Size"


def test_an_empty_folder(browser: Driver, canned: Canned, disk: Disk) -> None:
    visit(browser, canned, "/files/work?path=runs/7b/logs")
    says(browser, "Nothing in here yet", ".empty")
    says(browser, "svc fs upload LOCAL-FILE work/runs/7b/logs/", ".empty .cmd")


def test_a_folder_that_goes_while_it_is_shown(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Read anew when events may have been missed; what cannot be read for now stays as it was."""
    visit(browser, canned, SEVEN_B)
    until(browser, lambda: names(browser) and canned.streams, "the folder")
    lists = len(canned.sent("GET /api/fs/work/list"))
    answer = canned.answers["GET /api/fs/work/list"]
    canned.refuse("GET /api/fs/work/list", 503, "unavailable", "the agent is starting")
    canned.streams[-1].send("gap", {})
    until(browser, lambda: len(canned.sent("GET /api/fs/work/list")) > lists, "the reading")
    assert names(browser)
    canned.answers["GET /api/fs/work/list"] = answer
    del disk.content["runs/7b"]
    canned.streams[-1].send("gap", {})
    says(browser, "work/runs/7b is not there.", "#screen")
    press(browser, "[data-key=up]")
    says(browser, "svc fs ls work/runs", "[data-command]")


@pytest.mark.parametrize(
    "answer, words",
    [
        (refusal(404, "not_found", "there is no such file or directory"), "work/runs/7b is not there."),
        (
            refusal(403, "file_forbidden", "permission denied", hint="svc fs ls work/runs"),
            "It could not be read.",
        ),
        (
            refusal(403, "root_not_allowed", "the root account has no files here"),
            "There are no files here for you.",
        ),
        (
            refusal(503, "unavailable", "the agent is starting", retryable=True, after=60),
            "by itself in 60 s",
        ),
    ],
)
def test_what_cannot_be_read(browser: Driver, canned: Canned, disk: Disk, answer: Any, words: str) -> None:
    canned.answers["GET /api/fs/work/list"] = answer
    visit(browser, canned, SEVEN_B)
    says(browser, words, "#screen")
    says(browser, answer[1]["error"]["code"], ".notice .code")
    canned.answers["GET /api/fs/work/list"] = disk.list_
    press(browser, "[data-key=up], [data-key=retry]")
    until(browser, lambda: names(browser), "the folder above, or this one")


def test_text_is_shown_as_text(browser: Driver, canned: Canned, disk: Disk) -> None:
    """In parts; what is in it never becomes mark-up."""
    disk.content["page.html"] = b"<script>alert(1)</script><img src=x onerror=alert(2)>\n" + b"z" * 200_000
    visit(browser, canned, "/files/work?path=page.html")
    says(browser, "<script>alert(1)</script>", ".preview pre")
    assert not browser.find_elements(By.CSS_SELECTOR, ".preview img, .preview script")
    assert line(browser) == "svc fs read work/page.html"
    says(browser, "128 KiB of 195 KiB", ".preview footer")
    press(browser, ".preview footer button")
    until(browser, lambda: not find(browser, ".preview footer").is_displayed(), "the rest")
    length = browser.execute_script("return document.querySelector('.preview pre').textContent.length")
    assert length == len(disk.content["page.html"])  # type: ignore[arg-type]
    assert not complaints(browser)


def test_other_contents(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Bytes are not shown; a picture is drawn, by a ticket; a vector picture is text."""
    dot = bytes.fromhex(
        "47494638396101000100800000ff0000ffffff21f90400000000002c00000000010001000002024401003b"
    )
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
    disk.content |= {"a.bin": b"\x00\xff\x00", "dot.gif": dot, "fake.png": svg, "v.svg": svg, "none": b""}
    canned.answers["GET /api/fs/work/download"] = lambda: (
        200,
        disk.content[disk.asked()[0]],
        {},
    )
    for path, text in {
        "a.bin": "This is no text that can be shown",
        "fake.png": "The browser cannot draw this picture",
        "none": "The file is empty.",
        "v.svg": "<svg xmlns=",
    }.items():
        visit(browser, canned, f"/files/work?path={path}")
        says(browser, text, ".preview")
    visit(browser, canned, "/files/work?path=dot.gif")
    until(
        browser,
        lambda: browser.execute_script("return document.querySelector('.preview img').naturalWidth") == 1,
        "the picture",
    )
    assert disk.tickets[-1] == "/api/fs/work/download?path=dot.gif"
    assert not complaints(browser)


def test_a_new_folder(browser: Driver, canned: Canned, disk: Disk) -> None:
    """The line follows what is typed; a name that is taken is refused where it is typed."""
    visit(browser, canned, SEVEN_B)
    until(browser, lambda: names(browser), "the rows")
    press(browser, "[data-do=folder]")
    says(browser, "svc fs mkdir work/runs/7b/NAME", "dialog[open] form > .cmd code")
    fill(browser, "logs")
    says(browser, "svc fs mkdir work/runs/7b/logs", "dialog[open] form > .cmd code")
    find(browser, "#f-name").send_keys(Keys.ENTER)
    says(browser, "A file of this name exists.", "dialog[open] .notice")
    fill(browser, "it's new/a b")
    says(browser, "svc fs mkdir 'work/runs/7b/it'\\''s new/a b' --parents", "dialog[open] form > .cmd code")
    find(browser, "#f-name").send_keys(Keys.ENTER)
    until(browser, lambda: "it's new" in names(browser), "the folder")
    assert "runs/7b/it's new/a b" in disk.content
    assert names(browser)[-1] == "it's new"  # what is new comes last: nothing moves


def test_rename(browser: Driver, canned: Canned, disk: Disk) -> None:
    visit(browser, canned, SEVEN_B)
    menu(browser, "runs/7b/notes.md", "rename")
    assert find(browser, "#f-name").get_property("value") == "notes.md"
    fill(browser, "7b.yaml")
    says(browser, "svc fs mv work/runs/7b/notes.md work/runs/7b/7b.yaml", "dialog[open] form > .cmd code")
    find(browser, "#f-name").send_keys(Keys.ENTER)
    says(browser, "A file of this name exists.", "dialog[open] .notice")
    press(browser, "dialog[open] [data-key=replace]")
    until(browser, lambda: "notes.md" not in names(browser), "the new name")
    assert isinstance(disk.content["runs/7b/7b.yaml"], bytes)


def test_move_several(browser: Driver, canned: Canned, disk: Disk) -> None:
    visit(browser, canned, SEVEN_B)
    for path in ("runs/7b/notes.md", "runs/7b/7b.yaml"):
        press(browser, f"{row(path)} input")
    press(browser, "[data-chosen] [data-key=move]")
    fill(browser, "runs")
    says(
        browser,
        "svc fs mv work/runs/7b/7b.yaml work/runs/ && svc fs mv work/runs/7b/notes.md work/runs/",
        "dialog[open] form > .cmd code",
    )
    find(browser, "#f-name").send_keys(Keys.ENTER)
    until(browser, lambda: "notes.md" not in names(browser), "the rows to go")
    assert {"runs/notes.md", "runs/7b.yaml"} <= set(disk.content)
    says(browser, "4 entries", "[data-count]")


def test_replace_it_counts_for_one(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Each of several names that are taken is asked about."""
    disk.content |= {"runs/notes.md": b"kept", "runs/7b.yaml": b"kept"}
    visit(browser, canned, SEVEN_B)
    for path in ("runs/7b/notes.md", "runs/7b/7b.yaml"):
        press(browser, f"{row(path)} input")
    press(browser, "[data-chosen] [data-key=move]")
    fill(browser, "runs")
    find(browser, "#f-name").send_keys(Keys.ENTER)
    says(browser, "A file of this name exists.", "dialog[open] .notice")
    press(browser, "dialog[open] [data-key=replace]")
    until(browser, lambda: disk.content["runs/7b.yaml"] != b"kept", "the first to be replaced")
    until(browser, lambda: len(canned.sent("POST /api/fs/work/move")) == 3, "the second to be asked for")
    says(browser, "A file of this name exists.", "dialog[open] .notice")
    assert disk.content["runs/notes.md"] == b"kept"
    press(browser, "dialog[open] [data-key=replace]")
    until(browser, lambda: disk.content["runs/notes.md"] != b"kept", "the second to be replaced")


def test_a_folder_is_in_the_way(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Nothing replaces one, and a name at the beginning of a message is written as it is."""
    disk.content |= {"runs/dir": None}
    visit(browser, canned, "/files/work?path=runs")
    menu(browser, "runs/7b", "rename")
    fill(browser, "dir")
    find(browser, "#f-name").send_keys(Keys.ENTER)
    says(browser, "A folder of that name is there already", "dialog[open] .notice")
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open] [data-key=replace]")
    canned.refuse("POST /api/fs/work/move", 404, "not_found", "dir: no such file")
    fill(browser, "other")
    find(browser, "#f-name").send_keys(Keys.ENTER)
    says(browser, "dir: no such file.", "dialog[open] .notice")


def test_remove_asks_first(browser: Driver, canned: Canned, disk: Disk) -> None:
    """What is lost is said; the focus is on what is harmless."""
    visit(browser, canned, "/files/work")
    menu(browser, "runs", "remove")
    says(browser, "The folder goes with all that is in it: 1 entry", "dialog[open]")
    says(browser, "svc fs rm work/runs --recursive --yes", "dialog[open] form > .cmd code")
    assert focused(browser) == "Cancel"
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")
    assert set(disk.content) == set(MOCK_UP)
    press(browser, "[data-key=all]")
    says(browser, "2 chosen", "[data-count]")
    press(browser, "[data-chosen] [data-key=remove]")
    says(browser, "Remove 2 entries?", "dialog[open]")
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "Nothing in here yet", ".empty")
    assert disk.content == {}


def test_what_is_asked_in_a_root_is_done_there(browser: Driver, canned: Canned, disk: Disk) -> None:
    """Back, pressed while the question is open, leads to another root: a file of that name there stays."""
    removed: list[str] = []

    def remove() -> Any:
        removed.append(canned.present.environ["PATH_INFO"])
        return 204, None, {}

    canned.answers |= {f"DELETE /api/fs/{name}/file": remove for name in ("work", "models")}
    visit(browser, canned, "/files/models")
    press(browser, "[data-key=root-work]")
    menu(browser, "notes.txt", "remove")
    find(browser, "dialog[open] button[value=confirm]")
    browser.execute_script("history.back()")
    until(browser, lambda: line(browser) == "svc fs ls models", "the other root")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: removed, "the removal")
    assert removed == ["/api/fs/work/file"]


def test_a_removal_that_is_refused(browser: Driver, canned: Canned, disk: Disk) -> None:
    canned.refuse(
        "DELETE /api/fs/work/file", 403, "file_forbidden", "permission denied", hint="svc fs ls work"
    )
    visit(browser, canned, "/files/work")
    menu(browser, "notes.txt", "remove")
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "notes.txt was not removed. Permission denied.", ".notice[role=alert]")
    says(browser, "svc fs ls work", ".notice .cmd")


def test_downloads_go_by_a_ticket(browser: Driver, canned: Canned, disk: Disk) -> None:
    """A plain link, for a file and for a folder; what is refused is said before."""
    visit(browser, canned, "/files/work")
    menu(browser, "notes.txt", "download")
    until(browser, lambda: canned.sent("GET /api/fs/work/download"), "the download")
    menu(browser, "runs", "archive")
    until(browser, lambda: canned.sent("GET /api/fs/work/archive"), "the archive")
    assert disk.tickets == ["/api/fs/work/download?path=notes.txt", "/api/fs/work/archive?path=runs"]
    canned.answers["HEAD /api/fs/work/archive"] = (413, None, {})
    canned.refuse("GET /api/fs/work/archive", 413, "too_large", "an archive has at most 9 members")
    press(browser, "[data-do=all]")
    says(browser, "work was not downloaded. An archive has at most 9 members.", ".notice[role=alert]")
    assert len(disk.tickets) == 2


def test_hostile_names_are_text(browser: Driver, canned: Canned, disk: Disk) -> None:
    """In rows, breadcrumbs, dialogs, contents and lines; nothing unseen is left in them."""
    disk.content |= {HOSTILE: None, f"{HOSTILE}/{HOSTILE}": b"kestrel", f"{HOSTILE}/{'n' * 200}": b""}
    shown = "<img src=x onerror=alert(1)>\\u202egnp.exe\\n'\"; rm -rf \u05d0"
    visit(browser, canned, "/files/work", size=NARROW)
    until(browser, lambda: shown in names(browser), "the row")
    found = [each for each in browser.find_elements(By.CSS_SELECTOR, "a.name") if each.text == shown]
    found[0].click()
    until(browser, lambda: "n" * 200 in names(browser), "the folder")
    assert line(browser).startswith(
        "svc fs ls $'work/<img src=x onerror=alert(1)>\\xe2\\x80\\xaegnp.exe\\x0a"
    )
    assert overflow(browser) == 0
    press(browser, "tbody tr:first-child summary")
    press(browser, "tbody tr:first-child [data-act=remove]")
    says(browser, f"Remove {shown}?", "dialog[open]")
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    press(browser, "tbody tr:first-child .name")
    says(browser, "kestrel", ".preview pre")
    assert not browser.find_elements(By.CSS_SELECTOR, "main img")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_by_keyboard(browser: Driver, canned: Canned, disk: Disk) -> None:
    visit(browser, canned, "/files/work")
    until(browser, lambda: names(browser), "the rows")
    body = find(browser, "body")
    body.send_keys("j")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    until(browser, lambda: names(browser) == ["7b"], "the folder")
    find(browser, "body").send_keys("/")
    until(browser, lambda: focused(browser) == "Find in this folder", "the search")


def test_while_the_service_is_away(browser: Driver, canned: Canned, disk: Disk) -> None:
    """What was read stays; what would change something waits, and says why."""
    visit(browser, canned, "/files/work")
    until(browser, lambda: canned.streams, "the stream")
    for request in ("GET /api/health", "GET /api/events"):
        canned.refuse(request, 503, "unavailable", "stopping", retryable=True)
    canned.event("restarting")
    canned.streams[0].end()
    find(browser, "[data-do=upload][aria-disabled=true][aria-describedby=barred]")
    press(browser, "[data-do=folder]")
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open]")
    assert "runs" in names(browser)
    del canned.answers["GET /api/events"]
    canned.answers["GET /api/health"] = {"status": "ok"}
    find(browser, "[data-do=upload]:not([aria-disabled])")


def test_while_it_loads(browser: Driver, canned: Canned, disk: Disk) -> None:
    def late() -> Any:
        time.sleep(1)  # longer than the moment after which something is shown
        return disk.list_()

    canned.answers["GET /api/fs/work/list"] = late
    visit(browser, canned, "/files/work")
    find(browser, "section[aria-busy=true] .skel")
    until(browser, lambda: names(browser) == ["runs", "notes.txt"], "the rows")
    assert root("work")["exists"]
    assert not browser.find_elements(By.CSS_SELECTOR, ".skel")
