"""The licence on the installed program, which has the tests' own vendor's key baked in (tests/run)."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.installation import PASSWORD, PREFIX, ROOT, Call, Service
from e2e.surroundings import must

VENDOR = Path("/var/cache/svc-tests")  # where tests/run keeps the key pair
OVER = "2026-01-01T00:00:00.000Z"  # a trial that began then is over


def rows() -> list[tuple[str, bool]]:
    """The commands of docs/licence.md, and whether each works with a lapsed licence."""
    found = re.findall(
        r"^\| `([^`]+)` \| (works|refused) \|$", (ROOT / "docs/licence.md").read_text(), re.MULTILINE
    )
    assert len(found) > 20
    return [(command, verdict == "works") for command, verdict in found]


@pytest.fixture
def lapsed(service: Service) -> Iterator[None]:
    """Root's file says that the trial began long ago; afterwards as before, and no licence."""
    trial, licence = Path(service.env["SVC_STATE_DIR"], "trial"), Path(service.env["SVC_LICENSE_PATH"])
    before = trial.read_text()
    trial.write_text(OVER + "\n")
    yield
    licence.unlink(missing_ok=True)
    trial.write_text(before)


def signed(request: str, path: Path, *options: str) -> str:
    """The path of a licence that the vendor's tool has signed for a request code."""
    tool = [
        PREFIX / "bin/python3",
        "-I",
        ROOT / "packaging/vendor/license",
        "sign",
        "--key",
        VENDOR / "vendor.pem",
    ]
    fixed = ["--request", request, "--holder", "The tests", "--not-after", "2099-12-31", "--out", path]
    subprocess.run([*tool, *fixed, *options], check=True)
    return str(path)


def test_what_a_lapsed_licence_stops_and_what_ends_it(
    svc: Call, alice: Call, service: Service, workspace: str, template: str, tmp_path: Path,
    record: Callable[[str], dict[str, object]], lapsed: None,
) -> None:  # fmt: skip
    """ "Without an installed signed license the service runs under a built-in trial of 90 days": after
    it, "create and start are refused; stop, delete, files, export, backup always work". A licence is
    in force at once, without a restart."""
    trial = Path(service.env["SVC_STATE_DIR"], "trial")
    during = trial.read_text()
    trial.unlink()  # the database knows better, and says that it is not over
    must(alice("ws", "create", "--template", template, "--name", "unlicensed"))
    trial.write_text(during)
    own = Path("/home/tse-alice")
    (own / "notes.txt").write_text("notes")
    places = {
        "RUNNING": workspace, "STOPPED": "unlicensed", "TEMPLATE": template, "FILE": "notes.txt",
        "USER": "tse-bob", "COPY": "lapsed-copy.txt", "SNAPSHOT": str(tmp_path / "lapsed.db"),
        "ARCHIVE": "lapsed.tar.gz", "BUNDLE": "lapsed.tar",
    }  # fmt: skip
    try:
        for command, works in rows():
            words = shlex.split(re.sub(r"[A-Z]{4,}", lambda match: places[match[0]], command))
            user = "root" if words[0] == "sudo" else "tse-alice"
            said = svc(user, *words[words.index("svc") + 1 :], stdin=PASSWORD)
            if works:
                assert said.code == 0, f"{command}: {said.err}"
            else:
                assert (said.code, said.out) == (1, ""), command
                assert said.err.startswith("svc: the trial ended on 2026-04-01: no workspace can be"), command
                assert said.err.endswith("hint: sudo svc admin license show\n"), command
    finally:
        for name in ("notes.txt", "lapsed-copy.txt", "lapsed.tar.gz", "lapsed.tar"):
            (own / name).unlink(missing_ok=True)
    administrators_are_told(svc)
    request = must(svc("root", "admin", "license", "request")).out.strip()
    path = signed(request, tmp_path / "new.json", "--users", "50")
    must(svc("root", "admin", "license", "verify", path))
    assert alice("ws", "start", workspace).code == 1
    for name in ("--out", "--verify"):
        assert svc("root", "admin", "backup", name, "-").code == 2
    assert not list(Path("/root").glob("-*")), "no file of that name"
    must(svc("root", "admin", "license", "install", "-", stdin=Path(path).read_text()))
    must(alice("ws", "start", workspace))
    found = must(svc("root", "api", "GET", "/api/admin/license")).json()
    assert (found["kind"], found["state"], found["limits"]) == (
        "signed",
        "active",
        {"users": 50, "gpus": None},
    )
    assert found["request_code"] == request, "the app was told what root finds"
    content = Path(path).read_text().replace('"users": 50', '"users": 51')
    Path(service.env["SVC_LICENSE_PATH"]).write_text(content)
    must(alice("ws", "stop", workspace))
    assert alice("ws", "start", workspace).code == 1, "a changed file is none"


def administrators_are_told(svc: Call) -> None:
    """By `license show`, `whoami`, `doctor` and the health, which stays ok."""
    said = svc("root", "admin", "license", "show")
    assert "state\tlapsed\n" in said.out
    assert said.err.endswith("hint: sudo svc admin license request\n")
    assert "svc: the trial ended on 2026-04-01" in svc("root", "whoami").err
    assert svc("tse-alice", "whoami").err == ""
    assert json.loads(svc("root", "admin", "license", "show", "--json").out)["state"] == "lapsed"
    findings = svc("root", "admin", "doctor", "--json").json()["items"]
    assert [found["level"] for found in findings if found["code"] == "license_lapsed"] == ["fail"]
    health = must(svc("root", "api", "GET", "/api/health")).json()
    assert (health["status"], health["license"]) == ("ok", "license_lapsed")
    assert svc("tse-alice", "api", "GET", "/api/admin/license").code == 1
