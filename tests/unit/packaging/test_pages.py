"""The documentation as HTML: every page, every link and picture, and nothing from elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.allow_commands(os.path.basename(sys.executable))


class Page(HTMLParser):
    """The links, names and loaded things of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: list[str] = []
        self.loaded: list[str] = []
        self.pictures: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.links.append(found["href"])
        elif tag == "img" and found.keys() == {"src", "alt"}:
            self.pictures.append(found["src"])
        elif found.keys() & {"src", "href", "onload", "onclick"} or tag in ("script", "link", "iframe"):
            self.loaded.append(f"{tag} {found}")
        if "id" in found:
            self.names.append(found["id"])


def written(folder: Path) -> dict[Path, str]:
    """What packaging/pages writes there."""
    done = subprocess.run(
        [sys.executable, "-I", ROOT / "packaging/pages", folder], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return {path: path.read_text() for path in sorted(folder.rglob("*.html"))}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """The pages by their path."""
    return {path: Page(text) for path, text in written(tmp_path_factory.mktemp("pages")).items()}


def test_every_source_has_its_page(pages: dict[Path, Page]) -> None:
    sources = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/decisions").glob("*.md")]
    assert len(pages) == len(sources) + 4  # README, CHANGELOG, CONTRIBUTING, packaging/vendor/README
    assert all(page.names for page in pages.values())


def test_every_link_leads_to_a_page_and_a_name_on_it(pages: dict[Path, Page]) -> None:
    broken, followed = [], 0
    for path, page in pages.items():
        for link in page.links:
            if link.startswith(("https://", "http://")):
                continue
            target, _, name = link.partition("#")
            found = pages.get(Path(os.path.normpath(path.parent / target)) if target else path)
            followed += 1
            if found is None or (name and name not in found.names):
                broken.append(f"{path.name} -> {link}")
    assert not broken and followed > 1000


def test_every_page_is_reached_from_the_first(pages: dict[Path, Page]) -> None:
    first = next(path for path in pages if path.name == "index.html" and (path.parent / "docs").is_dir())
    seen: set[Path] = set()
    ahead = [first]
    while ahead:
        path = ahead.pop()
        if path not in seen:
            seen.add(path)
            own = [link.partition("#")[0] for link in pages[path].links if "://" not in link]
            ahead += [Path(os.path.normpath(path.parent / link)) for link in own if link]
    assert seen == set(pages)


def test_names_are_given_once_and_nothing_is_loaded(pages: dict[Path, Page]) -> None:
    """But pictures that lie beside the pages."""
    for path, page in pages.items():
        assert len(page.names) == len(set(page.names)), path
        assert not page.loaded, path
        for picture in page.pictures:
            assert (path.parent / picture).is_file(), f"{path.name} -> {picture}"
    assert sum(len(page.pictures) for page in pages.values()) >= 6


def test_the_same_sources_give_the_same_pages(tmp_path: Path) -> None:
    one, other = written(tmp_path / "one"), written(tmp_path / "other")
    assert list(one.values()) == list(other.values())
