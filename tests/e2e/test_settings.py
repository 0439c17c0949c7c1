"""A settings file with faults: each command needs only the settings that it uses."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.installation import SVC, Outcome, Service, command
from e2e.surroundings import must

FILE = "/etc/svc/svc.env"
# In a mount namespace of its own the command finds the test's directory at /etc/svc.
ROOT = 'mount --bind "$FOLDER" /etc/svc && exec "$0" "$@"'
USER = (
    'mount --bind "$FOLDER" /etc/svc && exec setpriv --reuid "$NAME" --regid "$NAME" --init-groups "$0" "$@"'
)
GOOD = b"SVC_HOST=127.0.0.1\n"
FAULTY = b"""\
# of the caf\xe9
SVC_PORT=http
SVC_WEBTHREADS=8
SVC_PORT_RANGE 20000-21000
just words
SVC_LOG_LEVEL=\xff
SVC_BACKUP_DIR=backups
"""
NAMED = {
    2: "SVC_PORT from line 2 of /etc/svc/svc.env must be a port number from 1 to 65535",
    4: "SVC_PORT_RANGE on line 4 of /etc/svc/svc.env has no =",
    5: "line 5 of /etc/svc/svc.env has no =",
    6: "SVC_LOG_LEVEL on line 6 of /etc/svc/svc.env is not UTF-8 text",
    7: "SVC_BACKUP_DIR from line 7 of /etc/svc/svc.env must be an absolute path",
}
UNKNOWN = "SVC_WEBTHREADS on line 3 of /etc/svc/svc.env is no setting of svc; did you mean SVC_WEB_THREADS?"

Configured = Callable[..., Outcome]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """What the commands find at /etc/svc."""
    above = Path("/etc/svc")
    was_there = above.exists()
    above.mkdir(exist_ok=True)
    folder = Path("/run/svc-e2e-settings")
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)
    if not was_there:
        above.rmdir()


@pytest.fixture
def configured(service: Service, folder: Path) -> Configured:
    """configured(content, user, *argv): with this settings file, and of the environment the paths alone."""
    paths = {"PATH", "LANG", "SVC_DB", "SVC_STATE_DIR", "SVC_SOCKET"}

    def call(content: bytes, user: str, *argv: str, mode: int = 0o644, **more: str | None) -> Outcome:
        file = folder / "svc.env"
        file.write_bytes(content)
        file.chmod(mode)
        env = {name: text for name, text in service.env.items() if name in paths} | {"FOLDER": str(folder)}
        env |= {"NAME": user} | {name: text for name, text in more.items() if text}
        for name in [name for name, text in more.items() if text is None]:
            del env[name]
        script = ROOT if user == "root" else USER
        return command("root", "unshare", "--mount", "sh", "-c", script, str(SVC), *argv, env=env)

    return call


def test_a_bad_line_stops_only_what_needs_it(configured: Configured, service: Service) -> None:
    """ "`svc env [--all]`: prints the resolved environment-variable settings for this host", and faults."""
    warnings = [f"svc: warning: {text}" for text in (*NAMED.values(), UNKNOWN)]
    for argv in (["whoami"], ["ws", "list"], ["fs", "roots"]):
        said = configured(FAULTY, "tse-alice", *argv)
        assert (said.code, said.err) == (0, ""), said
    said = must(configured(FAULTY, "root", "admin", "db-path"))
    assert (said.out, said.err.splitlines()) == (service.env["SVC_DB"] + "\n", warnings)
    assert "tse-alice" in must(configured(FAULTY, "root", "admin", "list-users")).out

    said = configured(FAULTY, "tse-alice", "env")
    assert (said.code, "SVC_PORT\thttp\t/etc/svc/svc.env\n" in said.out) == (1, True)
    lines = said.err.splitlines()
    assert lines[:2] == [f"svc: warning: {UNKNOWN}", "svc: 5 settings are not valid"]
    assert [line.replace(": ", " ", 1).strip() for line in lines[2:-1]] == list(NAMED.values())
    assert lines[-1] == f"hint: sudo editor +2 {FILE}"

    found = configured(FAULTY, "root", "admin", "doctor", "--json")
    items = {item["found"]: item for item in found.json()["items"]}
    assert found.err == ""
    for number, text in NAMED.items():
        assert items[text] == {
            "code": "settings", "level": "fail", "found": text, "remedy": f"sudo editor +{number} {FILE}"
        }  # fmt: skip
    assert items[UNKNOWN]["code"] == "unknown_settings"
    assert {"database", "audit_chain", "server"} <= {item["code"] for item in items.values()}


def test_the_server_refuses_what_it_needs(configured: Configured) -> None:
    """It names the line and the way out; what only other commands use does not stop it."""
    refused = configured(FAULTY, "root", "server")
    lines = refused.err.splitlines()
    assert (refused.code, lines[0], lines[-1]) == (
        os.EX_CONFIG,
        "svc: 3 settings are not valid",
        f"hint: sudo editor +2 {FILE}",
    )
    assert [line.replace(": ", " ", 1).strip() for line in lines[1:-1]] == [NAMED[2], NAMED[4], NAMED[6]]
    one = configured(b"\nSVC_PORT=0\nSVC_BACKUP_DIR=backups\n", "root", "server")
    assert (one.code, one.err.splitlines()) == (
        os.EX_CONFIG,
        [f"svc: {NAMED[2]}", f"hint: sudo editor +2 {FILE}"],
    )
    # as systemd hands it on
    same = configured(b"\nSVC_PORT=0\n", "root", "server", SVC_PORT="0")
    assert same.err == one.err
    said = configured(GOOD, "root", "server", SVC_PORT="http")
    assert said.err.splitlines()[-1] == "hint: unset SVC_PORT"
    assert must(configured(GOOD, "tse-alice", "ws", "list", SVC_PORT="http", SVC_LOG_LEVEL="x")).err == ""
    said = must(configured(GOOD, "root", "admin", "list-users", SVC_STATE_DIR="here"))
    assert "SVC_STATE_DIR from environment must be an absolute path" in said.err


def test_a_file_that_cannot_be_used(configured: Configured) -> None:
    for mode in (0o600, 0o666):
        assert must(configured(GOOD, "tse-alice", "ws", "list", mode=mode)).err == ""
    assert "is not readable for you" in must(configured(GOOD, "tse-alice", "env", mode=0o600)).err
    unsafe = f"{FILE} is writable by users other than root"
    assert configured(GOOD, "tse-alice", "env", mode=0o666).err.splitlines()[0] == f"svc: {unsafe}"
    said = must(configured(GOOD, "root", "admin", "db-path", mode=0o666))
    assert said.err == f"svc: warning: {unsafe}\n"
    said = configured(GOOD, "root", "admin", "db-path", mode=0o666, SVC_DB=None)
    assert said.err.splitlines() == [f"svc: {unsafe}", "hint: sudo svc admin doctor --repair"]
    found = configured(GOOD, "root", "admin", "doctor", "--json", mode=0o666, SVC_DB=None)
    items = found.json()["items"]
    assert (found.code, items[0]["code"], items[0]["remedy"]) == (
        1,
        "settings_file",
        "sudo svc admin doctor --repair",
    )
    assert "podman" in {item["code"] for item in items}
