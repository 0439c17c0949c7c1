"""Files through the installed program: commands, odd names, cut connections, limits, what the audit says.

Alice uses the command line and the host socket, Bob the TLS listener too, with a
session. `models` is a root that nobody changes.
"""

from __future__ import annotations

import contextlib
import email.message
import gzip
import hashlib
import io
import json
import os
import socket
import subprocess
import tarfile
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, IncompleteRead
from pathlib import Path
from typing import Any

import pytest
from e2e import files
from e2e.files import Endpoint, at, put, work
from e2e.installation import PASSWORD, STATE, Call, Outcome, Service
from e2e.surroundings import in_database, must
from hostile.attackers.raw import ask
from waiting import until

BIG = 24 << 20  # more than any buffer between two ends
ODD = {
    "a newline": b"two\nlines",
    "an option": b"-rf",
    "escapes": b"\x1b]0;owned\x07\x1b[2J",
    "right to left": "gpj.\u202etxt".encode(),
    "markup": b"<img src=x onerror=alert(1)>.html",
    "no UTF-8": b"caf\xe9 \xff\xfe",
    "quotes": b"a\"b'c;d=\\e",
    "percent": b"100%2525 %00",
    "dots": b"...",
    "hidden": b".profile",
    "the longest": b"n" * 255,
    "wide": "\U0001f41f\u4e2d\u0301".encode(),
}


@pytest.fixture(scope="module")
def models() -> Iterator[Path]:
    """A directory of the administrator's with one file, for a read-only root."""
    folder = Path("/var/tmp/tse-models")
    folder.mkdir(mode=0o755)
    (folder / "weights").write_bytes(b"0.5 0.25")
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.fixture(scope="module", autouse=True)
def roots(service: Service, models: Path) -> Iterator[None]:
    """The server with that root, for this module."""
    service.stop()
    service.env["SVC_FILE_ROOTS"] = f"work=%h/work,models={models}:ro"
    service.start()
    yield
    service.stop()
    del service.env["SVC_FILE_ROOTS"]
    service.start()


@pytest.fixture(scope="module")
def tls(service: Service, roots: None) -> Endpoint:
    """Bob in a browser."""
    in_database(service.env, "DELETE FROM login_failures")
    return files.session_of("tse-bob", service.env, PASSWORD)


@pytest.fixture(params=["socket", "tls"])
def listener(request: pytest.FixtureRequest, service: Service) -> Endpoint:
    """Bob at each of the listeners."""
    if request.param == "tls":
        return request.getfixturevalue("tls")  # type: ignore[no-any-return]  # pytest's own
    return files.socket_of("tse-bob", service.env)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Path]]:
    """place(user) -> a new directory of that user's below `work`, removed afterwards."""
    created = []

    def make(user: str) -> Path:
        folder = work(user) / f"t{time.time_ns() & 0xFFFFFFFF:x}"
        folder.mkdir(mode=0o755)
        files.give(user, folder)
        created.append(folder)
        return folder

    yield make
    for folder in created:
        subprocess.run(["rm", "-rf", "--", folder], check=True)


@pytest.fixture
def box(place: Callable[[str], Path]) -> Path:
    """A directory of Bob's."""
    return place("tse-bob")


def rows(call: Call, action: str) -> list[dict[str, Any]]:
    """Alice's or Bob's newest rows of the audit with that action."""
    found = must(call("api", "GET", "/api/audit?limit=100")).json()["items"]
    return [row for row in found if row["action"] == action]


def resolved(user: str) -> None:
    """Wait until the user's agent has nothing of a transfer any more."""
    until(lambda: not files.at_work(user), 20)


# --- the commands -----------------------------------------------------------------------------


def test_every_command(alice: Call, place: Callable[[str], Path], tmp_path: Path) -> None:
    here, local = place("tse-alice"), files.put("tse-alice", "../local.txt", b"one\ntwo\n")
    name = f"work/{here.name}"
    assert must(alice("fs", "roots")).out.split("\n")[0].startswith(("work\t", "models\t"))
    must(alice("fs", "mkdir", f"{name}/sub"))
    must(alice("fs", "upload", "local.txt", f"{name}/sub/"))
    assert (here / "sub/local.txt").read_bytes() == b"one\ntwo\n"
    assert (here / "sub/local.txt").owner() == "tse-alice"
    assert (files.mode(here / "sub/local.txt"), files.mode(here / "sub")) == (0o644, 0o755)
    must(alice("fs", "upload", "-", f"{name}/typed", stdin="from a pipe"))
    assert must(alice("fs", "read", f"{name}/typed")).out == "from a pipe"
    listed = must(alice("fs", "ls", name)).out
    assert [line.split("\t")[4] for line in listed.splitlines()] == ["sub", "typed"], listed
    must(alice("fs", "mv", f"{name}/typed", f"{name}/sub/moved"))
    assert must(alice("fs", "download", f"{name}/sub/moved", "-")).out == "from a pipe"
    must(alice("fs", "download", f"{name}/sub/moved", "moved.txt"))
    must(alice("fs", "archive", f"{name}/sub", "sub.tar.gz"))
    home = work("tse-alice").parent
    assert (home / "moved.txt").read_bytes() == b"from a pipe"
    assert (home / "moved.txt").owner() == "tse-alice"
    for tool in (("tar", "-xzf"), ("bsdtar", "-xzf")):
        with contextlib.suppress(FileNotFoundError):  # bsdtar where it is installed
            subprocess.run([*tool, home / "sub.tar.gz", "-C", tmp_path], check=True)
    assert (tmp_path / "sub/local.txt").read_bytes() == b"one\ntwo\n"
    kept = alice("fs", "rm", f"{name}/sub", "--recursive")
    assert (kept.code, "--yes" in kept.err, (here / "sub").exists()) == (1, True, True)
    must(alice("fs", "rm", f"{name}/sub", "--recursive", "--yes"))
    assert not (here / "sub").exists()
    for created in (local, home / "moved.txt", home / "sub.tar.gz"):
        created.unlink()


def test_a_directory_of_many_entries(service: Service, alice: Call, place: Callable[[str], Path]) -> None:
    """More than one answer's, with a name that may not be printed as it is."""
    here = place("tse-alice")
    expected = sorted([*(f"{number:05}" for number in range(2500)), "new\nline"])
    for name in expected:
        (here / name).touch()
    printed = must(alice("fs", "ls", f"work/{here.name}")).out.splitlines()
    assert [line.split("\t")[4] for line in printed] == [name.replace("\n", "\\n") for name in expected]
    path = f"/api/fs/work/entries?path={here.name}&offset=2400"
    lines = files.socket_of("tse-alice", service.env).ask("GET", path).body.splitlines()
    assert [json.loads(line)["name"] for line in lines] == expected[2400:]


def test_the_same_files_on_both_sides(alice: Call, workspace: str, place: Callable[[str], Path]) -> None:
    """ "`work` corresponds to `/work` inside workspaces", and each side may write what the other made."""
    here = place("tse-alice")
    inside = f"/work/{here.name}"
    must(alice("fs", "upload", "-", f"work/{here.name}/in", stdin="for the program"))
    shell = f"cat {inside}/in && echo back >{inside}/out && echo more >>{inside}/in"
    ran = must(alice("ws", "exec", workspace, "--", "sh", "-c", shell))
    assert ran.out == "for the program"
    assert must(alice("fs", "read", f"work/{here.name}/out")).out == "back\n"
    assert (here / "out").owner() == "tse-alice"
    must(alice("fs", "upload", "-", f"work/{here.name}/out", "--force", stdin="again"))
    assert must(alice("ws", "exec", workspace, "--", "cat", f"{inside}/out")).out == "again"


@pytest.mark.parametrize("what", ODD)
def test_a_name_of_any_bytes_goes_round(
    service: Service, alice: Call, place: Callable[[str], Path], what: str
) -> None:
    here, name = place("tse-alice"), ODD[what]
    argument = os.fsdecode(b"work/" + here.name.encode() + b"/" + name)
    must(alice("fs", "upload", "-", argument, stdin=what))
    assert os.listdir(os.fsencode(here)) == [name]
    [entry] = must(alice("fs", "ls", f"work/{here.name}", "--json")).json()["items"]
    assert entry["utf8"] == (what != "no UTF-8")
    assert not entry["utf8"] or entry["name"].encode() == name
    printed = must(alice("fs", "ls", f"work/{here.name}")).out
    assert "\x1b" not in printed and "\u202e" not in printed and printed.count("\n") == 1
    path = f"/api/fs/work/download?path={entry['path']}"
    assert files.socket_of("tse-alice", service.env).ask("GET", path).body == what.encode()
    assert must(alice("fs", "read", argument)).out == what
    packed = must(alice("fs", "archive", f"work/{here.name}", f"{here.name}.tgz"))
    with tarfile.open(work("tse-alice").parent / f"{here.name}.tgz") as archive:
        inside = [os.fsencode(member.name) for member in archive if member.isfile()]
    (work("tse-alice").parent / f"{here.name}.tgz").unlink()
    assert inside == [here.name.encode() + b"/" + name], packed.err
    must(alice("fs", "mv", argument, f"work/{here.name}/plain"))
    must(alice("fs", "mv", f"work/{here.name}/plain", argument))
    must(alice("fs", "rm", argument, "--yes"))
    assert not os.listdir(here)


def test_a_file_with_an_odd_date(alice: Call, place: Callable[[str], Path]) -> None:
    """ext4's last second, which is beyond 2^63 ns: neither it nor its neighbours are out of reach."""
    here, local, late = place("tse-alice"), place("tse-alice"), 15_032_385_535 * 10**9
    name = f"work/{here.name}"
    files.put("tse-alice", f"{here.name}/a", b"one")
    odd = files.put("tse-alice", f"{here.name}/b", b"two")
    os.utime(odd, ns=(0, late))
    assert odd.stat().st_mtime_ns == late
    os.utime(here, ns=(0, late))
    assert len(must(alice("fs", "ls", name)).out.splitlines()) == 2
    assert must(alice("fs", "read", f"{name}/b")).out == "two"
    must(alice("fs", "download", f"{name}/b", str(local / "late")))
    must(alice("fs", "mv", f"{name}/b", f"{name}/c"))
    assert "2446" in must(alice("fs", "ls", f"{name}/c")).out
    must(alice("fs", "archive", name, str(local / "late.tar.gz")))


def test_nothing_local_is_overwritten_without_force(alice: Call, place: Callable[[str], Path]) -> None:
    here, home = place("tse-alice"), work("tse-alice").parent
    put("tse-alice", f"{here.name}/kept", b"theirs")
    local = put("tse-alice", "../kept", mine := b"mine" * (6 << 20))  # more than a connection holds
    os.chmod(here / "kept", 0o750)
    for arguments in (
        ("download", f"work/{here.name}/kept"),
        ("archive", f"work/{here.name}", "kept"),
    ):
        refused = alice("fs", *arguments)
        assert (refused.code, "--force" in refused.err) == (1, True), refused
    refused = alice("fs", "upload", "kept", f"work/{here.name}/", "--no-clobber")
    assert (refused.code, "hint: svc fs upload kept" in refused.err) == (1, True), refused
    assert ((here / "kept").read_bytes(), local.read_bytes() == mine) == (b"theirs", True)
    replaced = must(alice("fs", "upload", "kept", f"work/{here.name}/"))
    assert replaced.out == f"work/{here.name}/kept\t{len(mine)}\ttrue\n", "it says that it replaced one"
    assert (here / "kept").read_bytes() == mine
    assert files.mode(here / "kept") == 0o750, "a replaced file keeps its permissions"
    (here / "kept").write_bytes(b"newer")
    must(alice("fs", "download", f"work/{here.name}/kept", "--force"))
    assert (home / "kept").read_bytes() == b"newer"
    local.unlink()


def test_a_local_directory_gets_the_file(alice: Call, place: Callable[[str], Path]) -> None:
    """ "Writes a local file": into the directory that is named, under its own name."""
    here, home = place("tse-alice"), work("tse-alice").parent
    put("tse-alice", f"{here.name}/data.csv", b"1,2")
    must(alice("fs", "mkdir", f"work/{here.name}/into"))
    into = home / "work" / here.name / "into"
    assert must(alice("fs", "download", f"work/{here.name}/data.csv", str(into))).out.startswith(f"{into}/")
    assert (into / "data.csv").read_bytes() == b"1,2"
    must(alice("fs", "archive", f"work/{here.name}", f"{into}/"))
    assert (into / f"{here.name}.tar.gz").stat().st_size
    again = alice("fs", "download", f"work/{here.name}/data.csv", str(into))
    assert (again.code, f"{into}/data.csv already exists" in again.err) == (1, True)


def test_an_upload_that_fails_leaves_the_old_file(alice: Call, place: Callable[[str], Path]) -> None:
    """An upload replaces a file whole or not at all."""
    here = place("tse-alice")
    put("tse-alice", f"{here.name}/kept", b"theirs")
    put("tse-alice", "../large", b"")
    os.truncate(work("tse-alice").parent / "large", 1 << 40)  # more than SVC_UPLOAD_MAX
    refused = alice("fs", "upload", "large", f"work/{here.name}/kept")
    (work("tse-alice").parent / "large").unlink()
    assert refused.code == 1
    assert (here / "kept").read_bytes() == b"theirs"


def test_a_root_that_is_read_only(alice: Call, models: Path) -> None:
    assert must(alice("fs", "read", "models/weights")).out == "0.5 0.25"
    printed = {row["id"]: row["read_only"] for row in must(alice("fs", "roots", "--json")).json()["items"]}
    assert printed == {"work": False, "models": True}
    for arguments in (
        ("upload", "-", "models/new"),
        ("upload", "-", "models/weights", "--force"),
        ("rm", "models/weights", "--yes"),
        ("mkdir", "models/sub"),
        ("mv", "models/weights", "models/other"),
    ):
        refused = alice("fs", *arguments, stdin="x")
        assert (refused.code, "read-only" in refused.err) == (1, True), refused
    assert [path.name for path in models.iterdir()] == ["weights"]
    unknown = alice("fs", "ls", "elsewhere/x")
    assert (unknown.code, "svc fs roots" in unknown.err) == (1, True)


def test_what_is_refused_is_audited_too(service: Service, svc: Call, alice: Call) -> None:
    """ "Every `fs` operation is audited on the server": the roots, and what goes no further than its path."""
    [[before]] = in_database(service.env, "SELECT max(id) FROM audit")
    must(alice("fs", "roots"))
    for arguments in (("ls", "work/../x"), ("read", "work/../etc/passwd"), ("mkdir", "work/./x"),
                      ("rm", "work/a//b", "--yes"), ("upload", "-", "work/../new"),
                      ("mv", "work/a", "work/../b")):  # fmt: skip
        said = alice("fs", *arguments, stdin="x")
        assert (said.code, said.out) == (1, ""), said
    assert svc("root", "api", "GET", "/api/fs/work/list").code == 1
    statement = "SELECT user_name, action, target, outcome FROM audit WHERE id > ? AND outcome <> 'begun'"
    assert in_database(service.env, statement, before) == [
        ["tse-alice", "fs.roots", "", "ok"],
        ["tse-alice", "fs.list", "work/../x", "invalid_request"],
        ["tse-alice", "fs.read", "work/../etc/passwd", "invalid_request"],
        ["tse-alice", "fs.mkdir", "work/./x", "invalid_request"],
        ["tse-alice", "fs.remove", "work/a//b", "invalid_request"],
        ["tse-alice", "fs.upload", "work/../new", "invalid_request"],
        ["tse-alice", "fs.move", "work/a", "invalid_request"],
        ["root", "fs.list", "work/", "root_not_allowed"],
    ]


def test_whose_files_they_are(service: Service, svc: Call, alice: Call, bob: Call) -> None:
    """Each user's `work` is their own; root has none, and a token reaches none."""
    put("tse-alice", "hers", b"x")
    assert bob("fs", "read", "work/hers").code == 1
    assert json.loads(svc("root", "api", "GET", "/api/fs/roots").out)["error"]["code"] == "root_not_allowed"
    token = must(bob("token", "create", "--name", "files")).out.strip()
    by_token = Endpoint("tse-bob", files.session_of("tse-bob", service.env, PASSWORD).dial, {})
    for method, path in (
        ("GET", "/api/fs/roots"),
        ("GET", at("x", "download")),
        ("PUT", at("x", "file")),
        ("DELETE", at("x", "file")),
    ):
        answer = by_token.ask(
            method, path, b"x" if method == "PUT" else None, Authorization=f"Bearer {token}"
        )
        assert (answer.status, answer.code) == (403, "pat_not_allowed"), answer
        assert by_token.ask(method, path).status == 401
    must(bob("token", "revoke", "files"))
    (work("tse-alice") / "hers").unlink()


# --- the API at both listeners -----------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
def test_a_great_file_up_and_down(listener: Endpoint, box: Path, chunked: bool) -> None:
    content = os.urandom(BIG + 4321)
    created = listener.ask("PUT", at(f"{box.name}/big", "file"), content, chunked=chunked)
    assert (created.status, created.json()["size"], created.json()["replaced"]) == (
        201,
        len(content),
        False,
    ), created
    assert files.digest(box / "big") == hashlib.sha256(content).hexdigest()
    got = listener.ask("GET", at(f"{box.name}/big", "download"))
    assert got.body == content
    assert got.headers["ETag"] == f'"{created.json()["etag"]}"'
    again = listener.ask("PUT", at(f"{box.name}/big", "file"), b"x", chunked=chunked)
    assert (again.status, again.code) == (409, "file_exists")
    assert (box / "big").stat().st_size == len(content)
    less = listener.ask("PUT", at(f"{box.name}/big", "file", force="true"), b"", chunked=chunked)
    assert (less.status, less.json()["replaced"], (box / "big").read_bytes()) == (201, True, b""), less
    assert not files.unfinished(box)
    resolved("tse-bob")


def test_parts_of_a_file(listener: Endpoint, box: Path) -> None:
    content = os.urandom(3 << 20)
    put("tse-bob", f"{box.name}/f", content)
    path = at(f"{box.name}/f", "download")
    whole = listener.ask("GET", path)
    assert (whole.status, whole.body) == (200, content)
    tag = whole.headers["ETag"]
    assert tag.startswith('"') and whole.headers["Accept-Ranges"] == "bytes"
    size = len(content)
    for arguments, begin, end in (
        ("bytes=0-0", 0, 1),
        ("bytes=5-", 5, size),
        ("bytes=-7", size - 7, size),
        (f"bytes=1000000-{2**70}", 1000000, size),
        ("bytes=-99999999", 0, size),
    ):
        part = listener.ask("GET", path, Range=arguments)
        assert (part.status, part.body) == (206, content[begin:end]), arguments
        assert part.headers["Content-Range"] == f"bytes {begin}-{end - 1}/{size}"
        assert listener.ask("GET", path, Range=arguments, If_Range=tag).status == 206
        assert listener.ask("GET", path, Range=arguments, If_Range='"other"').body == content
    beyond = listener.ask("GET", path, Range=f"bytes={size}-")
    assert (beyond.status, beyond.headers["Content-Range"]) == (416, f"bytes */{size}")
    for ignored in ("bytes=2-1", "lines=1-2", "bytes=x", "bytes=0-1,5-6", "bytes=--5"):
        answer = listener.ask("GET", path, Range=ignored)
        assert (answer.status, len(answer.body)) == (200, size) or answer.status == 416, ignored
    assert listener.ask("GET", path, If_None_Match=f'"x", {tag}').status == 304
    put("tse-bob", f"{box.name}/f", content[::-1])
    assert listener.ask("GET", path, If_None_Match=tag).status == 200
    short = listener.ask("GET", at(f"{box.name}/f", "read", offset=10, length=20)).json()
    assert b64decode(short["content"]) == content[::-1][10:30]
    assert (short["size"], short["truncated"]) == (size, True)


def test_what_a_browser_is_told(tls: Endpoint, box: Path) -> None:
    """A download is never shown as a page of ours, and no name gets into the head."""
    for name in ODD.values():
        put("tse-bob", os.fsencode(box.name) + b"/" + name, b"<script>")
        got = tls.ask("GET", at(os.fsencode(box.name) + b"/" + name, "download"))
        assert (got.status, got.body) == (200, b"<script>"), name
        assert got.headers["Content-Type"] == "application/octet-stream"
        assert got.headers["X-Content-Type-Options"] == "nosniff"
        outcome = got.headers.get_all("Content-Disposition")
        assert outcome and len(outcome) == 1 and outcome[0].startswith("attachment")
        assert outcome[0].isascii() and outcome[0].isprintable()
        field = email.message.Message()
        field["Content-Disposition"] = outcome[0]
        kept = field.get_filename() or ""
        assert "/" not in kept and "\n" not in kept and kept not in ("", ".", "..")


def test_an_archive_holds_what_is_there(listener: Endpoint, box: Path) -> None:
    put("tse-bob", f"{box.name}/tree/a", b"1")
    put("tse-bob", f"{box.name}/tree/deep/er/b", b"2" * 100_000)
    os.link(box / "tree/a", box / "tree/same")
    (box / "tree/link").symlink_to("a")
    (box / "tree/out").symlink_to("/etc/passwd")
    os.mkfifo(files.give("tse-bob", box) / "tree/fifo")
    got = listener.ask("GET", at(f"{box.name}/tree", "archive"))
    assert (got.status, got.headers["X-Svc-Archive-Skipped"]) == (200, "1"), got.headers
    assert "tree.tar.gz" in got.headers["Content-Disposition"]
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(got.body))) as archive:
        members = {member.name: member for member in archive}
        content = archive.extractfile("tree/deep/er/b")
        assert content is not None and content.read() == b"2" * 100_000
    assert {"tree/a", "tree/same", "tree/link", "tree/out", "tree/deep/er/b"} <= set(members)
    assert "tree/fifo" not in members
    assert members["tree/out"].issym() and members["tree/out"].linkname == "/etc/passwd"
    assert [members[name].islnk() for name in ("tree/a", "tree/same")].count(True) == 1
    assert int(got.headers["X-Svc-Archive-Members"]) == len(members)
    resolved("tse-bob")


def test_two_to_one_name(listener: Endpoint, box: Path) -> None:
    """ "One winner": whole, and whoever lost is told."""
    contents = [os.urandom(2 << 20) for _ in range(4)]
    for number in range(3):
        path = at(f"{box.name}/n{number}", "file")
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda content, path=path: listener.ask("PUT", path, content), contents))  # type: ignore[misc]
        statuses = sorted(answer.status for answer in answers)
        assert statuses == [201, 409, 409, 409], answers
        winner = next(
            content for content, answer in zip(contents, answers, strict=True) if answer.status == 201
        )
        assert (box / f"n{number}").read_bytes() == winner
        with ThreadPoolExecutor(4) as pool:
            forced = [pool.submit(listener.ask, "PUT", path + "&force=true", content) for content in contents]
            assert {one.result().status for one in forced} == {201}
        assert (box / f"n{number}").read_bytes() in contents
    assert sorted(os.listdir(box)) == ["n0", "n1", "n2"]


# --- cut short --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["length", "chunks"])
def test_an_upload_that_is_cut_leaves_nothing(listener: Endpoint, bob: Call, box: Path, how: str) -> None:
    fields = f"Content-Length: {BIG}" if how == "length" else "Transfer-Encoding: chunked"
    part = bytes(1 << 20) if how == "length" else b"100000\r\n" + bytes(1 << 20) + b"\r\n"
    for parts in (0, 1, 3):
        sock = listener.dial()
        with sock:
            sock.sendall(listener.head("PUT", at(f"{box.name}/cut", "file"), fields) + part * parts)
            if parts == 3:
                until(lambda: files.at_work("tse-bob"), 20)
            sock.shutdown(socket.SHUT_RDWR)
    resolved("tse-bob")
    assert os.listdir(box) == []
    until(lambda: {row["outcome"] for row in rows(bob, "fs.upload")[:6]} - {"begun", "ok"}, 20)
    assert listener.ask("PUT", at(f"{box.name}/cut", "file"), b"whole").status == 201


@pytest.mark.parametrize("what", ["download", "archive"])
def test_a_client_that_goes_ends_the_work(listener: Endpoint, bob: Call, box: Path, what: str) -> None:
    put("tse-bob", f"{box.name}/big", os.urandom(BIG))
    path = at(f"{box.name}/big" if what == "download" else box.name, what)
    with listener.begun(path) as answer:
        assert answer.status == 200 and len(answer.read(100_000)) == 100_000
        assert files.at_work("tse-bob")
    resolved("tse-bob")
    until(lambda: rows(bob, f"fs.{what}")[0]["outcome"] not in ("begun", "ok"), 20)


def test_a_file_that_changes_while_it_is_read(listener: Endpoint, box: Path) -> None:
    """Of one that becomes shorter nothing is made up; what is added is for the next download."""
    big = put("tse-bob", f"{box.name}/big", os.urandom(BIG))
    path = at(f"{box.name}/big", "download")
    with listener.begun(path) as answer:
        first = answer.read(100_000)
        os.truncate(big, BIG - 1000)
        with pytest.raises((IncompleteRead, OSError)):
            while part := answer.read(1 << 20):
                first += part
            raise IncompleteRead(b"")  # an end that looks like one is judged by its length
        assert len(first) < BIG
    resolved("tse-bob")
    size = big.stat().st_size
    with listener.begun(path) as answer:
        first = answer.read(100_000)
        with open(big, "ab") as file:
            file.write(b"more" * 1000)
        rest = answer.read()
    assert len(first) + len(rest) == size


def test_a_program_that_is_killed_says_how_to_go_on(
    service: Service, alice: Call, place: Callable[[str], Path]
) -> None:
    """The far end of a client's connection dies: the command, its end, and what to run again."""
    here = place("tse-alice")
    local = put("tse-alice", "../sparse")
    os.truncate(local, 3 << 30)  # long enough to be in the middle of it

    def upload() -> Outcome:
        return alice("fs", "upload", "sparse", f"work/{here.name}/sparse", timeout=120)

    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(upload)
        until(lambda: files.at_work("tse-alice"), 30)
        [agent] = files.agents("tse-alice")
        os.kill(agent.pid, 9)
        said = under_way.result()
    assert said.code == 1
    assert f"svc fs upload sparse work/{here.name}/sparse" in said.err, said.err
    assert os.listdir(here) == []
    must(alice("fs", "ls", f"work/{here.name}"))
    local.unlink()


# --- limits -----------------------------------------------------------------------------------


@pytest.fixture
def small(place: Callable[[str], Path]) -> Iterator[Path]:
    """A file system of 8 MiB below Bob's `work`."""
    folder = place("tse-bob") / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0755", "none", folder], check=True)
    yield files.give("tse-bob", folder)
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_full_disk_leaves_nothing(listener: Endpoint, small: Path, chunked: bool) -> None:
    path = f"{small.parent.name}/small"
    full = listener.ask("PUT", at(f"{path}/big", "file"), bytes(BIG), chunked=chunked)
    assert (full.status, full.code) == (507, "storage_full"), full
    assert os.listdir(small) == []
    kept = listener.ask("PUT", at(f"{path}/kept", "file"), b"x" * 100)
    assert kept.status == 201
    full = listener.ask("PUT", at(f"{path}/kept", "file", force="true"), bytes(BIG), chunked=chunked)
    assert (full.status, (small / "kept").read_bytes()) == (507, b"x" * 100), full
    resolved("tse-bob")
    fits = listener.ask("PUT", at(f"{path}/fits", "file"), bytes(5 << 20), chunked=chunked)
    assert fits.status == 201, "the room of what failed is free again"
    assert sorted(os.listdir(small)) == ["fits", "kept"]


def test_a_mount_point_is_not_removed(listener: Endpoint, small: Path) -> None:
    put("tse-bob", f"{small.parent.name}/beside", b"x")
    put("tse-bob", f"{small.parent.name}/small/in it", b"x")
    refused = listener.ask("DELETE", at(small.parent.name, "file", recursive="true"))
    assert refused.status == 409, refused
    assert (small / "in it").exists()


def test_limits_are_said_with_numbers(listener: Endpoint, box: Path) -> None:
    printed = listener.ask("GET", "/api/fs/roots").json()["limits"]
    assert printed["upload_max_bytes"] == 64 << 30
    length = f"Content-Length: {printed['upload_max_bytes'] + 1}"  # refused by it, before a byte came
    answer = ask(listener.dial(), listener.head("PUT", at(f"{box.name}/big", "file"), length))
    assert (answer.status, answer.code) == (413, "too_large"), answer
    details = json.loads(answer.body)["error"]["details"]
    assert details == {"limit": printed["upload_max_bytes"], "size": printed["upload_max_bytes"] + 1}
    os.truncate(put("tse-bob", f"{box.name}/hole"), printed["archive_max_bytes"] + 1)
    refused = listener.ask("GET", at(box.name, "archive"))
    assert (refused.status, refused.code) == (413, "too_large")
    assert refused.json()["error"]["details"]["limit"] == printed["archive_max_bytes"]
    resolved("tse-bob")


def test_the_program_refuses_a_file_that_is_too_large(alice: Call, place: Callable[[str], Path]) -> None:
    here, local = place("tse-alice"), put("tse-alice", "../huge")
    os.truncate(local, (64 << 30) + 1)
    refused = alice("fs", "upload", "huge", f"work/{here.name}/", timeout=30)
    assert refused.code == 1
    assert str(64 << 30) in refused.err or "64" in refused.err, refused.err
    local.unlink()


# --- the record -------------------------------------------------------------------------------


def test_every_operation_is_in_the_audit(listener: Endpoint, bob: Call, box: Path) -> None:
    """ "Every `fs` operation is audited on the server", also one that failed."""
    name, marker = box.name, f"m{time.time_ns():x}"
    put("tse-bob", f"{name}/{marker}", b"12345")
    asked = {
        "fs.list": ("GET", at(name, "list")),
        "fs.read": ("GET", at(f"{name}/{marker}", "read")),
        "fs.download": ("GET", at(f"{name}/{marker}", "download")),
        "fs.archive": ("GET", at(name, "archive")),
        "fs.mkdir": ("POST", at(f"{name}/{marker}-d", "mkdir")),
        "fs.upload": ("PUT", at(f"{name}/{marker}-u", "file")),
        "fs.move": ("POST", at(f"{name}/{marker}-u", "move")),
        "fs.remove": ("DELETE", at(f"{name}/{marker}-m", "file")),
    }
    bodies: dict[str, Any] = {
        "fs.mkdir": {},
        "fs.upload": b"1234567",
        "fs.move": {"to": f"{name}/{marker}-m"},
    }
    for action, (method, path) in asked.items():
        assert listener.ask(method, path, bodies.get(action)).status in (200, 201), action
    for action in asked:
        [row] = [row for row in rows(bob, action) if row["outcome"] != "begun"][:1]
        assert row["outcome"] == "ok", row
        assert row["via"] == ("session" if listener.headers else "socket")
        assert row["target"].startswith(f"work/{name}"), row
    sizes = {action: rows(bob, action)[0]["detail"].get("bytes") for action in asked}
    assert (sizes["fs.upload"], sizes["fs.download"], sizes["fs.read"]) == (7, 5, 5), sizes
    assert sizes["fs.archive"]
    for action, (method, path) in asked.items():
        listener.ask(method, path.replace(name, "absent"), bodies.get(action))
        [row] = rows(bob, action)[:1]
        assert row["outcome"] in ("not_found", "conflict"), (action, row)


def test_no_content_is_kept_anywhere(service: Service, listener: Endpoint, bob: Call, box: Path) -> None:
    """What is in a file is the user's: not in the log, the database or any other file of the service."""
    sign = os.urandom(24).hex().encode()
    assert listener.ask("PUT", at(f"{box.name}/f", "file"), sign * 100).status == 201
    for route in ("download", "read", "archive"):
        assert (
            listener.ask("GET", at(f"{box.name}/f" if route != "archive" else box.name, route)).status == 200
        )
    assert listener.ask("PUT", at(f"{box.name}/none/f", "file"), sign * 100).status == 404
    secrets = [sign, *(value.encode()[-40:] for value in listener.headers.values())]
    places = [service.log, *(path for path in STATE.rglob("*") if path.is_file())]
    for path in places:
        content = path.read_bytes()
        assert not [secret for secret in secrets if secret in content], path


def test_calls_while_a_file_is_slow(service: Service, bob: Call, listener: Endpoint, box: Path) -> None:
    """Four transfers of one user that nobody reads hold up no command, and a fifth is told to wait."""
    put("tse-bob", f"{box.name}/big", os.urandom(BIG))
    path = at(f"{box.name}/big", "download")
    with contextlib.ExitStack() as held:
        for _ in range(4):
            assert held.enter_context(listener.begun(path)).status == 200
        began = time.monotonic()
        must(bob("fs", "ls", f"work/{box.name}"))
        assert time.monotonic() - began < 10
        fifth = listener.ask("GET", path)
        assert (fifth.status, fifth.code) == (429, "too_many_requests"), fifth.status
        assert fifth.headers["Retry-After"]
    resolved("tse-bob")

    def again() -> bool:
        with contextlib.suppress(OSError, HTTPException):
            return listener.ask("GET", path).status == 200
        return False

    until(again, 20, 0.2)
