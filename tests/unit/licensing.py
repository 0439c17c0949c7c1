"""Licences as the vendor makes them: the tool of packaging/vendor, and the build with its key."""

from __future__ import annotations

import contextlib
import io
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from unit.configuring import configured

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "packaging/vendor"
CODE = "svc1-f120-kmpm-nb07-r98b-vq53-fd27-s4yw-kyy4"


def vendor(*argv: object) -> str:
    """What `packaging/vendor/license` prints; SystemExit, or its exit code as one, when it refuses."""
    return run_tool("license", *argv)


def run_tool(name: str, *argv: object) -> str:
    """What a tool of the vendor prints; SystemExit, or its exit code as one, when it refuses."""
    printed, argv_before, path_before = io.StringIO(), sys.argv, sys.path[:]
    sys.argv = [name, *map(str, argv)]
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(TOOLS / name), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.argv, sys.path[:] = argv_before, path_before
    return printed.getvalue()


class Vendor:
    """A vendor with a key pair; the directory holds the private key and the file of public ones."""

    def __init__(self, directory: Path) -> None:
        self.key = directory / "vendor.pem"
        self.keys = directory / "license-keys"
        self.keys.write_text(vendor("keygen", self.key))

    @property
    def public(self) -> bytes:
        """The public key."""
        import base64

        return base64.b64decode(self.keys.read_text().split()[0])

    def sign(self, request: str = CODE, not_after: str = "2100-12-31", **options: Any) -> bytes:
        """A licence; options as the tool's, not_before="2026-01-01", users=5."""
        argv = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        fixed = ("--key", self.key, "--request", request, "--not-after", not_after)
        return vendor("sign", *fixed, "--holder", "Example Ltd", *argv).encode()


def build(vendor: Vendor, directory: Path, release_keys: str = "") -> Path:
    """The program built by setup.py, as packaging/install builds it, with these keys; its directory."""
    source, built = directory / "source", directory / "built"
    for name in ("svc", "svc_helper", "schema"):
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    for name in ("setup.cfg", "setup.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    (source / "packaging/vendor").mkdir(parents=True)
    shutil.copy(vendor.keys, source / "packaging/vendor/license-keys")
    (source / "packaging/vendor/release-keys").write_text(release_keys)
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(built)]
    env = {"PATH": "/usr/bin:/bin", "SVC_BUILD_COMMIT": "test"}
    subprocess.run(command, cwd=source, check=True, capture_output=True, env=env)
    shutil.rmtree(source)
    return built


def put(vendor: Vendor, path: Path, **options: Any) -> None:
    """Configure this process with the vendor's key and install a licence for its host."""
    path.write_bytes(vendor.sign(**options))
    configured(license_path=str(path), license_keys=(vendor.public,), request_code=CODE)
