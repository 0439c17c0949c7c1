"""Registries on this host: Debian's docker-registry on loopback, and what is put into one over HTTP.

No Podman takes part: it would unpack and compress what is only to be fetched from there.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ports import free_port, listens
from waiting import until

DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


@contextmanager
def registry_of(folder: Path, logins: Mapping[str, str] | None = None, port: int = 0) -> Iterator[str]:
    """A real registry for the data in the folder, which another may serve too; its address.

    With `logins` (name to password) it asks for one of them.
    """
    port = port or free_port()
    address = f"127.0.0.1:{port}"
    config = folder / f"registry-{address}.json"
    settings: dict[str, Any] = {
        "version": "0.1",
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": f"{folder}/registry"}},
        "http": {"addr": address},
    }
    if logins is not None:
        names = folder / "htpasswd"
        names.write_text("".join(f"{name}:{_hashed(password)}\n" for name, password in logins.items()))
        settings["auth"] = {"htpasswd": {"realm": "tests", "path": str(names)}}
    config.write_text(json.dumps(settings))
    with open(folder / "registry.log", "ab") as log:
        server = subprocess.Popen(["docker-registry", "serve", config], stdout=log, stderr=log)
    try:
        until(lambda: listens(port), 10)
        yield address
    finally:
        server.terminate()
        server.wait(10)


def _hashed(password: str) -> str:
    import bcrypt

    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


def digest(content: bytes) -> str:
    """How a registry names that content."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def digest_of(file: Path) -> str:
    """How a registry names the content of a file."""
    with file.open("rb") as content:
        return "sha256:" + hashlib.file_digest(content, "sha256").hexdigest()


class Repository:
    """One repository of a registry that asks for no login."""

    def __init__(self, address: str, name: str) -> None:
        self.base = f"http://{address}/v2/{name}"

    def manifest(self, tag: str) -> dict[str, Any]:
        """The manifest of a tag, in Docker's form."""
        return dict(json.loads(self._ask(f"{self.base}/manifests/{tag}", accept=DOCKER_MANIFEST)))

    def blob(self, name: str) -> bytes:
        """The content with that digest."""
        return self._ask(f"{self.base}/blobs/{name}")

    def send(self, content: bytes) -> str:
        """Put content there; its digest."""
        blob = digest(content)
        self._send(blob, content)
        return blob

    def send_file(self, file: Path) -> str:
        """Put the content of a file there; its digest."""
        blob = digest_of(file)
        with file.open("rb") as content:
            self._send(blob, content, file.stat().st_size)
        return blob

    def tag(self, tag: str, manifest: dict[str, Any]) -> str:
        """Have the tag mean this manifest, of whose form it says the media type; its digest."""
        text = json.dumps(manifest).encode()
        self._ask(f"{self.base}/manifests/{tag}", "PUT", text, manifest["mediaType"])
        return digest(text)

    def _send(self, blob: str, content: bytes | BinaryIO, size: int = 0) -> None:
        request = urllib.request.Request(f"{self.base}/blobs/uploads/", data=b"", method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            location = str(answer.headers["Location"])
        joint = "&" if "?" in location else "?"
        url = f"{location}{joint}digest={blob}"
        self._ask(url, "PUT", content, "application/octet-stream", size=size)

    def _ask(
        self,
        url: str,
        method: str = "GET",
        content: bytes | BinaryIO | None = None,
        kind: str = "",
        accept: str = "*/*",
        size: int = 0,
    ) -> bytes:
        headers = {"Accept": accept}
        headers |= {"Content-Type": kind} if kind else {}
        headers |= {"Content-Length": str(size)} if size else {}  # a file: not in chunks
        request = urllib.request.Request(url, data=content, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return bytes(answer.read())
