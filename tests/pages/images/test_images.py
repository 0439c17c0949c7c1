"""The images screen before a canned API."""

from __future__ import annotations

from typing import Any

import pytest
from pages import records
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.images import records as images
from pages.images.records import OVERVIEW, PRUNE
from pages.visiting import NARROW, WIDE, each_look, focused, line, overflow, visit
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202egnp.exe"
LIST = "[data-list] tbody"


@pytest.fixture
def pages(canned: Canned) -> Canned:
    """The API of the mock-up."""
    images.serve(canned)
    return canned


def row(number: int) -> str:
    """The row of a stored image."""
    return f"tr[data-id='{number:064x}']"


@each_look
def test_as_the_mock_up_shows(browser: Driver, pages: Canned, theme: str, size: tuple[int, int]) -> None:
    visit(browser, pages, "/images", theme=theme, size=size)
    says(browser, "38.6 of 120 GiB that your images may take; 412 GiB free", "[data-disk]")
    says(browser, "needed 24.4 GiB", "[data-disk]")
    says(browser, "unused, at least 14.2 GiB", "[data-disk]")
    says(browser, "your quota 81.4 GiB left", "[data-disk]")
    says(browser, "5.2 of 8.4 GiB, 95 MiB/s, about 30 s left", "tr[data-id=op-1]")
    says(browser, "step 3 of 6: RUN pip install -r requirements.txt", "tr[data-id=op-2]")
    says(browser, "Waiting for its turn", "tr[data-id=op-3]")
    for number, texts in {
        1: [
            "torch",
            "registry.lab.example/ml/torch:2.6",
            "Ready",
            "train-7b",
            "9.8 GiB",
            "6.7 GiB",
            "3.1 GiB",
        ],
        3: ["debian-tools", "1 container"],
        4: ["no template", "cuda12-2025-08", "Unused", "6.9 GiB"],
        5: ["my-torch", "Unused", "4.2 GiB"],
        6: ["0000000000", "Unused"],
    }.items():
        for text in texts:
            says(browser, text, row(number))
    says(browser, "step 5 of 6: exit 1", LIST)
    says(browser, "Not in your store", LIST)
    says(browser, "Remove unused, 14.2 GiB", ".head")
    assert line(browser) == "svc image overview"
    assert not browser.find_elements(By.CSS_SELECTOR, f"{row(1)} button")  # it is needed
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_prune_names_what_goes(browser: Driver, pages: Canned) -> None:
    """And how much is gained; the harmless button has the focus; Esc is no."""
    visit(browser, pages, "/images")
    says(browser, "Remove unused, 14.2 GiB", ".head")
    line_of = lambda: find(browser, "[data-key=prune]").get_attribute("data-cmd")  # noqa: E731
    until(browser, lambda: line_of() == "svc image prune --yes", "its command")
    press(browser, "[data-key=prune]")
    says(browser, "Remove 3 unused images?", "dialog[open]")
    says(browser, "It frees at least 14.2 GiB", "dialog[open]")
    for text in ("cuda12-2025-08", "tpl-my-torch:b785f2ff", "000000000000", "svc image prune --yes"):
        says(browser, text, "dialog[open]")
    assert focused(browser) == "Cancel"
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")
    assert not pages.sent(PRUNE)

    def prune() -> dict[str, Any]:
        pages.answers[OVERVIEW] = images.overview(images.overview()["items"][:3])
        removed = [{"image_id": "1", "names": [], "size_bytes": 1}] * 3
        return {"removed": removed, "freed_bytes": 15 << 30, "removed_volumes": 0}

    pages.answers[PRUNE] = prune
    press(browser, "[data-key=prune]")
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "Removed 3 images, 15 GiB", ".toasts")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, row(4)), "no row of it")
    find(browser, "[data-key=prune][aria-disabled=true]")
    press(browser, "[data-key=prune]")
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open]")
    pages.answers[OVERVIEW] = images.overview(images.overview()["items"][:3], unused_volumes=2)
    visit(browser, pages, "/images")
    until(browser, lambda: line_of() == "svc image prune --yes", "its command")
    press(browser, "[data-key=prune]:not([aria-disabled])")
    says(browser, "Remove 2 anonymous volumes?", "dialog[open]")


@pytest.mark.parametrize(
    ("number", "request_", "command"),
    [
        (5, "DELETE /api/templates/tpl-my-torch/image", "svc image delete my-torch --yes"),
        (
            4, f"DELETE /api/images/{4:064x}",
            "svc image remove quay.io/jupyter/pytorch-notebook:cuda12-2025-08 --yes",
        ),
        (6, f"DELETE /api/images/{6:064x}", "svc image remove 000000000000 --yes"),
    ],
)  # fmt: skip
def test_one_image_is_removed(
    browser: Driver, pages: Canned, number: int, request_: str, command: str
) -> None:
    visit(browser, pages, "/images")
    button = f"{row(number)} [data-key=remove]"
    assert find(browser, button).get_attribute("data-cmd") == command
    press(browser, button)
    says(browser, "it frees at least", "dialog[open]")
    says(browser, command, "dialog[open] .cmd")
    pages.answers[request_] = (204, None, {})
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: pages.sent(request_), "the removal")


def test_a_refusal(browser: Driver, pages: Canned) -> None:
    visit(browser, pages, "/images")
    message = "the registry of rstudio is not on the allowlist"
    request = "POST /api/templates/tpl-rstudio/image/pull"
    pages.refuse(request, 403, "registry_not_allowed", message, hint="svc image allowlist")
    press(browser, "tr[data-id^=tpl-rstudio] [data-key=get]")
    says(
        browser,
        "rstudio was not pulled. The registry of rstudio is not on the allowlist.",
        ".notice[role=alert]",
    )
    says(browser, "svc image allowlist", ".notice .cmd")
    press(browser, "[data-key=dismiss]")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, ".notice"), "no notice")


def test_pull_build_and_cancel(browser: Driver, pages: Canned) -> None:
    visit(browser, pages, "/images")
    for template, verb in (("rstudio", "pull"), ("eval", "build")):
        request = f"POST /api/templates/tpl-{template}/image/{verb}"
        pages.answers[request] = (202, {"operation": records.SETUP}, {})
        button = f"tr[data-id^=tpl-{template}] [data-key=get]"
        command = f"svc image {verb} {template} --wait"
        assert find(browser, button).get_attribute("data-cmd") == command
        press(browser, button)
        until(browser, lambda request=request: pages.sent(request), request)  # type: ignore[misc]
        says(browser, "begun", ".toasts")
        until(
            browser, lambda: find(browser, "[data-key=prune]").get_attribute("aria-disabled") is None, "rest"
        )
    pages.answers["POST /api/operations/op-1/cancel"] = records.SETUP
    assert (
        find(browser, "tr[data-id=op-1] [data-key=cancel]").get_attribute("data-cmd")
        == "svc operation cancel op-1"
    )
    press(browser, "tr[data-id=op-1] [data-key=cancel]")
    says(browser, "Cancel the ", "dialog[open]")
    assert not pages.sent("POST /api/operations/op-1/cancel")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: pages.sent("POST /api/operations/op-1/cancel"), "the request")


def test_live(browser: Driver, pages: Canned) -> None:
    """Bytes as they come; an end is read anew; rows stay where they are."""
    visit(browser, pages, "/images")
    says(browser, "5.2 of 8.4 GiB", "tr[data-id=op-1]")
    until(browser, lambda: pages.streams, "the stream")
    progress = {"current": 8 << 30, "total": int(8.4 * (1 << 30)), "unit": "bytes"}
    data = {"kind": "pull", "status": "running", "phase": "pulling", "progress": progress}

    def progressed() -> bool:  # again where the first reading came after it
        pages.event("operation.progress", subject={"type": "operation", "id": "op-1", "name": ""}, data=data)
        return "8 of 8.4 GiB" in find(browser, "tr[data-id=op-1]").text

    until(browser, progressed, "the bytes of the event")
    before = images.overview()["items"]
    fresh = images.stored(9, ["docker.io/team/vllm:1"], 99.0, 99.0, templates=images.of("vllm"))
    pages.answers[OVERVIEW] = images.overview([fresh, *before])
    pages.answers["GET /api/operations"] = records.page([])
    pages.event("operation.finished", subject={"type": "operation", "id": "op-1", "name": ""}, data={})
    says(browser, "99 GiB", row(9))
    assert not find(browser, "[data-under]").is_displayed()
    last = browser.execute_script(
        "return document.querySelector('[data-list] tbody').lastElementChild.dataset.id"
    )
    assert last == f"{9:064x}"


def test_many_images(browser: Driver, pages: Canned) -> None:
    items = [images.stored(number, [f"docker.io/x/{number}:1"], 1, 1) for number in range(500)]
    pages.answers[OVERVIEW] = images.overview(items)
    visit(browser, pages, "/images")
    says(browser, "Show 200 more", "[data-more]")
    assert len(browser.find_elements(By.CSS_SELECTOR, f"{LIST} tr")) == 200


def test_no_image(browser: Driver, pages: Canned) -> None:
    pages.answers |= {
        OVERVIEW: images.overview([], total_bytes=0, quota_bytes=None),
        "GET /api/images": records.page([]),
        "GET /api/operations": records.page([]),
    }
    visit(browser, pages, "/images")
    says(browser, "No image yet", ".empty")
    says(browser, "0 GiB of images; 412 GiB free", "[data-disk]")


def test_hostile_text_is_text(browser: Driver, pages: Canned) -> None:
    long = "x" * 200
    templates = [{"id": "tpl-h", "name": HOSTILE}]
    pages.answers |= {
        OVERVIEW: images.overview(
            [images.stored(1, [HOSTILE + long, long], 1, 1, used_by=[long], unused=True, templates=templates)]
        ),
        "GET /api/images": records.page(
            [
                images.images()[-1]
                | {"error": HOSTILE + long, "ref": long, "template": {"id": "t", "name": long}}
            ]
        ),
        "GET /api/operations": records.page(
            [
                records.SETUP
                | {"kind": "pull", "subject": {"type": "image", "id": "i", "name": HOSTILE + long}}
            ]
        ),
    }
    for size in (WIDE, NARROW):
        visit(browser, pages, "/images", size=size)
        says(browser, HOSTILE[:20], LIST)
        assert overflow(browser) == 0
    press(browser, "[data-key=prune]")
    says(browser, HOSTILE[:20], "dialog[open]")
    assert overflow(browser) == 0
    assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script")
    assert not complaints(browser)
