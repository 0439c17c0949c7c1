"""Resources: wish, default, limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.domain.quotas import resources
from svc.domain.quotas.resources import Resources
from svc.errors import ValidationFailed
from svc_helper.wire import arguments


def test_the_wish_then_the_default_then_the_limit() -> None:
    got = resources.resolve(
        {"cpu_limit": 0.25}, {"cpu_limit": 1, "pids_limit": 7}, {"memory_bytes": 2**30}, {}
    )
    assert got == Resources(250, 2**30, None, 7, 0, "exclusive")
    assert resources.resolve({}, {"gpu_mode": "shared", "gpu_count": 2}, {}, {})[4:] == (2, "shared")


def test_no_limit_is_the_templates_limit() -> None:
    free = {"cpu_limit": "unlimited"}
    assert resources.resolve(free, {"cpu_limit": 1}, {"cpu_limit": 4}, {}).cpu_limit == 4000
    assert resources.resolve(free, {"cpu_limit": 1}, {}, {}).cpu_limit is None


def test_null_is_the_templates_default() -> None:
    nothing = dict.fromkeys(Resources._fields)
    defaults = {"cpu_limit": 1, "memory_bytes": 5, "gpu_count": 2, "gpu_mode": "shared"}
    assert resources.resolve(nothing, defaults, {}, {}) == Resources(1000, 5, None, None, 2, "shared")


@pytest.mark.parametrize(
    "granted", [Resources(250, 5, 6, 7, 1, "exclusive"), Resources(None, None, None, None, 0, "shared")]
)
def test_a_request_for_the_same_again(granted: Resources) -> None:
    request = resources.request_of(granted)
    defaults = {"cpu_limit": 1, "memory_bytes": 1, "shm_bytes": 1, "pids_limit": 1, "gpu_count": 1}
    assert resources.resolve(request, defaults, {}, {"allow_shared": True}) == granted


def test_every_wish_over_its_limit_is_named() -> None:
    with pytest.raises(ValidationFailed) as caught:
        resources.resolve({"cpu_limit": 9, "gpu_count": 1}, {}, {"cpu_limit": 1, "gpu_count": 0}, {})
    assert [field["field"] for field in caught.value.fields] == ["resources.cpu_limit", "resources.gpu_count"]


def test_a_default_over_the_own_limit() -> None:
    resources.check_template({"cpu_limit": 2}, {"cpu_limit": 2})
    with pytest.raises(ValidationFailed) as caught:
        resources.check_template({"cpu_limit": 3}, {"cpu_limit": 2})
    assert caught.value.fields[0]["field"] == "defaults.cpu_limit"


def test_gpus_are_shared_where_the_template_lets_them() -> None:
    wish = {"gpu_count": 1, "gpu_mode": "shared"}
    assert resources.resolve(wish, {}, {}, {"allow_shared": True})[4:] == (1, "shared")
    for gpu in ({}, {"allow_shared": False}):
        with pytest.raises(ValidationFailed) as caught:
            resources.resolve(wish, {}, {}, gpu)
        assert caught.value.fields[0]["field"] == "resources.gpu_mode"


@given(cores=st.floats(0.01, 1024))
def test_thousandths_are_what_the_helper_takes(cores: float) -> None:
    thousandths = resources.resolve({"cpu_limit": cores}, {}, {}, {}).cpu_limit
    assert arguments.resources({"cpu_limit": thousandths})["cpu_limit"] == thousandths
