"""Releases as the vendor makes them, of packages that hold next to nothing, and a server that has them."""

from __future__ import annotations

import base64
import functools
import http.server
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unit.licensing import ROOT, run_tool

from svc.admin.backup import package

COMMIT = "c" * 40
NEXT_SCHEMA = len(list((ROOT / "schema/migrations").glob("*.sql"))) + 1
LAUNCHER = """\
#!{python} -I
import sys
from os.path import dirname, join, realpath

sys.path.insert(0, join(dirname(realpath(__file__)), "python"))
from svc.__main__ import main

sys.exit(main())
"""


def vendor(*argv: object) -> str:
    """What `packaging/vendor/release` prints; SystemExit when it refuses."""
    return run_tool("release", *argv)


def make_package(folder: Path, version: str = "1.2.0", commit: str = COMMIT, **fields: str) -> Path:
    """A package for this host with the files that the vendor's tool reads, and 64 KiB of filling.

    `fields` of its control file, with _ for -; an empty one is left out.
    """
    tree = folder / f"tree-{version}"
    program = tree / "usr/lib/svc/python/svc"
    (program / "schema/migrations").mkdir(parents=True)
    (program / "schema/migrations/0001_initial.sql").write_text("")
    (program / "schema/migrations/0009_new.sql").write_text("")
    (program / "_build.py").write_text(f"COMMIT = {commit!r}\n")
    (program / "filling").write_bytes(bytes(byte * byte % 251 for byte in range(65536)))
    return _packed(tree, folder / f"svc_{version.replace(':', '.')}_amd64.deb", version, **fields)


def _packed(tree: Path, path: Path, version: str, **fields: str) -> Path:
    (tree / "DEBIAN").mkdir()
    control = {
        "Package": "svc", "Version": version, "Architecture": "amd64", "Installed-Size": "100",
        "Maintainer": "Example <svc@example.org>", "Description": "test", "Svc-System": package.system(),
    } | {name.replace("_", "-"): value for name, value in fields.items()}  # fmt: skip
    lines = (f"{name}: {value}\n" for name, value in control.items() if value)
    (tree / "DEBIAN/control").write_text("".join(lines))
    command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(path)]
    subprocess.run(command, check=True, capture_output=True)
    shutil.rmtree(tree)
    return path


def make_program(
    folder: Path, version: str, commit: str, migration: str = "", release: str = "", **files: str
) -> Path:
    """A package of this tree's program, with one more migration; `files` replaces modules, by dotted name."""
    tree = folder / f"program-{version}"
    packages = tree / "usr/lib/svc/python"
    packages.mkdir(parents=True)
    for name, target in (("svc", "svc"), ("svc_helper", "svc_helper"), ("schema", "svc/schema")):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, packages / target, ignore=ignored)
    (packages / "svc/_build.py").write_text(f"COMMIT = {commit!r}\nLICENSE_KEYS = []\nRELEASE_KEYS = []\n")
    if migration:
        (packages / f"svc/schema/migrations/{NEXT_SCHEMA:04d}_new.sql").write_text(migration)
    for name, text in files.items():
        (packages / f"{name.replace('__', '/')}.py").write_text(text)
    launcher = tree / "usr/lib/svc/svc"
    launcher.write_text(LAUNCHER.format(python=sys.executable))
    launcher.chmod(0o755)
    return _packed(tree, folder / f"svc_{version}_amd64.deb", version, Svc_Release=release)


class ReleaseVendor:
    """A vendor of releases with a key pair; the directory holds the keys."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.key = directory / "release.pem"
        self.keys = directory / "release-keys"
        self.keys.write_text(vendor("keygen", self.key))

    @property
    def public(self) -> bytes:
        """The public key."""
        return base64.b64decode(self.keys.read_text().split()[0])

    def sign(self, folder: Path, *packages: object, min_from: str = "0.1", **options: Any) -> Path:
        """Put a release into the folder; options as the tool's."""
        argv = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        vendor("sign", "--key", self.key, "--min-from", min_from, "--out", folder, *argv, *packages)
        return folder

    def release(self, folder: Path, version: str = "1.2.0", **options: Any) -> Path:
        """A release of one package, in a folder of its own."""
        work = folder / f"build-{version}-{time.monotonic_ns()}"
        work.mkdir(parents=True)
        return self.sign(folder / "release", make_package(work, version), **options)

    def resign(self, folder: Path, **members: Any) -> None:
        """Sign a release again with other members, as only the key's holder can."""
        import json

        from cryptography.hazmat.primitives import serialization

        path = folder / "release.json"
        found = json.loads(path.read_text())
        signed = found["release"] | members
        body = json.dumps(signed, sort_keys=True, separators=(",", ":")).encode()
        private: Any = serialization.load_pem_private_key(self.key.read_bytes(), None)
        signature = private.sign(b"svc release 1\n" + body).hex()
        path.write_bytes(
            b'{"key":"%s","release":%s,"signature":"%s"}' % (found["key"].encode(), body, signature.encode())
        )


# --- a server ------------------------------------------------------------------------------


class Server:
    """What the server does: counts and faults that a test sets."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[tuple[str, str]] = []  # path and Range
        self.ranges = True
        self.cut_after: list[int] = []  # bytes of the next answers, after which they end
        self.redirect = ""  # where all requests are sent
        self.status = 0  # of all answers, without content
        self.stall_s = 0.0  # before each answer
        self.length: int | None = None  # instead of the true one


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, with ranges."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *args: Any, plan: Server, **options: Any) -> None:
        self.plan = plan
        super().__init__(*args, **options)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer as the plan says."""
        plan = self.plan
        asked = self.headers.get("Range", "")
        plan.requests.append((self.path, asked))
        self.close_connection = True
        time.sleep(plan.stall_s)
        if plan.redirect or plan.status:
            self.send_response(plan.status or 302)
            if plan.redirect:
                self.send_header("Location", plan.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        self.answer(path.read_bytes(), int(asked.removeprefix("bytes=").rstrip("-") or 0))

    def answer(self, content: bytes, start: int) -> None:
        """Send the content from there on, or whole, or less of it."""
        plan = self.plan
        if start and plan.ranges:
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            content = content[start:]
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) if plan.length is None else plan.length))
        self.end_headers()
        self.wfile.write(content[: plan.cut_after.pop(0)] if plan.cut_after else content)


class QuietServer(http.server.ThreadingHTTPServer):
    """Says nothing of clients that leave."""

    daemon_threads = False  # joined at the end

    def handle_error(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path, certificate: Path, key: Path) -> Iterator[Server]:
    """An https server on the loopback for the length of the block."""
    plan = Server()
    handler = functools.partial(Handler, plan=plan, directory=str(folder))
    server = QuietServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    plan.url = f"https://localhost:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield plan
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
