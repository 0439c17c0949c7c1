"""The size check of a pull or build: refused with numbers, before anything is downloaded."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from unit.serving import IMAGE, FarEnd

from svc.db.connect import close_database, database
from svc.domain.images import mapping, preflight
from svc.domain.principal import Caller
from svc.errors import EngineFailed, NotFound, QuotaExceeded, StorageFull


@pytest.fixture(autouse=True)
def as_worker(far: FarEnd) -> None:
    far.helper.listener = far.listener = "worker"


def inspect(caller: Caller, *images: str, **options: Any) -> preflight.Figures | None:
    with preflight.reserving(caller, IMAGE, list(images), lambda: False, **options) as figures:
        return figures


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


def test_what_is_under_way_counts_as_if_it_were_there(ada: Caller, far: FarEnd) -> None:
    """Each alone fits; what is added twice at once, as by two set-ups of one image, is there once."""
    database.execute_sql("UPDATE quotas SET max_image_bytes = 3999")
    far.answers["image.usage"] = {"images": [], "total_bytes": 2000, "free_bytes": 10**9}
    other = "registry.example/other:1"
    with preflight.reserving(ada, other, [other], lambda: False):
        with pytest.raises(QuotaExceeded) as caught:
            inspect(ada, IMAGE)
        with preflight.reserving(ada, other, [other], lambda: False):
            pass
    assert caught.value.details == {
        "resource": "image_bytes", "limit": 3999, "used": 3000, "requested": 1000,
    }  # fmt: skip
    assert "others that are under way need 1000" in caught.value.message
    assert caught.value.hint == "svc operation list"
    assert inspect(ada, IMAGE), "it is over"


def test_a_copy_and_a_pull_count_for_each_other(ada: Caller, far: FarEnd) -> None:
    database.execute_sql("UPDATE quotas SET max_image_bytes = 3999")
    far.answers["image.usage"] = {"images": [], "total_bytes": 2000, "free_bytes": 10**9}
    refused: list[str] = []

    def copy(call: Any) -> Any:
        if call.args["copy"]:
            with pytest.raises(QuotaExceeded) as caught:
                inspect(ada, "registry.example/other:1")
            refused.append(caught.value.message)
            close_database()
        return {"copy_bytes": 1000, "copied": call.args["copy"]}

    far.answers["image.map"] = copy
    with pytest.raises(QuotaExceeded), preflight.reserving(ada, IMAGE, [IMAGE], lambda: False):
        mapping.ensure(ada, IMAGE, {"uid": 1000, "gid": 100})
    mapping.ensure(ada, IMAGE, {"uid": 1000, "gid": 100})
    assert len(refused) == 1


def test_of_two_that_ask_at_once_one_is_refused(ada: Caller, far: FarEnd) -> None:
    """Neither sees the other in the store, however long that takes to be read."""
    database.execute_sql("UPDATE quotas SET max_image_bytes = 3999")
    far.answers["image.usage"] = {"images": [], "total_bytes": 2000, "free_bytes": 10**9}
    asked, outcomes = threading.Barrier(2, timeout=60), []

    def pull(image: str) -> None:
        try:
            asked.wait()
            with preflight.reserving(ada, image, [image], lambda: False):
                outcomes.append("fits")
                asked.wait()
        except QuotaExceeded:
            outcomes.append("refused")
            asked.wait()
        finally:
            close_database()

    pulls = [threading.Thread(target=pull, args=(f"registry.example/{n}:1",)) for n in range(2)]
    for one in pulls:
        one.start()
    for one in pulls:
        one.join()
    assert sorted(outcomes) == ["fits", "refused"]
