"""The pages in Chromium: from a press to a shell's prompt, from a key to the line of the page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.pairs import Row
from bench.stage import USER, Stage
from e2e.installation import PASSWORD, run
from e2e.surroundings import must
from pages.chromium import Driver, chromium, find, press, until
from selenium.webdriver.common.keys import Keys
from stories.signing_in import sign_in

ROUNDS, KEYS = 10, 40
PROMPT_MS, LINE_MS = 1000.0, 16.0  # "click to prompt <= 1 s", "keystroke to line <= 16 ms"
# In every document: the wall clock at the last press, and when there was first a prompt on the screen.
PROMPT = """
addEventListener('click', () => sessionStorage.setItem('benchPressed', Date.now()), true);
new MutationObserver((_, observer) => {
  if (!document.querySelector('.screen:not([hidden]) .xterm-rows')?.textContent.includes('#')) return;
  window.benchPrompt = Date.now() - Number(sessionStorage.getItem('benchPressed'));
  observer.disconnect();
}).observe(document, { childList: true, characterData: true, subtree: true });
"""
# From the key event to the line's new text, and to the frame that shows it.
LINE = """
window.benchLine = [];
let key = 0;
addEventListener('keydown', ({ timeStamp }) => { key = timeStamp; }, true);
new MutationObserver(() => {
  const text = performance.now() - key;
  requestAnimationFrame(() => setTimeout(() => benchLine.push([text, performance.now() - key])));
}).observe(document.querySelector('[data-command]'), { childList: true, characterData: true, subtree: true });
"""


def rows(set_up: Stage) -> Iterator[Row]:
    """Medians, beside the bars of the pages' budget."""
    must(run("root", "admin", "set-password", USER, env=set_up.env, stdin=PASSWORD))
    must(run(USER, "ws", "start", "bench", env=set_up.env))
    origin = f"https://localhost:{set_up.env['SVC_PORT']}"
    with chromium() as driver:
        sign_in(driver, origin, who=(USER, PASSWORD))
        prompt = statistics.median(_prompts(driver, origin))
        yield Row("pages: press to prompt | bar", prompt, PROMPT_MS, prompt / PROMPT_MS, 1.0)
        text, frame = (statistics.median(times) for times in zip(*_keys(driver, origin), strict=True))
        yield Row("pages: key to line | bar", text, LINE_MS, text / LINE_MS, 1.0)
        yield Row("pages: key to the line's frame | bar", frame, LINE_MS, frame / LINE_MS, None)


def _prompts(driver: Driver, origin: str) -> Iterator[float]:
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": PROMPT})
    for _ in range(ROUNDS):
        driver.get(f"{origin}/workspaces/bench")
        press(driver, ".tabs a[href$='/terminal']")
        yield float(until(driver, lambda: driver.execute_script("return window.benchPrompt"), "a prompt"))


def _keys(driver: Driver, origin: str) -> list[tuple[float, float]]:
    driver.get(f"{origin}/new")
    field = find(driver, "[name=name]")
    until(driver, lambda: find(driver, "[data-command]").text, "the line")
    driver.execute_script(LINE)
    field.send_keys(Keys.CONTROL + "a")
    for count in range(1, KEYS + 1):
        field.send_keys("x")
        until(
            driver, lambda count=count: driver.execute_script("return benchLine.length") >= count, "a frame"
        )
    return [(float(text), float(frame)) for text, frame in driver.execute_script("return benchLine")]
