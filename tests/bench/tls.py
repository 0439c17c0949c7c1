"""Files over TLS: `curl` up and down at the TLS listener and at nginx: same certificate, suite and disk.

nginx is Debian's, one worker as the user whose files they are; its PUT stores into a file beside the target
and renames it, without an fsync. Beside the time stands the processor time of the servers, agent included,
without curl's own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.pairs import Row, Shell, Side, nothing, pair, timed
from bench.stage import USER, Stage
from e2e import files
from e2e.files import at
from e2e.installation import PASSWORD
from e2e.sshd import listens
from ports import free_port
from waiting import until

SIZE = 1 << 30
ROUNDS = int(os.environ.get("SVC_BENCH_ROUNDS", "7"))
SUITE = "TLS_AES_256_GCM_SHA384"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")
CONFIGURATION = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ }}
http {{
    access_log off; default_type application/octet-stream;
    client_body_temp_path {work}/.nginx-body; client_max_body_size 0;
    proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem; ssl_protocols TLSv1.3;
        location / {{ root {work}; dav_methods PUT; }}
    }}
}}
"""
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


class Server(NamedTuple):
    """One of the two: the addresses to send to and to get from, curl's options, and its processes."""

    to: str
    source: str
    options: tuple[str, ...]
    pids: Callable[[], list[int]]


def rows(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """An upload and a download, each in time and in processor time."""
    if NGINX is None:
        print("tls: no nginx here; tests/run bench -- tls installs it")
        return
    work = files.work(USER)
    big = files.put(USER, "big")
    with open(big, "wb") as file:
        block = os.urandom(1 << 20)
        for number in range(SIZE >> 20):
            file.write(number.to_bytes(8, "big") + block[8:])
    with tempfile.TemporaryDirectory() as name, nginx(shell, set_up, Path(name), work) as other:
        own = service(set_up, Path(name))
        yield from _up(shell, own, other, work)
        yield from _down(shell, own, other)
    for left in (big, work / "up", work / "copy"):
        left.unlink(missing_ok=True)
    shutil.rmtree(work / ".nginx-body", ignore_errors=True)


def service(set_up: Stage, folder: Path) -> Server:
    """The service, with a session of the user's, which curl reads from a file."""
    far = files.session_of(USER, set_up.env, PASSWORD)
    head = folder / "head"
    head.write_text("".join(f"{name}: {value}\n" for name, value in (far.headers | files.OCTETS).items()))
    head.chmod(0o644)
    url = f"https://localhost:{set_up.env['SVC_PORT']}"

    def pids() -> list[int]:
        return [one.pid for one in [*set_up.service.members(), *files.agents(USER)]]

    return Server(url + at("up", "file"), url + at("big", "download"), ("--header", f"@{head}"), pids)


@contextlib.contextmanager
def nginx(shell: Shell, set_up: Stage, folder: Path, work: Path) -> Iterator[Server]:
    """nginx with the service's certificate, as the user."""
    tls, port = Path(set_up.env["SVC_DB"]).parent / "tls", free_port()
    for name in ("cert.pem", "key.pem"):
        shutil.copyfile(tls / name, folder / name)
    (folder / "conf").write_text(CONFIGURATION.format(folder=folder, work=work, port=port))
    for path in (folder, *folder.iterdir()):
        os.chown(path, shell.account.pw_uid, shell.account.pw_gid)
    server = subprocess.Popen(
        [NGINX or "nginx", "-c", folder / "conf", "-e", folder / "error.log"],
        user=shell.account.pw_uid, group=shell.account.pw_gid, extra_groups=[],
    )  # fmt: skip
    try:
        until(lambda: listens(port), 20)
        url = f"https://localhost:{port}"
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
        yield Server(
            f"{url}/copy", f"{url}/big", (), lambda: [server.pid, *map(int, children.read_text().split())]
        )
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def _curl(shell: Shell, server: Server, *more: str) -> Callable[[], object]:
    """One request with the same suite for both; an error status is an error."""
    return lambda: shell(
        "curl", "--silent", "--show-error", "--fail", "--insecure", "--noproxy", "*",
        "--tls13-ciphers", SUITE, *server.options, *more,
    )  # fmt: skip


def _up(shell: Shell, own: Server, other: Server, work: Path) -> Iterator[Row]:
    def away() -> None:
        for name in ("up", "copy"):
            (work / name).unlink(missing_ok=True)

    def side(server: Server) -> Side:
        return Side(_curl(shell, server, "--upload-file", str(work / "big"), server.to), away)

    theirs = side(other)
    yield from _rows("upload 1 GiB, TLS", own, side(own), other, theirs)

    def synced() -> None:
        theirs.run()
        shell("sync", str(work / "copy"))

    yield pair("upload 1 GiB, TLS | nginx and sync", side(own), Side(synced, away), rounds=ROUNDS)


def _down(shell: Shell, own: Server, other: Server) -> Iterator[Row]:
    def side(server: Server) -> Side:
        return Side(_curl(shell, server, "--output", "/dev/null", server.source), nothing)

    yield from _rows("download 1 GiB, TLS", own, side(own), other, side(other))


def _rows(name: str, own: Server, ours: Side, other: Server, theirs: Side) -> Iterator[Row]:
    """Both rows of one direction, from the same runs, after an unmeasured pair."""
    timed(ours), timed(theirs)
    pairs = [(_measured(own, ours), _measured(other, theirs)) for _ in range(ROUNDS)]
    for number, what, bar, reach in ((0, "", 2.0, 1.2), (1, ", processor time", None, None)):
        ratio = statistics.median(one[number] / two[number] for one, two in pairs)
        mine, others = (statistics.median(pair[side][number] for pair in pairs) for side in (0, 1))
        yield Row(f"{name}{what} | nginx", mine, others, ratio, bar, reach=reach)


def _measured(server: Server, side: Side) -> tuple[float, float]:
    """Milliseconds of one run: by the clock, and of the server's processors."""
    before = _processor_ms(server)
    took = timed(side)
    return took, max(_processor_ms(server) - before, TICK_MS)


def _processor_ms(server: Server) -> float:
    total = 0.0
    for pid in server.pids():
        with contextlib.suppress(OSError):  # it ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += TICK_MS * (int(fields[11]) + int(fields[12]))
    return total
