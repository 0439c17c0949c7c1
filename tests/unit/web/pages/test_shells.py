"""Shells without data and without code of their own."""

from __future__ import annotations

import re
from typing import Any

from unit.web.pages.addresses import PATHS


def test_shells_have_no_data_and_no_inline_code(listeners: Any) -> None:
    """The same for everybody, with a session or without; scripts and styles are files."""
    for path in PATHS:
        text = listeners.ask(None, "GET", path).get_data(as_text=True)
        assert text == listeners.ask(None, "GET", path, headers={"Cookie": "a=b"}).get_data(as_text=True)
        assert "<title>" in text
        assert "<body>\n<noscript>" in text  # above a shell that is as high as the window
        assert "lab" not in re.sub(
            r"label(ledby)?|available", "", text
        )  # the name in the path comes from the path
        assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=|javascript:", text)
        for src in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
            assert listeners.ask(None, "GET", src).status_code == 200, src
