"""A GPU that is gone, and one that is back."""

from __future__ import annotations

import pytest
from unit.configuring import configured
from unit.domain.gpu_rows import Gpus, uuid
from unit.serving import CONTAINER, FarEnd, make_workspace

from svc.domain.gpus import health as gpu_health
from svc.domain.principal import Caller
from svc.domain.workspaces import workspaces


@pytest.fixture
def lab(ada: Caller, far: FarEnd, gpus: Gpus, template: str) -> str:
    """A running workspace of ada's with two GPUs."""
    far.answers["ctr.start"] = {"pid": 5, "devices_missing": []}
    make_workspace(ada.user_id, template, gpu_count=2, container_id=CONTAINER)
    workspaces.start(ada, "lab")
    return "lab"


def health(ada: Caller, name: str = "lab") -> str:
    return str(workspaces.get(ada, name)["health"])


def test_lost_and_back(ada: Caller, gpus: Gpus, lab: str, capfd: pytest.CaptureFixture[str]) -> None:
    gpu_health.update()
    assert health(ada) == "ok"
    one = gpus.fakes.pop(0)
    gpus.write()
    gpu_health.update()
    gpu_health.update()
    assert health(ada) == "gpu_lost"
    assert capfd.readouterr().err.count(uuid(0)) == 1, "it is said once"
    gpus.fakes.insert(0, one)
    gpus.write()
    gpu_health.update()
    assert health(ada) == "ok"


def test_a_driver_that_is_gone_has_lost_them_all(ada: Caller, gpus: Gpus, lab: str) -> None:
    gpus.file.unlink()
    configured(gpu_provider=str(gpus.file))  # the next look
    gpu_health.update()
    assert health(ada) == "gpu_lost"


def test_what_does_not_run_has_no_health(ada: Caller, far: FarEnd, gpus: Gpus, lab: str) -> None:
    gpus.fakes = []
    gpus.write()
    gpu_health.update()
    workspaces.stop(ada, lab)
    assert gpu_health.due()
    gpu_health.update()
    assert health(ada) == "unknown"
    assert not gpu_health.due()


def test_of_workspaces_without_gpus_nothing_is_known(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template, container_id=CONTAINER)
    workspaces.start(ada, "lab")
    assert not gpu_health.due()
    assert health(ada) == "unknown"
