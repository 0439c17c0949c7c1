"""The name of a browser for the list of sessions: two words of ours, never the header's own text."""

from __future__ import annotations

HEADER_MAX = 512  # characters of User-Agent that are looked at
UNKNOWN = "unknown browser"

# The first that the header contains: most browsers also claim to be Chrome, Safari and Mozilla.
_NAMES = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("Vivaldi/", "Vivaldi"), ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"), ("FxiOS/", "Firefox"), ("Chromium/", "Chromium"), ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"), ("Safari/", "Safari"), ("curl/", "curl"), ("Wget/", "Wget"),
    ("python-", "Python"), ("Python-", "Python"),
)  # fmt: skip
_SYSTEMS = (
    ("Android", "Android"), ("iPhone", "iOS"), ("iPad", "iPadOS"), ("CrOS", "ChromeOS"),
    ("Windows", "Windows"), ("Mac OS X", "macOS"), ("Macintosh", "macOS"), ("Linux", "Linux"),
)  # fmt: skip


def name_of(untrusted_user_agent: str) -> str:
    """The name for a User-Agent header, such as "Firefox on Linux"."""
    text = untrusted_user_agent[:HEADER_MAX]
    name = _first(_NAMES, text) or UNKNOWN
    system = _first(_SYSTEMS, text)
    return f"{name} on {system}" if system else name


def _first(known: tuple[tuple[str, str], ...], text: str) -> str:
    return next((name for mark, name in known if mark in text), "")
