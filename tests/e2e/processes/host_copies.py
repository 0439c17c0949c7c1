"""Commands on a copy of this host, whose files, accounts and processes are its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.installation import ROOT

Host = Callable[..., str]


@contextmanager
def copied(folder: Path) -> Iterator[Host]:
    """host(*argv, stdin=) runs a command as root on the copy, which is gone afterwards; its output."""
    copy = subprocess.Popen(
        [ROOT / "tests/e2e/processes/copied_host", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert copy.stdin
    assert copy.stdout
    try:
        assert copy.stdout.readline() == "ready\n"
        first = Path(f"/proc/{copy.pid}/task/{copy.pid}/children").read_text().split()[0]
        enter = ["nsenter", "--mount", "--pid", "--target", first]

        def run(*argv: str, stdin: str = "") -> str:
            done = subprocess.run([*enter, *argv], input=stdin, capture_output=True, text=True, timeout=170)
            assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
            return done.stdout

        yield run
    finally:
        copy.stdin.close()
        copy.wait(30)
