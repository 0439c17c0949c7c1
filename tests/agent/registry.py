"""The registry of the agent suite, its policy files, and the images that tests put there.

Every image has one layer: the tree of the host's static busybox, and a file of its own. With a common layer
one image would pass for a step of builds from another, whose steps svc would not reuse then.
"""

from __future__ import annotations

import datetime
import gzip
import io
import json
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

from registries import (
    ARCHITECTURE,
    OCI_CONFIG,
    OCI_LAYER,
    OCI_MANIFEST,
    Repository,
    digest_of,
)

SHELL: dict[str, Any] = {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]}  # as workspace images have it
DIRECTORIES = ("bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "work")
PASSWD = "root:x:0:0:root:/root:/bin/sh\nworker:x:1234:1234::/home:/bin/sh\n"
GROUP = "root:x:0:\nworker:x:1234:\nextra:x:77:worker\n"


class Registry:
    """The registry at an address, its policy files in a directory, and its images."""

    def __init__(self, address: str, directory: Path) -> None:
        self.host, self.directory = address, directory
        self.allow([{"host": self.host, "path_prefix": "", "insecure": True}])

    def allow(self, registries: list[dict[str, Any]]) -> None:
        """Write the policy as the helper does."""
        lines = ["unqualified-search-registries = []"]
        for entry in registries:
            if entry["insecure"]:
                lines += ["", "[[registry]]", f'location = "{entry["host"]}"', "insecure = true"]
        for name, text in (
            ("registries.conf", "\n".join(lines) + "\n"),
            ("registries.json", json.dumps({"registries": registries})),
        ):
            draft = self.directory / f"{name}.new"
            draft.write_text(text)
            draft.chmod(0o644)
            draft.rename(self.directory / name)

    def put(self, name: str, big_bytes: int = 0, **config: Any) -> str:
        """An image of that configuration, with so many bytes of noise; its reference."""
        repository, _, tag = name.partition(":")
        there = Repository(self.host, repository)
        tree, layer = self.directory / "layer.tar", self.directory / "layer.tar.gz"
        _write_tree(tree, name, big_bytes)
        with tree.open("rb") as source, gzip.GzipFile(layer, "wb", 0 if big_bytes else 1) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        document = {
            "created": datetime.datetime.now(datetime.UTC).isoformat(),
            "architecture": ARCHITECTURE,
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [digest_of(tree)]},
            "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "a test"}],
        }
        content = json.dumps(document).encode()
        described = {"mediaType": OCI_CONFIG, "size": len(content), "digest": there.send(content)}
        layers = [{"mediaType": OCI_LAYER, "size": layer.stat().st_size, "digest": there.send_file(layer)}]
        there.tag(tag, {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": described, "layers": layers})
        return f"{self.host}/{name}"


def _write_tree(path: Path, name: str, big_bytes: int) -> None:
    """A root file system of the host's static busybox and its applets, for an image of that name."""
    busybox = shutil.which("busybox") or "/bin/busybox"
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in DIRECTORIES:
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(member)
        for file, content, mode in (
            ("bin/busybox", Path(busybox).read_bytes(), 0o755),
            ("etc/passwd", PASSWD.encode(), 0o644),
            ("etc/group", GROUP.encode(), 0o644),
            ("etc/image", f"{name} {time.time_ns()}\n".encode(), 0o644),
        ):
            member = tarfile.TarInfo(file)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
        for applet in applets:
            if applet != "busybox":
                member = tarfile.TarInfo(f"bin/{applet}")
                member.type, member.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(member)
        if big_bytes:
            member = tarfile.TarInfo("big")
            member.size = big_bytes
            with open("/dev/urandom", "rb") as noise:
                tar.addfile(member, noise)
