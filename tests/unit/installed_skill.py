"""An installed skill, and what the program says when it installs none."""

from __future__ import annotations

from pathlib import Path

from conventions.inspection import ROOT
from fake_service import Outcome

TEXTS = ROOT / "svc/cli/skill/text"
ELSEWHERE = "hint: svc skill install --path DIR"


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def refused(outcome: Outcome, message: str, hint: str = ELSEWHERE) -> None:
    """It was refused with this message and this hint, and printed nothing else."""
    assert (outcome.code, outcome.out) == (1, ""), outcome
    assert message in outcome.err, outcome.err
    assert outcome.err.rstrip().endswith(hint), outcome.err
