"""Bundles that mean harm, through the service itself: by the API, by `template import`, by root's `admin`.

"nothing written outside staging": the trees around are the same before and after, and staging itself is
an unnamed file of which nothing is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from depths import sample
from e2e.installation import APP_ACCOUNTS, SVC, Call, Outcome, Service, command, run
from e2e.surroundings import in_database
from hostile.attackers.archives import ARCHIVES, MARK, TEMPLATES, describing, start
from hostile.attackers.raw import Answer, ask, connect
from hostile.conftest import STATE
from hostile.test_cli import CONTROL
from unit.bundling import header, written
from waiting import until

from svc.limits import BUNDLE_MAX

MIB = 1024 * 1024
IMPORT = "/api/templates/import"
COUNTS = (
    "SELECT (SELECT count(*) FROM templates), (SELECT count(*) FROM template_revisions),"
    " (SELECT count(*) FROM files), (SELECT count(*) FROM context_files)"
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody reaches."""
    created = Path(tempfile.mkdtemp(prefix="tsz-", dir="/tmp"))
    created.chmod(0o755)
    yield created
    shutil.rmtree(created)


SHARED = ("/", "/tmp", "/var/tmp", "/root", "/etc", "/run")  # others write there too
DEPTH = 2  # an archive's way out ends near the top
EACH_WAY = 5  # archives at every depth
SAME_READER = "each way has the one reader, to which the unit suite gives all of them"


def trees(place: Path | None = None) -> dict[str, tuple[int, ...]]:
    """All that lies where something could have been written, but what the service itself writes on and on."""
    ours = {pwd.getpwnam(name).pw_uid for name in (*APP_ACCOUNTS, "tsz-mallory", "tsz-alice")}
    homes = [pwd.getpwnam(name).pw_dir for name in ("tsz-mallory", "tsz-alice")]
    found: dict[str, tuple[int, ...]] = {}
    for top in (str(STATE), *homes, *SHARED):
        for folder, names, files in os.walk(top):
            names[:] = [name for name in names if os.path.join(folder, name) not in (str(place), "/proc")]
            if ".local/share/containers" in folder:
                names.clear()
            for path in (os.path.join(folder, name) for name in (*names, *files)):
                with contextlib.suppress(OSError):
                    status = os.lstat(path)
                    if top in SHARED and status.st_uid not in ours and MARK not in path:
                        continue
                    grows = os.path.basename(path).startswith("svc.db") or path.endswith((".log", ".lock"))
                    found[path] = (status.st_mode, status.st_uid, -1 if grows else status.st_size)
            if top in SHARED and folder.removeprefix(top).count("/") >= DEPTH - 1:
                names.clear()
    return found


class Seen(NamedTuple):
    """What a test has left: all that lies where something could have been written, and the rows."""

    trees: dict[str, tuple[int, ...]]
    rows: list[list[object]]
    fixtures: frozenset[str]  # of that test


@pytest.fixture(scope="module")
def last_seen() -> list[Seen]:
    """What the test before has left; nothing where that test may write."""
    return []


@pytest.fixture(autouse=True)
def written_by_others(request: pytest.FixtureRequest, last_seen: list[Seen]) -> None:
    """Forget it after a test that may write, and before one whose fixtures may."""
    names = set(request.fixturenames)
    if "nothing_written" not in names or (last_seen and not names <= last_seen[0].fixtures):
        last_seen.clear()


@pytest.fixture
def nothing_written(
    request: pytest.FixtureRequest, service: Service, place: Path, last_seen: list[Seen]
) -> Iterator[None]:
    """Around the test, from the end of the last: no file more or less or other, no row more, none staged."""

    def look() -> Seen:
        return Seen(trees(place), in_database(service.env, COUNTS), frozenset(request.fixturenames))

    before = last_seen.pop() if last_seen else look()
    yield
    after = look()
    assert after.trees.keys() == before.trees.keys(), after.trees.keys() ^ before.trees.keys()
    assert {path: fact for path, fact in after.trees.items() if before.trees[path] != fact} == {}
    assert after.rows == before.rows
    until(lambda: not staged(service), 5)
    last_seen.append(after)


def staged(service: Service) -> list[str]:
    """The unnamed files beside the database that a process of the service still has."""
    found = []
    for one in service.members():
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{one.pid}/fd"):
                target = os.readlink(f"/proc/{one.pid}/fd/{number}")
                if target.endswith("(deleted)") and target.startswith(str(STATE)):
                    found.append(f"{one.args}: {target}")
    return found


def upload(
    service: Service, data: bytes, *headers: str, query: str = "", user: str = "tsz-mallory"
) -> Answer:
    """POST the bytes as a bundle, with a length unless the headers say otherwise."""
    lines = [f"POST {IMPORT}{query} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    value = {line.partition(":")[0].lower() for line in headers}
    if "content-type" not in value:
        lines.append("Content-Type: application/x-tar")
    if not value & {"content-length", "transfer-encoding"}:
        lines.append(f"Content-Length: {len(data)}")
    return ask(connect(service.env["SVC_SOCKET"], user), "\r\n".join([*lines, "", ""]).encode() + data)


def peak(service: Service) -> Callable[[], int]:
    """A function that says how many KiB the service's processes have needed more at their highest since."""
    mine = service.members()
    for one in mine:
        Path(f"/proc/{one.pid}/clear_refs").write_text("5")
    before = {one.pid: int(one.status["VmRSS"].split()[0]) for one in mine}

    def grown() -> int:
        after = {one.pid: int(one.status["VmHWM"].split()[0]) for one in service.members()}
        return max(high - before.get(pid, high) for pid, high in after.items())

    return grown


def refused(answer: Answer) -> dict[str, object]:
    """The error of an answer, which has to be a refusal in words."""
    assert 400 <= answer.status < 500, answer
    error = dict(json.loads(answer.body)["error"])
    assert error["code"] in ("validation_failed", "too_large", "invalid_request"), error
    assert str(error["message"]).isprintable()
    return error


@pytest.mark.parametrize("what", sample([*ARCHIVES], EACH_WAY, SAME_READER))
def test_the_api_refuses(service: Service, nothing_written: None, what: str) -> None:
    data = ARCHIVES[what]()
    grown, began = peak(service), time.monotonic()
    answer = upload(service, data)
    if answer.status == 0:  # hung up on while it still sent: more than may be
        assert len(data) > BUNDLE_MAX
    else:
        refused(answer)
    assert time.monotonic() - began < 30
    assert grown() < 48 * 1024, "the largest is 64 MiB, and 512 MB were offered"


@pytest.mark.parametrize("what", sample([*TEMPLATES], EACH_WAY, SAME_READER))
def test_the_api_refuses_what_it_describes(service: Service, nothing_written: None, what: str) -> None:
    error = refused(upload(service, describing(TEMPLATES[what])))
    assert error["fields"]


def local_file(place: Path, data: bytes) -> str:
    """A file of these bytes that everybody can read; its path."""
    path = place / f"{MARK}.tar"
    path.write_bytes(data)
    path.chmod(0o644)
    return str(path)


def refused_by_command(said: Outcome) -> None:
    """A command ended with one line on standard error, and nothing else came of it."""
    assert said.code == 1, said
    assert said.out == ""
    assert said.err.startswith("svc: "), said.err
    assert "Traceback" not in said.err
    assert not CONTROL.search(said.err.replace("\n", "")), ascii(said.err)


BY_COMMAND = [what for what in ARCHIVES if what != "a million members"]


@pytest.mark.parametrize("what", sample(BY_COMMAND, EACH_WAY, SAME_READER))
def test_the_command_refuses(mallory: Call, place: Path, nothing_written: None, what: str) -> None:
    refused_by_command(mallory("template", "import", local_file(place, ARCHIVES[what]())))


@pytest.mark.parametrize("what", sample(BY_COMMAND, EACH_WAY, SAME_READER))
def test_root_refuses(service: Service, place: Path, nothing_written: None, what: str) -> None:
    """By `svc admin template import`, which is "run on the host as root": root itself reads none of it."""
    path = local_file(place, ARCHIVES[what]())
    for whose in (("--global",), ("--owner", "tsz-alice")):
        refused_by_command(run("root", "admin", "template", "import", path, *whose, env=service.env))


@pytest.mark.parametrize("what", sample([*TEMPLATES], EACH_WAY, SAME_READER))
def test_root_refuses_what_it_describes(
    service: Service, place: Path, nothing_written: None, what: str
) -> None:
    path = local_file(place, describing(TEMPLATES[what]))
    refused_by_command(run("root", "admin", "template", "import", path, "--global", env=service.env))


GREAT = ("ten gigabytes in a gzip", "zeros up to the limit", "more than may be", "too many members listed")


@pytest.mark.parametrize("what", GREAT)
def test_the_commands_need_little_memory_for_it(
    service: Service, place: Path, nothing_written: None, what: str
) -> None:
    """With 96 MiB of data for a whole process a great archive is refused in the same words."""
    path = local_file(place, ARCHIVES[what]())
    for user, arguments in (
        ("tsz-mallory", ("template", "import", path)),
        ("root", ("admin", "template", "import", path, "--global")),
    ):
        bounded = ("prlimit", f"--data={96 * MIB}", str(SVC), *arguments)
        refused_by_command(command(user, *bounded, env=service.env))


# --- how it comes -----------------------------------------------------------------------------


def test_a_body_of_another_kind(service: Service, nothing_written: None) -> None:
    for kind in ("application/json", "application/gzip", "multipart/form-data; boundary=x", "text/plain"):
        assert refused(upload(service, written(), f"Content-Type: {kind}"))["code"] == "invalid_request"


@pytest.mark.parametrize("length", [BUNDLE_MAX + 1, 10 * 1024**3, 2**63, 2**64])
def test_a_length_that_promises_too_much(service: Service, nothing_written: None, length: int) -> None:
    answer = upload(service, b"x" * 1024, f"Content-Length: {length}")
    assert answer.status in (0, 400, 413), answer


@pytest.mark.parametrize("length", ["-1", "+5", "0x10", "5, 6", "five"])
def test_a_length_that_is_none(service: Service, nothing_written: None, length: str) -> None:
    assert upload(service, written(), f"Content-Length: {length}").status in (0, 400)


def test_chunks_without_an_end(service: Service, nothing_written: None) -> None:
    """As much as may be and more, and no length said; then cut, and lied about."""
    chunk = b"%x\r\n" % MIB + bytes(MIB) + b"\r\n"
    grown = peak(service)
    for body in (chunk * 80, chunk * 80 + b"0\r\n\r\n", chunk + b"zz\r\n", chunk + b"fffffff\r\nx", chunk):
        sock = connect(service.env["SVC_SOCKET"], "tsz-mallory")
        head = f"POST {IMPORT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-tar\r\n"
        with contextlib.suppress(OSError):
            sock.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + body)
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
        answer = ask(sock, b"")
        assert answer.status == 0 or 400 <= answer.status < 500, answer
    assert grown() < 48 * 1024


def test_cut_while_it_is_sent(service: Service, nothing_written: None) -> None:
    for part in (0, 1, 700, 60_000):
        data = start() + header("context/a", 100_000) + bytes(100_000)
        head = f"POST {IMPORT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-tar\r\n"
        with connect(service.env["SVC_SOCKET"], "tsz-mallory") as sock:
            sock.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(data) + data[:part])


def test_many_at_once_take_no_more_than_their_share(
    service: Service, nothing_written: None, unmoved: Callable[[], float]
) -> None:
    """Sixteen great ones at a time by one user: some have to wait, nobody else does."""
    data, grown = ARCHIVES["zeros up to the limit"](), peak(service)
    with ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(upload, service, data) for _ in range(16)]
        assert unmoved() < 2
        codes = {future.result().status for future in answers}
    assert codes <= {422, 429}, codes
    assert grown() < 128 * 1024


def test_scope_global_is_for_administrators(service: Service, nothing_written: None) -> None:
    for query in ("?scope=global", "?scope=global&scope=private", "?scope=root", "?scope=%67lobal"):
        answer = upload(service, written(), query=query)
        assert answer.status in (400, 403, 422), (query, answer)


# --- what root is given -----------------------------------------------------------------------


def test_root_opens_regular_files_only(service: Service, place: Path, nothing_written: None) -> None:
    account = pwd.getpwnam("tsz-mallory")
    os.chmod(place, 0o777)
    (place / "pipe").unlink(missing_ok=True)
    os.mkfifo(place / "pipe")
    (place / "link").symlink_to("/etc/shadow")
    (place / "loop").symlink_to(place / "loop")
    (place / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(place / "sock"))
        for name in ("pipe", "link", "loop", "folder", "sock"):
            os.lchown(place / name, account.pw_uid, account.pw_gid)
        planted = [place / name for name in ("pipe", "link", "loop", "folder", "sock", "none")]
        for path in (*planted, "/dev/zero", "/dev/null", "/proc/self/mem", "/etc/shadow", "/proc/kmsg", ""):
            for whose in (("--global",), ("--owner", "tsz-alice")):
                began = time.monotonic()
                said = run(
                    "root", "admin", "template", "import", str(path), *whose, env=service.env, timeout=20
                )
                assert said.code in (1, 2), (path, said)
                assert "Traceback" not in said.err and "root:" not in said.err
                assert time.monotonic() - began < 10


def test_root_imports_for_nobody(service: Service, place: Path, nothing_written: None) -> None:
    path = local_file(place, registry_bundle())
    for owner in ("root", "nobody", "svc", "tsz-carol", "-x", "../root", "0", "", "tsz-alice\n", "é"):
        said = run("root", "admin", "template", "import", path, f"--owner={owner}", env=service.env)
        assert said.code in (1, 2), (owner, said)
        assert "Traceback" not in said.err
    both = run("root", "admin", "template", "import", path, "--global", "--owner=tsz-alice", env=service.env)
    neither = run("root", "admin", "template", "import", path, env=service.env)
    assert (both.code, neither.code) == (2, 2)


def registry_bundle() -> bytes:
    """A good bundle without a Dockerfile."""
    source = {"type": "registry", "image_ref": "registry.example/a:1"}
    return written({"name": MARK, "source": source}, dockerfile=None, files={})


def test_only_root_calls_it(service: Service, mallory: Call, place: Path, nothing_written: None) -> None:
    said = mallory("admin", "template", "import", local_file(place, registry_bundle()), "--global")
    assert said.code == 1
    assert "sudo svc admin" in said.err


def test_a_file_that_changes_while_root_reads_it(service: Service, place: Path) -> None:
    """What is read is judged as it was staged: an import that succeeds has no member but the listed ones."""
    path = local_file(place, registry_bundle())
    good, bad = registry_bundle(), ARCHIVES["a link and a file through it"]()
    script = f"while :; do cat {place}/good >{path}; cat {place}/bad >{path}; done"
    (place / "good").write_bytes(good)
    (place / "bad").write_bytes(bad)
    before = trees(place)
    racer = subprocess.Popen(["sh", "-c", script])
    try:
        for _ in range(6):
            said = run("root", "admin", "template", "import", path, "--owner", "tsz-alice", env=service.env)
            assert said.code in (0, 1) and "Traceback" not in said.err, said
    finally:
        racer.kill()
        racer.wait()
    assert trees(place).keys() == before.keys()
    kept = in_database(service.env, "SELECT id FROM templates WHERE name LIKE ?", f"{MARK}%")
    for (template,) in kept:
        printed = run("tsz-alice", "template", "get", str(template), "--json", env=service.env).json()
        assert (printed["status"], printed["source"]["type"]) == ("disabled", "registry")
        assert run("tsz-alice", "template", "delete", str(template), "--yes", env=service.env).code == 0


def test_a_good_one_is_taken_all_the_same(service: Service, mallory: Call, place: Path) -> None:
    """The same ways, with nothing wrong: so the refusals above are those of the archives.

    "Imports a host-local bundle, disabled for review": "`--owner` makes a private template of that user".
    """
    path = local_file(place, registry_bundle())
    said = mallory("template", "import", path, "--json")
    assert said.code == 0, said.err
    assert said.json()["status"] == "disabled"
    assert mallory("template", "delete", said.json()["id"], "--yes").code == 0
    created = run("root", "admin", "template", "import", path, "--owner", "tsz-mallory", env=service.env)
    assert created.code == 0, created.err
    printed = mallory("template", "get", MARK, "--json").json()
    assert (printed["status"], printed["scope"], printed["owner"]) == ("disabled", "private", "tsz-mallory")
    assert mallory("template", "delete", MARK, "--yes").code == 0
