"""The shapes of GPUs."""

from __future__ import annotations

import pytest

from svc.domain.gpus.gpus import Gpu, NotSeenError


@pytest.mark.parametrize(
    ("uuid", "mig", "leasable"), [("GPU-1", False, True), ("GPU-1", True, False), ("MIG-1", True, True)]
)
def test_a_gpu_that_is_cut_is_leased_in_pieces(uuid: str, mig: bool, leasable: bool) -> None:
    assert Gpu(uuid, "NVIDIA H100", None, None, mig).leasable is leasable


def test_why_none_is_seen_has_a_level() -> None:
    assert (str(NotSeenError("no driver", "info")), NotSeenError("no driver").level) == (
        "no driver",
        "warning",
    )
