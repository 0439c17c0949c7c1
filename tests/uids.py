"""Uids that stay free while a test gives them away again, although other suites create accounts beside it."""

from __future__ import annotations

import contextlib
import pwd
import subprocess
from collections.abc import Iterator


@contextlib.contextmanager
def highest_uid(name: str) -> Iterator[int]:
    """An account of the highest uid, and that uid: useradd counts on from it, and gives no freed one."""
    subprocess.run(["useradd", "--no-create-home", name], check=True)
    try:
        yield pwd.getpwnam(name).pw_uid
    finally:
        subprocess.run(["userdel", "--force", name], check=False, capture_output=True)
