"""The pictures of docs/pictures: screens in a state of the pages' tests, taken again by `make pictures`."""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pages import records
from pages.canned import Canned, Listener, self_signed
from pages.states import State, every_state

from svc.web import pieces

if TYPE_CHECKING:
    from pages.chromium import Driver

FOLDER = Path(__file__).parents[2] / "docs/pictures"
MAX_BYTES = 40_000
WIDTH, HEIGHT, SCALE = 1440, 900, 0.85  # of the window; a picture has 1224 by 765 pixels
QUALITIES = range(90, 30, -5)  # of WebP: the first at which a picture is small enough
# The picture, without its .webp, and the state that it shows.
PICTURES = {
    "workspaces": "workspaces: as the mock-up shows",
    "new-workspace": "composer: composer",
    "workspace": "workspace: overview",
    "files": "files: folder",
    "monitor": "live: monitor",
    "gpus": "admin: gpus",
}


def take(driver: Driver, canned: Canned, state: State) -> bytes:
    """A picture of the state in the light scheme, as WebP of at most MAX_BYTES."""
    from pages import looking
    from pages.chromium import find

    canned.answers = records.everything()
    state.prepare(canned)
    driver.get(f"{canned.url}/api/version")  # of the same origin, and without a script
    driver.execute_script("localStorage.clear(); localStorage.setItem('svc.session', 'canned')")
    driver.get(f"{canned.url}{state.path}")
    find(driver, state.shows)
    looking.ask(driver, "unchanging")
    if state.script:
        driver.execute_script(state.script)
        looking.ask(driver, "unchanging")
    for quality in QUALITIES:
        said = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": quality})
        picture = base64.b64decode(said["data"])
        if len(picture) <= MAX_BYTES:
            print(f"{state.path}\t{len(picture)} bytes at quality {quality}")
            return picture
    raise ValueError(f"{state.path} takes {len(picture)} bytes at quality {quality}")


def main() -> None:
    """Take all of them."""
    from pages import looking
    from pages.chromium import chromium

    pieces.FOLDER = Path(sys.prefix) / "share/pieces"  # tests/run --prepare pages fetches them
    states = every_state()
    with tempfile.TemporaryDirectory() as folder, chromium() as driver:
        listener = Listener(self_signed(Path(folder)))
        looking.resize(driver, WIDTH, HEIGHT, SCALE)
        driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        looking.prefer(driver, "light")
        for name, state in PICTURES.items():
            canned = Canned(listener)
            picture = take(driver, canned, states[state])
            (FOLDER / f"{name}.webp").write_bytes(picture)
            driver.get("about:blank")
            canned.close()
        listener.close()


if __name__ == "__main__":
    main()
