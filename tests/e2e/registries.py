"""Registries on this host, the images that tests put into them, and a gate in front of one.

Images are made by hand from the small one that each registry has: no Podman has seen them before a test.
"""

from __future__ import annotations

import gzip
import io
import json
import select
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e.installation import IMAGE, ROOT
from registries import DOCKER_LAYER, Repository, digest, registry_of

REPOSITORY = IMAGE.partition(":")[0]


@contextmanager
def registry_in(folder: Path) -> Iterator[str]:
    """A real registry on this host with one small image, its data in the folder; its address."""
    with registry_of(folder) as address:
        program = ROOT / "packaging/quickstart.d/base-image"
        subprocess.run([program, address, IMAGE], check=True, capture_output=True)
        yield address


class Shelf:
    """The images of one registry; what is put there is the small image and a little more."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.folder = address, folder
        self.repository = Repository(address, REPOSITORY)

    def put(
        self,
        tag: str,
        files: Mapping[str, bytes] | None = None,
        programs: Collection[str] = (),
        **config: Any,
    ) -> str:
        """An image with a layer of these files, some programs, its configuration changed so; its digest."""
        manifest = self.repository.manifest("1")
        document = json.loads(self.repository.blob(manifest["config"]["digest"]))
        document["config"] |= config
        if files:
            tree = _tree(files, programs)
            layer = gzip.compress(tree, compresslevel=0, mtime=0)
            document["rootfs"]["diff_ids"].append(digest(tree))
            document["history"].append({"created": "1970-01-01T00:00:00Z", "created_by": "a test"})
            manifest["layers"].append(
                {"mediaType": DOCKER_LAYER, "size": len(layer), "digest": self.repository.send(layer)}
            )
        content = json.dumps(document).encode()
        manifest["config"] |= {"size": len(content), "digest": self.repository.send(content)}
        return self.repository.tag(tag, manifest)

    def layers(self, tag: str) -> list[dict[str, Any]]:
        """What the manifest says of an image's layers: {digest, size, mediaType}."""
        return list(self.repository.manifest(tag)["layers"])

    def damage(self, blob: str) -> None:
        """Change one bit of what the registry has under a digest."""
        name = blob.removeprefix("sha256:")
        path = self.folder / "registry/docker/registry/v2/blobs/sha256" / name[:2] / name / "data"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


def _tree(files: Mapping[str, bytes], programs: Collection[str]) -> bytes:
    created = io.BytesIO()
    with tarfile.open(fileobj=created, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if name in programs else 0o644
            tar.addfile(member, io.BytesIO(content))
    return created.getvalue()


class Gate:
    """A TLS listener in front of a registry: lets so many bytes through and holds the rest, or is down.

    `passed` counts what came through to clients, `calls` the connections.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads: list[threading.Thread] = []
        self.opened()
        threading.Thread(target=self._listen, daemon=True).start()

    def opened(self) -> None:
        """Let everything through."""
        self.limit, self.pace, self.down, self.passed, self.calls = 2**62, 0, False, 0, 0

    def hold_after(self, count: int, pace: int = 0) -> None:
        """Hold whatever comes after so many bytes from now, until it is opened or breaks.

        Those pass at so many a second (0: at once): Podman tells of progress once a second.
        """
        self.opened()
        self.limit, self.pace = count, pace

    def holds(self) -> bool:
        """Is something held?"""
        return self.passed >= self.limit

    def go_on(self) -> None:
        """Let go what is held, and all that follows."""
        self.limit, self.pace = 2**62, 0

    def break_down(self) -> None:
        """End all connections, and refuse more."""
        self.down = True
        for thread in self.threads:
            thread.join(10)
        self.threads = [thread for thread in self.threads if thread.is_alive()]

    def close(self) -> None:
        """Its end."""
        self.break_down()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.calls += 1
            if self.down:
                client.close()
                continue
            thread = threading.Thread(target=self._carry, args=(client,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(self.target) as upstream:
            while not self.down:
                for source in select.select([client, upstream], [], [], 0.05)[0]:
                    try:
                        data = source.recv(65536)
                        if not data:
                            return
                        if source is upstream and not self._may_pass(len(data)):
                            return
                        (client if source is upstream else upstream).sendall(data)
                    except OSError:
                        return

    def _may_pass(self, count: int) -> bool:
        while self.passed + count > self.limit and not self.down:
            self.passed = max(self.passed, self.limit)
            time.sleep(0.01)
        self.passed += count
        if self.pace:
            time.sleep(count / self.pace)
        return not self.down
