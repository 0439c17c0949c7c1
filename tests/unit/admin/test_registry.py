"""`svc admin registry`: what it refuses before root's file is touched."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from svc.errors import EngineFailed
from svc_helper.provision import logins

ENTRY = {"host": "quay.io", "path_prefix": "team/"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON object"),
        ("[]", "no JSON object"),
        ("[" * 100000, "no JSON object"),
        ("{}", "no JSON object"),
        (json.dumps({"registries": [], "more": 1}), "no JSON object"),
        (json.dumps({"registries": [{"host": "a/b"}]}), "registry host"),
        (json.dumps({"registries": [ENTRY, ENTRY]}), "listed twice"),
        ("x" * 300000, "more than"),
    ],
)
def test_a_list_that_is_none(svc: Any, database: str, text: str, says: str, tmp_path: Path) -> None:
    code, _, err = svc("registry", "set", "-", stdin=text.encode())
    assert code == 1 and says in err
    assert not (tmp_path / "state" / "registries.json").exists()


def test_a_faulty_entry_is_named_once(svc: Any, database: str) -> None:
    code, _, err = svc("registry", "set", "-", stdin=b'{"registries": [{"host": "no host"}]}')
    assert code == 1
    assert err.startswith("svc: registries item 1 host: ")


def test_a_file_that_cannot_be_read(svc: Any, database: str, tmp_path: Path) -> None:
    code, _, err = svc("registry", "set", str(tmp_path / "missing"))
    assert code == 1 and "cannot be read" in err


@pytest.mark.parametrize("registry", ["https://quay.io", "quay.io/../x", "QUAY.io", "", "quay.io:x"])
def test_what_is_no_registry(svc: Any, database: str, registry: str, tmp_path: Path) -> None:
    assert svc("registry", "add", registry)[0] == 1
    assert not (tmp_path / "state" / "registries.json").exists()


@pytest.mark.parametrize("text", ["[", '{"registries": 1}', "\xff"])
def test_a_list_that_cannot_be_read_is_not_replaced_by_an_addition(
    svc: Any, database: str, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "state" / "registries.json"
    file.write_text(text, encoding="latin-1")
    for line in (["list"], ["add", "quay.io"], ["remove", "quay.io"]):
        code, _, err = svc("registry", *line)
        assert code == 1 and "replace it: sudo svc admin registry set FILE" in err
    assert file.read_text(encoding="latin-1") == text


@pytest.mark.parametrize(
    "entry", [{"host": "UPPER"}, {"host": "quay.io", "path_prefix": None}, "quay.io", None]
)
def test_an_entry_that_is_none_hides_no_other(svc: Any, database: str, tmp_path: Path, entry: Any) -> None:
    """An administrator may have written the file by hand: the others are in force, and are listed."""
    file = tmp_path / "state" / "registries.json"
    file.write_text(json.dumps({"registries": [ENTRY, entry, {"host": "docker.io"}]}))
    code, out, err = svc("registry", "list")
    assert (code, [line.split("\t")[0] for line in out.splitlines()]) == (0, ["quay.io", "docker.io"])
    assert err == f"svc: entry 2 of {file} is not valid: it allows nothing\n"
    code, _, err = svc("registry", "add", "ghcr.io")
    assert code == 1 and "its entry 2 is not valid" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the logins are root's")
def test_a_removal_whose_login_stays_says_so_and_is_completed_by_itself(
    svc: Any, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    (state / "registries.json").write_text(json.dumps({"registries": [ENTRY]}))
    (state / "registry-logins.json").write_text('{"auths": {"quay.io": {"auth": "YTpi"}}}')
    (state / "registry-logins.json").chmod(0o600)
    calls: list[str] = []
    refusals = [EngineFailed("the disk is full")]

    class FakeHelper:
        def call(self, verb: str, _user: None, args: dict[str, Any], *, rid: str) -> None:
            calls.append(verb)
            if verb == "registries.write":
                (state / "registries.json").write_text(json.dumps(args))
            elif refusals:
                raise refusals.pop()

    monkeypatch.setattr("svc.admin.registry.own_helper", lambda _settings: nullcontext(FakeHelper()))
    code, _, err = svc("registry", "remove", "quay.io/team")
    assert code == 1
    assert "svc: no image of quay.io is allowed any more, but the login for quay.io stays: the disk" in err
    assert "then: sudo svc admin registry remove quay.io" in err
    for form in ("quay.io", "quay.io/team"):
        code, out, _ = svc("registry", "remove", form)
        assert (code, out) == (0, f"images of {form} are not allowed any more\n")
    assert calls == ["registries.write", "registries.logout"] * 3


def test_what_is_not_listed_cannot_be_removed(svc: Any, database: str) -> None:
    code, _, err = svc("registry", "remove", "quay.io")
    assert (code, err) == (1, "svc: quay.io is not on the list\nhint: sudo svc admin registry list\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"auths": []}',
        '{"auths": {"quay.io": 7}}',
        '{"auths": {"quay.io": {"auth": "eA=="}}}',
    ],
)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the logins are root's")
def test_logins_that_cannot_be_read_hide_no_registry(
    svc: Any, database: str, tmp_path: Path, text: str
) -> None:
    state = tmp_path / "state"
    (state / "registries.json").write_text(json.dumps({"registries": [ENTRY]}))
    file = state / "registry-logins.json"
    file.write_text(text)
    file.chmod(0o600)
    code, out, err = svc("registry", "list")
    assert (code, out) == (0, "quay.io\tteam/\tfalse\t\n")
    assert err == (
        f"svc: the logins cannot be read: {file} is damaged; remove it, and give each login again\n"
    )
    with pytest.raises(OSError, match="is damaged"):  # what the helper answers to any change of them
        logins.login(str(state), "quay.io", "kim", "secret")
    assert file.read_text() == text
