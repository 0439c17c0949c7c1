"""The modules of the pages run as they are in the tree, each with a scope of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from posixpath import basename
from typing import Any

import pytest
from depths import sample
from pages.canned import Canned, Listener
from pages.chromium import Driver, complaints, find
from pages.states import every_state
from pages.visiting import visit

from svc.web.pages import assets, modules

JOINED = modules.parts(assets.sources())
LATER = re.findall(r"\bimport\('\./([\w-]+\.js)'\)", "".join(modules.join(assets.sources()).values()))
# The first state of each screen that needs no click.
FIRST = {state.path.split("?")[0]: state for state in reversed(every_state().values()) if not state.script}


def unjoined(app: Callable[..., Any]) -> Callable[..., Iterable[bytes]]:
    """The same app, but a screen's file only imports its module; modules are found by their own paths."""
    base = f"/static/{assets.load().digest}/"
    texts = assets.sources() | {
        file: f"import './{parts[-1]}';" for file, parts in JOINED.items() if file != modules.APP
    }

    def call(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        name = environ["PATH_INFO"].removeprefix(base)
        text = texts.get(name)
        if text is None:
            beside = {"PATH_INFO": base + basename(name)} if name.endswith(".mjs") else {}  # pieces of others
            return app(environ | beside, start)
        start("200 OK", [("Content-Type", "text/javascript; charset=utf-8")])
        return [text.encode()]

    return call


@pytest.fixture(scope="module")
def listener(certificate: tuple[Path, Path]) -> Iterator[Listener]:
    """An origin of its own, of which the browser has kept no joined file."""
    found = Listener(certificate)
    found.app.wsgi_app = unjoined(found.app.wsgi_app)  # type: ignore[method-assign]
    yield found
    found.close()


@pytest.mark.parametrize(
    "path", sample([*FIRST], 13, "each screen; tsc finds a name that a module does not import")
)
def test_a_screen_runs_unjoined(browser: Driver, canned: Canned, path: str) -> None:
    state = FIRST[path]
    state.prepare(canned)
    visit(browser, canned, state.path, signed_in=state.signed_in)
    find(browser, state.shows)
    assert complaints(browser) == []
    loaded = browser.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert any(name.endswith("/frame/dom.js") for name in loaded)
    browser.get("about:blank")


def test_every_part_that_is_loaded_later_runs_unjoined(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/workspaces")
    find(browser, "[data-list] tbody tr")
    base = f"/static/{assets.load().digest}/"
    for name in (JOINED[file][-1] for file in sorted(set(LATER))):
        script = "const [name, done] = arguments; import(name).then(() => done(''), done)"
        assert browser.execute_async_script(script, f"{base}{name}") == "", name
    browser.get("about:blank")
