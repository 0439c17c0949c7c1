"""An agent that lies about terminals: every answer is an error of ours, nothing of it reaches a screen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.installation import Call, Service
from e2e.terminal import window
from hostile.attackers import live, terminal_liar
from hostile.test_hostile_agent import figures, lab, named, usurped

from svc.websocket import BINARY, CLOSE, TEXT

__all__ = ["lab"]  # the fixture

LIAR = Path(terminal_liar.__file__)
USER = "tsz-mallory"
Unmoved = Callable[[], float]


def is_clean(screen: bytes | str) -> bool:
    """Whether there is no sequence of the liar's in it."""
    text = screen if isinstance(screen, str) else screen.decode(errors="replace")
    return not any(sign in text for sign in ("\x1b]0;", "\x1b[2J", "\x07", "\x9b", "\u202e", "\0"))


def test_lists_without_sense(service: Service, mallory: Call, lab: str, unmoved: Unmoved) -> None:
    with usurped(USER, "lists", LIAR):
        listed = [mallory("ws", "shell", lab, "--list") for _ in terminal_liar.LISTS]
        said = [one.out + one.err for one in listed]
        assert all(is_clean(text) for text in said)
        assert not any("internal_error" in text or "went wrong" in text for text in said)
        assert {one.code for one in listed} == {0, 1}
        assert max(len(text) for text in said) < 100_000
    assert unmoved() < 2


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
def test_nothing_of_a_title_reaches_the_screen(
    service: Service, mallory: Call, lab: str, options: list[str]
) -> None:
    """The first list is in order, but for what the title and the command of its terminal are."""
    arguments = ("ws", "shell", lab, "--list", *options)
    with usurped(USER, "lists", LIAR), window(USER, *arguments, env=service.env, cols=300) as shown:
        assert shown.end() == 0
        assert b"owned" in shown.screen
        assert is_clean(shown.screen), shown.screen


def test_records_without_sense(service: Service, mallory: Call, lab: str, unmoved: Unmoved) -> None:
    listener = named(service, "unix")
    before = figures(listener)
    with usurped(USER, "records", LIAR):
        for _ in terminal_liar.FACES:
            said = mallory("api", "POST", f"/api/workspaces/{lab}/terminals", "--data", "{}")
            assert is_clean(said.out + said.err) and "internal_error" not in said.out + said.err
            with live.viewer(service, USER, lab) as one:
                assert one.status in (101, 502, 429)  # 429: its queue is full of viewers
        assert unmoved() < 2
    after = figures(listener)
    assert after[0] - before[0] < 20 and after[1] - before[1] < 40


def test_frames_without_sense_end_their_viewer_alone(
    service: Service, mallory: Call, lab: str, unmoved: Unmoved
) -> None:
    with usurped(USER, "rubbish", LIAR):
        for _ in terminal_liar.FRAMES:
            with live.viewer(service, USER, lab, "t-000000") as one:
                kinds = one.rest()
                assert kinds[-1][0] == CLOSE and b"lost" in kinds[-1][1], kinds[-1]
        for _ in terminal_liar.FRAMES:
            with live.piped(service, USER, lab) as one:
                one.send({"type": "start", "command": ["cat"]})
                assert one.closed() == 4500
        assert unmoved() < 2
    assert "Traceback" not in service.log.read_text()


def test_a_title_for_a_page(service: Service, mallory: Call, lab: str) -> None:
    with usurped(USER, "titles", LIAR), live.viewer(service, USER, lab, "t-000000") as one:
        told = [json.loads(content) for kind, content in one.rest() if kind == TEXT]
        title = next(message for message in told if message["type"] == "state")["title"]
        assert "owned" in title and title.isprintable()


@pytest.mark.parametrize("mode", ["states", "output"])
def test_floods_delay_nobody(service: Service, mallory: Call, lab: str, unmoved: Unmoved, mode: str) -> None:
    """Of viewers that read as fast as they can, and of those that never do."""
    listener = named(service, "unix")
    with usurped(USER, mode, LIAR):
        viewers = [live.viewer(service, USER, lab, "t-000000") for _ in range(12)]
        resident = figures(listener)[2]
        ends_at, seen = time.monotonic() + 2, 0
        while time.monotonic() < ends_at:
            for one in viewers[:4]:
                message = one.next()
                seen += message is not None and message[0] in (BINARY, TEXT)
        assert seen > 10
        assert unmoved() < 2
        assert figures(listener)[2] - resident < 40_000
        for one in viewers:
            one.sock.close()


def test_descriptors_among_the_frames(service: Service, mallory: Call, lab: str, unmoved: Unmoved) -> None:
    listener = named(service, "unix")
    before = figures(listener)
    with usurped(USER, "descriptors", LIAR):
        viewers = [live.viewer(service, USER, lab, "t-000000") for _ in range(10)]
        for one in viewers:
            one.sock.close()
        assert unmoved() < 2
        after = figures(listener)
        assert after[0] - before[0] < 40 and after[1] - before[1] < 40
