"""The registry policy, and what an image reference is."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import FarEnd

from svc import errors
from svc.domain import registries
from svc.domain.principal import Caller


def test_the_policy_is_read_once_for_many_references(policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of templates asks of thousands: each file that was read for one of them took its time."""
    policy({"host": "reg.example"})
    inspections: list[int] = []
    read = registries.allowlist
    monkeypatch.setattr(registries, "allowlist", lambda: inspections.append(1) or read())
    references = [f"off{number % 3}.example/a:{number}" for number in range(99)]
    found = registries.findings(["reg.example/a:1", *references])
    assert [one["message"].split()[0] for one in found] == [f"off{number}.example" for number in range(3)]
    assert inspections == [1]


def test_the_policy_is_the_file(ada: Caller, policy: Any, tmp_path: Any) -> None:
    policy({"host": "reg.example", "path_prefix": "team/a"}, {"host": "localhost:5000", "insecure": True})
    allowed = (
        "reg.example/team/a",
        "reg.example/team/a:1",
        "reg.example/team/a/b@sha256:x",
        "localhost:5000/x:1",
    )
    refused = (
        "reg.example/team/ab",
        "reg.example/team",
        "reg.example.evil/team/a",
        "localhost/x",
        "localhost:50001/x",
    )
    assert [ref for ref in (*allowed, *refused) if registries.allows(ref)] == list(allowed)
    for text in (
        "",
        "nonsense",
        "[" * 60_000,
        "[]",
        "{}",
        '{"registries": 5}',
        '{"registries": [5, {"host": 5}]}',
    ):
        (tmp_path / "registries.json").write_text(text)
        assert registries.allowlist() == []
    (tmp_path / "registries.json").unlink()
    assert registries.allowlist() == []


def test_of_a_listed_registry_the_path_is_what_is_refused(policy: Any) -> None:
    policy({"host": "r.example:5000", "path_prefix": "team"})
    with pytest.raises(errors.RegistryNotAllowed, match=r"images of r\.example:5000/teams/a are not on"):
        registries.require("r.example:5000/teams/a:1")
    with pytest.raises(errors.RegistryNotAllowed, match=r"images of other\.example are not on"):
        registries.require("other.example/team/a:1")
    found = registries.findings(["r.example:5000/teams/a:1", "r.example:5000/team/b:1", "other.example/a:1"])
    assert [each["message"] for each in found] == [
        "r.example:5000/teams/a is not on the registry allowlist",
        "other.example is not on the registry allowlist",
    ]


def test_no_request_changes_the_policy(ada: Caller, boss: Caller, far: FarEnd) -> None:
    """ "An allowlist of registries exists, set by the administrator"."""
    entry = {"host": "reg.example", "path_prefix": "", "insecure": False}
    with pytest.raises(errors.AdminOnly):
        registries.require_unchanged(ada, [entry])
    with pytest.raises(errors.ValidationFailed, match="twice"):
        registries.require_unchanged(boss, [entry, entry])
    with pytest.raises(errors.AdminCommandOnly) as refused:
        registries.require_unchanged(boss, [entry])
    assert "svc admin registry" in refused.value.hint
    present = registries.allowlist()
    assert registries.require_unchanged(boss, present) == present
    assert far.verbs() == []


def test_a_policy_as_text() -> None:
    open_ = {"host": "reg.example", "path_prefix": "team/", "insecure": True}
    policy = [open_, {"host": "x.example:5000", "path_prefix": "", "insecure": False}]
    assert registries.check_policy(policy) == ["reg.example/team (insecure)", "x.example:5000"]


@pytest.mark.parametrize(
    ("image_ref", "says"),
    [
        ("ubuntu:22.04", "docker.io/library/ubuntu:22.04"),
        ("team/tool", "docker.io/team/tool"),
        ("library/ubuntu", "docker.io/library/ubuntu"),
        ("registry.example/Team/x", "in lower case"),
        ("-v/:/x", "registry/repository:tag"),
        ("--privileged", "registry/repository:tag"),
        ("docker-archive:/etc/shadow", "registry/repository:tag"),
        ("dir:/", "registry/repository:tag"),
        ("dir:5/x", "registry/repository:tag"),
        ("oci:1/x:2", "registry/repository:tag"),
        ("docker-archive:80/etc/shadow", "registry/repository:tag"),
        ("containers-storage:[overlay@/x]y", "registry/repository:tag"),
        ("registry.example/x:1@sha256:abc", "registry/repository:tag"),
        ("registry.example/x\n", "registry/repository:tag"),
        ("registry.example/" + "a" * 300, "registry/repository:tag"),
        ("", "registry/repository:tag"),
    ],
)
def test_an_image_reference_is_whole(image_ref: str, says: str) -> None:
    with pytest.raises(errors.ValidationFailed) as caught:
        registries.check_image_ref(image_ref)
    assert says in caught.value.fields[0]["message"]
    assert caught.value.fields[0]["field"] == "source.image_ref"


@pytest.mark.parametrize(
    "image_ref",
    ["localhost/x", "localhost:5000/a/b:1", "10.0.0.1:80/x", "r.example/x@sha256:" + "a" * 64],
)
def test_image_references_that_are_good(image_ref: str) -> None:
    assert registries.check_image_ref(image_ref) == image_ref
