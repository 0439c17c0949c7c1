"""Bake the commit into the installation; everything else is in setup.cfg."""

import os
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


def commit() -> str:
    """The full SHA of what is being built: SVC_BUILD_COMMIT, else the checkout's HEAD, else 'unknown'."""
    given = os.environ.get("SVC_BUILD_COMMIT")
    if given:
        return given
    here = Path(__file__).resolve().parent
    command = ["git", "-c", f"safe.directory={here}", "-C", str(here), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


class BuildWithCommit(build_py):
    """build_py, and one generated module: svc/_build.py."""

    def run(self) -> None:
        """Build, then write the module into what was built; the checkout stays as it is."""
        super().run()
        Path(self.build_lib, "svc", "_build.py").write_text(f"COMMIT = {commit()!r}\n")


setup(cmdclass={"build_py": BuildWithCommit})
