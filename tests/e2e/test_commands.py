"""How commands are written, what they ask and what they print, whatever they are about."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from e2e import operations, terminal
from e2e.installation import SVC, Call, Outcome, Service, command, run
from e2e.surroundings import in_database, must

# --- confirmations --------------------------------------------------------------------------


@pytest.mark.parametrize("reply", [terminal.INTERRUPT, terminal.END, b"\n", b"n\n"])
@pytest.mark.parametrize(
    "line", ["ws delete {ws}", "fs rm work/asked", "template delete {template}", "image delete {template}"]
)
def test_an_aborted_confirmation(
    service: Service, alice: Call, workspace: str, template: str, line: str, reply: bytes
) -> None:
    """ "Aborting a confirmation exits with code 1", however it is aborted, and says that nothing was done."""
    must(alice("fs", "upload", "-", "work/asked", stdin="x"))
    argv = line.format(ws=workspace, template=template).split()
    code, screen = terminal.typed("tse-alice", argv, service.env, "[y/N]", reply)
    assert code == 1, screen
    assert screen.splitlines()[-1] == "svc: not confirmed; nothing was done"
    assert alice("ws", "get", workspace).code == 0
    assert must(alice("fs", "read", "work/asked")).out == "x"
    assert must(alice("image", "status", template, "--json")).json()["status"] == "ready"
    must(alice("fs", "rm", "work/asked", "--yes"))


# --- how a command is written -------------------------------------------------------------------


def test_help_of_every_command(alice: Call) -> None:
    """ "`svc --help` prints usage", and `svc help COMMAND...` that of the command."""
    assert must(alice("help")).out == must(alice("--help")).out
    for named in ("ws", "ws exec", "template import", "fs upload", "admin doctor", "whoami"):
        assert must(alice("help", *named.split())).out.startswith(f"usage: svc {named} ")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("wss list", "svc ws --help"),
        ("ws strat demo", "svc ws start --help"),
        ("start demo", "svc ws start --help"),
        ("--json ws list", "svc ws list --json"),
        ("ws --json list", "svc ws list --json"),
        ("--json --version", "svc --help"),
        ("--version extra", "svc --version"),
        ("admin template import F --owner tse-alice --json", "svc admin template import --help"),
        ("ws logs demo --tial 5", "svc ws logs --help"),
        ("server --port abc", "svc server --help"),
    ],
)
def test_wrong_usage_names_what_was_meant(alice: Call, line: str, hint: str) -> None:
    """ "2: Invalid command usage"."""
    said = alice(*line.split())
    assert (said.code, said.out) == (2, ""), said
    assert said.err.endswith(f"hint: {hint}\n")


def test_several_workspaces_and_the_other_names_of_commands(alice: Call, template: str) -> None:
    names = ("one-of-two", "two-of-two")
    for name in names:
        must(alice("ws", "setup", "--template", template, "--name", name))
    for verb, status in (("start", "running"), ("stop", "stopped")):
        rows = [line.split("\t") for line in must(alice("ws", verb, *names)).out.splitlines()]
        assert [row[1:3] for row in rows] == [[name, status] for name in names]
    said = alice("ws", "rm", "one-of-two", "gone", "two-of-two", "--yes")
    assert (said.code, said.err) == (1, "svc: no workspace gone\nhint: svc ws list\n")
    listed = must(alice("ws", "ls")).out
    assert not [name for name in names if name in listed]


def test_labels_are_spelt_as_people_spell_them(service: Service, workspace: str) -> None:
    _, screen = terminal.typed("tse-alice", ["ws", "get", workspace], service.env, "(no question)", b"")
    labels = {line.partition(":")[0] for line in screen.splitlines()}
    assert {"ID", "CPUs", "GPUs", "PIDs"} <= labels


# --- JSON ---------------------------------------------------------------------------------------


def test_json_is_one_object_and_a_newline(alice: Call, workspace: str, template: str) -> None:
    """ "Each client command accepts `--json` to print the raw API response": also of what leaves nothing."""
    must(alice("ws", "port", "add", workspace, "web", "--container-port", "8000"))
    must(alice("token", "create", "--name", "short"))
    must(alice("ws", "create", "--template", template, "--name", "brief"))
    spec = '{"name": "brief", "source": {"type": "registry", "image_ref": "registry.invalid/x:1"}}'
    must(alice("template", "create", "--file", "-", stdin=spec))
    for line in (
        "whoami", "ws list", f"ws get {workspace}", f"ws stop {workspace}", "fs roots", "image list",
        f"image pull {template} --wait", "token list", "token revoke short",
        f"ws setup --template {template} --name brief-2", f"ws port remove {workspace} web",
        "ws delete brief brief-2 --yes", "template delete brief --yes",
    ):  # fmt: skip
        printed = must(alice(*line.split(), "--json")).out
        assert printed.endswith("}\n"), line
        found = [json.loads(each) for each in printed.splitlines()]
        assert all(isinstance(each, dict) for each in found), line
        assert len(found) == (2 if "brief-2 --yes" in line else 1), line
    missing = alice("ws", "get", "none", "--json")
    assert (missing.code, missing.out[-2:]) == (1, "}\n")


def test_json_of_an_operation_has_one_form(alice: Call, template: str) -> None:
    begun = must(alice("image", "pull", template, "--json")).json()["operation"]
    operations.succeeded(alice, begun["id"])
    ended = must(alice("image", "pull", template, "--wait", "--json")).json()["operation"]
    assert set(begun) == set(ended)
    assert ended["status"] == "succeeded"


# --- whose it is ----------------------------------------------------------------------------------


def test_an_owner_is_named_by_name_or_id(svc: Call, alice: Call, workspace: str, template: str) -> None:
    """ "`--owner <server_userid>`": the id that `svc whoami` prints, or the name."""
    uid = str(must(alice("whoami", "--json")).json()["uid"])
    for owner in ("tse-alice", uid):
        assert f"\t{workspace}\t" in must(svc("root", "ws", "list", "--owner", owner)).out
        assert (
            must(svc("root", "ws", "get", workspace, "--owner", owner, "--json")).json()["owner"]
            == "tse-alice"
        )
        assert f"\t{template}\t" in must(svc("root", "template", "list", "--owner", owner)).out
    bundle = must(alice("template", "export", template, "--out", "-")).out
    imported = must(svc("root", "admin", "template", "import", "-", "--owner", uid, stdin=bundle)).out
    assert "is imported as tse-alice's" in imported
    must(alice("template", "rm", imported.partition("(")[2].partition(")")[0], "--yes"))
    said = svc("root", "ws", "list", "--owner", "4000000")
    assert (said.code, "there is no account 4000000" in said.err) == (1, True)
    said = svc("root", "ws", "list", "--owner", "0")
    assert (said.code, "root administers" in said.err) == (1, True)


# --- what is no path ------------------------------------------------------------------------------


def test_a_socket_that_is_an_address_is_wrong_usage(service: Service) -> None:
    """ "A remote server URL is a usage error"."""
    env = service.env | {"SVC_SOCKET": "https://other.example:24680"}
    said = run("tse-alice", "ws", "list", env=env)
    assert (said.code, said.out) == (2, "")
    assert "SVC_SOCKET" in said.err and "this host only" in said.err


# --- where things go wrong ------------------------------------------------------------------------


def shell(user: str, line: str, env: dict[str, str]) -> Outcome:
    """A line of bash as that user; $SVC is the program."""
    return command(user, "bash", "-c", line, env=env | {"SVC": str(SVC)})


def test_a_closed_pipe_is_nobodys_failure(service: Service, template: str) -> None:
    """ "1: API or network error", also when nobody reads the message; a help text is a success."""
    for line, code in (
        ("$SVC ws get none 2> >(exec true)", 1),
        ("$SVC ws bogus 2> >(exec true)", 2),
        ("$SVC ws list 2> >(exec true)", 0),
        (f"$SVC image pull {template} --wait 2> >(exec true)", 0),
        ("(sleep 0.3; $SVC ws --help; echo $? >&2) | true", 0),
    ):
        said = shell(
            "tse-alice", line.replace("$SVC", "sleep 0.2; $SVC") if "2>" in line else line, service.env
        )
        assert said.code == code, (line, said)
        assert "120" not in said.err, (line, said)


def test_a_token_whose_secret_was_not_printed_is_revoked(service: Service, alice: Call) -> None:
    """ "Prints the secret once": one that nobody has read opens nothing."""
    for line in (
        "$SVC token create --name unread >/dev/full",
        "$SVC token create --name unread --json >/dev/full",
    ):
        said = shell("tse-alice", line, service.env)
        assert (said.code, said.out) == (1, ""), said
        assert "the token unread is revoked" in said.err
        assert "unread" not in must(alice("token", "list")).out
    said = shell("tse-alice", "$SVC token create --name unread >&-", service.env)
    assert (said.code, "no token is created" in said.err) == (1, True), said
    assert "unread" not in must(alice("token", "list")).out


def test_head_through_the_passthrough(alice: Call) -> None:
    said = must(alice("api", "HEAD", "/api/version"))
    assert "content-type: application/json" in said.out
    said = alice("api", "HEAD", "/api/workspaces/none")
    assert (said.code, said.err.splitlines()) == (
        1,
        [
            "svc: the service refused the request with status 404; a HEAD brings no reason",
            "hint: svc api GET /api/workspaces/none",
        ],
    )


def test_a_created_thing_has_a_location(service: Service, workspace: str) -> None:
    """Each 201 says where the new object is."""
    for path, body, location in (
        (
            f"/api/workspaces/{workspace}/ports",
            '{"name": "web", "container_port": 80}',
            f"/{workspace}/ports/web",
        ),
        ("/api/fs/work/mkdir?path=a%20b", "{}", "/api/fs/work/list?path=a%20b"),
        ("/api/workspaces", f'{{"name": "{workspace}-2", "template": "base"}}', "/api/workspaces/ws-"),
    ):
        said = shell(
            "tse-alice",
            f"curl -si --unix-socket {service.env['SVC_SOCKET']} -H 'Content-Type: application/json'"
            f" -X POST --data '{body}' 'http://localhost{path}'",
            service.env,
        )
        assert " 201 " in said.out.splitlines()[0], said
        found = [line for line in said.out.splitlines() if line.lower().startswith("location: ")]
        assert len(found) == 1 and location in found[0], said
    must(run("tse-alice", "ws", "delete", f"{workspace}-2", "--yes", env=service.env))
    must(run("tse-alice", "fs", "rm", "work/a b", "--recursive", "--yes", env=service.env))


def test_a_name_that_looks_like_an_id_is_refused(alice: Call, template: str, workspace: str) -> None:
    """A workspace is "identified by `<workspace-id>`", which no name may be mistaken for."""
    for line in (
        f"ws create --template {template} --name ws-4k2m9x7p",
        f"ws rename {workspace} --name ws-4k2m9x7p",
        f"template clone {template} --name tpl-4k2m9x7p",
        "token create --name tok-4k2m9x7p",
    ):
        said = alice(*line.split())
        assert (said.code, "has the form of an id" in said.err) == (1, True), said


def test_an_exit_status_after_a_timeout_is_that_of_timeout(alice: Call, workspace: str) -> None:
    said = alice("ws", "exec", workspace, "--timeout", "1", "--exit-status", "--", "sleep", "30")
    assert said.code == 124
    assert said.err == "svc: the command was killed after 1 second\n"


def test_below_a_missing_directory(alice: Call) -> None:
    """The hint makes it."""
    uploaded = alice("fs", "upload", "-", "work/no/where/x", stdin="x")
    assert uploaded.err.endswith("hint: svc fs mkdir work/no/where --parents\n")
    made = alice("fs", "mkdir", "work/no/where")
    assert made.err.endswith("hint: svc fs mkdir work/no/where --parents\n")
    must(alice("fs", "mkdir", "work/no/where", "--parents"))
    must(alice("fs", "upload", "-", "work/no/where/x", stdin="x"))
    moved = alice("fs", "mv", "work/no/where/x", "work/no/other/x")
    assert moved.err.endswith("hint: svc fs mkdir work/no/other --parents\n")
    spaced = alice("fs", "mkdir", "work/no/my own/results")
    assert spaced.err.endswith("hint: svc fs mkdir 'work/no/my own/results' --parents\n")
    assert alice("fs", "mv", "work/no/none", "work/no/y").err.endswith("hint: svc fs ls work/no\n")
    must(alice("fs", "rm", "work/no", "--recursive", "--yes"))


def test_a_faulty_value_is_named_once(alice: Call, template: str) -> None:
    one = alice("ws", "create", "--template", template, "--name", "Bad Name")
    assert one.err == "svc: name: Use a-z, 0-9 and - (inside), at most 63\n"
    body = json.dumps(
        {"name": "x", "template": template, "env": [{"name": "1", "value": ""}], "memory_bytes": 1}
    )
    said = alice("api", "POST", "/api/workspaces", "--body", body)
    assert said.err.splitlines() == [
        "svc: 2 values are not valid: env item 1 name, memory_bytes",
        "  env item 1 name: Use A-Z, a-z, 0-9, _, . and -, at most 128; begin with a letter or _",
        "  memory_bytes: Unknown field; did you mean resources.memory_bytes?",
    ]


def test_a_missing_bundle_is_missing(svc: Call, service: Service) -> None:
    said = svc("root", "admin", "template", "import", "/none.tar", "--global")
    assert said.err == "svc: cannot read /none.tar: No such file or directory\n"
    early = ("template", "--db", service.env["SVC_DB"], "import", "/none.tar", "--global")
    assert svc("root", "admin", *early).err == said.err


def test_a_template_off_the_allowlist_says_so(svc: Call, alice: Call) -> None:
    """An "allowlist of registries exists": also where root imports, the sentence comes at once."""
    spec = {"name": "afar", "source": {"type": "registry", "image_ref": "registry.invalid/x:1"}}
    created = must(alice("template", "create", "--file", "-", stdin=json.dumps(spec)))
    bundle = must(alice("template", "export", "afar", "--out", "-")).out
    imported = must(svc("root", "admin", "template", "import", "-", "--owner", "tse-alice", stdin=bundle))
    said = (
        "svc: registry.invalid is not on the registry allowlist: until an administrator adds it, the image of"
    )
    assert said + " afar is " in created.err
    assert said + " afar-2 is " in imported.err
    for name in ("afar", "afar-2"):
        must(alice("template", "rm", name, "--yes"))


def test_a_mistyped_path_makes_no_directories(svc: Call) -> None:
    """ "`svc admin migrate`" makes the data directory alone."""
    said = svc("root", "admin", "migrate", "--db", "/srv/svc-e2e-typo/x/y.db")
    assert said.code == 1
    assert said.err.startswith(
        "svc: there is no directory /srv/svc-e2e-typo for /srv/svc-e2e-typo/x; create it"
    )
    assert not os.path.lexists("/srv/svc-e2e-typo")
    must(svc("root", "admin", "migrate", "--db", "/srv/svc-e2e-typo/y.db"))
    shutil.rmtree("/srv/svc-e2e-typo")


def test_on_https_no_hint_leads_where_a_token_may_not_go(service: Service, alice: Call) -> None:
    """ "Not found" of a path names the document of paths for the host, where it can be read."""
    token = must(alice("token", "create", "--name", "elsewhere")).out.strip()
    line = 'curl -sk -H @- https://127.0.0.1:$SVC_PORT/api/nothing <<<"Authorization: Bearer $TOKEN"'
    said = command("tse-alice", "bash", "-c", line, env=service.env | {"TOKEN": token})
    assert said.json()["error"]["hint"] == "on the host: svc api GET /api/openapi.json"
    must(alice("token", "revoke", "elsewhere"))
    must(alice("api", "GET", "/api/openapi.json"))


def test_an_unfinished_account_is_told_so(svc: Call, service: Service) -> None:
    """ "3: The Linux account has no service account or its account setup is incomplete": which of both."""
    for user, message in (
        ("tse-carol", "the Linux account tse-carol has no service account"),
        ("tse-bob", "the setup of the service account tse-bob is not complete"),
    ):
        set_to = "UPDATE users SET provisioning = ? WHERE name = 'tse-bob'"
        in_database(service.env, set_to, "incomplete")
        try:
            said = svc(user, "ws", "list")
        finally:
            in_database(service.env, set_to, "ready")
        assert (said.code, said.out) == (3, "")
        assert said.err == f"svc: {message}\nhint: sudo svc admin create-user {user}\n"


def test_what_a_disabled_template_with_a_dockerfile_needs(alice: Call, registry: str) -> None:
    """It is built before it is enabled; the help of delete says what it refuses."""
    source = {"type": "dockerfile", "dockerfile": f"FROM {registry}/tests/base:1\n"}
    must(alice("template", "create", "--file", "-", stdin=json.dumps({"name": "recipe", "source": source})))
    for line in ("ws create --template recipe --name r", "ws setup --template recipe --name r"):
        said = alice(*line.split())
        assert said.err.splitlines() == [
            "svc: the template recipe is disabled; you can enable it once you have built it",
            "hint: svc image build recipe --wait && svc template enable recipe",
        ]
    must(alice("template", "rm", "recipe", "--yes"))
    text = must(alice("template", "delete", "--help")).out
    assert "Delete a template that no workspace was made from." in text
    assert "One that has workspaces is refused" in text
