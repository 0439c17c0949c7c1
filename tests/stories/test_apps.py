"""Apps in Chromium: a one-time link and a click; and what an app's page does to the service: nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from e2e.installation import Call
from e2e.surroundings import must
from pages.chromium import Driver, complaints, find, press, says, until
from stories.conftest import USER
from stories.signing_in import sign_in

# What a program may serve: it tries what a page can, with the visitor's session of the service beside it.
ATTACK = """
const service = 'https://localhost:PORT';
const body = '{"name": "evil", "template": "base"}';
const outcomes = {};
const settle = (name, promise) => promise.then(
  answer => { outcomes[name] = answer; }, error => { outcomes[name] = `refused: ${error.name || error}`; });
const within = new Promise(done => setTimeout(done, 4000));
const add = (kind, facts) => document.body.appendChild(Object.assign(document.createElement(kind), facts));
const call = (path, options) => fetch(service + path, { credentials: 'include', ...options });
const form = path => new Promise(done => {
  const target = add('iframe', { name: 'target' });
  const facts = { method: 'post', action: service + path, target: target.name, enctype: 'text/plain' };
  const sent = add('form', facts);
  const field = { name: body.slice(0, -1) + ', "x', value: '": 1}' };
  sent.appendChild(Object.assign(document.createElement('input'), field));
  sent.submit();
  setTimeout(done, 1500, 'sent');
});
const socket = path => new Promise((done, refuse) => {
  const opened = new WebSocket(`wss://localhost:PORT${path}`, 'svc-terminal.1');
  opened.onopen = () => done('open');
  opened.onclose = () => refuse('closed');
});
const frame = () => new Promise(done => {
  const shown = add('iframe', { src: `${service}/workspaces` });
  shown.onload = () => {
    try { done(shown.contentDocument ? 'read' : 'not read'); } catch { done('not read'); }
  };
});
async function attack() {
  await Promise.race([within, Promise.all([
    settle('read', call('/api/users/me').then(answer => answer.text())),
    settle('written', call('/api/workspaces', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body })),
    settle('blind', call('/api/workspaces', { method: 'POST', mode: 'no-cors', body })),
    settle('deleted', call('/api/workspaces/first', { method: 'DELETE' })),
    settle('form', form('/api/workspaces')),
    settle('socket', socket('/api/workspaces/first/terminal')),
    settle('frame', frame()),
  ])]);
  outcomes.cookies = document.cookie;
  document.cookie = '__Host-svc=evil; Path=/; Secure';
  document.cookie = '__Host-svc-app=evil; Path=/; Secure';
  document.cookie = 'tossed=evil; Domain=localhost; Path=/';
  document.body.dataset.outcomes = JSON.stringify(outcomes);
}
attack();
"""
PROGRAM = """
mkdir -p /tmp/www && cd /tmp/www
echo '<!doctype html><title>app</title><body><h1>herons</h1>' >index.html
echo '<!doctype html><title>app</title><body><script src="attack.js"></script>' >attack.html
cat >attack.js <<'END'
SCRIPT
END
httpd -p 127.0.0.1:8000 -h /tmp/www
"""


@pytest.fixture
def app(svc: Call, workspaces: list[str], origin: str) -> Iterator[str]:
    """The address of the port `page` of the workspace `first`."""
    program = PROGRAM.replace("SCRIPT", ATTACK.replace("PORT", origin.rpartition(":")[2]))
    must(svc("ws", "exec", "first", "--", "sh", "-c", program))
    must(svc("ws", "port", "add", "first", "page", "--container-port", "8000"))
    yield must(svc("ws", "open", "first", "page")).out.strip()
    svc("ws", "port", "remove", "first", "page")


def link(svc: Call, path: str = "/") -> str:
    """A new link to it."""
    return must(svc("ws", "open", "first", "page", "--link", "--path", path)).out.strip()


def enter(driver: Driver, svc: Call, app: str, path: str = "/") -> None:
    """Follow a link, and click."""
    driver.get(link(svc, path))
    says(driver, f"page of the workspace first, as {USER}")
    press(driver, "button")
    until(driver, lambda: driver.current_url == app.rstrip("/") + path, "the app")


def test_a_link_and_a_click(browser: Driver, svc: Call, app: str) -> None:
    browser.set_window_size(1280, 800)
    complaints(browser)
    first = link(svc)
    browser.get(first)
    says(browser, f"page of the workspace first, as {USER}")
    assert browser.current_url == f"{app}.svc/enter", "the secret is out of the address"
    assert browser.switch_to.active_element.text == "Open"
    press(browser, "button")
    says(browser, "herons", "h1")
    assert browser.current_url == app
    browser.refresh()
    says(browser, "herons", "h1")
    assert complaints(browser) == []
    browser.get(f"{app}.svc/enter")
    says(browser, "This address has no link in it.")
    browser.get(first)
    says(browser, "The link was used before")
    assert find(browser, "code").text.startswith("svc ws open ws-")
    browser.get(app)
    browser.delete_all_cookies()
    browser.refresh()
    says(browser, "Sign in to this app", "h1")


def test_an_apps_page_does_nothing_to_the_service(browser: Driver, svc: Call, app: str, origin: str) -> None:
    """With the visitor signed in to the service in the same browser."""
    sign_in(browser, origin)
    enter(browser, svc, app, "/attack.html")
    text = until(browser, lambda: find(browser, "body").get_attribute("data-outcomes"), "the attack's end")
    outcomes = json.loads(text)
    assert {name: outcomes[name] for name in ("read", "written", "deleted", "socket")} == {
        "read": "refused: TypeError",
        "written": "refused: TypeError",
        "deleted": "refused: TypeError",
        "socket": "refused: closed",
    }
    assert outcomes.get("frame") != "read"
    assert outcomes["cookies"] == ""
    names = [record["name"] for record in must(svc("ws", "list", "--json")).json()["items"]]
    assert sorted(names) == ["first", "second"]
    browser.get(f"{origin}/workspaces")
    says(browser, "first")
    browser.get(app)
    says(browser, "herons", "h1")  # nor has it lost its own visitor
