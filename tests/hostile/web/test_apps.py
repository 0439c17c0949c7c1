"""Apps in the browser: programs that would like more than their visitors' requests, and what has ended."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from e2e.installation import SVC, Call, Service, app_uids, run
from e2e.surroundings import must
from e2e.workspaces.browsing import Browser
from hostile.conftest import SECRET
from waiting import until

# What a program gets of a request, and one that never ends.
ENVIRONMENT = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'; env | grep ^HTTP_ | sort\n"
ENDLESS = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'; while echo more; do sleep 0.1; done\n"
PROGRAM = f"""
mkdir -p /tmp/www/cgi-bin && cd /tmp/www/cgi-bin
cat >env <<'END'
{ENVIRONMENT}END
cat >endless <<'END'
{ENDLESS}END
chmod 755 env endless
httpd -p 127.0.0.1:8000 -h /tmp/www
"""
SPELLINGS = (
    "__Host-svc-app={}",
    "__HOST-SVC-APP={}",
    " __Host-svc-app={}",
    '"__Host-svc-app"={}',
    "a=1; __Host-svc-app={}",
    "__Host-svc-app={}; __Host-svc-app={}",
    "__Host-svc={}",
    "__Secure-svc-x={}",
    "$Version=1; __Host-svc-app={}; $Path=/",
    "a=1;__Host-svc-app={};b=2",
    "=__Host-svc-app={}",
    "__Host-svc-app",
)
Enter = Callable[[], Browser]


@pytest.fixture(scope="module")
def app(service: Service, alices: str) -> Iterator[str]:
    """Alice's port `page`, behind which a program tells what it gets; the workspace."""

    def alice(*argv: str) -> None:
        must(run("tsz-alice", *argv, env=service.env))

    alice("ws", "exec", alices, "--", "sh", "-c", PROGRAM)
    alice("ws", "port", "add", alices, "page", "--container-port", "8000")
    yield alices
    alice("ws", "port", "remove", alices, "page")


@pytest.fixture
def enter(alice: Call, app: str) -> Enter:
    """enter() is a browser that is signed in to it."""

    def signed_in() -> Browser:
        link = must(alice("ws", "open", app, "page", "--link", "--path", "/cgi-bin/env")).out.strip()
        browser = Browser(link)
        assert b"HTTP_SVC_USER=tsz-alice" in browser.follow(link).body
        return browser

    return signed_in


def test_the_program_reads_no_cookie_of_the_services(enter: Enter) -> None:
    browser = enter()
    seen = 0
    for form in SPELLINGS:
        page = browser.ask("GET", "/cgi-bin/env", Cookie=form.replace("{}", browser.cookie))
        assert browser.cookie.encode() not in page.body, form
        assert b"__host-svc" not in page.body.lower(), form
        seen += page.status == 200
    assert seen, "some of them are the browser's own spelling"


def test_the_program_is_told_nothing_false(enter: Enter) -> None:
    page = enter().ask(
        "GET", "/cgi-bin/env", **{
            "Svc-User": "root", "X-Forwarded-For": "192.0.2.1", "X-Real-IP": "192.0.2.1",
            "X-Svc-Session": "a secret", "X_Forwarded_Host": "evil.example", "Forwarded": "for=192.0.2.1",
        },
    )  # fmt: skip
    said = page.body.decode().splitlines()
    assert "HTTP_SVC_USER=tsz-alice" in said
    assert "HTTP_X_FORWARDED_FOR=127.0.0.1" in said
    assert not [line for line in said if "192.0.2.1" in line or "secret" in line or "evil" in line]
    assert "HTTP_HOST=127.0.0.1:8000" in said


def test_neighbours_get_nothing(enter: Enter, mallory: Call) -> None:
    """A page of another app, which is of the same site: the browser sends the cookie along."""
    browser = enter()
    other = "http://evil-aaaaaaaa.localhost:24681"
    for headers in (
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Origin": other},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": None, "Origin": other},
        {"Sec-Fetch-Site": None, "Origin": "null"},
    ):
        assert browser.ask("GET", "/cgi-bin/env", **headers).code == "app_cross_origin", headers
    form = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert browser.ask("POST", "/cgi-bin/env", "a=1", Origin=other, **form).status == 403
    assert browser.ask("GET", "/cgi-bin/env", **form).status == 200, "a link of a neighbour's page"


@pytest.mark.parametrize("how", ["left", "disabled", "port removed", "password"])
def test_what_has_ended_ends_what_is_open(enter: Enter, alice: Call, svc: Call, app: str, how: str) -> None:
    browser = enter()
    if how == "port removed":
        must(alice("ws", "port", "add", app, "short", "--container-port", "8000"))
        link = must(alice("ws", "open", app, "short", "--link", "--path", "/cgi-bin/env")).out.strip()
        browser = Browser(link)
        assert browser.follow(link).status == 200
    with socket.create_connection(("127.0.0.1", int(browser.port or 0)), timeout=30) as client:
        head = f"Host: {browser.host}\r\nCookie: __Host-svc-app={browser.cookie}\r\n\r\n"
        client.sendall(f"GET /cgi-bin/endless HTTP/1.1\r\n{head}".encode())
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
        client.recv(100)
        if how == "left":
            assert browser.ask("POST", "/.svc/leave").status == 204
        elif how == "disabled":
            must(svc("root", "admin", "edit-user", "tsz-alice", "--disable"))
        elif how == "password":
            must(svc("root", "admin", "set-password", "tsz-alice", stdin=f"{SECRET}\n"))
        else:
            must(alice("ws", "port", "remove", app, "short"))
        began = time.monotonic()
        while client.recv(1 << 16):
            assert time.monotonic() < began + 5
        took = time.monotonic() - began
    if how == "disabled":
        must(svc("root", "admin", "edit-user", "tsz-alice", "--enable"))
    assert took < 1.5, "within a second, and what the machine is behind"


def test_the_process_between_opens_nothing(service: Service) -> None:
    """As its uid and its group: neither the database, nor a key, nor root's files, nor the other roles."""
    account = pwd.getpwnam("svc-apps")
    data = os.path.dirname(service.env["SVC_DB"])
    tried = """
import os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDONLY))
        print(path)
    except OSError:
        pass
"""
    others = [str(one.pid) for one in service.members() if one.uid != account.pw_uid]
    paths = [
        *(os.path.join(data, name) for name in os.listdir(data)), data, f"{data}/tls/key.pem",
        *(f"/proc/{pid}/{name}" for pid in others for name in ("environ", "mem", "fd", "maps")),
    ]  # fmt: skip
    done = subprocess.run(
        [str(SVC.parent / "python3"), "-I", "-c", tried, *paths],
        user=account.pw_uid, group=account.pw_gid, extra_groups=[], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == ""
    assert account.pw_gid not in {pwd.getpwuid(uid).pw_gid for uid in app_uids().values()} - {account.pw_gid}


def test_what_it_holds(service: Service) -> None:
    """Listeners, the pair, netlink, the loop, the heartbeat and the pipe of its parent; no file."""
    until(lambda: len(held(service)) <= 8, 20, 0.2)
    kinds = sorted(kind.partition(":")[0] for kind in held(service).values())
    assert kinds == ["anon_inode", "anon_inode", "pipe", "socket", "socket", "socket", "socket"], held(
        service
    )


def held(service: Service) -> dict[str, str]:
    """The descriptors of the process, but for the standard ones."""
    folder = f"/proc/{service.named('svc-apps').pid}/fd"
    found = {}
    for name in os.listdir(folder):
        if int(name) > 2:
            found[name] = os.readlink(f"{folder}/{name}")
    return found
