"""What holds for every screen in every state that its area lists: axe-core finds nothing, in both schemes.

Nothing scrolls sideways from 320 to 1920 pixels and at 200 %, nothing moves while it loads, the console is
silent, Tab comes to every control, and every command that is shown is one that the program takes.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from pages import looking
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, until
from pages.looking import ask, prefer, resize
from pages.states import State, every_state
from pages.visiting import come

from svc.web.pages.shells import PAGES

Answers = dict[str, Any]
ARTEFACTS = os.environ.get("SVC_TEST_ARTEFACTS", "")
STATES = every_state()
# Screens whose area lists no states yet.
WITHOUT: set[str] = set()
# Texts that people and programs write as they like; names that the API restricts are none of them.
FREE = frozenset({
    "browser", "command", "content", "description", "diff", "display_name", "dockerfile", "found", "holder",
    "installed_by", "label", "message", "model", "note", "notes", "problem", "reason", "stderr", "stdout",
    "target_name", "text", "title", "why",
})  # fmt: skip
FREE_NAMES = ("GET /api/fs/", "GET /api/tokens")  # files, and tokens: their names are free too
TIGHT = ((320, 1), (1024, 1))  # the narrowest window, and the narrowest with the list at the side
TALL = 5000  # a window in which the line and what is sticky lie over nothing
OF_COLOURS = ("color-contrast", "link-in-text-block")  # the rules that another scheme can break
COUNT = "return document.querySelectorAll('a, button, input, select, textarea, summary').length"
TEXT = f'<img src=x onerror="svcHacked=1"><b>\u202egnp.exe\n\'$(id)`"&lt;{"W" * 200}'


def _named(state: str) -> str:
    return re.sub(r"\W+", "-", state)


@pytest.fixture
def page(browser: Driver, canned: Canned) -> Iterator[Callable[..., Driver]]:
    """page(state, width=, scheme=, change=) opens a state, and waits until it is there."""

    def opened(
        state: State,
        width: int,
        scheme: str,
        change: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> Driver:
        state.prepare(canned)
        if change:
            canned.answers = change(canned.answers)
        resize(browser, width)
        prefer(browser, scheme)
        come(browser, canned, state.path, signed_in=state.signed_in)
        find(browser, state.shows)
        ask(browser, "unchanging")
        return browser

    yield opened  # the next visit leaves the page, in the same process of the browser
    looking.restore(browser)


def _open_further(driver: Driver, state: State) -> None:
    if state.script:
        driver.execute_script(state.script)
        ask(driver, "unchanging")


def _moved(driver: Driver) -> list[str]:
    amount, most = ask(driver, "moved")
    if driver.execute_script("return Boolean(document.querySelector('.banner, .notice[role=alert]'))"):
        return []  # what says that something is wrong comes above what is there
    return [f"moved while it loaded: {amount:.3f}, {most}"] if amount >= 0.01 else []


def _keep(driver: Driver, state: str, look: str) -> None:
    if ARTEFACTS:
        driver.save_screenshot(f"{ARTEFACTS}/{_named(state)}-{look}.png")


def _wider(driver: Driver, widths: Iterable[tuple[int, float]]) -> list[str]:
    faults = []
    for width, scale in widths:
        resize(driver, width, scale=scale)
        wider = ask(driver, "wider")
        faults += [f"wider than {width} px: {wider}"] if wider else []
    return faults


def _judge(faults: list[str]) -> None:
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


def _pages_of(path: str) -> list[str]:
    path = path.partition("?")[0].partition("#")[0]
    fits = {
        page.name: own
        for page in PAGES
        for own in page.paths
        if re.fullmatch(re.sub(r"<[^>]*>", "[^/]+", own), path)
    }
    nothing = [page.name for page in PAGES if not page.paths]
    return sorted(fits, key=lambda name: fits[name].count("<"))[:1] or nothing


def _first_states(of: Callable[[State], bool] = lambda _: True) -> set[str]:
    """For each page the first of its states of a kind; the very first shows it as it mostly is."""
    found: dict[str, str] = {}
    for name, state in STATES.items():
        for page in _pages_of(state.path) if of(state) else ():
            found.setdefault(page, name)
    return set(found.values())


FIRST = sorted(_first_states())
OPENED = _first_states(lambda state: bool(state.script))
TELLING = {*FIRST, *OPENED}


def _each(at_a_change: Iterable[str]) -> list[Any]:
    """All states, of which the others than these wait for a merge."""
    later = pytest.mark.depth("merge", "each screen is seen so at a change, in its first state")
    return [name if name in at_a_change else pytest.param(name, marks=later) for name in STATES]


@pytest.mark.parametrize("name", STATES)
def test_a_state(page: Callable[..., Driver], name: str) -> None:
    """One load: what it says, its names and commands, axe-core, and the widths that are tight."""
    state = STATES[name]
    driver = page(state, 1440, "light")
    faults = _moved(driver)
    _open_further(driver, state)
    _keep(driver, name, "light")
    faults += [f"no name: {node}" for node in ask(driver, "unnamed")]
    faults += [f"says: {text!r}" for text in ask(driver, "holes")]
    primaries = ask(driver, "primaries")
    faults += [f"more than one primary: {primaries}"] if len(primaries) > 1 else []
    faults += looking.faults_of_commands(driver)
    resize(driver, 1440, height=TALL)
    faults += looking.violations(driver, without=OF_COLOURS)
    faults += _wider(driver, TIGHT)
    if state.path.startswith("/new"):  # its button is at the end of a long form
        resize(driver, 1366, height=650)
        faults += [f"out of sight at 1366x650: {node}" for node in ask(driver, "primaryOutOfSight")]
        resize(driver, 1440)
    faults += [f"console: {line}" for line in complaints(driver)]
    faults += ask(driver, "unasked")
    _judge(faults)


@pytest.mark.parametrize("name", _each(FIRST))
def test_colours_and_widths(page: Callable[..., Driver], name: str) -> None:
    """The contrast in both schemes, then every width."""
    state = STATES[name]
    driver = page(state, 1440, "light")
    _open_further(driver, state)
    faults = []
    resize(driver, 1440, height=TALL)
    for scheme in ("light", "dark"):
        prefer(driver, scheme)
        ask(driver, "unchanging")
        faults += [f"{scheme}: {fault}" for fault in looking.violations(driver, only=OF_COLOURS)]
        _keep(driver, name, scheme)
    faults += _wider(driver, looking.WIDTHS)
    _judge(faults)


@pytest.mark.parametrize("name", _each(FIRST))
def test_loaded_in_a_narrow_window(page: Callable[..., Driver], name: str) -> None:
    """Nothing moves while it loads, the console is silent, and what folds is judged as well."""
    driver = page(STATES[name], 390, "dark")
    faults = _moved(driver)
    _open_further(driver, STATES[name])
    _keep(driver, name, "narrow")
    faults += [f"no name: {node}" for node in ask(driver, "unnamed")]
    resize(driver, 390, height=TALL)
    faults += looking.violations(driver)
    faults += [f"console: {line}" for line in complaints(driver)]
    _judge(faults)


@pytest.mark.parametrize("name", _each(TELLING))
def test_tab_comes_to_every_control(page: Callable[..., Driver], name: str) -> None:
    """Once to each, and each is seen to have the focus."""
    driver = page(STATES[name], 1440, "light")
    _open_further(driver, STATES[name])
    counted = -1
    while counted != (counted := driver.execute_script(COUNT)):  # uploads begin some time later
        time.sleep(1)
    _judge(looking.faults_of_focus(driver))


def _hostile(answers: Answers) -> Answers:
    changed: Answers = {}
    for request, answer in answers.items():
        keys = FREE | {"name"} if request.startswith(FREE_NAMES) else FREE
        if callable(answer):
            changed[request] = lambda answer=answer, keys=keys: looking.hostile(answer(), keys, TEXT)
        else:
            changed[request] = looking.hostile(answer, keys, TEXT)
    return changed


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", [name for name in STATES if "loading" in name])
def test_what_comes_is_where_its_bones_were(
    page: Callable[..., Driver], canned: Canned, name: str, width: int
) -> None:
    """Seen while it loads: little moves when the answers come, and nothing above what is new."""
    driver = page(STATES[name], width, "light")
    canned.release()
    until(driver, lambda: not driver.find_elements("css selector", ".skel"), "no bones")
    ask(driver, "unchanging")
    _judge(_moved(driver))


@pytest.mark.parametrize("name", _each(FIRST))
def test_hostile_texts(page: Callable[..., Driver], name: str) -> None:
    """Whatever people write where they may: it stays text, runs nothing, and widens nothing."""
    state = STATES[name]
    driver = page(state, 1440, "light", _hostile)
    _open_further(driver, state)
    faults = [f"mark-up: {node}" for node in ask(driver, "markup")]
    faults += [f"console: {line}" for line in complaints(driver)]
    faults += [fault for fault in looking.faults_of_commands(driver) if "no shell takes" in fault]
    faults += _wider(driver, [(width, 1) for width in (1440, 768, 320)])
    _keep(driver, name, "hostile")
    _judge(faults)


# Streams, what is asked for again and again while it is looked at, and one-time tickets.
AGAIN = re.compile(r"/api/(events|tickets)$|/(monitor|terminals?|log)$|/logs/stream$")
MOST_READINGS = 10


@pytest.mark.parametrize("name", FIRST)
def test_nothing_is_read_twice(page: Callable[..., Driver], canned: Canned, name: str) -> None:
    """Each path once, also when the stream of events is there: it begins before what was read."""
    state = STATES[name]
    driver = page(state, 1440, "light")
    if not state.signed_in:
        return
    until(driver, lambda: canned.streams, "the stream")
    time.sleep(0.4)
    asked = [f"{line}?{headers['QUERY']}" for line, _, headers in canned.requests if line.startswith("GET ")]
    asked = [line for line in asked if not AGAIN.search(line.partition("?")[0])]
    assert not [line for line in asked if asked.count(line) > 1]
    assert len(asked) <= MOST_READINGS, "\n".join(asked)


def test_every_page_has_a_state() -> None:
    """A screen without one would be looked at by nobody."""
    with_state = {page for state in STATES.values() for page in _pages_of(state.path)}
    built = {page.name for page in PAGES}
    assert built - with_state == WITHOUT
