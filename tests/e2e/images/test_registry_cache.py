"""The pull-through cache of docs/registries.md: set up by one command, before a real registry."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import IMAGE, PATH, PREFIX, ROOT, Call, Service, free_port, until
from e2e.registries import MANIFEST_TYPE, registry_of
from e2e.surroundings import must, podman, template_of

REPOSITORY, TAG = IMAGE.split(":")
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


def blobs_of(address: str) -> set[str]:
    """The digests of what an image consists of, without its manifest."""
    url = f"http://{address}/v2/{REPOSITORY}/manifests/{TAG}"
    request = urllib.request.Request(url, headers={"Accept": MANIFEST_TYPE})
    with urllib.request.urlopen(request, timeout=20) as answer:
        manifest = json.load(answer)
    return {part["digest"].removeprefix("sha256:") for part in (manifest["config"], *manifest["layers"])}


def test_two_users_pull_and_the_second_needs_no_upstream(
    service: Service, alice: Call, bob: Call, svc: Call, registry_folder: Path, registry: str, cache: Path
) -> None:
    port = free_port()
    address = f"127.0.0.1:{port}"
    with registry_of(registry_folder) as upstream:
        for _ in range(2):  # it may be run again
            done = set_up(service, cache, port, upstream)
            assert done.returncode == 0, done.stderr
        assert f"pull {address}/NAME:TAG instead of" in done.stdout
        first = template_of("tse-alice", address, service.env, "cached")
        must(alice("image", "pull", first, "--wait"))
        blobs = blobs_of(upstream)
        kept = cache / "data/docker/registry/v2/blobs/sha256"
        until(lambda: all((kept / digest[:2] / digest / "data").exists() for digest in blobs), 30, 0.2)
    try:
        second = template_of("tse-bob", address, service.env, "cached")
        must(bob("image", "pull", second, "--wait"))
        assert must(bob("image", "status", second, "--json")).json()["status"] == "ready"
    finally:
        svc("root", "admin", "registry", "remove", address)
        for user in ("tse-alice", "tse-bob"):
            podman(user, "rmi", "--force", f"{address}/{IMAGE}")


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
