"""The quickstart's registry, which every user of the host can reach: nothing is pushed to it, ever.

And once it is stopped, whoever listens on its port is nobody whom the policy names.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.installation import ROOT, SVC, Call, Service
from e2e.surroundings import allow, must
from ports import free_port

Shell = Callable[..., str]
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
SETTING = """
set -euo pipefail
PARTS={parts}
. "$PARTS/output.sh"; . "$PARTS/processes.sh"; . "$PARTS/registry.sh"
has_systemd() {{ false; }}  # by pid, also on a host with systemd
as_user() {{ shift; "$@"; }}
svc() {{ {svc} "$@"; }}
CREATED={created} REGISTRY={registry} IMAGE=quickstart/base:1 REGISTRY_PID=$CREATED.pid POLICY={policy}
"""


@pytest.fixture(scope="module")
def address() -> str:
    """Where it listens."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def shell(service: Service, address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """shell(line) -> what a function of the quickstart prints, for this installation."""
    folder = tmp_path_factory.mktemp("quickstart")
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.getuid() and path.is_relative_to("/tmp"):
            path.chmod(path.stat().st_mode | 0o055)  # the registry's user works below it
    places = {
        "parts": ROOT / "packaging/quickstart.d", "svc": SVC, "created": folder / "created",
        "registry": address, "policy": Path(service.env["SVC_STATE_DIR"], "registries.json"),
    }  # fmt: skip
    setting = SETTING.format(**{name: shlex.quote(str(place)) for name, place in places.items()})

    def call(line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", setting + line], capture_output=True, text=True, env=service.env, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("start_registry")
    yield call
    call("stop_registry")


def status(method: str, url: str, body: bytes | None = None) -> int:
    """What it answers to somebody."""
    headers = {"Content-Type": MANIFEST, "Accept": MANIFEST}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, body, headers, method=method), timeout=10
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_push_is_refused_and_the_image_is_there(shell: Shell, address: str) -> None:
    host, _, rest = shell("image_ref").partition("/")
    repository, _, digest = rest.partition("@")
    assert (host, repository, digest[:7]) == (address, "quickstart/base", "sha256:")
    base = f"http://{address}/v2/{repository}"
    assert status("GET", f"{base}/manifests/{digest}") == 200
    for method, path, body in (
        ("POST", "blobs/uploads/", b""),
        ("POST", f"blobs/uploads/?mount={digest}&from=quickstart/other", b""),
        ("PUT", "manifests/1", json.dumps({"schemaVersion": 2}).encode()),
        ("DELETE", f"manifests/{digest}", None),
        ("DELETE", f"blobs/{digest}", None),
    ):
        for name in (base, f"http://{address}/v2/quickstart/mine"):
            assert status(method, f"{name}/{path}", body) == 405, (method, path)
    assert status("GET", f"{base}/manifests/1") == 200


def test_it_listens_on_the_host_only_when_it_takes_nothing_more(shell: Shell, address: str) -> None:
    """It is filled where nobody else is: from the first answer on, a push is refused."""
    shell("stop_registry")
    filling = subprocess.Popen(
        ["/usr/bin/python3", "-c", PROBE, address], stdout=subprocess.PIPE, text=True, cwd="/"
    )
    shell("start_registry")
    out, _ = filling.communicate(timeout=30)
    assert out == "405\n"


PROBE = """
import sys, time, urllib.error, urllib.request
url = f"http://{sys.argv[1]}/v2/quickstart/base/blobs/uploads/"
while True:
    try:
        print(urllib.request.urlopen(urllib.request.Request(url, b"", method="POST")).status)
    except urllib.error.HTTPError as error:
        print(error.code)
    except OSError:
        continue
    break
"""


def test_after_a_stop_the_policy_names_it_no_more(
    shell: Shell, address: str, registry: str, alice: Call, service: Service
) -> None:
    def hosts() -> list[str]:
        return [one["host"] for one in must(alice("image", "allowlist", "--json")).json()["items"]]

    try:
        shell("allow_registry")
        assert hosts() == [registry, address]
        with service.stopped():
            shell("forget_registry; stop_registry")
            shell("forget_registry")  # again, with nothing to forget
        assert hosts() == [registry]
    finally:
        allow(service.env, registry)


def test_with_another_port_the_former_one_ends(
    shell: Shell, address: str, registry: str, alice: Call, service: Service
) -> None:
    other = f"127.0.0.1:{free_port()}"
    try:
        shell("start_registry; allow_registry")
        shell(f"FORMER=$REGISTRY; REGISTRY={other}; end_former_registry; start_registry; allow_registry")
        hosts = [one["host"] for one in must(alice("image", "allowlist", "--json")).json()["items"]]
        assert hosts == [registry, other]
        assert status("GET", f"http://{other}/v2/quickstart/base/manifests/1") == 200
        with pytest.raises(urllib.error.URLError):
            status("GET", f"http://{address}/v2/")
    finally:
        allow(service.env, registry)
