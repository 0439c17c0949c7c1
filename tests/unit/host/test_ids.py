from __future__ import annotations

import re

from svc.host.ids import ALPHABET, after, new_id, now


def test_an_id_is_its_prefix_and_eight_unmistakable_characters() -> None:
    created = {new_id("ws") for _ in range(1000)}
    assert len(created) == 1000
    assert all(re.fullmatch(r"ws-[0-9a-z]{8}", one) for one in created)
    assert not set("ilou") & set(ALPHABET)


def test_now_is_rfc_3339_in_utc_with_milliseconds_and_sorts_as_text() -> None:
    times = [now() for _ in range(3)]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time) for time in times)
    assert times == sorted(times)


def test_later_and_earlier_than_a_row() -> None:
    assert after("2024-02-28T23:59:59.500Z", 0.5) == "2024-02-29T00:00:00.000Z"
    assert after("2024-03-01T00:00:00.000Z", -86400) == "2024-02-29T00:00:00.000Z"
