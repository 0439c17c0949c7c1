"""The size check of a pull or build: refused with numbers, before anything is downloaded."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import IMAGE, FarEnd

from svc.db.connect import database
from svc.domain.images import preflight
from svc.domain.principal import Caller
from svc.errors import EngineFailed, NotFound, QuotaExceeded, StorageFull


@pytest.fixture(autouse=True)
def as_worker(far: FarEnd) -> None:
    far.helper.listener = far.listener = "worker"


def inspect(caller: Caller, *images: str, **options: Any) -> preflight.Figures | None:
    return preflight.require(caller, list(images), lambda: False, **options)


def test_what_fits_costs_one_question(ada: Caller, far: FarEnd) -> None:
    assert inspect(ada, IMAGE) == preflight.Figures(1000, 3000, 10**9, 500)
    assert far.verbs() == ["image.preflight"]
    assert far.asked()[0].args == {"images": [IMAGE]}
    assert inspect(ada, extra_bytes=10) is None  # nothing from a registry: nothing to ask
    assert far.verbs() == ["image.preflight"]


def test_a_full_disk_is_refused_in_numbers(ada: Caller, far: FarEnd) -> None:
    far.answers["image.preflight"] = {
        "images": [], "download_bytes": 2**30, "needed_bytes": 3 * 2**30, "free_bytes": 2**20,
        "present_bytes": 0, "store": "/x",
    }  # fmt: skip
    with pytest.raises(StorageFull) as caught:
        inspect(ada, IMAGE, extra_bytes=5)
    assert caught.value.details == {
        "download_bytes": 2**30, "needed_bytes": 3 * 2**30 + 5, "free_bytes": 2**20,
    }  # fmt: skip
    for arguments in ("1.0 GiB are to be downloaded", "need 3.0 GiB", "1.0 MiB free"):
        assert arguments in caught.value.message


def test_the_quota_counts_what_the_store_has_already(ada: Caller, far: FarEnd) -> None:
    """A download needs room twice for a while, but only what stays counts."""
    database.execute_sql("UPDATE quotas SET max_image_bytes = 3000")
    far.answers["image.usage"] = {"images": [], "total_bytes": 2000, "free_bytes": 10**9}
    assert inspect(ada, IMAGE)
    with pytest.raises(QuotaExceeded) as caught:
        inspect(ada, IMAGE, extra_bytes=1)
    assert caught.value.details == {
        "resource": "image_bytes", "limit": 3000, "used": 2000, "requested": 1001,
    }  # fmt: skip


@pytest.mark.parametrize(("code", "error"), [("not_found", NotFound), ("registry_timeout", EngineFailed)])
def test_what_the_registry_says_is_raised_as_by_a_pull(
    ada: Caller, far: FarEnd, code: str, error: Any
) -> None:
    far.answers["image.preflight"] = code
    with pytest.raises(error):
        inspect(ada, IMAGE)


@pytest.mark.parametrize("answer", [{}, {"download_bytes": "1", "needed_bytes": 1, "free_bytes": 1}])
def test_an_answer_without_numbers_is_nonsense(ada: Caller, far: FarEnd, answer: Any) -> None:
    far.answers["image.preflight"] = answer
    with pytest.raises(EngineFailed):
        inspect(ada, IMAGE)
