"""`svc template export` and `import`, against a service that answers from a table."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from fake_service import Service, Svc

from svc.limits import BUNDLE_MAX

EXPORT = "GET /api/templates/python/export"
IMPORT = "POST /api/templates/import"
BUNDLE = bytes(range(256)) * 4096
REGISTRY = {
    "id": "tpl-1", "name": "python", "scope": "private", "status": "disabled", "revision": 1,
    "source": {"type": "registry", "image_ref": "r/python"}, "updated_at": "2025-01-02T03:04:05Z",
}  # fmt: skip
DOCKERFILE = REGISTRY | {"source": {"type": "dockerfile", "image_ref": "localhost/svc/tpl-1:aa"}}


def exports(service: Service, content: bytes = BUNDLE, length: int | None = None, then: Any = None) -> None:
    """Let the service give this file, or begin to."""
    size = len(content) if length is None else length
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nX-Svc-Bundle-Digest: sha256:d\r\n\r\n"
    service.raw(EXPORT, then or head.encode() + content)


def files(*but: str) -> set[str]:
    """What there is, besides the socket."""
    return set(os.listdir()) - {"svc.sock", *but}


# --- export ----------------------------------------------------------------------------


def test_an_export_is_the_bundle_under_its_name(service: Service, svc: Svc) -> None:
    exports(service)
    outcome = svc("template", "export", "python", "--out", "p.tar")
    assert outcome == (0, f"p.tar\t{len(BUNDLE)}\tsha256:d\n", "")
    assert Path("p.tar").read_bytes() == BUNDLE
    assert files() == {"p.tar"}
    assert svc("template", "export", "python", "--out", "q.tar", terminal=True).out == (
        "q.tar is written (1.0 MiB).\n"
    )


def test_a_file_is_as_open_as_the_caller_wants(service: Service, svc: Svc) -> None:
    exports(service)
    before = os.umask(0o027)
    try:
        svc("template", "export", "python", "--out", "p.tar")
    finally:
        os.umask(before)
    assert Path("p.tar").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "pipe"])
def test_what_is_there_stays_unless_forced(service: Service, svc: Svc, kind: str) -> None:
    """ "--force replaces by rename, not through link"."""
    exports(service)
    Path("other").write_text("other")
    out = Path("p.tar")
    if kind == "file":
        out.write_text("mine")
    elif kind == "pipe":
        os.mkfifo(out)
    else:
        out.symlink_to("other" if kind == "link" else "nowhere")
    outcome = svc("template", "export", "python", "--out", "p.tar")
    assert (outcome.code, outcome.err) == (
        1,
        "svc: p.tar already exists\nhint: svc template export python --out p.tar --force\n",
    )
    assert service.sent == []
    assert svc("template", "export", "python", "--out", "p.tar", "--force").code == 0
    assert out.read_bytes() == BUNDLE and not out.is_symlink()
    assert Path("other").read_text() == "other"
    assert files() == {"p.tar", "other"}


def test_a_directory_is_never_replaced(service: Service, svc: Svc) -> None:
    exports(service)
    os.makedirs("there/python.tar")
    for argv in ([], ["--force"]):
        assert "directory" in svc("template", "export", "python", "--out", "there", *argv).err
    assert "cannot write none/p.tar" in svc("template", "export", "python", "--out", "none/p.tar").err
    assert files() == {"there"}


def test_a_directory_gets_the_bundle(service: Service, svc: Svc) -> None:
    exports(service)
    os.mkdir("there")
    assert svc("template", "export", "python", "--out", "there").code == 0
    assert os.listdir("there") == ["python.tar"]


def test_a_bundle_goes_through_pipes(service: Service, svc: Svc) -> None:
    """`-` works wherever a file is named."""
    exports(service)
    exported = svc("template", "export", "python", "--out", "-")
    assert (exported.code, exported.err, files()) == (0, "", set())
    assert "refusing to write" in svc("template", "export", "python", "--out", "-", terminal=True).err
    record = {"id": "tpl-1", "name": "python", "status": "disabled", "source": {"type": "registry"}}
    service.answer("POST /api/templates/import", record, status=201)
    assert svc("template", "import", "-", stdin=exported.out.encode()).code == 0
    assert service.last.body == exported.out.encode()


def test_a_name_that_is_taken_meanwhile_stays(service: Service, svc: Svc) -> None:
    def late(connection: socket.socket) -> None:
        Path("p.tar").write_text("mine")
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")

    exports(service, then=late)
    assert "already exists" in svc("template", "export", "python", "--out", "p.tar").err
    assert (Path("p.tar").read_text(), files()) == ("mine", {"p.tar"})


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_bundle_that_is_cut_short_is_no_file(service: Service, svc: Svc, force: list[str]) -> None:
    exports(service, length=len(BUNDLE) + 1)
    if force:
        Path("p.tar").write_text("mine")
    outcome = svc("template", "export", "python", "--out", "p.tar", *force)
    assert (outcome.code, "cut short" in outcome.err) == (1, True)
    assert files() == ({"p.tar"} if force else set())
    assert not force or Path("p.tar").read_text() == "mine"


@pytest.mark.parametrize("length", [str(BUNDLE_MAX + 1), "-1", "x", "9" * 40])
def test_a_length_that_no_bundle_has(service: Service, svc: Svc, length: str) -> None:
    service.raw(EXPORT, f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nxx".encode())
    outcome = svc("template", "export", "python", "--out", "p.tar")
    assert (outcome.code, files()) == (1, set())


def test_an_export_that_is_refused(service: Service, svc: Svc) -> None:
    service.refuse(EXPORT, 404, "not_found", "no template python", hint="svc template list")
    outcome = svc("template", "export", "python", "--out", "p.tar")
    assert outcome == (1, "", "svc: no template python\nhint: svc template list\n")
    assert files() == set()


def test_an_export_has_no_json(service: Service, svc: Svc) -> None:
    """ "`template export` ... write a local file and do not accept `--json`"."""
    outcome = svc("template", "export", "python", "--out", "p.tar", "--json")
    assert (outcome.code, service.sent, "--json" in outcome.err) == (2, [], True)
    assert svc("template", "export", "python").code == 2


# --- import ----------------------------------------------------------------------------


def test_a_registry_bundle_is_imported(service: Service, svc: Svc) -> None:
    service.answer(IMPORT, REGISTRY, status=201)
    Path("p.tar").write_bytes(BUNDLE)
    outcome = svc("template", "import", "p.tar")
    assert outcome == (0, "tpl-1\tpython\tprivate\tdisabled\tr/python\t1\t2025-01-02T03:04:05Z\n", "")
    assert service.last.body == BUNDLE
    assert service.last.fields["content-type"] == "application/x-tar"
    assert service.last.fields["content-length"] == str(len(BUNDLE))
    assert json.loads(svc("template", "import", "p.tar", "--json").out) == REGISTRY
    printed = svc("template", "import", "p.tar", terminal=True)
    assert printed.out == "python (tpl-1) is imported, disabled.\n"
    assert "svc template get tpl-1" in printed.err and "svc template enable tpl-1" in printed.err
    assert set(service.sent) == {IMPORT}


def building(service: Service, status: str, **more: Any) -> None:
    """Let the import be of a Dockerfile, whose build ends so."""
    service.answer(IMPORT, DOCKERFILE, status=201)
    operation = {"id": "op-1", "kind": "build", "status": "queued"}
    service.answer("POST /api/templates/tpl-1/image/build", {"operation": operation}, status=202)
    service.answer("GET /api/operations/op-1", operation | {"status": status} | more)
    Path("p.tar").write_bytes(BUNDLE)


def test_a_dockerfile_bundle_is_built_at_once(service: Service, svc: Svc) -> None:
    building(service, "succeeded", result={})
    outcome = svc("template", "import", "p.tar", "--json")
    assert (outcome.code, json.loads(outcome.out)) == (0, DOCKERFILE)
    assert service.sent == [IMPORT, "POST /api/templates/tpl-1/image/build", "GET /api/operations/op-1"]
    assert svc("template", "import", "p.tar", terminal=True).code == 0


def test_build_later_builds_nothing(service: Service, svc: Svc) -> None:
    building(service, "succeeded")
    printed = svc("template", "import", "p.tar", "--build-later", terminal=True)
    assert (printed.code, service.sent) == (0, [IMPORT])
    assert "svc image build tpl-1 --wait, then svc template enable tpl-1" in printed.err


def test_a_build_that_fails_leaves_the_import(service: Service, svc: Svc) -> None:
    building(service, "failed", error={"code": "build_failed", "message": "step 2 of 3 failed: exit 1"})
    outcome = svc("template", "import", "p.tar", "--json")
    assert (outcome.code, json.loads(outcome.out)) == (1, DOCKERFILE)
    assert outcome.err.splitlines()[-1] == "svc: step 2 of 3 failed: exit 1"


def test_an_import_that_is_refused(service: Service, svc: Svc) -> None:
    fields = [{"field": "context/a", "code": "digest", "message": "its content is another"}]
    service.refuse(IMPORT, 422, "validation_failed", "the bundle is refused", fields=fields)
    Path("p.tar").write_bytes(BUNDLE)
    outcome = svc("template", "import", "p.tar")
    assert outcome == (1, "", "svc: the bundle is refused\n  context/a: its content is another\n")
    raw = svc("template", "import", "p.tar", "--json")
    assert (raw.code, json.loads(raw.out)["error"]["code"]) == (1, "validation_failed")


def test_what_is_no_file_is_not_sent(service: Service, svc: Svc) -> None:
    os.mkfifo("pipe")
    os.mkdir("folder")
    with open("large", "wb") as file:
        file.truncate(BUNDLE_MAX + 1)
    for name in ("pipe", "folder", "large", "none", "a\0b"):
        outcome = svc("template", "import", name)
        assert (outcome.code, outcome.out, outcome.err[:5]) == (1, "", "svc: "), name
    assert service.sent == []


def test_a_service_that_is_not_there(svc: Svc) -> None:
    Path("p.tar").write_bytes(b"x")
    assert "cannot connect to the service" in svc("template", "import", "p.tar").err
    assert "cannot connect to the service" in svc("template", "export", "python", "--out", "q.tar").err
    assert files() == {"p.tar"}
