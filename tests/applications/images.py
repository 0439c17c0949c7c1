"""The public images that the examples begin with, made from Debian's packages, in a registry on this host.

A build here reaches neither Debian nor PyPI: apt finds the packages in a folder of the image, pip the
wheels. Both are fetched once for each host.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path

from e2e.guides import python_image
from e2e.installation import PREFIX
from e2e.registries import LAYER_TYPE, MANIFEST_TYPE

CACHE = Path("/var/cache/svc-tests")
CONFIG_TYPE = "application/vnd.docker.container.image.v1+json"
SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
SLIM = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
# What the Dockerfiles install, with all that it needs.
PACKAGES = ("openssh-server", "rsync", "git", "postgresql-15")
WHEELS = ("tensorboard", "setuptools<81")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
ENV = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
PIP_ENV = ["PIP_NO_INDEX=1", "PIP_FIND_LINKS=/wheels", "PIP_ROOT_USER_ACTION=ignore", "PIP_NO_COMPILE=1"]
FETCH = (
    'chroot "$1" apt-get install -y --no-install-recommends --download-only -o Dir::Cache::archives=/debs'
    f" {' '.join(PACKAGES)}"
)
INDEX = (
    'rm -rf "$1/debs/partial" "$1/debs/lock" && cd "$1/debs" && dpkg-scanpackages --multiversion . >Packages'
    ' && rm -f "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*'
    ' && echo "deb [trusted=yes] file:/debs ./" >"$1/etc/apt/sources.list"'
)


def debian() -> Path:
    """A Debian 12 without anything; raises CalledProcessError where its mirror is not reached."""
    return _kept("debian", [*PACKAGES, FETCH, INDEX], lambda path: _bootstrap(path, [], [FETCH, INDEX]))


def python() -> Path:
    """The same with Python and pip, and wheels for the examples."""
    return _kept("python", [*WHEELS, python_image.LOCK.read_text()], _python)


def _kept(name: str, ingredients: Iterable[str], make: Callable[[Path], None]) -> Path:
    """A file of the cache, made when it is missing."""
    digest = hashlib.sha256("\n".join(ingredients).encode()).hexdigest()[:16]
    path = CACHE / f"applications-{name}-{digest}.tar"
    if not path.exists():
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
    argv += [f"--customize-hook={hook}" for hook in ("mkdir -p $1/debs/partial", *hooks)]
    argv += ["bookworm", str(path), str(SOURCES)]
    subprocess.run(argv, check=True, capture_output=True, text=True)


def _python(path: Path) -> None:
    externally = 'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED; rm -rf "$1/debs"'
    _bootstrap(path, ["python3", "python3-pip"], [externally])
    folder = path.with_suffix(".wheels")
    argv = [PREFIX / "bin/python3", "-I", "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    try:
        subprocess.run([*argv, "--dest", folder, *WHEELS], check=True, capture_output=True, text=True)
        with tarfile.open(path, "a") as tar:
            found = {wheel.name: wheel for wheel in (*folder.iterdir(), *python_image.wheels().iterdir())}
            for name, wheel in found.items():
                tar.add(wheel, f"wheels/{name}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def push(address: str, image: str, tree: Path, env: list[str] = ENV) -> str:
    """Put a tree into the registry as that image; its reference."""
    repository, _, tag = image.partition(":")
    base = f"http://{address}/v2/{repository}"
    layer = tree.with_suffix(".gz")
    with open(layer, "wb") as file:
        subprocess.run(["gzip", "-1", "-c", tree], check=True, stdout=file)
    config = json.dumps({
        "architecture": ARCHITECTURES[platform.machine()], "os": "linux",
        "config": {"Env": env, "Cmd": ["bash"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(tree)]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "a test"}],
    }).encode()  # fmt: skip
    written = layer.with_suffix(".json")
    written.write_bytes(config)
    manifest = {
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "size": len(config), "digest": _send(base, written)},
        "layers": [{"mediaType": LAYER_TYPE, "size": layer.stat().st_size, "digest": _send(base, layer)}],
    }  # fmt: skip
    for name in (layer, written):
        name.unlink()
    _call(f"{base}/manifests/{tag}", "PUT", MANIFEST_TYPE, json.dumps(manifest).encode())
    return f"{address}/{image}"


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def _send(base: str, path: Path) -> str:
    digest = _digest(path)
    location = _call(f"{base}/blobs/uploads/", "POST", "", b"")
    joint = "&" if "?" in location else "?"
    _call(f"{location}{joint}digest={digest}", "PUT", "application/octet-stream", path.read_bytes())
    return digest


def _call(url: str, method: str, kind: str, content: bytes) -> str:
    headers = {"Content-Type": kind} if kind else {}
    request = urllib.request.Request(url, data=content, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return str(answer.headers.get("Location", ""))
