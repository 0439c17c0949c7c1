"""What other programs call a command: other names, short options, and what is suggested for the rest."""

from __future__ import annotations

import json

import pytest
from fake_service import Service, Svc

from svc.__main__ import COMMANDS, build_parser, declaration
from svc.commandline import suggestions
from svc.commandline.arguments import CommandGroup

WS, FS = "/api/workspaces/demo", "/api/fs/work/file?path=a"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("ws show", "svc ws get"), ("ws describe", "svc ws get"), ("ws inspect demo", "svc ws get"),
        ("ws del demo", "svc ws delete"), ("ws ps", "svc ws list"), ("ws mv demo", "svc ws rename"),
        ("ws kill demo", "svc ws stop"), ("ws help", "svc ws"), ("ws port help", "svc ws port"),
        ("ws status demo", "svc ws get"), ("ws ssh demo", "svc ws shell"), ("ws top demo", "svc ws monitor"),
        ("ws ports add demo web", "svc ws port add"),
        ("ws launchers start demo web", "svc ws launcher start"),
        ("fs rmdir work/a", "svc fs rm"), ("fs cat work/a", "svc fs read"),
        ("fs get work/a", "svc fs download"),
        ("fs put a work/", "svc fs upload"), ("fs cp a work/", "svc fs upload"),
        ("fs del work/a", "svc fs rm"),
        ("template show x", "svc template get"), ("template cp x", "svc template clone"),
        ("image inspect x", "svc image status"), ("image rmi x", "svc image delete"),
        ("operation show op-1", ""), ("token new", "svc token create"), ("token del x", "svc token revoke"),
        ("workspace list", "svc ws"), ("templates", "svc template"), ("gpus", "svc servers hardware"),
        ("start demo", "svc ws start"), ("ps", "svc ws list"),
        ("kill demo", "svc ws stop"), ("inspect demo", "svc ws get"), ("top", "svc ws monitor"),
        ("df", "svc image overview"), ("servers list", "svc servers hardware"),
        ("admin useradd bob", "svc admin create-user"), ("admin add-user bob", "svc admin create-user"),
        ("admin user list", "svc admin list-users"), ("admin passwd bob", "svc admin set-password"),
        ("admin userdel bob", "svc admin delete-user"), ("admin status", "svc admin doctor"),
    ],
)  # fmt: skip
def test_what_other_programs_call_it(service: Service, svc: Svc, typed: str, meant: str) -> None:
    done = svc(*typed.split())
    assert (done.code, done.out, service.sent) == (2, "", [])
    assert f"\nhint: {meant or 'svc operation'} --help\n" in done.err


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("version", "svc --version"),
        ("users", "sudo svc admin list-users"),
        ("login", "svc whoami"),
        ("ws exec -it demo -- bash", "svc ws shell demo --command bash"),
        ("ws exec -t demo", "svc ws shell demo"),
        ("ws exec -ti demo -- sh -c 'ls -l'", "svc ws shell demo --command "),
        ("ws run -it --template python --rm -- sh", "svc ws run -i --template python --rm -- sh"),
    ],
)
def test_what_there_is_no_command_for(service: Service, svc: Svc, typed: str, hint: str) -> None:
    done = svc(*typed.split(" "))
    assert (done.code, done.out, service.sent) == (2, "", [])
    assert f"hint: {hint}" in done.err


@pytest.mark.parametrize(
    ("typed", "path", "record", "printed"),
    [
        ("ws list -q", "/api/workspaces", {"id": "ws-1", "name": "demo"}, "ws-1"),
        ("template list --quiet", "/api/templates", {"id": "tpl-1", "name": "base"}, "tpl-1"),
        ("token list -q", "/api/tokens", {"id": "tok-1", "name": "ci"}, "tok-1"),
        ("operation list -q", "/api/operations", {"id": "op-1", "kind": "pull"}, "op-1"),
        ("image list -q", "/api/images", {"template": {"id": "tpl-1", "name": "base"}}, "tpl-1"),
        ("ws port list demo -q", f"{WS}/ports", {"name": "web"}, "web"),
    ],
)
def test_a_list_of_what_other_commands_take(
    service: Service, svc: Svc, typed: str, path: str, record: dict[str, object], printed: str
) -> None:
    query = "" if path.startswith(WS) else "?limit=200"
    service.answer(f"GET {path}{query}", {"items": [record], "total": 1})
    done = svc(*typed.split())
    assert (done.code, done.out, done.err) == (0, f"{printed}\n", "")


def test_every_suggestion_is_a_command() -> None:
    groups = {name: each for name in COMMANDS if isinstance(each := declaration(name), CommandGroup)}
    known = {each.name for group in groups.values() for each in group.commands}
    for names in suggestions.IN_GROUP.values():
        assert set(names) <= known, names
    for line in suggestions.COMMANDS.values():
        words = line.removeprefix("sudo ").split()[1:]
        assert words == ["--version"] or words[0] in COMMANDS, line
        if len(words) > 1:
            assert groups[words[0]].find(words[1]), line


@pytest.mark.parametrize("verb", ["delete", "remove", "rm"])
@pytest.mark.parametrize(
    ("group", "rest", "sent"),
    [
        ("ws", "demo --yes", f"DELETE {WS}"), ("ws port", "demo web", f"DELETE {WS}/ports/web"),
        ("template", "base -y", "DELETE /api/templates/base"), ("token", "ci", "DELETE /api/tokens/ci"),
        ("fs", "work/a -f", f"DELETE {FS}"), ("image", "base -f", "DELETE /api/templates/base/image"),
    ],
)  # fmt: skip
def test_one_set_of_verbs_removes(
    service: Service, svc: Svc, verb: str, group: str, rest: str, sent: str
) -> None:
    service.answer(sent, {"removed": 1} if group == "fs" else None, status=200 if group == "fs" else 204)
    service.answer("GET /api/images/overview", {"items": []})
    assert svc(*group.split(), verb, *rest.split()).code == 0
    assert service.sent[-1] == sent


@pytest.mark.parametrize(
    "line", ["ws list", "ws ls", "fs list work", "fs ls work", "token ls", "template ls"]
)
def test_list_and_ls(service: Service, svc: Svc, line: str) -> None:
    svc(*line.split())
    assert len(service.sent) == 1


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("ws logs demo -n 5 -t", f"GET {WS}/logs/raw?tail=5&timestamps=true"),
        ("fs rm -rf work/a", f"DELETE {FS}&recursive=true"),
        ("fs mkdir -p work/a", "POST /api/fs/work/mkdir?path=a"),
        ("events -A", "GET /api/events/history?limit=200&all=true"),
    ],
)
def test_short_options(service: Service, svc: Svc, line: str, sent: str) -> None:
    assert svc(*line.split()).code == 1  # the table has no answer
    assert service.sent == [sent]


@pytest.mark.parametrize(
    "form", ["-o json", "-ojson", "--output json", "--output=json", "--json=1", "--json"]
)
def test_other_forms_of_json(service: Service, svc: Svc, form: str) -> None:
    service.answer("GET /api/users/me", {"name": "ada"})
    assert json.loads(svc("whoami", *form.split()).out) == {"name": "ada"}
    assert json.loads(svc("whoami", *form.split(), *form.split()).out) == {"name": "ada"}


def test_a_flag_has_no_value(svc: Svc) -> None:
    assert svc("ws", "list", "--json=no").err == "svc: --json takes no value\nhint: svc ws list --help\n"


def test_an_archive_may_be_called_json(service: Service, svc: Svc) -> None:
    svc("template", "export", "base", "-o", "-")
    assert service.sent == ["GET /api/templates/base/export"]


@pytest.mark.parametrize("line", ["ws", "ws port", "fs", "admin", "admin quota"])
def test_a_group_alone_prints_its_help(service: Service, svc: Svc, line: str) -> None:
    done = svc(*line.split())
    assert (done.code, done.out, service.sent) == (2, "", [])
    assert done.err == svc(*line.split(), "--help").out


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_help_follows_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in COMMANDS:
        parser = build_parser([name])._actions[-1].choices[name]  # type: ignore[index]
        for each in [parser, *(below for action in parser._actions for below in _below(action))]:
            told = each.format_help().partition("\nexamples:")[0].partition("\noptions:")[0]
            paragraphs = told.split("\n\n")[1:]
            lines = [line for text in paragraphs for line in text.splitlines() if " " in line.strip()]
            assert max(map(len, lines), default=0) <= columns, each.prog


def _below(action: object) -> list[object]:
    choices = getattr(action, "choices", None)
    return list(choices.values()) if isinstance(choices, dict) else []


def test_help_does_not_quote() -> None:
    for name in COMMANDS:
        parser = build_parser([name])._actions[-1].choices[name]  # type: ignore[index]
        for each in [parser, *(below for action in parser._actions for below in _below(action))]:
            assert not each.description.splitlines()[0].startswith('"'), each.prog
            assert '\n"' not in each.description.partition("{")[0], each.prog
