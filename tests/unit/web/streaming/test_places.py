"""Streams are counted by user, by address and in total."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unit.streaming import CALLER

from svc import limits
from svc.domain.principal import Caller
from svc.errors import TooManyRequests
from svc.web.streaming import places


def test_places_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [places.take(CALLER) for _ in range(limits.STREAMS_PER_USER)]
    with pytest.raises(TooManyRequests) as refused:
        places.take(CALLER)
    assert refused.value.retry_after_s
    taken.pop().release()
    last = places.take(CALLER)
    last.release()
    last.release()
    taken.append(places.take(CALLER))
    monkeypatch.setattr(places, "STREAMS_TOTAL", len(taken))
    other = Caller("pat", 2, "bob", 2002, False, "req-2", "192.0.2.7", None)  # type: ignore[arg-type]  # no helper is asked
    with pytest.raises(TooManyRequests):
        places.take(other)
    monkeypatch.setattr(places, "STREAMS_TOTAL", 1000)
    monkeypatch.setattr(places, "STREAMS_PER_ADDRESS", 1)
    taken.append(places.take(other))
    with pytest.raises(TooManyRequests):
        places.take(other)
    taken.append(places.take(replace(other, client="loopback uid 1002")))  # told apart behind one address
    for place in taken:
        place.release()
