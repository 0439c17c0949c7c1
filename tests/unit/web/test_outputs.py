"""What a view returned, as an answer."""

from __future__ import annotations

import pytest
from flask import Response

from svc.web import outputs


def test_what_views_return() -> None:
    made = outputs.shown({"id": "x", "ü": None}, 201, "/api/things/{id}")
    assert (made.status_code, made.headers["Location"]) == (201, "/api/things/x")
    assert made.get_data(as_text=True) == '{"id":"x","ü":null}'
    assert outputs.shown('{"a":1}', 200).get_json() == {"a": 1}
    assert outputs.shown(None, 204).status_code == 204
    own = Response("x", 503)
    assert outputs.shown(own, 200) is own


def test_no_answer_has_a_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        outputs.dumps({"a": float("nan")})
