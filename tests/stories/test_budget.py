"""What the list of workspaces costs before its rows are there, from the installed service."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pages.chromium import Driver, find
from stories.signing_in import sign_in

KB = 1000
COLD_BYTES, COLD_REQUESTS, WARM_BYTES = 60 * KB, 8, 12 * KB
# When the first row was there, and all that was asked for by then; run before any script of the page.
WATCH = """
new MutationObserver((_, observer) => {
  if (!document.querySelector('tbody a.name')) return;
  window.svcRowsAt = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""
ASKED = """
const rows = window.svcRowsAt, [page] = performance.getEntriesByType('navigation');
const first = performance.getEntriesByName('first-contentful-paint')[0];
return { rows, content: first ? first.startTime : null, answer: page.responseEnd,
  requests: [page, ...performance.getEntriesByType('resource')].filter(one => one.startTime < rows)
    .map(one => [new URL(one.name).pathname, one.transferSize]) };
"""


def _visit(driver: Driver, origin: str) -> dict[str, Any]:
    driver.get("about:blank")
    driver.get(f"{origin}/workspaces")
    find(driver, "tbody a.name")
    asked: dict[str, Any] = driver.execute_script(ASKED)
    return asked | {"bytes": sum(size for _, size in asked["requests"])}


def _figures(kind: str, asked: dict[str, Any]) -> str:
    return (
        f"{kind}: {asked['bytes'] / KB:.1f} KB in {len(asked['requests'])} requests; answer after"
        f" {asked['answer']:.0f} ms, content {asked['content']:.0f} ms, rows {asked['rows']:.0f} ms"
    )


@pytest.mark.usefixtures("workspaces")
def test_the_list_of_workspaces(trusting: Driver, origin: str) -> None:
    """Cold as for a browser that was never there; warm as on every later visit."""
    sign_in(trusting, origin)
    find(trusting, "tbody a.name")
    watch = trusting.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    trusting.execute_cdp_cmd("Network.clearBrowserCache", {})
    cold = _visit(trusting, origin)
    warm = _visit(trusting, origin)
    trusting.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", watch)
    text = f"{_figures('cold', cold)}\n{_figures('warm', warm)}\n{json.dumps(cold['requests'], indent=1)}\n"
    print(text)
    if os.environ.get("SVC_TEST_ARTEFACTS"):
        Path(os.environ["SVC_TEST_ARTEFACTS"], "budget.txt").write_text(text)
    assert cold["bytes"] <= COLD_BYTES, text
    asked_by_the_page = [path for path, _ in cold["requests"] if not path.endswith("/icon.svg")]
    assert len(asked_by_the_page) <= COLD_REQUESTS, text
    assert warm["bytes"] <= WARM_BYTES, text
