"""What the last word of a call means, and what of it anybody is shown."""

from __future__ import annotations

from typing import Any

import pytest

from svc import engine_errors, errors
from svc.helper import replies
from svc_helper.wire.protocol import CODES, Frame


def test_every_code_has_its_error() -> None:
    assert set(replies.ERRORS) == {*CODES, *engine_errors.CAUSES}


@pytest.mark.parametrize(
    ("code", "kind"),
    [("exists", errors.AlreadyThere), ("forbidden", errors.FileForbidden), ("too_large", errors.TooLarge)],
)
def test_the_codes_of_files(code: str, kind: type[errors.SvcError]) -> None:
    last = Frame({"ok": False, "code": code, "message": "a: the words"}, [], None)
    with pytest.raises(kind, match="a: the words"):
        replies.data_of(last, "fs.write", "unix")


@pytest.mark.parametrize(
    "message",
    [{}, {"ok": True}, {"ok": True, "data": []}, {"ok": 1, "data": {}}, {"ok": False},
     {"ok": False, "code": 7}, {"ok": False, "code": "none"}, {"ok": None, "code": "exists"}],
)  # fmt: skip
def test_no_last_word_of_the_protocol(message: dict[str, Any]) -> None:
    with pytest.raises(errors.EngineFailed):
        replies.data_of(Frame(message, [], None), "fs.list", "unix")


def test_an_agents_words_are_one_short_line() -> None:
    assert replies.printable("a\nb\x1b[31m\u202ec\0") == "a b [31m c"
    assert len(replies.printable("x" * 10_000)) == replies.MESSAGE_TEXT_MAX
    for nothing in (None, 7, "", "\n\0", ["x"]):
        assert replies.printable(nothing) == "no reason was given"


@pytest.mark.parametrize("code", sorted(engine_errors.CAUSES))
def test_a_cause_has_a_code_of_its_own_and_the_engines_words(code: str) -> None:
    last = Frame({"ok": False, "code": code, "message": "ours", "engine": "crun: theirs"}, [], None)
    with pytest.raises(errors.SvcError, match="ours") as caught:
        replies.data_of(last, "ctr.start", "unix")
    assert (caught.value.code, caught.value.details) == (code, {"engine": "crun: theirs"})


def test_an_engines_words_are_escaped_and_bounded() -> None:
    assert replies.escaped("a\nb\x1b[31m\u202ec\0\ud800") == "a\\nb\\x1b[31m\\u202ec\\x00\\ud800"
    assert replies.escaped("d\xe9j\xe0 vu") == "d\xe9j\xe0 vu"
    assert (
        len(replies.escaped("x" * 10_000)) == len(replies.escaped("\0" * 10_000)) == replies.ENGINE_TEXT_MAX
    )
    for nothing in (None, 7, "", " \n", ["x"], {"a": 1}):
        assert replies.escaped(nothing) == ""
    last = Frame({"ok": False, "code": "failed", "message": "ours", "engine": ["x"]}, [], None)
    with pytest.raises(errors.EngineFailed) as caught:
        replies.data_of(last, "ctr.start", "unix")
    assert caught.value.details == {}
