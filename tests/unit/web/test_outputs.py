"""What a view returned, as an answer."""

from __future__ import annotations

import errno
import io
from contextlib import ExitStack

import pytest
from flask import Response

from svc.web import outputs


def test_what_views_return() -> None:
    created = outputs.response({"id": "x", "ü": None}, 201, "/api/things/{id}")
    assert (created.status_code, created.headers["Location"]) == (201, "/api/things/x")
    below = outputs.response({"id": "x"}, 201, "/api/boxes/{ref}/{id}", ref="box")
    assert below.headers["Location"] == "/api/boxes/box/x"
    assert created.get_data(as_text=True) == '{"id":"x","ü":null}'
    assert outputs.response('{"a":1}', 200).get_json() == {"a": 1}
    assert outputs.response(None, 204).status_code == 204
    own = Response("x", 503)
    assert outputs.response(own, 200) is own


def test_no_answer_has_a_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        outputs.response({"a": float("nan")}, 200)


def test_a_file_goes_in_pieces_and_gives_back_what_it_held() -> None:
    content, freed = bytes(2 * outputs.PART + 1), []
    with ExitStack() as held:
        held.callback(freed.append, 1)
        created = outputs.file(io.BytesIO(content), "application/x-tar", "a.tar", held, **{"X-Odd": "1"})
    assert (created.content_length, created.headers["X-Odd"], freed) == (len(content), "1", [])
    assert created.headers["Content-Disposition"] == 'attachment; filename="a.tar"'
    assert [len(part) for part in created.response] == [outputs.PART, outputs.PART, 1]
    created.close()
    assert freed == [1]


def test_a_file_that_is_read_too_slowly_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "TRANSFER_S", -1)
    with ExitStack() as held:
        created = outputs.file(io.BytesIO(b"x"), "application/x-tar", "a.tar", held)
    with pytest.raises(ConnectionResetError) as caught:
        list(created.response)
    assert caught.value.errno == errno.ECONNRESET
    created.close()
