"""What nobody should ask for, name or link to in a file root, and agents that lie about files.

HOSTILE's rows 23 to 31; the race of row 26 is test_files_race. mallory asks and
lies, alice must not notice, and what is outside the roots is neither read nor changed.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pty
import re
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPException, IncompleteRead
from pathlib import Path
from typing import Any

import pytest
from e2e import files
from e2e.files import Endpoint, Reply, at, work
from e2e.installation import SVC, Call, Service
from e2e.surroundings import in_database, must
from hostile import test_hostile_agent as agents
from hostile.attackers.raw import request
from hostile.conftest import SECRET
from hostile.test_cli import CONTROL
from waiting import until

Unmoved = Callable[[], float]
USER = "tsz-mallory"
LIAR = Path(__file__).with_name("attackers") / "file_liar.py"
CANARY = b"what only root may read"


@pytest.fixture
def listener(service: Service) -> Endpoint:
    """Mallory at the host socket."""
    return files.socket_of(USER, service.env)


@pytest.fixture(params=["socket", "tls"])
def either(request: pytest.FixtureRequest, service: Service) -> Endpoint:
    """Mallory at each of the listeners."""
    if request.param == "socket":
        return files.socket_of(USER, service.env)
    in_database(service.env, "DELETE FROM login_failures")
    return files.session_of(USER, service.env, SECRET)


@pytest.fixture
def box(service: Service) -> Iterator[Path]:
    """A directory of mallory's below `work`."""
    folder = work(USER) / f"t{time.time_ns() & 0xFFFFFFFF:x}"
    folder.mkdir(mode=0o755)
    yield files.give(USER, folder)
    subprocess.run(["rm", "-rf", "--", folder], check=True)


@pytest.fixture
def canary(service: Service) -> Iterator[Path]:
    """A file of root's outside every root, in a directory that mallory may enter; unchanged afterwards."""
    folder = Path("/var/tmp/tsz-vault")
    folder.mkdir(mode=0o755)
    file = folder / "secret"
    file.write_bytes(CANARY)
    file.chmod(0o600)
    (folder / "open").write_bytes(CANARY)
    before = [(path.name, path.stat().st_mtime_ns) for path in sorted(folder.iterdir())]
    yield folder
    assert [(path.name, path.stat().st_mtime_ns) for path in sorted(folder.iterdir())] == before
    assert file.read_bytes() == (folder / "open").read_bytes() == CANARY
    subprocess.run(["rm", "-rf", folder], check=True)


ROUTES = (
    ("GET", "list"), ("GET", "read"), ("GET", "download"), ("GET", "archive"), ("PUT", "file"),
    ("DELETE", "file"), ("POST", "mkdir"), ("POST", "move"),
)  # fmt: skip
BODIES: dict[tuple[str, str], Any] = {
    ("PUT", "file"): b"content", ("POST", "mkdir"): {}, ("POST", "move"): {"to": "elsewhere"},
}  # fmt: skip


def everywhere(listener: Endpoint, raw_path: str) -> Iterator[tuple[str, Reply]]:
    """What each route says to a path as it is written in the address."""
    for method, route in ROUTES:
        path = f"/api/fs/work/{route}?path={raw_path}" + ("&recursive=true" if method == "DELETE" else "")
        yield route, listener.ask(method, path, BODIES.get((method, route)))


# --- rows 23 and 24: paths ------------------------------------------------------------------------

PATHS = (
    "../x", "..%2fx", "%2e%2e/x", "a/../b", "a/..", "..", "%252e%252e/x", "a/%252E%252e%2fx", "/etc/passwd",
    "%2fetc%2fpasswd", "a//b", "a%2f%2fb", ".", "./a", "a/./b", "a/", "a%00b", "sub/f%00/../x", "%00",
    "x%00.txt", "..%5c..%5cx", "a%5c..%5cb", "n" * 256, "a/" + "%ff" * 256, "dddddddd/" * 460 + "x",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:24])
def test_paths_that_lead_elsewhere(listener: Endpoint, box: Path, path: str) -> None:
    home = sorted(os.listdir(work(USER).parent))
    for route, answer in everywhere(listener, path):
        assert answer.status in (400, 422), (route, answer.status, answer.body[:200])
        assert answer.code and answer.code != "internal_error", answer
    moved = listener.ask("POST", at(box.name, "move"), {"to": path})
    assert moved.status in (400, 422), moved
    assert sorted(os.listdir(work(USER).parent)) == home


@pytest.mark.parametrize(
    "query", ["", "path=a&path=b", "path", "path=%", "path=%zz", "path=a;path=b", "path=%C3%28"]
)
def test_queries_of_two_readings(listener: Endpoint, box: Path, query: str) -> None:
    """What has no path, two, or one that is half escaped is one thing to all who read it, or refused."""
    for method, route in ROUTES:
        answer = listener.ask(method, f"/api/fs/work/{route}?{query}", BODIES.get((method, route)))
        assert answer.status in (200, 201, 400, 404, 409, 422), (route, answer)
        assert answer.code != "internal_error", answer
    for name in ("b", "a;path=b", "\udcc3(", "%", "%zz", "elsewhere"):
        subprocess.run(["rm", "-rf", "--", work(USER) / name], check=True)


@pytest.mark.parametrize(
    "root", ["..", "%2e%2e", "work%00", "work%2f..", "WORK", "x" * 300, "%1b%5b2J", "%ff"]
)
def test_roots_that_are_none(listener: Endpoint, root: str) -> None:
    for method, route in ROUTES:
        answer = listener.ask(method, f"/api/fs/{root}/{route}?path=x", BODIES.get((method, route)))
        assert answer.status in (400, 404, 405, 422), answer
        assert "\x1b" not in answer.body.decode()


def test_the_program_refuses_the_same(mallory: Call, box: Path) -> None:
    for path in (
        "work/../x",
        "work//x",
        "/etc/passwd",
        "work/a/../../x",
        "../work",
        "",
        "work/./x",
        "work/a//b",
    ):
        for arguments in (
            ("ls", path),
            ("read", path),
            ("rm", path, "--recursive", "--yes"),
            ("mkdir", path),
        ):
            said = mallory("fs", *arguments)
            assert said.code in (1, 2), (arguments, said)
            assert "Traceback" not in said.err and "root:x:" not in said.out
    root = mallory("fs", "rm", "work", "--recursive", "--yes")
    assert (root.code, box.exists()) == (1, True)


# --- row 25: links ----------------------------------------------------------------------------------


def test_links_that_lead_out(listener: Endpoint, mallory: Call, box: Path, canary: Path) -> None:
    """Whatever is behind a link that leaves the root is neither read, listed, changed nor removed."""
    (box / "in").write_bytes(b"inside")
    targets = {
        "abs": str(canary / "open"), "dir": str(canary), "up": "../../../../../var/tmp/tsz-vault/open",
        "proc": "/proc/self/root/var/tmp/tsz-vault/open", "cwd": "/proc/self/cwd", "fd": "/proc/self/fd/0",
        "passwd": "/etc/passwd", "back": str(box / "in"), "loop": "loop", "two": "loop2",
    }  # fmt: skip
    for name, target in targets.items():
        (box / name).symlink_to(target)
    (box / "loop2").symlink_to("two")
    for name in targets:
        behind = f"{box.name}/{name}"
        for path in (behind, f"{behind}/secret", f"{behind}/open"):
            for route in ("read", "download", "archive"):
                answer = listener.ask("GET", at(path, route))
                inside = answer.status == 200 and route == "archive"  # of the link itself
                assert inside or answer.status in (403, 404, 409), (path, route, answer)
                assert CANARY not in answer.body and b"root:x:" not in answer.body
            if path != behind:
                for method, route in (("PUT", "file"), ("DELETE", "file"), ("POST", "mkdir")):
                    answer = listener.ask(method, at(path, route), BODIES.get((method, route)))
                    assert answer.status in (403, 404, 409), (path, route, answer)
        assert listener.ask("GET", at(behind, "list")).status in (200, 403, 404, 409)
    moved = listener.ask("POST", at(f"{box.name}/in", "move"), {"to": f"{box.name}/dir/in"})
    assert moved.status in (403, 404), moved
    for name in targets:
        must(mallory("fs", "rm", f"work/{box.name}/{name}", "--recursive", "--yes"))
    assert sorted(os.listdir(box)) == ["in", "loop2"]


def test_links_inside_a_root_are_followed(listener: Endpoint, box: Path) -> None:
    (box / "real").mkdir()
    (box / "real/f").write_bytes(b"inside")
    (box / "to_dir").symlink_to("real")
    (box / "to_file").symlink_to("to_dir/f")
    subprocess.run(["chown", "-hR", f"{USER}:", box], check=True)
    assert listener.ask("GET", at(f"{box.name}/to_file", "download")).body == b"inside"
    assert listener.ask("GET", at(f"{box.name}/to_dir", "list")).json()["items"][0]["name"] == "f"
    kept = listener.ask("PUT", at(f"{box.name}/to_file", "file"), b"x")
    assert (kept.status, (box / "real/f").read_bytes()) == (409, b"inside")
    created = listener.ask("PUT", at(f"{box.name}/to_file", "file", force="true"), b"new")
    assert (created.status, (box / "to_file").is_symlink()) == (201, False)
    assert (box / "real/f").read_bytes() == b"inside", "the link is replaced, not what it leads to"


# --- row 27: what is no file ---------------------------------------------------------------------------


def test_what_is_no_file(listener: Endpoint, mallory: Call, box: Path, unmoved: Unmoved) -> None:
    os.mkfifo(box / "fifo", 0o666)
    os.mknod(box / "device", 0o20666, os.makedev(1, 5))  # /dev/zero: without an end
    (box / "dir").mkdir()
    subprocess.run(
        ["python3", "-c", "import socket,sys; socket.socket(1).bind(sys.argv[1])", box / "socket"], check=True
    )
    subprocess.run(["chown", "-R", f"{USER}:", box], check=True)
    for name in ("fifo", "device", "socket", "dir"):
        began = time.monotonic()
        for route in ("read", "download"):
            answer = listener.ask("GET", at(f"{box.name}/{name}", route))
            assert (answer.status, answer.code) in ((409, "conflict"), (403, "file_forbidden")), answer
        for forced in ("true", "false"):
            answer = listener.ask("PUT", at(f"{box.name}/{name}", "file", force=forced), b"x")
            assert answer.status == 409, (name, answer)
        assert time.monotonic() - began < 30
    rows = must(mallory("fs", "ls", f"work/{box.name}", "--json")).json()["items"]
    assert {row["name"]: row["type"] for row in rows}["dir"] == "directory"
    assert {row["type"] for row in rows if row["name"] != "dir"} == {"other"}
    packed = listener.ask("GET", at(box.name, "archive"))
    assert packed.headers["X-Svc-Archive-Skipped"] == "3"
    must(mallory("fs", "rm", f"work/{box.name}/fifo", "--yes"))
    assert unmoved() < 2


def test_a_file_of_the_kernels(listener: Endpoint, box: Path) -> None:
    """A regular file whose size says nothing, as those of /proc: as many bytes as it says, and an end."""
    for source in ("/proc/self/status", "/proc/kallsyms"):
        (box / "f").write_bytes(b"")
        subprocess.run(["mount", "--bind", source, box / "f"], check=True)
        try:
            answer = listener.ask("GET", at(f"{box.name}/f", "download"))
            assert (answer.status, answer.body) == (200, b"") or answer.status in (403, 409), answer.status
            assert listener.ask("GET", at(box.name, "archive")).status == 200
        finally:
            subprocess.run(["umount", "-l", box / "f"], check=True)


# --- row 28: names --------------------------------------------------------------------------------------

NAMES = (
    b"two\nlines", b"-rf", b"\x1b]0;owned\x07\x1b[2J", "gpj.\u202etxt".encode(),
    b"<img src=x onerror=alert(1)>", b"\xff\xfe",
    b"\xc2\x9b31m", b"a\rb", b"a\tb", b"\x7f", b"x\r\nSet-Cookie: a=b", b'";x="', b"%0d%0aX: y",
)  # fmt: skip


def on_a_terminal(env: dict[str, str], *argv: str) -> bytes:
    """What mallory's terminal shows of a command."""
    near, far = pty.openpty()
    try:
        arguments = ["runuser", "-u", USER, "--", "env", f"SVC_SOCKET={env['SVC_SOCKET']}", str(SVC), *argv]
        process = subprocess.Popen(
            arguments,
            stdin=far,
            stdout=far,
            stderr=far,
            cwd="/",
            start_new_session=True,
            env={"PATH": env["PATH"]},
        )
        os.close(far)
        os.write(near, b"n\n")  # to what may be asked
        printed = b""
        with contextlib.suppress(OSError):  # the terminal's end
            while part := os.read(near, 65536):
                printed += part
        process.wait(30)
        return printed
    finally:
        os.close(near)


def test_names_on_a_terminal_and_in_heads(
    service: Service, listener: Endpoint, mallory: Call, box: Path
) -> None:
    for name in NAMES:
        files.put(USER, os.fsencode(box.name) + b"/" + name, b"\x1b[2Jcontent\x9b")
    colour = re.compile(rb"\x1b\[[0-9;]*m")  # the program's own
    for arguments in (("ls", f"work/{box.name}"), ("rm", f"work/{box.name}/{os.fsdecode(NAMES[2])}")):
        printed = colour.sub(b"", on_a_terminal(service.env, "fs", *arguments))
        assert not CONTROL.search(printed.decode(errors="replace").replace("\r\n", "")), ascii(printed)
    read = on_a_terminal(service.env, "fs", "read", os.fsdecode(os.fsencode(f"work/{box.name}/") + NAMES[1]))
    assert b"\x1b" not in read and b"content" in read
    said = mallory("fs", "ls", f"work/{box.name}")
    assert not CONTROL.search(said.out.replace("\n", "").replace("\t", "")), ascii(said.out)
    for name in NAMES:
        got = listener.ask("GET", at(os.fsencode(box.name) + b"/" + name, "download"))
        assert got.status == 200 and "Set-Cookie" not in got.headers and "X" not in got.headers, got.headers
        assert len(got.headers.get_all("Content-Disposition") or ()) == 1
    missing = listener.ask("GET", at(b"\x1b]0;owned\x07<script>\xff", "download"))
    assert missing.status == 404 and b"\x1b" not in missing.body
    audit = must(mallory("api", "GET", "/api/audit?limit=50")).out
    assert "\x1b" not in audit


# --- rows 29 and 30: sizes and changes ------------------------------------------------------------------

BROKEN = {
    "a length and chunks": (("Content-Length: 5", "Transfer-Encoding: chunked"), b"5\r\nhello\r\n0\r\n\r\n"),
    "a chunk of no size": (("Transfer-Encoding: chunked",), b"-1\r\nhello\r\n0\r\n\r\n"),
    "a chunk too large": (("Transfer-Encoding: chunked",), b"ffffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
    "a chunk that lies": (("Transfer-Encoding: chunked",), b"3\r\nhello\r\n0\r\n\r\n"),
    "no last chunk": (("Transfer-Encoding: chunked",), b"5\r\nhello\r\n"),
    "a short body": (("Content-Length: 50",), b"hello"),
    "a signed length": (("Content-Length: +5",), b"hello"),
    "two lengths": (("Content-Length: 5", "Content-Length: 6"), b"hello!"),
    "a coding": (("Content-Encoding: gzip", "Content-Length: 5"), b"hello"),
    "a part of it": (("Content-Range: bytes 5-9/100", "Content-Length: 5"), b"hello"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_bodies_that_are_none(listener: Endpoint, box: Path, how: str) -> None:
    """Nothing is kept of a body that is not what its head says, nor taken for another request."""
    fields, body = BROKEN[how]
    with listener.dial() as sock:
        smuggled = request("PUT", at(f"{box.name}/smuggled", "file"), b"x")
        sock.sendall(listener.head("PUT", at(f"{box.name}/f", "file"), *fields) + body)
        if how not in ("no last chunk", "a short body"):
            sock.sendall(smuggled)
        sock.shutdown(1)
        answer = b""
        with contextlib.suppress(OSError):
            while part := sock.recv(65536):
                answer += part
    assert b" 201 " not in answer.split(b"\r\n")[0], answer
    until(lambda: not files.at_work(USER), 20)
    assert not (box / "f").exists()
    assert not (box / "smuggled").exists() or how in ("a coding", "a part of it"), os.listdir(box)


def test_half_uploads_take_no_place_from_others(
    service: Service, listener: Endpoint, box: Path, unmoved: Unmoved
) -> None:
    with contextlib.ExitStack() as held:
        for number in range(60):
            sock = held.enter_context(listener.dial())
            with contextlib.suppress(OSError):
                head = listener.head("PUT", at(f"{box.name}/f{number}", "file"), f"Content-Length: {1 << 30}")
                sock.sendall(head + b"x" * 100_000)
        assert max(unmoved() for _ in range(3)) < 2
    until(lambda: not files.at_work(USER), 30)
    assert os.listdir(box) == []


def test_an_archive_of_a_tree_that_changes(listener: Endpoint, box: Path) -> None:
    """Files come, go, grow, shrink and turn into links while it is packed: what comes is a tar that ends."""
    for number in range(400):
        (box / f"f{number}").write_bytes(os.urandom(20_000))
    subprocess.run(["chown", "-R", f"{USER}:", box], check=True)
    over = threading.Event()

    def change() -> None:
        number = 0
        while not over.is_set():
            number += 1
            one = box / f"f{number % 400}"
            with contextlib.suppress(OSError):
                if number % 4 == 0:
                    one.unlink()
                    one.symlink_to("/etc/passwd")
                elif number % 4 == 1:
                    os.truncate(one, 3)
                elif number % 4 == 2:
                    one.unlink()
                    one.write_bytes(b"new" * 9999)
                else:
                    one.rename(box / f"g{number % 400}")

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(3):
            answer = listener.ask("GET", at(box.name, "archive"))
            assert answer.status == 200
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(answer.body))) as archive:
                for member in archive:
                    content = archive.extractfile(member) if member.isfile() else None
                    assert content is None or b"root:x:" not in content.read()
    finally:
        over.set()
        thread.join()
    until(lambda: not files.at_work(USER), 20)


def test_a_tree_that_is_deep(listener: Endpoint, box: Path) -> None:
    """Deeper than any recursion and longer than any path: listed at its top, packed or refused, removed."""
    folder = os.open(box, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d" * 20, dir_fd=folder)
        deeper = os.open("d" * 20, os.O_RDONLY, dir_fd=folder)
        os.fchown(deeper, box.stat().st_uid, box.stat().st_gid)
        os.close(folder)
        folder = deeper
    os.close(folder)
    packed = listener.ask("GET", at(box.name, "archive"))
    assert packed.status in (200, 409, 413), packed
    gone = listener.ask("DELETE", at(f"{box.name}/{'d' * 20}", "file", recursive="true"))
    assert (gone.status, os.listdir(box)) == (200, []), gone


# --- row 31: where a download goes -----------------------------------------------------------------------


def test_what_a_download_does_not_overwrite(mallory: Call, box: Path, canary: Path) -> None:
    home = work(USER).parent / "into"
    files.put(USER, f"{box.name}/f", b"downloaded")
    home.mkdir(mode=0o755)
    files.give(USER, home)
    try:
        (home / "file").write_bytes(b"mine")
        (home / "link").symlink_to(home / "file")
        (home / "out").symlink_to(canary / "open")
        (home / "dangling").symlink_to(home / "made")
        os.mkfifo(home / "fifo")
        (home / "dir").mkdir()
        subprocess.run(["chown", "-hR", f"{USER}:", home], check=True)
        for name in ("file", "link", "out", "dangling", "fifo"):
            refused = mallory("fs", "download", f"work/{box.name}/f", f"into/{name}", timeout=30)
            assert refused.code == 1 and "--force" in refused.err, (name, refused)
        assert (home / "file").read_bytes() == b"mine" and not (home / "made").exists()
        must(mallory("fs", "download", f"work/{box.name}/f", "into/dir", "--force"))
        assert (home / "dir" / "f").read_bytes() == b"downloaded"  # into the directory, not in its place
        for name in ("link", "out", "dangling", "fifo", "file"):
            must(mallory("fs", "download", f"work/{box.name}/f", f"into/{name}", "--force", timeout=30))
            assert not (home / name).is_symlink() and (home / name).read_bytes() == b"downloaded"
            assert not (home / "made").exists()
        assert sorted(os.listdir(home)) == ["dangling", "dir", "fifo", "file", "link", "out"]
    finally:
        subprocess.run(["rm", "-rf", home], check=True)


# --- an agent that lies -----------------------------------------------------------------------------------


@pytest.fixture
def lying(service: Service, mallory: Call) -> Iterator[Callable[[str], None]]:
    """lying(mode): mallory's own process answers in place of the agent from now on."""
    with contextlib.ExitStack() as held:

        def begin(mode: str) -> None:
            must(mallory("fs", "roots"))  # there is an agent
            held.enter_context(agents.usurped(USER, mode, LIAR))

        yield begin
    until(lambda: mallory("fs", "roots").code == 0, 20, 0.2)


def tried(listener: Endpoint, method: str, path: str, body: Any = None) -> Reply | None:
    """An answer, or None where the connection was broken off."""
    try:
        return listener.ask(method, path, body)
    except (OSError, HTTPException):
        return None


@pytest.mark.parametrize("mode", ["figures", "names", "commits", "descriptors"])
def test_every_lie_is_an_error_of_ours(
    service: Service,
    listener: Endpoint,
    mallory: Call,
    lying: Callable[[str], None],
    unmoved: Unmoved,
    mode: str,
) -> None:
    began = service.log.stat().st_size
    lying(mode)
    for _ in range(12):
        for method, route in ROUTES:
            body = BODIES.get((method, route))
            answer = tried(listener, method, f"/api/fs/work/{route}?path=some/name", body)
            if answer is not None:
                assert answer.code != "internal_error", (route, answer)
                assert answer.status < 500 or answer.status in (502, 503, 504), (route, answer)
                assert b"\x1b" not in answer.body and b"\x1b" not in bytes(answer.headers)
            if method == "PUT" and mode == "commits":
                assert answer is None or answer.status != 201, answer
        for arguments in (("ls", "work/x"), ("roots",)):
            said = mallory("fs", *arguments)
            assert "went wrong" not in said.err and "Traceback" not in said.err, said.err
            assert not CONTROL.search((said.out + said.err).replace("\n", "").replace("\t", "")), said
        if mode == "descriptors":
            break
    with open(service.log, "rb") as log:
        log.seek(began)
        assert b"Traceback" not in log.read()
    assert unmoved() < 2


@pytest.mark.parametrize("mode", ["more", "less", "keeps_open", "in_crumbs", "with_rights", "urgent"])
def test_a_download_is_as_long_as_was_said_or_breaks_off(
    service: Service, either: Endpoint, lying: Callable[[str], None], unmoved: Unmoved, mode: str
) -> None:
    lying(mode)
    for _ in range(3):
        with contextlib.suppress(OSError, IncompleteRead):
            answer = either.ask("GET", at("f", "download"))
            assert len(answer.body) == 1 << 20 or answer.status in (502, 503), (mode, answer)
            assert mode != "less" or answer.status != 200
        read = tried(either, "GET", at("f", "read"))
        assert read is None or read.status in (200, 409, 502, 503), (mode, read)
    if mode != "keeps_open":  # which has no end that it could miss, and half a minute to come to one
        packed = tried(either, "GET", at("f", "archive"))
        assert packed is None or packed.status in (200, 502, 503), packed
    assert unmoved() < 2


@pytest.mark.parametrize("mode", ["stalls", "drips", "floods"])
def test_an_agent_that_does_not_come_to_an_end(
    service: Service, listener: Endpoint, lying: Callable[[str], None], unmoved: Unmoved, mode: str
) -> None:
    """Its own transfers wait, nobody else notices, and a client that goes frees its place."""
    unix = agents.named(service, "unix")
    before = agents.figures(unix)
    lying(mode)
    with contextlib.ExitStack() as held:
        for number in range(24):
            sock = held.enter_context(listener.dial())
            method, route = (("GET", "download"), ("PUT", "file"), ("GET", "archive"))[number % 3]
            fields = (f"Content-Length: {8 << 20}",) if method == "PUT" else ()
            with contextlib.suppress(OSError):
                sock.sendall(listener.head(method, at("f", route), *fields) + bytes(100_000 * len(fields)))
        time.sleep(1)
        assert max(unmoved() for _ in range(3)) < 2
        held_now = agents.figures(unix)
        assert held_now[0] - before[0] < 120 and held_now[2] - before[2] < 30_000, (before, held_now)
    until(lambda: held_back(before, agents.figures(unix)) < 20, 30)
    assert unmoved() < 2


def held_back(before: tuple[int, int, int], now: tuple[int, int, int]) -> int:
    """New descriptors besides the two of the database that each further thread keeps for good."""
    return now[0] - before[0] - 2 * (now[1] - before[1])
