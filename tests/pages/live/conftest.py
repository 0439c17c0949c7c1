"""An installation without the pieces of others that the terminal and the monitor need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import records
from pages.canned import Canned, Listener

from svc.web import pieces
from svc.web.pages import assets, shells


@pytest.fixture
def bare(certificate: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Canned]:
    """The pages before the mock-up's answers, without those pieces."""
    monkeypatch.setattr(pieces, "FOLDER", tmp_path)
    for cached in (assets.load, shells.render):
        cached.cache_clear()
    listener = Listener(certificate)
    server = Canned(listener)
    server.answers = records.everything()
    yield server
    server.close()
    listener.close()
    for cached in (assets.load, shells.render):
        cached.cache_clear()
