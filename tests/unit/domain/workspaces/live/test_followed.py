"""Followed output: what the rows of an agent become, places to go on from, and what hostile ones do."""

from __future__ import annotations

import re

import pytest
from unit.serving import ROW, FarEnd, make_template, make_workspace

from svc import errors
from svc.domain.principal import Caller
from svc.domain.workspaces.live import followed
from svc.domain.workspaces.live.followed import Ended, Piece, Place
from svc_helper.wire import log_frames as frames

WEB = {"name": "web", "title": "", "command": ["serve"], "env": [], "port": None, "autostart": False}
TIME = ROW[frames.TIME].decode()
ERRORS = ROW.replace(b"stdout", b"stderr")
PART = ROW.replace(b" F ", b" P ")
NOTE = ROW.replace(b"stdout", b"marker")
LATER = ROW.replace(b"05.123", b"06.123")


@pytest.fixture
def lab(ada: Caller) -> str:
    return make_workspace(ada.user_id, make_template(ada.user_id, launchers=[WEB]), status="running")


def pieces_of(
    ada: Caller, far: FarEnd, *sent: bytes, times: bool = False, after: Place | None = None
) -> list[Piece | Ended]:
    """What an agent's frames become, to their end."""
    far.frames = list(sent)
    source = followed.source_of(ada, "lab", 7, None, after)
    with followed.attached(ada, source, times=times) as output:
        found: list[Piece | Ended] = []
        far.streams[-1].close()
        while not (found and isinstance(found[-1], Ended)):
            found += output.receive()
        assert output.receive() == []
    return found


def texts(found: list[Piece | Ended]) -> list[str]:
    return [one.text for one in found if isinstance(one, Piece)]


def test_what_is_asked_for(ada: Caller, far: FarEnd, lab: str) -> None:
    pieces_of(ada, far)
    assert far.calls[-1].args == {"id": lab, "launcher": None, "tail": 7, "start": None, "skip": 0}
    pieces_of(ada, far, after=followed.place_of("3.4500.12-"))
    assert far.calls[-1].args["start"] == {"number": 3, "offset": 4500}
    assert far.calls[-1].args["skip"] == 12


def test_output_has_a_time_and_a_stream(ada: Caller, far: FarEnd, lab: str) -> None:
    rows = ROW + b"a\n" + ROW + b"b\n" + ERRORS + b"c\n" + LATER + b"d\n" + NOTE + b"started\n"
    first = len(ROW) + 2
    assert pieces_of(ada, far, frames.rows(2, 100, 0, rows), frames.END) == [
        Piece("log", "a\nb\n", TIME, "stdout", Place(2, 100 + first, 2)),
        Piece("log", "c\n", TIME, "stderr", Place(2, 100 + 2 * first, 2)),
        Piece("log", "d\n", TIME.replace("05.", "06."), "stdout", Place(2, 100 + 3 * first, 2)),
        Piece("marker", "started", place=Place(2, 100 + 4 * first, 8)),
        Ended(lost=False),
    ]


def test_a_character_may_be_split_and_a_place_is_before_it(ada: Caller, far: FarEnd, lab: str) -> None:
    frame = frames.rows(0, 0, 0, PART + b"pr\xc3\n" + PART + b"\xbc\n" + ROW + b"fung\n")
    found = pieces_of(ada, far, frame, frames.END)
    assert texts(found) == ["pr", "ü", "fung\n"]
    places = [str(one.place) for one in found if isinstance(one, Piece)]
    row = len(PART)
    assert places == ["0.0.2-", f"0.{row + 4}.1-", f"0.{2 * row + 6}.5"]
    assert all(re.fullmatch(followed.PLACE, place) for place in places)
    assert [str(followed.place_of(place)) for place in places] == places
    assert texts(pieces_of(ada, far, frames.rows(0, 0, 0, PART + b"\xc3\n"), frames.END)) == ["\ufffd"]


def test_a_note_within_a_character_has_no_place(ada: Caller, far: FarEnd, lab: str) -> None:
    """Who came back after it would have lost the beginning of the character."""
    frame = frames.rows(0, 0, 0, PART + b"\xc3\n" + NOTE + b"note\n" + ROW + b"\xbc\n")
    found = pieces_of(ada, far, frame, frames.END)
    assert texts(found) == ["note", "ü\n"]
    assert [one.place is None for one in found if isinstance(one, Piece)] == [True, False]


def test_a_row_in_parts(ada: Caller, far: FarEnd, lab: str) -> None:
    found = pieces_of(
        ada, far, frames.rows(0, 9, 0, PART + b"one \n"), frames.rows(0, 9, 4, ROW + b"line\n"), frames.END
    )
    assert texts(found) == ["one ", "line\n"]
    assert [str(one.place) for one in found if isinstance(one, Piece)] == ["0.9.4-", "0.9.9"]


def test_times_go_before_lines(ada: Caller, far: FarEnd, lab: str) -> None:
    rows = PART + b"a\n" + ROW + b"b\n" + ROW + b"c\n"
    found = pieces_of(ada, far, frames.rows(0, 0, 0, rows), frames.END, times=True)
    assert "".join(texts(found)) == f"{TIME} ab\n{TIME} c\n"
    goes_on = pieces_of(
        ada, far, frames.rows(0, 0, 1, ROW + b"b\n"), frames.END, times=True, after=Place(0, 0, 1, True)
    )
    assert texts(goes_on) == ["b\n"], "the line's time was sent before"


def test_what_is_missing_is_told(ada: Caller, far: FarEnd, lab: str) -> None:
    found = pieces_of(ada, far, frames.MISSING, frames.END)
    assert found == [Piece("marker", followed.MISSING), Ended(lost=False)]


@pytest.mark.parametrize(
    "frame",
    [b"?", b"o", b"o1 2\n", b"o1 2 x\n", b"o-1 2 3\n", b"o" + b"1" * 16 + b" 2 3\n", b"ee", b"kk",
     b"o0 0 0\n" + b"x" * frames.FRAME_MAX],
)  # fmt: skip
def test_a_hostile_agents_frame_is_the_end(ada: Caller, far: FarEnd, lab: str, frame: bytes) -> None:
    assert pieces_of(ada, far, frame) == [Ended(lost=True)]


def test_hostile_rows_are_bounded(ada: Caller, far: FarEnd, lab: str) -> None:
    rubbish = b"\n".join([b"", b"x", b"F ", ROW[:-2] + b"X text", b"\xff" * 45 + b"t", b"no newline"])
    assert pieces_of(ada, far, frames.rows(0, 0, 0, rubbish), frames.END) == [Ended(lost=False)]
    strange = b"\x00" * 35 + b" \xff\xff\xff\xff\xff\xff F text\n" + NOTE + b"m" * 500 + b"\n"
    log, marker, _ = pieces_of(ada, far, frames.rows(0, 0, 0, strange), frames.END)
    assert isinstance(log, Piece) and isinstance(marker, Piece)
    assert (log.text, log.time, log.stream) == ("text\n", None, None)
    assert marker.text == "m" * 120


def test_an_agent_that_dies_is_lost(ada: Caller, far: FarEnd, lab: str) -> None:
    assert pieces_of(ada, far, frames.rows(0, 0, 0, ROW + b"a\n"))[-1] == Ended(lost=True)


def test_what_is_not_there_is_refused_at_once(ada: Caller, boss: Caller, far: FarEnd, lab: str) -> None:
    with pytest.raises(errors.NotFound) as caught:
        followed.source_of(ada, "lab", 7, "none")
    assert caught.value.hint == "svc ws launchers lab"
    with pytest.raises(errors.NotFound):
        followed.source_of(boss, lab, 10, None)
    assert far.verbs() == []
