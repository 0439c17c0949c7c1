"""The command line against malicious servers, and root's commands against traps of other users."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.installation import APP_ACCOUNTS, SVC, Call, Outcome, Service, command, processes, run
from hostile.conftest import SECRET, STATE

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory accessible to everybody."""
    created = Path(tempfile.mkdtemp(prefix="tsz-", dir="/tmp"))
    created.chmod(0o755)
    yield created
    shutil.rmtree(created)


@pytest.fixture
def liar(place: Path) -> Iterator[Callable[[bytes], Path]]:
    """liar(answer) -> the path of a root-owned socket whose server sends that answer."""
    path = place / "svc.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    os.chmod(path, 0o666)
    listener.listen()
    answers: list[bytes] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as sock, contextlib.suppress(OSError):
                    sock.recv(65536)
                    sock.sendall(answers[-1])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()

    def say(data: bytes) -> Path:
        answers.append(data)
        return path

    yield say
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


def http(body: bytes, *fields: str, status: str = "200 OK") -> bytes:
    """An HTTP answer."""
    return (
        "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", ""]).encode() + body
    )


ESC = "\\u001b]0;owned\\u0007\\u001b[2J\\u202e\\u009b31m"
ANSWERS = {
    "escapes in records": http(
        b'{"items":[{"id":"ws-1","name":"%s","status":"%s","image":{"ref":"%s"}}],"total":1}'
        % ((ESC.encode(),) * 3)
    ),
    "escapes in an error": http(
        b'{"error":{"code":"not_found","message":"%s","hint":"%s","fields":[{"field":"%s","message":"%s"}]}}'
        % ((ESC.encode(),) * 4),
        status="404 Not Found",
    ),
    "raw escapes": http(b"\x1b]0;owned\x07\x1b[2J"),
    "raw escapes in the head": b"HTTP/1.1 200 \x1b[2J\r\nX: \x1b[2J\r\n\r\n{}",
    "no HTTP": b"\x1b[2J" * 1000,
    "nothing": b"",
    "a great length": b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999999999\r\n\r\n{}",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
    "a great chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n{}",
    "head without end": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000,
    "a body without end": b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 40_000_000,
    "depth": http(b"[" * 1_000_000),
    "digits": http(b'{"items":[],"total":' + b"9" * 100_000 + b"}"),
    "wrong types": http(b'{"items":{"a":1},"total":"x","next_offset":[]}'),
    "wrong records": http(b'{"items":[null,7,[],{"name":{"a":[]}}],"total":4}'),
    "a page that follows itself": http(b'{"items":[{"name":"a"}],"total":9,"next_offset":0}'),
    "not UTF-8": http(b'{"items":[{"name":"\xff\xfe"}]}'),
    "a lone surrogate": http(b'{"items":[{"name":"\\ud800"}],"total":1}'),
}  # fmt: skip


@pytest.mark.parametrize("what", ANSWERS)
def test_whatever_a_server_answers(service: Service, liar: Callable[[bytes], Path], what: str) -> None:
    env = service.env | {"SVC_SOCKET": str(liar(ANSWERS[what]))}
    for arguments in (("ws", "list"), ("whoami",), ("ws", "list", "--json")):
        said = run("tsz-alice", *arguments, env=env, timeout=30)
        assert said.code in (0, 1), said
        assert "cannot connect" not in said.err, said.err
        assert "Traceback" not in said.err
        assert not CONTROL.search(said.err.replace("\n", "")), ascii(said.err)
        if "--json" not in arguments:
            assert not CONTROL.search(said.out.replace("\n", "").replace("\t", "")), ascii(said.out)


def test_a_socket_of_somebody_else_is_not_asked(service: Service, place: Path) -> None:
    account = pwd.getpwnam("tsz-mallory")
    os.chmod(place, 0o777)
    path = place / "planted.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        os.seteuid(account.pw_uid)
        try:
            listener.bind(str(path))
            listener.listen()
        finally:
            os.seteuid(0)
        os.chmod(path, 0o666)
        link = place / "link.sock"
        link.symlink_to(service.env["SVC_SOCKET"])
        for planted in (path, link, place, "/dev/null", "/etc/passwd", "/nonexistent"):
            for user in ("tsz-alice", "root"):
                said = run(user, "whoami", env=service.env | {"SVC_SOCKET": str(planted)}, timeout=20)
                assert said.code == 1, (planted, said)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


REMOTE = [
    ("--server", "http://x", "ws", "list"), ("ws", "list", "--token", "svc_pat_x"),
    ("api", "GET", "http://x/api"), ("api", "GET", "../x"),
    ("api", "GET", "//x/api"), ("api", "GET", "/api/x\r\nX: y"),
    ("api", "GET", "/api/\n"), ("api", "GET", "/api/ x"),
    ("api", "GE T", "/api/x"), ("api", "GET\r\n", "/api/x"),
    ("ws", "exec", "a", "--timeout", "nan", "--", "id"),
    ("ws", "exec", "a", "--timeout", "0", "--", "id"), ("ws", "exec", "a", "--timeout", "601", "--", "id"),
]  # fmt: skip


@pytest.mark.parametrize("arguments", REMOTE)
def test_wrong_usage_is_exit_2(service: Service, arguments: tuple[str, ...]) -> None:
    said = run("tsz-alice", *arguments, env=service.env)
    assert said.code == 2, said


@pytest.mark.parametrize(
    "name", ["../templates", "a/../b", "%2e%2e", "a?b=c", "a#b", "a b", "-x", "é", "..", "."]
)
def test_a_name_stays_one_segment(service: Service, name: str) -> None:
    said = run("tsz-alice", "api", "GET", "/api/health", env=service.env)
    assert said.code == 0
    printed = run("tsz-alice", "ws", "start", "--", name, env=service.env)
    assert printed.code in (1, 2), printed
    assert "Traceback" not in printed.err


TRAP = "import os\nopen('{mark}', 'a').write(str(os.getuid()))\n"


@pytest.fixture
def trapped(place: Path) -> Iterator[tuple[dict[str, str], Path, Path]]:
    """An environment and directory full of traps; the file that a triggered one writes, and the directory."""
    os.chmod(place, 0o777)
    mark, traps = place / "mark", place / "traps"
    traps.mkdir(mode=0o777)
    for name in (
        "sitecustomize",
        "usercustomize",
        "svc",
        "svc_helper",
        "json",
        "socket",
        "argparse",
        "peewee",
        "startup",
    ):
        (traps / f"{name}.py").write_text(TRAP.format(mark=mark))
    for name in ("python3", "sh", "setpriv", "podman", "useradd", "loginctl", "busctl", "env"):
        (traps / name).write_text(f"#!/bin/sh\necho sprung >>{mark}\n")
        (traps / name).chmod(0o755)
    site = traps / f".local/lib/{Path(os.path.realpath('/usr/bin/python3')).name}/site-packages"
    site.mkdir(parents=True)
    (site / "usercustomize.py").write_text(TRAP.format(mark=mark))
    (site / "evil.pth").write_text(f"import os; open({str(mark)!r}, 'a')\n")
    env = {
        "PYTHONPATH": str(traps), "PYTHONSTARTUP": str(traps / "startup.py"), "PYTHONHOME": str(traps),
        "PYTHONUSERBASE": str(traps / ".local"), "HOME": str(traps),
        "PATH": f"{traps}:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONINSPECT": "1", "PYTHONWARNINGS": "error", "PYTHONBREAKPOINT": "svc.trap",
        "LD_LIBRARY_PATH": str(traps),
    }  # fmt: skip
    yield env, mark, traps


def as_root(argv: list[str], env: dict[str, str], cwd: Path) -> Outcome:
    """Run a command as root in that environment and directory."""
    done = subprocess.run(
        argv, env=env, cwd=cwd, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_no_trap_of_the_environment_springs(
    service: Service, trapped: tuple[dict[str, str], Path, Path]
) -> None:
    env, mark, traps = trapped
    for arguments in (
        ("admin", "list-users"),
        ("admin", "doctor"),
        ("whoami",),
        ("ws", "list"),
        ("env",),
        ("--version",),
    ):
        as_root([str(SVC), *arguments], service.env | env, traps)
    assert not mark.exists(), mark.read_text()


def test_the_children_of_root_are_isolated(service: Service) -> None:
    for one in service.members():
        if "python" in one.args and one.pid != service.pid:
            assert " -I" in one.args or " -IS" in one.args, one.args
    with open(f"/proc/{service.member('svc_helper').pid}/environ", "rb") as file:
        names = {pair.partition(b"=")[0] for pair in file.read().split(b"\0") if pair}
    assert names <= {b"PATH", b"LANG", b"LC_CTYPE"}


def test_a_planted_database_is_not_opened(service: Service, place: Path) -> None:
    os.chmod(place, 0o777)
    planted = place / "svc.db"
    account = pwd.getpwnam("tsz-mallory")
    bare = {name: value for name, value in service.env.items() if name != "SVC_DB"}
    for make in ("file", "link", "fifo", "directory"):
        if make == "file":
            sqlite3.connect(planted).close()
            os.chown(planted, account.pw_uid, account.pw_gid)
        elif make == "link":
            planted.symlink_to("/etc/passwd")
        elif make == "fifo":
            os.mkfifo(planted)
        else:
            planted.mkdir()
        for arguments in (
            ("admin", "migrate"),
            ("admin", "list-users"),
            ("admin", "doctor"),
            ("server", "--port", "1"),
        ):
            if arguments[0] == "server" and make == "file" and os.path.exists("/etc/svc/svc.env"):
                continue
            said = as_root([str(SVC), *arguments], bare, place)
            assert said.code != 0 or os.path.exists("/etc/svc/svc.env"), (make, arguments, said)
        planted.rmdir() if make == "directory" else planted.unlink()
        assert os.listdir(place) == []


@pytest.mark.parametrize("path", ["/etc/passwd", "/dev/null", "/proc/self/mem", "/", "/root/../etc/shadow"])
def test_a_database_that_is_none(service: Service, path: str) -> None:
    before = Path("/etc/passwd").read_bytes()
    for arguments in (("admin", "migrate"), ("admin", "list-users")):
        said = run("root", *arguments, env=service.env | {"SVC_DB": path})
        assert said.code == 1, said
        assert "Traceback" not in said.err
    assert Path("/etc/passwd").read_bytes() == before
    left_files = ("-wal", "-shm", ".lock")
    assert not [mark for mark in left_files if os.path.exists(f"/etc/passwd{mark}")]


def test_files_are_closed_to_others(service: Service) -> None:
    for path, mode in (
        (STATE / "data", 0o770),
        (STATE / "data/svc.db", 0o660),
        (STATE / "data/secret.key", 0o640),
    ):
        if path.exists():
            assert path.stat().st_mode & 0o777 & ~mode == 0, path
    for name in ("enrolled", "registries.json", "registries.conf"):
        status = (STATE / name).stat()
        assert (status.st_uid, status.st_mode & 0o022) == (0, 0), name
    for user in ("tsz-alice", *APP_ACCOUNTS):
        account = pwd.getpwnam(user)
        denied = subprocess.run(
            ["sh", "-c", f"echo x >>{STATE}/enrolled || echo x >>{STATE}/new || mv {STATE}/data {STATE}/old"],
            user=account.pw_uid, group=account.pw_gid, extra_groups=[], capture_output=True, cwd="/",
        )  # fmt: skip
        assert denied.returncode != 0


def test_no_secret_is_anywhere(service: Service, alice: Call) -> None:
    """Neither in a log, a process list, an environment nor the database."""
    seen: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for one in processes():
                with contextlib.suppress(OSError), open(f"/proc/{one.pid}/environ", "rb") as file:
                    if SECRET in one.args or SECRET.encode() in file.read():
                        seen.add(one.args)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        outcome = run("root", "admin", "set-password", "tsz-alice", env=service.env, stdin=SECRET + "\n")
        wrong = run("root", "admin", "set-password", "tsz-alice", env=service.env, stdin="short\n")
        body = json.dumps({"name": "tsz-alice", "password": SECRET})
        refused = alice("api", "POST", "/api/auth/login", "--body", body)
    finally:
        done.set()
        watcher.join()
    assert outcome.code == 0, outcome.err
    assert wrong.code == 1
    assert refused.code == 1
    assert not [args for args in seen if "svc api" not in args and "--body" not in args]
    said = outcome.out + outcome.err + wrong.out + wrong.err + refused.out + refused.err
    for text in (
        said.encode(),
        service.log.read_bytes(),
        *(file.read_bytes() for file in STATE.rglob("*") if file.is_file()),
    ):
        assert SECRET.encode() not in text
    assert command("tsz-alice", "cat", str(STATE / "data/svc.db"), env={"PATH": "/bin:/usr/bin"}).code != 0
