"""The pull-through cache of docs/registries.md: set up by one command, before a real registry."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import IMAGE, PATH, PREFIX, ROOT, Call, Service
from e2e.registries import Shelf
from e2e.surroundings import must, new_template, podman, template_of
from ports import free_port
from registries import Repository, registry_of
from waiting import until

REPOSITORY = IMAGE.partition(":")[0]
CACHED = f"{REPOSITORY}:cached"
SYSTEMCTL = """#!/bin/sh
[ "$*" = "restart docker-registry" ] || exit 1
if [ -e "$CACHE/pid" ]; then
    kill "$(cat "$CACHE/pid")"
    while kill -0 "$(cat "$CACHE/pid")" 2>/dev/null; do sleep 0.05; done # it has the port
fi
setsid docker-registry serve /etc/docker/registry/config.yml </dev/null >"$CACHE/log" 2>&1 &
echo $! >"$CACHE/pid"
"""


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """The directory of what the cache downloaded; its process ends with the test."""
    folder = tmp_path / "cache"
    (folder / "etc").mkdir(parents=True)
    yield folder
    if (folder / "pid").exists():
        os.kill(int((folder / "pid").read_text()), signal.SIGTERM)


def set_up(service: Service, cache: Path, port: int, upstream: str) -> subprocess.CompletedProcess[str]:
    """Run the script as it is documented, with stand-ins for systemd and the file of the host."""
    programs = cache / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "systemctl").write_text(SYSTEMCTL)
    (programs / "systemctl").chmod(0o755)
    script = 'mkdir -p /etc/docker/registry && mount --bind "$CACHE/etc" /etc/docker/registry && exec "$@"'
    command = [ROOT / "packaging/registry-cache", "--port", str(port), "--directory", cache / "data"]
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *command, f"http://{upstream}"],
        env=service.env | {"CACHE": str(cache), "PATH": f"{programs}:{PREFIX}/bin:{PATH}"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def own_blobs(address: str) -> set[str]:
    """The digests of what no other image has: the configuration and the last layer."""
    manifest = Repository(address, REPOSITORY).manifest("cached")
    return {part["digest"].removeprefix("sha256:") for part in (manifest["config"], manifest["layers"][-1])}


def test_two_users_pull_and_the_second_needs_no_upstream(
    service: Service,
    alice: Call,
    bob: Call,
    svc: Call,
    registry_folder: Path,
    registry: str,
    shelf: Shelf,
    cache: Path,
) -> None:
    """What the image has of its own, for both have the layer below it from the registry itself."""
    shelf.put("cached", {"cached": os.urandom(4096)})
    for user, call in (("tse-alice", alice), ("tse-bob", bob)):
        must(call("image", "pull", template_of(user, registry, service.env, "uncached"), "--wait"))
    port = free_port()
    address = f"127.0.0.1:{port}"
    with registry_of(registry_folder) as upstream:
        for _ in range(2):  # it may be run again
            done = set_up(service, cache, port, upstream)
            assert done.returncode == 0, done.stderr
        assert f"pull {address}/NAME:TAG instead of" in done.stdout
        source: dict[str, object] = {"type": "registry", "image_ref": f"{address}/{CACHED}"}
        new_template("tse-alice", service.env, "cached", source)
        must(alice("image", "pull", "cached", "--wait"))
        blobs = own_blobs(upstream)
        kept = cache / "data/docker/registry/v2/blobs/sha256"
        until(lambda: all((kept / digest[:2] / digest / "data").exists() for digest in blobs), 30, 0.2)
    try:
        new_template("tse-bob", service.env, "cached", source)
        must(bob("image", "pull", "cached", "--wait"))
        assert must(bob("image", "status", "cached", "--json")).json()["status"] == "ready"
    finally:
        svc("root", "admin", "registry", "remove", address)
        for user in ("tse-alice", "tse-bob"):
            podman(user, "rmi", "--force", f"{address}/{CACHED}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ftp://example"], "no URL of a registry"),
        (["https://quay.io\nx: y"], "no URL of a registry"),
        (["--port", "5000; true", "https://quay.io"], "no valid value"),
        (["--directory", "/var/../x y", "https://quay.io"], "no valid value"),
    ],
)
def test_values_that_would_not_stay_values_are_refused(arguments: list[str], said: str) -> None:
    script = ROOT / "packaging/registry-cache"
    done = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1 and said in done.stderr and "hint: " in done.stderr
