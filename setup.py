"""Bake the commit, the version and the vendor's public keys in; everything else is in setup.cfg."""

import base64
import binascii
import os
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


def commit() -> str:
    """The full SHA of what is being built: SVC_BUILD_COMMIT, else the checkout's HEAD, else 'unknown'."""
    given = os.environ.get("SVC_BUILD_COMMIT")
    if given:
        return given
    command = ["git", "-c", f"safe.directory={HERE}", "-C", str(HERE), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def vendor_keys(name: str) -> list[str]:
    """The vendor's public keys in a file of packaging/vendor; none in most trees."""
    path = HERE / "packaging" / "vendor" / name
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return [public_key(text, path) for line in lines if (text := line.partition("#")[0].strip())]


def public_key(text: str, path: Path) -> str:
    """A line of the file as hexadecimal digits; a build with a mistyped key ends here."""
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if len(key) != 32:
        raise SystemExit(f"{path}: {text!r} is no Ed25519 public key (32 bytes in base64)")
    return key.hex()


class BuildWithFacts(build_py):
    """build_py, and one generated module: svc/_build.py."""

    def run(self) -> None:
        """Build, then write the module into what was built; the checkout stays as it is."""
        super().run()
        licenses, releases = vendor_keys("license-keys"), vendor_keys("release-keys")
        facts = f"COMMIT = {commit()!r}\nVERSION = {self.distribution.get_version()!r}\n"
        keys = f"LICENSE_KEYS = {licenses!r}\nRELEASE_KEYS = {releases!r}\n"
        Path(self.build_lib, "svc", "_build.py").write_text(facts + keys)


setup(cmdclass={"build_py": BuildWithFacts})
