"""`svc template context`, against a service that answers from a table."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from fake_service import Service, Svc

from svc.domain.templates import bundles

TEMPLATE = {
    "id": "tpl-1", "name": "mine", "scope": "private", "status": "disabled", "revision": 2,
    "source": {"type": "dockerfile", "image_ref": "localhost/svc/tpl-1:aa"},
    "updated_at": "2025-01-02T03:04:05Z",
}  # fmt: skip
FILE = "/api/templates/mine/context/file"
SET, GET, REMOVE = f"PUT {FILE}?path=a%2Fb", f"GET {FILE}?path=a%2Fb", f"DELETE {FILE}?path=a%2Fb"
REPLACE = "PUT /api/templates/mine/context"
LINE = "tpl-1\tmine\tprivate\tdisabled\tlocalhost/svc/tpl-1:aa\t2\t2025-01-02T03:04:05Z\n"
DOCKERFILE = "FROM r/base:1\nCOPY . /app\n"  # of the project


def gives(service: Service, content: bytes, request: str = GET, *, executable: bool = False) -> None:
    """Let the service give this file."""
    flag = b"true" if executable else b"false"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Svc-Executable: %s\r\n\r\n" % (len(content), flag)
    service.raw(request, head + content)


def test_the_list(service: Service, svc: Svc) -> None:
    items = [{"path": "a/b", "size": 3, "executable": True, "sha256": "0"}]
    page = {"items": items, "total": 1, "limit": 200, "offset": 0, "next_offset": None}
    service.answer("GET /api/templates/mine/context?limit=200", page)
    assert svc("template", "context", "mine") == (0, "a/b\t3\ttrue\n", "")
    assert json.loads(svc("template", "context", "mine", "--json").out) == page
    assert svc("template", "context", "mine", terminal=True).out.split()[:3] == ["PATH", "SIZE", "EXECUTABLE"]


def test_a_file_is_printed_or_written(service: Service, svc: Svc) -> None:
    gives(service, b"\x1b[31mred\n", executable=True)
    assert svc("template", "context", "mine", "--get", "a/b") == (0, "\x1b[31mred\n", "")
    assert svc("template", "context", "mine", "--get", "a/b", "--out", "-").out == "\x1b[31mred\n"
    assert "\x1b" not in svc("template", "context", "mine", "--get", "a/b", terminal=True).out
    for out in ("copy", ".", "deep/"):
        Path("deep").mkdir(exist_ok=True)
        assert svc("template", "context", "mine", "--get", "a/b", "--out", out) == (0, "", "")
    for path in ("copy", "b", "deep/b"):
        assert Path(path).read_bytes() == b"\x1b[31mred\n" and Path(path).stat().st_mode & 0o111
    again = svc("template", "context", "mine", "--get", "a/b", "--out", "copy")
    assert again.err.endswith("hint: svc template context mine --get a/b --out copy --force\n")
    gives(service, b"\xff\x00", f"GET {FILE}?path=bin")
    refused = svc("template", "context", "mine", "--get", "bin", terminal=True)
    assert refused.err.endswith("hint: svc template context mine --get bin --out bin\n")
    assert svc("template", "context", "mine", "--get", "bin", "--out", "copy", "--force").code == 0
    assert Path("copy").read_bytes() == b"\xff\x00" and not Path("copy").stat().st_mode & 0o111


def test_a_file_is_set_and_removed(service: Service, svc: Svc) -> None:
    Path("f").write_bytes(b"content")
    for executable in (False, True):
        Path("f").chmod(0o755 if executable else 0o644)
        service.answer(f"{SET}&executable={str(executable).lower()}", TEMPLATE)
        assert svc("template", "context", "mine", "--set", "a/b", "--file", "f") == (0, LINE, "")
        assert service.last.body == b"content"
        assert service.last.fields["content-type"] == "application/octet-stream"
    service.answer(SET, TEMPLATE)
    shown = svc("template", "context", "mine", "--set", "a/b", "--file", "-", stdin=b"piped", terminal=True)
    assert shown.out == (
        "mine is now at revision 2, disabled. Next: svc image build mine --wait && svc template enable mine\n"
    )
    assert service.last.body == b"piped"
    service.answer(REMOVE, TEMPLATE)
    assert json.loads(svc("template", "context", "mine", "--remove", "a/b", "--json").out) == TEMPLATE
    service.answer(f"PUT {FILE}?path=Dockerfile", TEMPLATE)
    noted = svc("template", "context", "mine", "--set", "Dockerfile", "--file", "-")
    assert "svc template dockerfile mine --set --file -" in noted.err


def test_all_files_are_replaced(service: Service, svc: Svc, project: Path) -> None:
    service.answer(REPLACE, TEMPLATE)
    service.answer("GET /api/templates/mine/dockerfile", {"dockerfile": DOCKERFILE, "read_only": False})
    assert svc("template", "context", "mine", "--replace", "My_Project") == (0, LINE, "")
    (project / "Dockerfile").write_text("FROM r/other:1\n")
    noted = svc("template", "context", "mine", "--replace", "My_Project")
    assert "svc template dockerfile mine --set --file My_Project/Dockerfile" in noted.err
    service.answer(REPLACE, TEMPLATE)
    with tarfile.open("p.tar.gz", "w:gz") as tar:
        tar.add(project / "app", "app")
    assert svc("template", "context", "mine", "--replace", "p.tar.gz").code == 0
    [one] = bundles.read_context(io.BytesIO(service.last.body))
    assert (one.path, one.executable, one.size) == ("app/main", True, 1)
    piped = svc("template", "context", "mine", "--replace", "-", stdin=Path("p.tar.gz").read_bytes())
    assert (piped.code, len(bundles.read_context(io.BytesIO(service.last.body)))) == (0, 1)


@pytest.mark.parametrize(
    "line",
    ["--get a --remove b", "--set a", "--file f", "--set a --file f --get b", "--out x", "--remove a --out x",
     "--force", "--get a --json", "--replace a --file f"],
)  # fmt: skip
def test_wrong_usage(service: Service, svc: Svc, line: str) -> None:
    outcome = svc("template", "context", "mine", *line.split())
    assert (outcome.code, outcome.out, service.sent) == (2, "", [])
    assert "hint: svc template context" in outcome.err
