"""docs/browser.md: the ways to the pages that it shows, each tried with the program that it is for."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from e2e.guides import far_browser
from e2e.installation import ROOT, Call, Service
from e2e.pages import Block, blocks
from e2e.sshd import listens
from e2e.surroundings import must
from pages.chromium import Driver, complaints, find, says, until
from ports import free_port
from stories.conftest import USER
from stories.signing_in import sign_in

PAGE = ROOT / "docs/browser.md"
# A WebSocket of a page: the first bytes of a new shell.
SHELL = """
const done = arguments[0];
const headers = { 'X-Svc-Session': localStorage.getItem('svc.session'), 'Content-Type': 'application/json' };
const address = '/api/workspaces/first/terminal';
fetch(`${address}s`, { method: 'POST', headers, body: JSON.stringify({ cols: 80, rows: 24 }) })
  .then(answer => answer.json()).then(({ id, ticket }) => {
    const url = `wss://${location.host}${address}?id=${id}&ticket=${ticket}`;
    const socket = new WebSocket(url, 'svc-terminal.1');
    socket.binaryType = 'arraybuffer';
    let text = '';
    socket.onopen = () => socket.send(new TextEncoder().encode('echo $((6 * 7)) herons\\r'));
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') return;
      text += new TextDecoder().decode(data);
      if (text.includes('42 herons')) { socket.close(); done(text); }
    };
    socket.onclose = ({ code }) => done(`closed: ${code}`);
  }, error => done(String(error)));
"""
# How soon the first bytes of the stream of events come, if nothing holds them back.
FIRST_OF_STREAM = """
const done = arguments[0];
const headers = { 'X-Svc-Session': localStorage.getItem('svc.session'), 'X-Svc-Background': '1' };
fetch('/api/events', { headers }).then(answer => answer.body.getReader().read())
  .then(({ value }) => done(new TextDecoder().decode(value)), error => done(String(error)));
"""

Way = Callable[[], AbstractContextManager[str]]


def shown(kind: str, holds: str) -> Block:
    """The block of the page of this language that has these words."""
    (found,) = [block for block in blocks(PAGE) if block.kind == kind and holds in block.text]
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that the programs' own users may enter."""
    made = Path(tempfile.mkdtemp(prefix="svc-ways-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def own(service: Service, certificate: tuple[Path, Path], folder: Path) -> Callable[[str, int], str]:
    """own(text, port) puts this host's names and files into an example of the page."""
    pair = folder / "svc.pem"
    pair.write_bytes(b"".join(path.read_bytes() for path in certificate))
    trusted = Path(service.env["SVC_STATE_DIR"]) / "data/tls/cert.pem"

    def filled(text: str, port: int) -> str:
        for example, real in {
            "/etc/ssl/svc.example.org.pem": str(pair),
            "/etc/ssl/svc-service.pem": str(trusted),
            "svc.example.org": "localhost",
            "127.0.0.1:24680": f"127.0.0.1:{service.env['SVC_PORT']}",
            "listen 443": f"listen 127.0.0.1:{port}",
            "bind :443": f"bind 127.0.0.1:{port}",
        }.items():
            text = text.replace(example, real)
        return text

    return filled


@contextmanager
def started(*argv: str, port: int) -> Iterator[str]:
    """A program that listens on a port, ended afterwards."""
    process = subprocess.Popen(argv)
    try:
        until_listens(process, port)
        yield f"https://localhost:{port}"
    finally:
        process.terminate()
        process.wait(30)


def until_listens(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait for the port; AssertionError when the program has ended instead."""
    from waiting import until as until_

    def there() -> bool:
        assert process.poll() is None, f"it ended with {process.returncode}"
        return listens(port)

    until_(there, 30)


@pytest.fixture
def nginx(own: Callable[[str, int], str], folder: Path) -> Way:
    """nginx with the page's configuration."""

    @contextmanager
    def way() -> Iterator[str]:
        port = free_port()
        text = own(shown("nginx", "proxy_pass").text, port)
        paths = "".join(
            f"{name}_temp_path {folder}/{name};\n"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        file = folder / "nginx.conf"
        file.write_text(f"pid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{text}}}\n")
        options = ("-e", "stderr", "-c", str(file), "-g", "daemon off;")
        with started("/usr/sbin/nginx", *options, port=port) as url:
            yield url

    return way


def haproxy(own: Callable[[str, int], str], folder: Path, holds: str) -> Way:
    """HAProxy with one of the page's configurations."""

    @contextmanager
    def way() -> Iterator[str]:
        port = free_port()
        file = folder / "haproxy.cfg"
        file.write_text(own(shown("haproxy", holds).text, port))
        with started("/usr/sbin/haproxy", "-db", "-f", str(file), port=port) as url:
            yield url

    return way


@pytest.fixture
def way(request: pytest.FixtureRequest, own: Callable[[str, int], str], folder: Path) -> Way:
    """The way of this name; skipped where its program is not installed."""
    program = request.param.split()[0]
    if not os.path.exists(f"/usr/sbin/{program}"):
        pytest.skip(f"{program} is not installed")
    if program == "nginx":
        made: Way = request.getfixturevalue("nginx")
        return made
    return haproxy(own, folder, "mode tcp" if request.param.endswith("tcp") else "mode http")


def works(driver: Driver, origin: str, svc: Call) -> None:
    """Sign in; what happens on the host is seen at once; a shell answers; nothing is complained of."""
    driver.set_window_size(1440, 900)
    sign_in(driver, origin)
    says(driver, "Running", "tbody")
    assert driver.execute_async_script(FIRST_OF_STREAM).startswith((":", "id", "event", "retry"))
    must(svc("ws", "start", "second"))
    until(driver, lambda: find(driver, "tbody").text.count("Running") == 2, "what the host did")
    assert "42 herons" in driver.execute_async_script(SHELL)
    must(svc("ws", "stop", "second"))
    until(driver, lambda: find(driver, "tbody").text.count("Running") == 1, "what the host did")
    assert not complaints(driver)
    driver.get("about:blank")


@pytest.mark.parametrize("way", ["nginx", "haproxy http", "haproxy tcp"], indirect=True)
@pytest.mark.usefixtures("workspaces")
def test_behind_a_proxy(browser: Driver, svc: Call, way: Way) -> None:
    """The page's own configuration, word for word but for names and files."""
    with way() as origin:
        works(browser, origin, svc)


@pytest.mark.usefixtures("workspaces")
def test_by_ssh_alone(browser: Driver, svc: Call, service: Service) -> None:
    """Nothing is open but sshd: the line of the page, typed on another computer."""
    line = shown("sh", "ssh -N -L").text.strip()
    typed = line.replace("127.0.0.1:24680", "127.0.0.1:PORT")
    with far_browser.through_ssh(typed, USER, f"http://127.0.0.1:{service.env['SVC_PORT']}") as here:
        port = int(here.rpartition(":")[2])
        until(browser, lambda: listens(port), "ssh")
        works(browser, f"https://localhost:{port}", svc)


def test_the_commands_of_an_administrator(service: Service, env: dict[str, str]) -> None:
    """What docs/browser.md has an administrator type, but for sudo: "browser.md"."""
    from e2e.installation import run

    for block in blocks(PAGE):
        if block.kind != "sh" or "ssh -N" in block.text:
            continue
        for command in block.text.replace("NAME", USER).splitlines():
            words = command.removeprefix("sudo svc ").split()
            stdin = "seven quiet herons over mud\n" if "set-password" in words else ""
            must(run("root", *words, env=env, stdin=stdin))
