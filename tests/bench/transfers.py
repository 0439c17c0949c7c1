"""Files: 1 GiB up and down both ways, and memory under 20 transfers. Many files are in trees.py.

Beside them `cp`, a bare sendfile server on a Unix socket, a bare TLS server and `scp` where there is an sshd,
on the same files as the same user.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.pairs import Row, Shell, pair
from bench.ports import pss_kib
from bench.stage import USER, Stage
from e2e import files
from e2e.files import Endpoint, at
from e2e.installation import PASSWORD, SVC, remove_user
from e2e.surroundings import make_accounts
from hostile.attackers.raw import connect
from ports import free_port
from waiting import until

from svc.limits import FILE_PIPE

BIG = 1 << 30
ROUNDS = 7
RETURNED_S = 3.0  # after which a virtual machine has given freed memory back to its host: for both sides
OTHERS = tuple(f"tsq-b{number}" for number in range(4))
SSHD = shutil.which("sshd", path="/usr/sbin:/sbin")


def rows(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """All of them."""
    work = files.work(USER)
    files.put(USER, "big")
    with open(work / "big", "wb") as file:
        block = os.urandom(1 << 20)
        for number in range(BIG >> 20):
            file.write(number.to_bytes(8, "big") + block[8:])
    yield from _downloads(set_up, work / "big")
    yield from _copies(shell, set_up, work)
    if SSHD:
        yield from _scp(shell, work)
    (work / "big").unlink()
    yield from _memory(set_up)


# --- one great file ------------------------------------------------------------------------------


def _receive(sock: socket.socket, request: bytes) -> float:
    """Megabytes per second of an answer that is read to the end and thrown away."""
    room, got = bytearray(1 << 20), 0
    with sock:
        began = time.perf_counter()
        sock.sendall(request)
        while got < BIG and (count := sock.recv_into(room)):
            got += count
        took = time.perf_counter() - began
    if got < BIG:
        raise RuntimeError(f"only {got} bytes: {bytes(room[:300])!r}")
    return got / took / 1e6


def _rates(name: str, ours: Callable[[], float], theirs: Callable[[], float], bar: float | None) -> Row:
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(ROUNDS)]
    ratio = statistics.median(one / two for one, two in pairs)
    middle = [statistics.median(side) for side in zip(*pairs, strict=True)]
    return Row(name, middle[0], middle[1], ratio, bar, "MB/s", higher_is_better=True)


def _downloads(set_up: Stage, big: Path) -> Iterator[Row]:
    """A client that throws away what it gets: the service against as little as a server can do."""
    near = files.socket_of(USER, set_up.env)
    far = files.session_of(USER, set_up.env, PASSWORD)
    path = at("big", "download")

    def from_endpoint(endpoint: Endpoint) -> float:
        return _receive(endpoint.dial(), endpoint.head("GET", path, "Connection: close"))

    for what, buffer, bar in (("sendfile", 0, 0.9), ("sendfile, 1 MiB buffer", FILE_PIPE, None)):
        with bare_server(big, buffer=buffer) as address:
            theirs = partial(_receive_from, address)
            yield _rates(f"download 1 GiB, socket | {what}", lambda: from_endpoint(near), theirs, bar)
    tls = Path(set_up.env["SVC_DB"]).parent / "tls"
    with bare_server(big, tls) as address:
        yield _rates("download 1 GiB, TLS | bare TLS server", lambda: from_endpoint(far),
                     lambda: _receive(_dial_tls(int(address)), b"GET / HTTP/1.1\r\n\r\n"), None)  # fmt: skip


def _receive_from(address: str) -> float:
    return _receive(connect(address, USER), b"GET / HTTP/1.1\r\n\r\n")


def _dial_tls(port: int) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=60))


@contextlib.contextmanager
def bare_server(file: Path, tls: Path | None = None, buffer: int = 0) -> Iterator[str]:
    """A process that sends the file to whoever says anything; its socket's path, or its TLS port.

    `buffer` is that of the connection; 0: what the kernel gives everybody.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        address = os.path.join(folder, "bare.sock")
        listener = socket.create_server(("127.0.0.1", 0)) if tls else socket.socket(socket.AF_UNIX)
        if tls:
            address = str(listener.getsockname()[1])
        else:
            listener.bind(address)
            os.chmod(address, 0o666)
            listener.listen()
        pid = os.fork()
        if pid == 0:
            try:
                _serve(listener, file, tls, buffer)
            finally:
                os._exit(1)
        listener.close()
        try:
            yield address
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def _serve(listener: socket.socket, path: Path, tls: Path | None, buffer: int) -> None:
    """Until killed: the head and the file, by sendfile or in parts of 256 KiB through TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if tls:
        context.load_cert_chain(tls / "cert.pem", tls / "key.pem")
    while True:
        sock = listener.accept()[0]
        with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
            if tls:
                sock = context.wrap_socket(sock, server_side=True)
            sock.recv(65536)
            if buffer:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG)
            if tls:
                while part := file.read(256 << 10):
                    sock.sendall(part)
            else:
                while os.sendfile(sock.fileno(), file.fileno(), None, 64 << 20):
                    pass
        sock.close()


def _copies(shell: Shell, set_up: Stage, work: Path) -> Iterator[Row]:
    """The program itself, file to file, and a body over TLS, against `cp` with and without its fsync."""
    svc, target, copy = str(SVC), work / "up", work / "copy"
    big = str(work / "big")

    def away() -> None:
        for path in (target, copy):
            path.unlink(missing_ok=True)
        time.sleep(RETURNED_S)

    upload = shell.side(svc, "fs", "upload", big, "work/up", before=away)
    cp = shell.side("cp", big, str(copy), before=away)
    synced = shell.side("sh", "-c", f"cp {big} {copy} && sync {copy}", before=away)
    yield pair("fs upload 1 GiB | cp", upload, cp, bar=3.0, reach=1.15, rounds=ROUNDS)
    yield pair("fs upload 1 GiB | cp and sync", upload, synced, rounds=ROUNDS)
    download = shell.side(svc, "fs", "download", "work/big", str(target), before=away)
    yield pair("fs download 1 GiB | cp", download, cp, rounds=ROUNDS)
    far = files.session_of(USER, set_up.env, PASSWORD)

    def send() -> None:
        request = far.head("PUT", at("up", "file"), f"Content-Length: {BIG}", "Connection: close")
        with far.dial() as sock, open(big, "rb", buffering=0) as file:
            sock.settimeout(120)
            sock.sendall(request)
            while part := file.read(256 << 10):
                sock.sendall(part)
            answer = sock.recv(65536)
        if b" 201 " not in answer:
            raise RuntimeError(answer.decode(errors="replace"))

    yield pair("upload 1 GiB, TLS | cp", upload._replace(run=send), cp, rounds=ROUNDS)
    away()


def _scp(shell: Shell, work: Path) -> Iterator[Row]:
    """The same file through an sshd of its own on this host."""
    svc, target = str(SVC), work / "up"
    big, remote = str(work / "big"), f"{USER}@127.0.0.1"
    with sshd(shell) as options:
        away = lambda: target.unlink(missing_ok=True)  # noqa: E731  named for what it does
        for name, ours, arguments in (
            ("upload", (big, "work/up"), (big, f"{remote}:{target}")),
            ("download", ("work/big", str(target)), (f"{remote}:{big}", str(target))),
        ):
            mine = shell.side(svc, "fs", name, *ours, before=away)
            scp = shell.side("scp", *options, *arguments, before=away)
            yield pair(f"fs {name} 1 GiB | scp", mine, scp, rounds=3)
    target.unlink(missing_ok=True)


@contextlib.contextmanager
def sshd(shell: Shell) -> Iterator[list[str]]:
    """An sshd for the user's key alone; the options of ssh that lead to it."""
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        os.chown(folder / "user", shell.account.pw_uid, shell.account.pw_gid)
        settings = {
            "HostKey": folder / "host", "AuthorizedKeysFile": folder / "user.pub", "StrictModes": "no",
            "UsePAM": "yes", "PidFile": "none", "ListenAddress": "127.0.0.1", "Port": port,
            "Subsystem": "sftp internal-sftp",
        }  # fmt: skip
        (folder / "config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        server = subprocess.Popen([SSHD or "sshd", "-D", "-f", folder / "config"])
        options = ["-q", "-P", str(port), "-i", str(folder / "user")]
        options += ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
        try:
            until(lambda: _listens(port), 10)
            yield options
        finally:
            server.terminate()
            server.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


# --- memory ---------------------------------------------------------------------------------------


def _memory(set_up: Stage) -> Iterator[Row]:
    """PSS of helper, agents and listener while five users have four transfers each; idle beside it."""
    try:
        for name in OTHERS:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
        make_accounts(set_up.env, dict.fromkeys(OTHERS, PASSWORD.strip()))
        people = (USER, *OTHERS)
        for name in people:
            files.put(name, "part", os.urandom(1 << 20) * 64)
            files.socket_of(name, set_up.env).ask("GET", at("part", "download"), Range="bytes=0-9")
        before = _megabytes(set_up, people)
        under = _while_busy(set_up, people)
    finally:
        for name in OTHERS:
            remove_user(name)
    for argument, bar in (("helper", 10.0), ("agent", 10.0), ("listener", None)):
        yield Row(f"memory of {argument}, 20 transfers | idle", under[argument], before[argument],
                  under[argument] / before[argument], None, "MB")  # fmt: skip
        if bar:
            yield Row(
                f"memory of {argument}, 20 transfers | bar",
                under[argument],
                bar,
                under[argument] / bar,
                1.0,
                "MB",
            )


def _megabytes(set_up: Stage, people: tuple[str, ...]) -> dict[str, float]:
    agents = [pss_kib(one.pid) for name in people for one in files.agents(name)]
    endpoint = [one for one in set_up.service.members() if one.status["Name"] == "svc-unix"]
    return {
        "helper": pss_kib(set_up.service.member("svc_helper.root.__main__").pid) / 1024,
        "agent": max(agents) / 1024,
        "listener": max(pss_kib(one.pid) for one in endpoint) / 1024,
    }


def _while_busy(set_up: Stage, people: tuple[str, ...]) -> dict[str, float]:
    """The most of each while downloads, uploads and archives run for some seconds."""
    over = threading.Event()

    def transfer(name: str, number: int) -> None:
        endpoint, content = files.socket_of(name, set_up.env), bytes(32 << 20)
        while not over.is_set():
            if number == 0:
                endpoint.ask("PUT", at("new", "file", force="true"), content)
            else:
                route = "archive" if number == 1 else "download"
                path = at("part" if number != 1 else "", route)
                with endpoint.begun(path) as answer:
                    while answer.read(1 << 20):
                        pass

    threads = [
        threading.Thread(target=transfer, args=(name, number)) for name in people for number in range(4)
    ]
    for thread in threads:
        thread.start()
    most = _megabytes(set_up, people)
    for _ in range(20):
        time.sleep(0.4)
        for argument, value in _megabytes(set_up, people).items():
            most[argument] = max(most[argument], value)
    over.set()
    for thread in threads:
        thread.join()
    return most
