"""An installation without the pieces of others that the terminal and the monitor need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import records
from browser.canned import Canned

from svc.web import pieces
from svc.web.pages import assets, shells


@pytest.fixture
def bare(certificate: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Canned]:
    """The pages before the mock-up's answers, without those pieces."""
    monkeypatch.setattr(pieces, "FOLDER", tmp_path)
    for cached in (assets.load, shells.render):
        cached.cache_clear()
    server = Canned(certificate)
    server.answers = records.everything()
    yield server
    server.close()
    for cached in (assets.load, shells.render):
        cached.cache_clear()
