"""What a workspace uses, before a canned API."""

from __future__ import annotations

from typing import Any

import pytest
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.live.canned_samples import STREAM, Samples, process, sample
from pages.visiting import NARROW, each_look, overflow, visit
from pages.workspace import records
from selenium.webdriver.common.by import By

PAGE = "/workspaces/train-7b/monitor"


@pytest.fixture
def samples(canned: Canned) -> Samples:
    """The running workspace of the mock-up, watched for a while."""
    records.serve(canned, records.of_the_mock_up())
    course = [1820 + 300 * (number % 7) / 7 for number in range(60)]
    return Samples(canned, [sample(2 * at, cpu_percent=cpu) for at, cpu in enumerate(course)])


def line(driver: Driver) -> str:
    """The command at the foot."""
    return find(driver, "[data-command]").text


def pids(driver: Driver) -> list[str]:
    """The processes in their order."""
    rows = driver.find_elements(By.CSS_SELECTOR, "[data-processes] tbody tr")
    return [str(row.get_attribute("data-pid")) for row in rows]


@each_look
def test_what_it_uses(browser: Driver, canned: Canned, samples: Samples, size: Any, theme: str) -> None:
    visit(browser, canned, PAGE, size=size, theme=theme)
    says(browser, "of 32 cores", "[data-charts]")
    for text in ("171", "of 256 GiB", "97 %", "and 96 %", "71.4", "of 80 GiB", "GPU 0", "GPU 1"):
        says(browser, text, "[data-charts]")
    says(browser, "212, no limit; the busiest", "[data-processes]")
    says(browser, "A sample every 2 s, counted by the kernel", "[data-source]")
    says(browser, "Live", "[data-stream]")
    assert pids(browser) == ["418377", "418378", "431877"]
    assert find(browser, "[data-pid='418378'] .chip-n").text == "1"
    assert len(browser.find_elements(By.CSS_SELECTOR, "[data-charts] canvas")) == 4
    label = find(browser, ".plot-box").get_attribute("aria-label")
    assert label and label.startswith("CPU: 19.5 of 32 cores; lowest 18.2, highest 20.8")
    assert line(browser) == "svc ws monitor train-7b"
    samples.tell("sample", sample(122, cpu_percent=250.0, source="proc"))
    says(browser, "2.5", "[data-charts] .big")
    says(browser, "summed over its processes", "[data-source]")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_little_without_a_gpu(browser: Driver, canned: Canned, samples: Samples) -> None:
    """By a unit that fits, and without columns of GPUs."""
    visit(browser, canned, PAGE)
    says(browser, "of 32 cores", "[data-charts]")
    samples.tell("sample", sample(122, cpu_percent=3.0, memory_bytes=80 << 20, gpus=[]))
    says(browser, "80 MiB", "[data-charts]")
    says(browser, "0.03", "[data-charts] .big")
    until(browser, lambda: "GPU" not in find(browser, "[data-processes] thead").text, "no columns of GPUs")


def test_as_tables_and_for_how_long(browser: Driver, canned: Canned, samples: Samples) -> None:
    visit(browser, canned, PAGE)
    says(browser, "of 32 cores", "[data-charts]")
    press(browser, "[data-tables]")
    tables = find(browser, "[data-charts] table")
    assert tables.get_attribute("aria-label") == "CPU"
    assert len(browser.find_elements(By.CSS_SELECTOR, "[data-charts] table")) == 4
    assert tables.find_element(By.CSS_SELECTOR, "tbody tr").text.endswith("19.5")
    press(browser, "[data-tables]")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "[data-charts] table"), "charts")
    press(browser, "[data-window='900']")
    assert find(browser, "[data-window='900']").get_attribute("aria-pressed") == "true"
    press(browser, "[data-window='0']")
    assert not complaints(browser)


def test_rows_stay_under_the_hand(browser: Driver, canned: Canned, samples: Samples) -> None:
    visit(browser, canned, PAGE)
    until(browser, lambda: len(pids(browser)) == 3, "the processes")
    center = "arguments[0].scrollIntoView({ block: 'center' })"
    browser.execute_script(center, find(browser, "[data-pid='418377']"))
    press(browser, "[data-pid='418377'] td")  # the pointer is over the table now
    busy = [process(7, "make", 1600, 1), process(431877, "bash", 900, 1), process(418377, "python", 10, 1)]
    samples.tell("sample", sample(200, processes=busy))
    until(browser, lambda: pids(browser) == ["418377", "431877", "7"], "the rows where they were")
    browser.execute_script(center, find(browser, "h1"))
    press(browser, "h1")
    samples.tell("sample", sample(202, processes=busy))
    until(browser, lambda: pids(browser) == ["7", "431877", "418377"], "the busiest first")


def test_pause_restart_and_end(browser: Driver, canned: Canned, samples: Samples) -> None:
    visit(browser, canned, PAGE)
    says(browser, "of 32 cores", "[data-charts]")
    press(browser, "[data-follow]")
    says(browser, "Paused", "[data-stream]")
    press(browser, "[data-follow]")
    until(browser, lambda: len(samples.streams) == 2, "another stream")
    samples.tell("restarting")
    says(browser, "The service restarts", "[data-stream]")
    samples.streams[-1].end()
    until(browser, lambda: len(samples.streams) == 3, "another one")
    says(browser, "Live", "[data-stream]")
    samples.tell("end")
    says(browser, "It has stopped", "[data-stream]")
    assert "171" in find(browser, "[data-charts]").text


def test_without_gpus_and_limits(browser: Driver, canned: Canned, samples: Samples) -> None:
    hostile = "<img src=x onerror=alert(1)>\u202egnp.exe" + "x" * 160
    process_ = process(9, hostile, 1, 0.01)
    free = sample(cpu_limit=None, memory_limit_bytes=None, gpus=[], processes=[process_], more_processes=0)
    samples.first = [free]
    visit(browser, canned, PAGE, size=NARROW)
    says(browser, "cores, no limit", "[data-charts]")
    says(browser, "no limit", "[data-charts]")
    assert "GPU" not in find(browser, "[data-charts]").text
    assert find(browser, "[data-pid='9']").text.split()[1].startswith("<img")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_it_does_not_run(browser: Driver, canned: Canned, samples: Samples) -> None:
    records.serve(canned, records.of_the_mock_up(status="stopped", allowed_actions=["start", "logs"]))
    visit(browser, canned, PAGE)
    says(browser, "svc ws start train-7b", "[data-not-running] code")
    until(browser, lambda: canned.streams, "the stream")
    assert not canned.sent(STREAM)
    records.serve(canned, records.of_the_mock_up())
    event = {"subject": {"type": "workspace", "id": records.ID, "name": "train-7b"}}
    canned.event("workspace.status_changed", **event)
    says(browser, "of 32 cores", "[data-charts]")


def test_what_is_refused(browser: Driver, canned: Canned, samples: Samples) -> None:
    canned.refuse(STREAM, 403, "owner_only", "only its owner may")
    visit(browser, canned, PAGE)
    says(browser, "What it uses could not be read. Only its owner may.", ".notice")
    says(browser, "It could not be read", "[data-stream]")


def test_without_the_pieces_of_others(browser: Driver, bare: Canned) -> None:
    """The page says what is missing, and has the numbers."""
    records.serve(bare, records.of_the_mock_up())
    Samples(bare, [sample()])
    visit(browser, bare, PAGE)
    says(browser, "The monitor page needs uplot/dist/uPlot.iife.min.js", "[data-missing]")
    says(browser, "18.2", "[data-charts] .big")
    assert len(browser.find_elements(By.CSS_SELECTOR, "[data-charts] table")) == 4
    assert not complaints(browser)
