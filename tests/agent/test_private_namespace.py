"""The quickstart's mount namespace, without systemd: it follows the host's mounts, and changes none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "packaging/quickstart.d/private-namespace"
# A host of the test's own, with a shared / as a booted one has it; it prints what is seen inside and outside.
SCRIPT = """
set -e
mount --make-rshared /
mount -t tmpfs none "$1"
mkdir "$1/later" "$1/inner"
mkfifo "$1/go"
"$0" sh -c 'mount -t tmpfs none "$1/inner"; touch "$1/inner/mine"; : >"$1/go"; read -r line <"$1/go"
    ls "$1/later" "$1/inner"; read -r line <"$1/go"; ls "$1/later"' sh "$1" &
: <"$1/go"
mount -t tmpfs none "$1/later"
touch "$1/later/home"
echo on >"$1/go"
sleep 0.3
umount "$1/later"
echo on >"$1/go"
wait
echo outside: $(ls "$1/inner")
"""


@pytest.mark.root
def test_it_sees_later_mounts_and_leaks_none(tmp_path: Path, needs_root: None) -> None:
    """A home that is mounted when its user comes (autofs)."""
    own = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "bash",
        "-c",
        SCRIPT,
        str(PROGRAM),
        str(tmp_path),
    ]
    done = subprocess.run(own, capture_output=True, text=True, check=True, timeout=30)
    inside, _, outside = done.stdout.partition("outside:")
    assert inside.split() == [f"{tmp_path}/inner:", "mine", f"{tmp_path}/later:", "home"]
    assert outside.strip() == ""
