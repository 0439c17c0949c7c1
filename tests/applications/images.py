"""The public images that the examples begin with, made from Debian's packages, in a registry on this host.

A build here reaches neither Debian nor PyPI: apt finds the packages in a folder of the image, pip the
wheels. All is fetched once for each host.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from applications import code_server
from e2e.guides import python_image
from e2e.installation import PREFIX
from registries import ARCHITECTURE, DOCKER_LAYER, DOCKER_MANIFEST, Repository, digest_of

CACHE = Path("/var/cache/svc-tests")
CONFIG_TYPE = "application/vnd.docker.container.image.v1+json"
SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
SLIM = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
# What the Dockerfiles install, with all that it needs.
PACKAGES = ("openssh-server", "rsync", "git", "postgresql-15")
WHEELS = {
    "jupyter": (),  # those of python_image.LOCK
    "model-server": ("mlserver", "mlserver-sklearn"),
    "streamlit": ("streamlit",),
    "tensorboard": ("tensorboard", "setuptools<81"),
}
# The user of the official images of node and code-server.
USER = 'chroot "$1" useradd --create-home --uid 1000 --shell /bin/bash coder'
ENV = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
PIP_ENV = ["PIP_NO_INDEX=1", "PIP_FIND_LINKS=/wheels", "PIP_ROOT_USER_ACTION=ignore", "PIP_NO_COMPILE=1"]
FETCH = (
    'mkdir -p "$1/debs/partial"'
    ' && chroot "$1" apt-get install -y --no-install-recommends --download-only -o Dir::Cache::archives=/debs'
    f" {' '.join(PACKAGES)}"
)
INDEX = (
    'rm -rf "$1/debs/partial" "$1/debs/lock" && cd "$1/debs" && dpkg-scanpackages --multiversion . >Packages'
    ' && rm -f "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*'
    ' && echo "deb [trusted=yes] file:/debs ./" >"$1/etc/apt/sources.list"'
)


class Image(NamedTuple):
    """What an example's FROM names: its layers, oldest first, and its variables."""

    name: str
    layers: list[Path]
    env: list[str] = ENV


def image_of(example: str) -> Image:
    """The image that an example begins with; raises CalledProcessError where a source is not reached."""
    if example in WHEELS:
        layers = [_python(), _kept(f"wheels-{example}", _ingredients(example), _wheels(example))]
        return Image(f"{example}/python:3.12-slim", layers, ENV + PIP_ENV)
    if example in ("node", "code-server"):
        packages = ["nodejs", "git", "ripgrep", "procps"]
        layers = [_kept("node", [*packages, USER], lambda path: _bootstrap(path, packages, [USER]))]
        if example == "node":
            return Image("library/node:22-slim", layers)
        return Image("codercom/code-server:latest", [*layers, _code_server()])
    if example == "r":
        return Image("rocker/r-ver:4.4", [_kept("r", [], lambda path: _bootstrap(path, ["r-base-core"], []))])
    return Image("library/debian:12-slim", [_debian()])


def _debian() -> Path:
    """A Debian 12 without anything."""
    return _kept("debian", [*PACKAGES, FETCH, INDEX], lambda path: _bootstrap(path, [], [FETCH, INDEX]))


def _python() -> Path:
    """The same with Python and pip."""
    hook = 'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED'
    packages = ["python3", "python3-pip"]
    return _kept("python", [*packages, hook], lambda path: _bootstrap(path, packages, [hook]))


def _code_server() -> Path:
    """What the official image has besides: the program as its package has it."""
    ingredients = [code_server.VERSION, *code_server.TOOLS, code_server.BUILD]
    return _kept("code-server", ingredients, lambda path: code_server.make(path, SOURCES))


def _kept(name: str, ingredients: Iterable[str], make: Callable[[Path], None]) -> Path:
    """A file of the cache, made when it is missing; other runs of this host wait until it is whole."""
    digest = hashlib.sha256("\n".join(ingredients).encode()).hexdigest()[:16]
    path = CACHE / f"applications-{name}-{digest}.tar"
    with open(CACHE / "applications.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path
        for old in CACHE.glob(f"applications-{name}-*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        draft = path.with_suffix(".new")
        make(draft)
        draft.rename(path)
    return path


def _bootstrap(path: Path, packages: list[str], hooks: list[str]) -> None:
    argv = ["mmdebstrap", "--quiet", "--format=tar", "--variant=minbase", "--mode=root", "--skip=output/dev"]
    argv += [f"--dpkgopt=path-exclude={left_out}" for left_out in SLIM]
    argv += [f"--include={','.join(packages)}"] if packages else []
    argv += [f"--customize-hook={hook}" for hook in hooks]
    argv += ["bookworm", str(path), str(SOURCES)]
    subprocess.run(argv, check=True, capture_output=True, text=True)


def _ingredients(example: str) -> list[str]:
    return [*WHEELS[example]] or [python_image.LOCK.read_text()]


def _wheels(example: str) -> Callable[[Path], None]:
    """What packs the wheels of an example and all that they need."""

    def make(path: Path) -> None:
        folder = path.with_suffix(".wheels")
        argv = [PREFIX / "bin/python3", "-I", "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
        try:
            if WHEELS[example]:
                argv += ["--dest", folder, *WHEELS[example]]
                subprocess.run(argv, check=True, capture_output=True, text=True)
            with tarfile.open(path, "w") as tar:
                tar.add(folder if WHEELS[example] else python_image.wheels(), "wheels")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return make


def push(address: str, image: Image) -> str:
    """Put it into the registry; its reference."""
    repository, _, tag = image.name.partition(":")
    there = Repository(address, repository)
    layers = [_send_layer(there, tree) for tree in image.layers]
    config = json.dumps({
        "architecture": ARCHITECTURE, "os": "linux",
        "config": {"Env": image.env, "Cmd": ["bash"]},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(tree) for tree in image.layers]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "a test"}] * len(layers),
    }).encode()  # fmt: skip
    manifest = {
        "schemaVersion": 2, "mediaType": DOCKER_MANIFEST, "layers": layers,
        "config": {"mediaType": CONFIG_TYPE, "size": len(config), "digest": there.send(config)},
    }  # fmt: skip
    there.tag(tag, manifest)
    return f"{address}/{image.name}"


def _send_layer(there: Repository, tree: Path) -> dict[str, object]:
    """Send a layer; how the manifest names it."""
    packed = subprocess.run(["gzip", "-1", "-n", "-c", tree], check=True, capture_output=True).stdout
    return {"mediaType": DOCKER_LAYER, "size": len(packed), "digest": there.send(packed)}
