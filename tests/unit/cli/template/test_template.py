"""`svc template`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_service import Service, Svc

RECORD = {
    "id": "tpl-1",
    "name": "python",
    "description": "Python",
    "scope": "private",
    "owner": "alice",
    "status": "enabled",
    "source": {"type": "registry", "image_ref": "r/python"},
    "revision": 2,
    "findings": [{"code": "registry_not_allowed", "message": "not on the list"}],
    "defaults": {"memory_bytes": 2**30, "cpu_limit": None},
    "limits": {},
    "env": [{"name": "A", "value": "1"}],
    "updated_at": "2025-01-02T03:04:05Z",
}
RECIPE = {
    "type": "dockerfile", "image_ref": "localhost/svc/tpl-1:ab", "local_only": False, "has_dockerfile": True,
}  # fmt: skip
OFF_LIST = (
    "svc: not on the list: until an administrator adds it, the image of python is neither pulled nor built"
    " (svc image allowlist)\n"
)
LINE = "tpl-1\tpython\tprivate\tenabled\tr/python\t2\t2025-01-02T03:04:05Z\n"


@pytest.mark.parametrize(("typed", "sent"), [("1000:100", {"uid": 1000, "gid": 100}), ("none", None)])
def test_whom_workspaces_run_as(service: Service, svc: Svc, typed: str, sent: dict[str, int] | None) -> None:
    service.answer("PATCH /api/templates/python", RECORD)
    assert svc("template", "edit", "python", "--run-as", typed).code == 0
    assert service.last.json == {"run_as": sent}


@pytest.mark.parametrize(
    "line", ["", "--run-as 1000", "--run-as a:b", "--run-as 1:2 --file f", "--run-as 1:2 --run-as 3:4"]
)
def test_whom_workspaces_do_not_run_as(service: Service, svc: Svc, line: str) -> None:
    assert svc("template", "edit", "python", *line.split()).code == 2
    assert not service.requests


def test_list(service: Service, svc: Svc) -> None:
    service.answer("GET /api/templates?limit=200", {"items": [RECORD], "next_offset": None})
    assert svc("template", "list") == (0, LINE, "")
    assert svc("template", "list", terminal=True).out.split()[:3] == ["ID", "NAME", "SCOPE"]
    assert json.loads(svc("template", "list", "--json").out)["items"] == [RECORD]


def test_get(service: Service, svc: Svc) -> None:
    service.answer("GET /api/templates/python", RECORD)
    lines = svc("template", "get", "python").out.splitlines()
    assert "memory\t1073741824" in lines
    assert "env\tA=1" in lines
    assert "Memory:           1.0 GiB" in svc("template", "get", "python", terminal=True).out.splitlines()
    assert svc("template", "get", "python", "--json").out == json.dumps(RECORD) + "\n"


def test_create(service: Service, svc: Svc, tmp_path: Path) -> None:
    """ "Creates from JSON; `-` reads standard input"."""
    service.answer("POST /api/templates", RECORD, status=201)
    (tmp_path / "spec.json").write_text('{"name": "python"}')
    assert svc("template", "create", "--file", f"{tmp_path}/spec.json") == (0, LINE, OFF_LIST)
    assert service.last.json == {"name": "python"}
    assert (
        svc("template", "create", "--file", "-", stdin=b"[]", terminal=True).out
        == "python (tpl-1) is created, enabled.\n"
    )
    assert service.last.body == b"[]"  # the server's to judge


def test_edit(service: Service, svc: Svc) -> None:
    service.answer("PATCH /api/templates/python", RECORD)
    assert svc("template", "edit", "python", "--file", "-", stdin=b'{"env": []}') == (0, LINE, OFF_LIST)
    assert service.last.json == {"env": []}


def test_bad_json_is_the_server_s_refusal(service: Service, svc: Svc) -> None:
    service.refuse("POST /api/templates", 400, "invalid_json", "not JSON")
    assert svc("template", "create", "--file", "-", stdin=b"{") == (1, "", "svc: not JSON\n")


def test_what_the_service_says_of_a_file_names_it(service: Service, svc: Svc, tmp_path: Path) -> None:
    """ "The body" is what nobody has typed; and Notepad and PowerShell begin a file with a mark."""
    path = tmp_path / "spec.json"
    path.write_bytes(b'\xef\xbb\xbf{"name": "python"}')
    service.answer("POST /api/templates", RECORD, status=201)
    assert svc("template", "create", "--file", str(path)).code == 0
    assert service.last.json == {"name": "python"}
    service.refuse("PATCH /api/templates/p", 400, "invalid_json", "the body is not JSON: no comma at line 1")
    said = svc("template", "edit", "p", "--file", str(path)).err
    assert said == f"svc: {path} is not JSON: no comma at line 1\n"
    outcome = svc("template", "edit", "p", "--file", "-", stdin=b"{")
    assert outcome.err == "svc: standard input is not JSON: no comma at line 1\n"


def test_list_for_review(service: Service, svc: Svc) -> None:
    waiting = RECORD | {"scope": "global", "status": "disabled", "source": RECIPE}
    service.answer("GET /api/admin/templates?limit=200", {"items": [waiting], "next_offset": None})
    line = "tpl-1\tpython\tdockerfile\tlocalhost/svc/tpl-1:ab\t2\tregistry_not_allowed\n"
    assert svc("template", "list", "--review") == (0, line, "")
    assert svc("template", "list", "--review", "--owner", "bob").code == 2


def test_nothing_waits_for_a_review(service: Service, svc: Svc) -> None:
    service.answer("GET /api/admin/templates?limit=200", {"items": [], "next_offset": None})
    assert svc("template", "list", "--review", terminal=True).out == "No templates wait for a review.\n"


def test_get_shows_secrets_without_values_and_what_changed(service: Service, svc: Svc) -> None:
    env = [
        {"name": "KEY", "value": None, "secret": True, "is_set": True},
        {"name": "OTHER", "value": None, "secret": True, "is_set": False},
        {"name": "A", "value": "1", "secret": False, "is_set": True},
    ]
    finding = {"code": "changed", "message": "changed since revision 1", "diff": "-a\n+\x1b[2Jb\n"}
    service.answer("GET /api/templates/python", RECORD | {"env": env, "findings": [finding]})
    lines = svc("template", "get", "python").out.splitlines()
    assert "env\tKEY (secret), OTHER (secret, not set), A=1" in lines
    assert "findings\tchanged: changed since revision 1" in lines
    printed = svc("template", "get", "python", terminal=True).out
    assert printed.endswith("\n\nchanged: changed since revision 1\n-a\n+\\x1b[2Jb\n")


def test_what_waits_says_what_opens_it(service: Service, svc: Svc) -> None:
    waiting = RECORD | {"status": "disabled", "source": RECIPE}
    service.answer("POST /api/templates", waiting, status=201)
    assert svc("template", "create", "--file", "-", stdin=b"{}", terminal=True).out == (
        "python (tpl-1) is created, disabled."
        " Next: svc image build python --wait && svc template enable python\n"
    )
    service.answer("PATCH /api/templates/python", waiting | {"source": RECIPE | {"local_only": True}})
    assert svc("template", "edit", "python", "--file", "-", stdin=b"{}", terminal=True).out == (
        "python is now at revision 2, disabled. Next: svc template enable python\n"
    )


def test_clone(service: Service, svc: Svc) -> None:
    service.answer("POST /api/templates/python/clone", RECORD, status=201)
    assert svc("template", "clone", "python", "--name", "mine") == (0, LINE, OFF_LIST)
    assert service.last.json == {"name": "mine"}
    out = svc("template", "clone", "python", "--name", "mine", terminal=True).out
    assert out == "python (tpl-1) is cloned, enabled.\n"


def test_dockerfile(service: Service, svc: Svc, tmp_path: Path) -> None:
    """ "Prints a clone's or import's Dockerfile"; --set "replaces it in the clone's own build context"."""
    text = "FROM a/b\r\n# \u00e9\nRUN true"
    service.answer("GET /api/templates/mine/dockerfile", {"dockerfile": text, "read_only": False})
    assert svc("template", "dockerfile", "mine").out == text
    assert svc("template", "dockerfile", "mine", terminal=True).out == text + "\n"
    service.answer("PUT /api/templates/mine/dockerfile", RECORD)
    (tmp_path / "Dockerfile").write_bytes(text.encode())
    line = ["template", "dockerfile", "mine", "--set", "--file"]
    assert svc(*line, f"{tmp_path}/Dockerfile") == (0, LINE, OFF_LIST)
    assert service.last.json == {"dockerfile": text}
    assert svc(*line, "-", stdin=b"FROM scratch", terminal=True).out == (
        "python is now at revision 2, enabled.\n"
    )
    assert service.last.json == {"dockerfile": "FROM scratch"}
    sent = len(service.sent)
    assert svc(*line, "-", stdin=b"\xff").code == 1
    assert len(service.sent) == sent


def test_enable_what_was_looked_at(service: Service, svc: Svc) -> None:
    service.answer("POST /api/templates/python/enable", RECORD)
    assert svc("template", "enable", "python", "--revision", "2") == (0, LINE, "")
    assert service.last.json == {"revision": 2}


@pytest.mark.parametrize("verb", ["enable", "disable"])
def test_enable_and_disable(service: Service, svc: Svc, verb: str) -> None:
    service.answer(f"POST /api/templates/python/{verb}", RECORD)
    assert svc("template", verb, "python", terminal=True).out == "python is enabled.\n"


def test_delete_needs_a_confirmation(service: Service, svc: Svc) -> None:
    service.answer("DELETE /api/templates/python", None, status=204)
    service.refuse("GET /api/templates/gone", 404, "not_found", "no template gone")
    assert svc("template", "delete", "gone").err == "svc: no template gone\n", "before a question"
    service.answer("GET /api/templates/python", {"name": "python"})
    done = svc("template", "delete", "python")
    assert (done.code, service.sent[-1]) == (1, "GET /api/templates/python")
    assert "hint: svc template delete python --yes\n" in done.err
    assert svc("template", "delete", "python", "--yes") == (0, "", "")


@pytest.mark.parametrize(
    "line",
    [
        "template",
        "template get",
        "template create",
        "template edit x",
        "template clone x",
        "template dockerfile x --set",
        "template dockerfile x --file y",
        "template enable x --revision 0",
    ],
)
def test_wrong_usage(svc: Svc, line: str) -> None:
    assert svc(*line.split()).code == 2


def tagged(record: dict[str, object], etag: str) -> bytes:
    body = json.dumps(record).encode()
    return f'HTTP/1.1 200 OK\r\nETag: "{etag}"\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body


def test_an_edit_of_a_revision_that_was_read(service: Service, svc: Svc) -> None:
    service.raw("GET /api/templates/python", tagged(RECORD, "t.2"))
    service.answer("PATCH /api/templates/python", RECORD)
    line = ("template", "edit", "python", "--file", "-", "--revision")
    assert svc(*line, "2", stdin=b"{}").code == 0
    assert service.last.fields["if-match"] == '"t.2"'
    service.requests.clear()
    done = svc(*line, "1", stdin=b"{}")
    assert (done.code, service.sent) == (1, ["GET /api/templates/python"])
    assert "the current revision of python is 2, not 1" in done.err
    assert "hint: svc template diff python --from 1" in done.err
    assert svc("template", "edit", "python", "--file", "-", stdin=b"{}").code == 0
    assert "if-match" not in service.last.fields


def test_a_dockerfile_of_a_revision_that_was_read(service: Service, svc: Svc) -> None:
    service.raw(
        "GET /api/templates/mine/dockerfile", tagged({"dockerfile": "FROM a", "read_only": False}, "d")
    )
    service.raw("GET /api/templates/mine", tagged(RECORD, "t.2"))
    service.refuse("PUT /api/templates/mine/dockerfile", 412, "precondition_failed", "it has changed: x")
    line = ("template", "dockerfile", "mine", "--set", "--file", "-", "--revision", "2")
    done = svc(*line, stdin=b"FROM scratch")
    assert (done.code, done.err) == (1, "svc: it has changed: x\n")
    assert service.last.fields["if-match"] == '"d"'
    assert service.sent[0].endswith("/dockerfile")  # read first: it is of that revision or an earlier one
    assert svc("template", "dockerfile", "mine", "--revision", "2").code == 2


def test_one_that_exists_as_its_file_says_is_left_as_it_is(
    service: Service, svc: Svc, tmp_path: Path
) -> None:
    file = tmp_path / "python.json"
    content = {"name": "python", "source": {"type": "dockerfile", "dockerfile": "FROM a"}}
    content |= {"env": [{"name": "KEY", "value": "hidden", "secret": True}]}
    file.write_text(json.dumps(content))
    line = ["template", "create", "--file", str(file), "--if-not-exists"]
    service.refuse("POST /api/templates", 409, "name_taken", "you already have one called python")
    env = [{"name": "KEY", "value": None, "secret": True, "is_set": True}]
    record = {"id": "tpl-1", "name": "python", "source": {"type": "dockerfile"}, "env": env}
    service.answer("GET /api/templates/python", record)
    service.answer("GET /api/templates/python/dockerfile", {"dockerfile": "FROM a"}, {"dockerfile": "FROM b"})
    done = svc(*line, "--json")
    assert (done.code, json.loads(done.out)) == (0, record)
    assert svc(*line) == (
        1, "", "svc: python exists, and is not what was asked for: dockerfile differs\n"
        "hint: svc template get python\n",
    )  # fmt: skip
    done = svc("template", "create", "--dockerfile", str(file), "--if-not-exists")
    assert done.code == 2 and "--if-not-exists" in done.err
