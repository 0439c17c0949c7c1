"""The protocol spoken with the app's own uid: the helper acts only for enrolled, ordinary, active accounts.

A helper of its own (tests/helper/stage.py) and, against the running service, the
app's own end of a pair, taken from it.
"""

from __future__ import annotations

import array
import contextlib
import os
import pwd
import random
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from e2e.installation import command
from helper.stage import WS, Stage, call, remove_user

from svc_helper.wire.protocol import VERBS, encode, send

CANARY = "/root/tsz-canary"
NAME = "tsz-ada"
APP = pwd.getpwnam("svc-unix").pw_uid if "svc-unix" in {one.pw_name for one in pwd.getpwall()} else 0


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A helper that takes this process for the app; tsz-ada is enrolled."""
    remove_user(NAME)
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", NAME], check=True)
    pam = "/etc/pam.d/tsz-svc"
    with open(pam, "w", encoding="ascii") as file:
        file.write(
            "auth sufficient pam_rootok.so\naccount required pam_permit.so\nsession required pam_permit.so\n"
        )
    stage = Stage(pam_service="tsz-svc")
    stage.enrol(f"{NAME} {pwd.getpwnam(NAME).pw_uid} user")
    yield stage
    stage.close()
    remove_user(NAME)
    os.unlink(pam)


@pytest.fixture(autouse=True)
def canary() -> Iterator[None]:
    """A file of root's alone that nothing here may read, change or give away."""
    with open(CANARY, "w", encoding="ascii") as file:
        file.write("root's own")
    os.chmod(CANARY, 0o600)
    before = os.stat(CANARY)
    yield
    after = os.stat(CANARY)
    assert (before.st_mtime_ns, before.st_uid, before.st_mode) == (
        after.st_mtime_ns,
        after.st_uid,
        after.st_mode,
    )
    os.unlink(CANARY)


STRANGERS = [
    "root", "nobody", "svc", "daemon", "sync", "tsz-none", "-x", "--help", "0", "1000", "x" * 257, "a\nb",
    "a:b",    "a/b", "../root", "tsz-ada\0", "TSZ-ADA", "tsz-ada ", "", " ", "é",
    ".", "..", "@", "@x", "a%b", "tsz-ada@", "tsz.ada", "a\u202eb", "*", None, 0, 1000, True, ["tsz-ada"], {},
]  # fmt: skip


@pytest.mark.parametrize("pair_name", ["unix", "tls", "worker", "admin"])
def test_nobody_but_the_enrolled(stage: Stage, pair_name: str) -> None:
    for user in STRANGERS:
        for verb in ("ctr.inspect", "ctr.exec", "image.pull", "account.mark"):
            answer = stage.ask(pair_name, call(verb, user, {**WS}))
            assert answer is None or answer["ok"] is False, (user, verb, answer)
    with contextlib.suppress(FileNotFoundError):
        enrolled = (stage.directory / "enrolled").read_text()
        assert [line.split()[0] for line in enrolled.splitlines()] == [NAME]


def test_every_verb_on_every_pair_that_is_not_its_own(stage: Stage) -> None:
    for verb in VERBS.values():
        for pair_name in {"unix", "tls", "worker", "admin"} - verb.pairs:
            answer = stage.ask(pair_name, call(verb.name, NAME, {}))
            assert answer is None or answer.get("code") == "protocol", (verb.name, pair_name)


def test_system_accounts_are_refused_even_when_enrolled(stage: Stage) -> None:
    uid = pwd.getpwnam(NAME).pw_uid
    stage.enrol(
        "root 0 administrator",
        "daemon 1 administrator",
        "nobody 65534 user",
        f"svc-unix {APP} user",
        f"{NAME} {uid} user",
    )
    try:
        for user in ("root", "daemon", "nobody", "svc"):
            answer = stage.ask("worker", call("ctr.inspect", user, WS), wait_s=15)
            assert answer is not None
            assert answer["ok"] is False, user
    finally:
        stage.enrol(f"{NAME} {uid} user")


def forged(stage: Stage, uid: int) -> Iterator[tuple[str, list[socket.socket]]]:
    """Sockets that look like a connection of that uid and are none; the first one is shown."""
    yield "a pair", list(socket.socketpair())
    client = socket.socket(socket.AF_UNIX)
    client.connect(stage.socket_path)
    accepted = stage.listener.accept()[0]
    yield "the client's own end", [client, accepted]
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"\0tsz-{os.getpid()}")
    listening.listen()
    yield "a listener", [listening]
    yield "a datagram", [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)]
    yield "not connected", [socket.socket(socket.AF_UNIX)]
    yield "another family", [socket.socket(socket.AF_INET)]
    with stage.connection(uid) as (theirs, ours):
        gone = [socket.socket(fileno=os.dup(theirs.fileno())), socket.socket(fileno=os.dup(ours.fileno()))]
    gone[0].shutdown(socket.SHUT_RDWR)
    yield "hung up", [gone[1], gone[0]]


def test_forged_peers(stage: Stage) -> None:
    uid = pwd.getpwnam(NAME).pw_uid
    for what, kept in forged(stage, uid):
        for user in (NAME, "root"):
            answer = stage.ask("unix", call("ctr.inspect", user, WS), kept[0].fileno())
            assert answer is None or answer["ok"] is False, what
        for sock in kept:
            sock.close()


def test_what_is_no_socket_at_all(stage: Stage) -> None:
    read, write = os.pipe()
    opened = [
        read,
        write,
        os.open("/", os.O_PATH),
        os.open(CANARY, os.O_RDONLY),
        os.open("/dev/null", os.O_RDWR),
    ]
    opened += [os.memfd_create("x"), os.pidfd_open(os.getpid()), os.eventfd(0)]
    before = stage.descriptors()
    try:
        for fd in opened:
            answer = stage.ask("unix", call("ctr.inspect", NAME, WS), fd)
            assert answer is None or answer["ok"] is False
            for fds in ([fd], [fd, fd], [fd] * 4):  # in the reply path's place
                send(stage.pairs["worker"], call("helper.ping", None, {}), fds)
    finally:
        for fd in opened:
            os.close(fd)
    assert stage.descriptors() == before


def test_a_bomb_of_descriptors(stage: Stage) -> None:
    before = stage.descriptors()
    read, write = os.pipe()
    for count in (5, 64, 253):
        for _ in range(20):
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [read] * count))]
            stage.pairs["tls"].sendmsg([encode(call("helper.ping", None, {}))], rights)
    os.close(read)
    os.close(write)
    assert stage.descriptors() == before
    nested, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for _ in range(50):  # reply paths that carry themselves, and that nobody reads
        send(nested, {"x": 1}, [inner.fileno()])
        send(stage.pairs["tls"], call("helper.ping", None, {}), [nested.fileno()])
    nested.close()
    inner.close()
    assert stage.descriptors() == before


def test_frames_at_random(stage: Stage) -> None:
    rng = random.Random(20)
    good = encode(call("ctr.inspect", NAME, WS))
    before = stage.descriptors()
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(rng.randint(1, 8)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 4))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))]
            stage.pairs["tls"].sendmsg([data or b" "], rights if rng.random() < 0.9 else [])
    for frame in (
        b"",
        b"\0" * 65536,
        b"[" * 65536,
        b'"' * 65536,
        b'"\\' * 32768,
        b'{"a":' * 9000,
        b"{" * 65537,
    ):
        with contextlib.suppress(OSError):
            stage.pairs["tls"].send(frame)
    assert stage.process.poll() is None
    assert stage.descriptors() <= before + 4  # an agent's channel may have been opened
    assert set(stage.ping()) >= {"violations"}


def test_another_uid_on_the_pair_is_nobody(stage: Stage) -> None:
    """The pair in a wrong process's hands (here: tsz-ada's) is a violation, whatever it says."""
    uid = pwd.getpwnam(NAME).pw_uid
    before = stage.ping()["violations"]
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.setresuid(uid, uid, uid)
            _, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            send(stage.pairs["worker"], call("ctr.inspect", NAME, WS), [theirs.fileno()])
        os._exit(0)
    os.waitpid(pid, 0)
    assert stage.ping()["violations"] == before + 1


NAMESPACE = """
import os, socket, sys
path = sys.argv[1]
os.unlink(path) if os.path.exists(path) else None
listener = socket.socket(socket.AF_UNIX); listener.bind(path); listener.listen()
client = socket.socket(socket.AF_UNIX); client.connect(path)
accepted, _ = listener.accept()
out = socket.socket(fileno=int(sys.argv[2]))
socket.send_fds(out, [b"x"], [client.fileno(), accepted.fileno(), listener.fileno()])
out.recv(1)
"""


def test_our_path_in_another_mount_namespace(stage: Stage) -> None:
    """The app can make itself a /run of its own, with a socket of the same name, made by its "root"."""
    ours, theirs = socket.socketpair()
    directory = os.path.dirname(stage.socket_path)
    script = 'mount -t tmpfs none "$0" && exec "$@"'
    child = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "--net", "sh", "-c", script, directory,
         sys.executable, "-I", "-c", NAMESPACE, stage.socket_path, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
    )  # fmt: skip
    theirs.close()
    with ours:
        ours.settimeout(10)
        data, fds, _, _ = socket.recv_fds(ours, 1, 3)
        assert data == b"x"
        for fd in fds:
            for user in (NAME, "root"):
                answer = stage.ask("unix", call("ctr.inspect", user, WS), fd)
                assert answer is not None
                assert answer["code"] == "refused"
            os.close(fd)
    child.wait(10)


HOMES = {
    "an unreadable home": "chmod 0 ~",
    "a home that is a FIFO's": "rm -rf ~/.config; mkdir -p ~/.config; mkfifo ~/.config/containers",
    "a runtime directory of links": "rm -rf $XDG_RUNTIME_DIR/svc; ln -s /root $XDG_RUNTIME_DIR/svc",
    "files that are FIFOs": "cd $XDG_RUNTIME_DIR; rm -rf svc; mkdir svc; cd svc;"
    " mkfifo agent.log podman.log containers.conf locks containers",
    "a link to root's file": "cd $XDG_RUNTIME_DIR; rm -rf svc; mkdir svc; cd svc;"
    f" for n in agent.log podman.log containers.conf; do ln -s {CANARY} $n; done",
    "a work root that is a link": "rm -rf ~/work; ln -s /root ~/work",
}


@pytest.mark.parametrize("what", HOMES)
def test_a_home_against_root(stage: Stage, what: str) -> None:
    """Whatever the user made of the home: the helper goes on, and root opens nothing of it."""
    account = pwd.getpwnam(NAME)
    runtime = f"/run/user/{account.pw_uid}"
    stage.ask("worker", call("ctr.inspect", NAME, {"id": "ws-exit0000"}), wait_s=20)  # makes the directory
    around = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": runtime}
    created = command(NAME, "sh", "-c", HOMES[what], env=around)
    assert created.code == 0, created.err
    listing = sorted(os.listdir("/root"))
    try:
        stage.ask("worker", call("ctr.inspect", NAME, WS), wait_s=20)
        answer = stage.ask("admin", call("account.ensure", NAME, {"administrator": False}, 60), wait_s=60)
        assert answer is not None
        assert stage.ping()["violations"] >= 0
        assert sorted(os.listdir("/root")) == listing
    finally:
        os.chmod(account.pw_dir, 0o700)
        command(NAME, "sh", "-c", "rm -rf ~/.config ~/work $XDG_RUNTIME_DIR/svc", env=around)
        stage.enrol(f"{NAME} {account.pw_uid} user")


def test_a_race_for_the_runtime_directory(stage: Stage) -> None:
    """While agents start, the user exchanges what is below the runtime directory for links to root's file."""
    account = pwd.getpwnam(NAME)
    runtime = f"/run/user/{account.pw_uid}"
    links = f"ln -s /root svc; rm -f svc; mkdir svc; ln -s {CANARY} svc/agent.log"
    loop = f"cd {runtime}; while :; do rm -rf svc; {links}; done"
    racer = subprocess.Popen(
        ["sh", "-c", loop], user=account.pw_uid, group=account.pw_gid, stderr=subprocess.DEVNULL
    )
    listing = sorted(os.listdir("/root"))
    try:
        for number in range(30):
            stage.ask("worker", call("ctr.inspect", NAME, {"id": f"ws-exit{number:04d}"}), wait_s=20)
    finally:
        racer.kill()
        racer.wait()
        subprocess.run(["rm", "-rf", f"{runtime}/svc"], check=True)
    assert sorted(os.listdir("/root")) == listing
    assert stage.ping()
