"""The units of the user's manager that a shim's scope comes after; tests/machine reboots a host with it."""

from __future__ import annotations

import os
from pathlib import Path

from svc_helper.agent import scope


def test_podman_s_own_scopes_are_among_them(tmp_path: Path) -> None:
    """In them run fuse-overlayfs and slirp4netns: without them a launcher could not end in order."""
    for name in (
        "podman-491.scope",
        "podman-7.scope",
        "podman-7.service",
        "svc-shim-1-2.scope",
        "app-x.scope",
    ):
        (tmp_path / "user.slice" / name).mkdir(parents=True)
    found = scope._scopes_of(os.getpid(), str(tmp_path))
    assert found[-2:] == ["podman-491.scope", "podman-7.scope"]
    assert not [name for name in found if name.startswith(("svc-shim", "app-"))]


def test_their_number_is_bounded(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"user.slice/podman-{number}.scope").mkdir(parents=True)
    assert len(scope._podman_scopes(str(tmp_path))) == scope._SCOPES_MAX
    assert scope._podman_scopes(f"{tmp_path}/none") == []
