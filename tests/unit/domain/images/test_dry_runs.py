"""What a pull or build would download: shown, and nothing is refused for its size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured
from unit.serving import IMAGE, MISSING, FarEnd, make_template

from svc.db.connect import database
from svc.domain.images import dry_runs
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.engine_errors import ImageNotInRegistry
from svc.errors import NotFound, RegistryNotAllowed, TemplateDisabled, TooManyRequests

BASE = "registry.example/debian:12"
FIGURES = {
    "images": [], "download_bytes": 2**20, "present_bytes": 7, "needed_bytes": 2**21, "free_bytes": 2**30,
    "store": "/x",
}  # fmt: skip


@pytest.fixture(autouse=True)
def store(far: FarEnd, tmp_path: Path) -> None:
    policy = tmp_path / "registries.json"
    policy.write_text('{"registries": [{"host": "registry.example", "path_prefix": "", "insecure": false}]}')
    configured(registries_path=str(policy))
    far.answers["image.preflight"] = FIGURES
    far.answers["image.usage"] = {"images": [], "total_bytes": 2000, "free_bytes": 2**30}


def test_a_pull_that_fits(ada: Caller, far: FarEnd) -> None:
    make_template(ada.user_id)
    assert dry_runs.of(ada, "base") == {
        "verb": "pull", "ref": IMAGE, "images": [IMAGE], "download_bytes": 2**20, "present_bytes": 7,
        "needed_bytes": 2**21, "free_bytes": 2**30, "used_bytes": 2000, "quota_bytes": None,
        "fits": True, "blocked_by": None, "message": None, "hint": None, "action": None,
    }  # fmt: skip
    assert set(far.verbs()) == {"image.preflight", "image.usage"}
    assert not database.execute_sql("SELECT count(*) FROM operations").fetchone()[0]


@pytest.mark.parametrize(
    ("figures", "quota", "code"),
    [({"free_bytes": 2**20}, None, "storage_full"), ({}, 2**20, "quota_exceeded")],
)
def test_one_that_does_not_fit_says_why(
    ada: Caller, far: FarEnd, figures: dict[str, Any], quota: int | None, code: str
) -> None:
    make_template(ada.user_id)
    far.answers["image.preflight"] = FIGURES | figures
    database.execute_sql("UPDATE quotas SET max_image_bytes = ?", (quota,))
    found = dry_runs.of(ada, "base")
    assert (found["fits"], found["blocked_by"], found["hint"]) == (False, code, "svc image prune")
    assert "1.0 MiB" in found["message"]
    assert found["quota_bytes"] == quota


def test_a_build_counts_its_missing_bases_and_its_files(ada: Caller, far: FarEnd) -> None:
    make_template(ada.user_id, "made", status="disabled", dockerfile=f"FROM {BASE}\nRUN true\n")
    found = dry_runs.of(ada, "made")
    assert (found["verb"], found["images"], found["download_bytes"]) == ("build", [], 0)
    assert (found["fits"], found["free_bytes"]) == (True, 2**30)
    assert "image.preflight" not in far.verbs(), "the base is there"
    far.answers["image.inspect"] = MISSING
    found = dry_runs.of(ada, "made")
    assert (found["images"], found["download_bytes"]) == ([BASE], 2**20)


def test_it_is_refused_as_the_pull_would_be(ada: Caller, far: FarEnd, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        dry_runs.of(ada, "nothing")
    make_template(ada.user_id, "off", status="disabled")
    with pytest.raises(TemplateDisabled):
        dry_runs.of(ada, "off")
    make_template(ada.user_id)
    far.answers["image.preflight"] = "image_not_in_registry"
    with pytest.raises(ImageNotInRegistry) as missing:
        dry_runs.of(ada, "base")
    assert missing.value.hint == "svc template get base"
    (tmp_path / "registries.json").write_text('{"registries": []}')
    with pytest.raises(RegistryNotAllowed):
        dry_runs.of(ada, "base")


def test_it_counts_as_a_long_call(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    make_template(ada.user_id)
    monkeypatch.setattr(long_calls, "per_user", 0)
    with pytest.raises(TooManyRequests):
        dry_runs.of(ada, "base")
