"""What is refused about templates and images, as the people meet it: exit code, message, hint.

By the real command, one row each: root, who asks it of somebody else's, what is disabled, read-only,
imported or not yet built. tse-olga is a superuser with an account of her own.
"""

from __future__ import annotations

import itertools
import json
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.installation import IMAGE, Call, Service, run
from e2e.surroundings import make_accounts, must, new_template
from unit.bundling import written

from svc.errors import spoken

NUMBERS = itertools.count(1)
SUPERUSER = "tse-olga"
FILE = "tse-refused.tar"


class Refusals:
    """One user's commands that have to be refused."""

    def __init__(self, service: Service, user: str) -> None:
        self.service, self.user = service, user

    def call(self, *arguments: str, stdin: str = "") -> Any:
        """The command's outcome."""
        return run(self.user, *arguments, env=self.service.env, stdin=stdin)

    def refused(
        self, *arguments: str, code: str, says: str, hint: str = "", stdin: str = ""
    ) -> dict[str, Any]:
        """Exit code 1, one line that says why, the hint of the next command; the error's body."""
        plain = self.call(*arguments, stdin=stdin)
        assert plain.code == 1, (arguments, plain)
        assert plain.out == "", "nothing was done, so nothing is said on standard output"
        lines = plain.err.splitlines()
        assert lines[0].startswith("svc: ") and says in lines[0], plain.err
        assert "Traceback" not in plain.err
        if hint:
            assert f"hint: {hint}" in lines, plain.err
        raw = self.call(*arguments, "--json", stdin=stdin)
        assert raw.code == 1, (arguments, raw)
        error = dict(raw.json()["error"])
        assert error["code"] == code, error
        return error


@pytest.fixture(scope="module")
def root(service: Service) -> Refusals:
    """Root's."""
    return Refusals(service, "root")


@pytest.fixture(scope="module")
def alice(service: Service) -> Refusals:
    """Those of somebody like everybody."""
    return Refusals(service, "tse-alice")


@pytest.fixture(scope="module")
def olga(service: Service) -> Refusals:
    """A superuser's, who has an account and a store like everybody."""
    make_accounts(service.env, {SUPERUSER: "a lighthouse among the plums"})
    flag = ("admin", "edit-user", SUPERUSER, "--superuser")
    must(run("root", *flag, env=service.env))
    return Refusals(service, SUPERUSER)


class Created:
    """The templates that are refused things here."""

    def __init__(self, service: Service, registry: str) -> None:
        self.service, self.reference = service, f"{registry}/{IMAGE}"
        self.recipe = f"FROM {self.reference}\nRUN echo made > /made\n"
        self.ids: list[tuple[str, str]] = []

    def template(self, user: str, source: dict[str, object], **spec: Any) -> dict[str, Any]:
        """A new one's record."""
        record = new_template(user, self.service.env, f"refused-{next(NUMBERS)}", source, **spec)
        self.ids.append((user, record["id"]))
        return record

    def of_registry(self, user: str, **spec: Any) -> dict[str, Any]:
        """One of the small image."""
        return self.template(user, {"type": "registry", "image_ref": self.reference}, **spec)

    def of_recipe(self, user: str, local_only: bool = False, **spec: Any) -> dict[str, Any]:
        """One with a Dockerfile."""
        source = {"type": "dockerfile", "dockerfile": self.recipe} | (
            {"local_only": True} if local_only else {}
        )
        return self.template(user, source, **spec)


@pytest.fixture
def created(service: Service, registry: str) -> Iterator[Created]:
    """What makes them; they are gone afterwards."""
    created = Created(service, registry)
    yield created
    for user, template in created.ids:
        run(user, "template", "delete", template, "--yes", env=service.env)
    Path(pwd.getpwnam("root").pw_dir, FILE).unlink(missing_ok=True)


def file_of(user: str, content: bytes) -> str:
    """A file in the user's home; its path."""
    path = Path(pwd.getpwnam(user).pw_dir, FILE)
    path.write_bytes(content)
    path.chmod(0o644)
    return str(path)


def bundle(source: dict[str, object], recipe: str | None) -> bytes:
    """A bundle of that source."""
    template = {"name": f"bundled-{next(NUMBERS)}", "source": source}
    return written(template, None if recipe is None else recipe.encode(), {})


# --- root -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [("list",), ("status", "{}"), ("pull", "{}"), ("pull", "{}", "--wait"), ("build", "{}"),
              ("build", "{}", "--wait"), ("delete", "{}", "--yes"), ("prune", "--yes"), ("builds",),
              ("overview",)],
    ids=lambda arguments: "-".join(arguments).replace("{}", "template"),
)  # fmt: skip
def test_root_has_no_images(root: Refusals, created: Created, arguments: tuple[str, ...]) -> None:
    """ "`image list`, `pull`, `build`, `delete` and `prune` are not available to the root account"."""
    template = created.of_registry("root", scope="global")
    command = [argument.format(template["id"]) for argument in arguments]
    error = root.refused("image", *command, code="root_not_allowed", says="root administers")
    assert error["hint"], "the next command of a user's"


def test_root_only_configures_registry_policy(root: Refusals, registry: str) -> None:
    """ "Root only configures registry policy".

    "An allowlist of registries exists, set by the administrator".
    """
    assert registry in must(root.call("image", "allowlist")).out
    printed = must(root.call("image", "allowlist", "--json")).json()["items"]
    body = json.dumps({"registries": printed})
    put = ("api", "PUT", "/api/admin/registries", "--body")
    assert must(root.call(*put, body)).json()["registries"] == printed
    refused = root.call(*put, '{"registries": []}')
    assert refused.json()["error"]["code"] == "admin_command_only"
    assert "svc admin registry" in refused.json()["error"]["hint"]
    assert must(root.call("image", "allowlist", "--json")).json()["items"] == printed


@pytest.mark.parametrize(
    "arguments", [("create", "--template", "{}", "--name", "x"), ("setup", "--template", "{}", "--name", "x"),
              ("start", "x"), ("exec", "x", "--", "id"), ("logs", "x"), ("rename", "x", "--name", "y")],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_root_has_no_workspaces(root: Refusals, created: Created, arguments: tuple[str, ...]) -> None:
    template = created.of_registry("root", scope="global")
    must(root.call("template", "enable", template["id"]))
    command = [argument.format(template["id"]) for argument in arguments]
    if arguments[0] == "exec":
        said = root.call("ws", *command)
        assert (said.code, said.out) == (1, "")
        assert "root administers" in said.err or "owner" in said.err or "no workspace" in said.err
        return
    code, says = ("root_not_allowed", "root administers")
    root.refused("ws", *command, code=code, says=says)


def test_root_has_no_private_templates(root: Refusals, created: Created) -> None:
    source = {"type": "registry", "image_ref": created.reference}
    spec = json.dumps({"name": "roots-own", "source": source})
    root.refused(
        "template", "create", "--file", "-", stdin=spec,
        code="root_not_allowed", says="root has no templates of its own",
    )  # fmt: skip
    template = created.of_registry("root", scope="global")
    root.refused(
        "template", "clone", template["id"], "--name", "roots-clone",
        code="root_not_allowed", says="root has no templates of its own",
    )  # fmt: skip
    root.refused(
        "template", "import", file_of("root", bundle(source, None)),
        code="root_not_allowed", says="root has no templates of its own",
        hint="sudo svc admin template import FILE --global",
    )  # fmt: skip


def test_root_enables_nothing_that_somebody_has_to_build(root: Refusals, created: Created) -> None:
    template = created.of_recipe("root", scope="global")
    says = f"{template['name']} is built before it is enabled, and root builds no images"
    root.refused("template", "enable", template["id"], code="build_required", says=says)
    local = created.of_recipe("root", scope="global", local_only=True)
    must(root.call("template", "enable", local["id"]))


def test_dockerfile_bundles_are_refused_to_root(service: Service, root: Refusals, created: Created) -> None:
    """ "Dockerfile bundles are refused here (they need a build) and are imported from `/admin/templates`"."""
    before = must(root.call("template", "list", "--json")).json()["total"]
    for source in ({"type": "dockerfile"}, {"type": "registry", "image_ref": created.reference}):
        path = file_of("root", bundle(dict(source), created.recipe))
        for whose in (("--global",), ("--owner", "tse-alice")):
            said = root.call("admin", "template", "import", path, *whose)
            assert (said.code, said.out) == (1, ""), said
            first = said.err.splitlines()[0]
            assert first.startswith(
                "svc: a bundle with a Dockerfile needs a build, and root builds no images"
            )
            assert "https://" in first and f":{service.env['SVC_PORT']}/admin/templates" in first
    assert must(root.call("template", "list", "--json")).json()["total"] == before


# --- read-only --------------------------------------------------------------------------------


def test_a_global_templates_dockerfile_is_read_only(
    root: Refusals, olga: Refusals, alice: Refusals, created: Created
) -> None:
    """ "A global template's Dockerfile is read-only", to its administrators, too."""
    template = created.of_recipe("root", scope="global", local_only=True)
    must(root.call("template", "enable", template["id"]))
    name, recipe = template["id"], file_of("root", b"FROM evil.example/a:1\n")
    patch = json.dumps({"source": {"dockerfile": "FROM evil.example/a:1\n"}})
    for who in (alice, root, olga):
        assert must(who.call("template", "dockerfile", name)).out == created.recipe
        own = file_of(who.user, Path(recipe).read_bytes())
        for arguments, stdin in (
            (("dockerfile", name, "--set", "--file", own), ""),
            (("edit", name, "--file", "-"), patch),
        ):
            error = who.refused("template", *arguments, stdin=stdin, code="read_only", says="read-only")
            assert error["hint"].startswith(f"svc template clone {template['name']} --name ")
        assert must(who.call("template", "dockerfile", name)).out == created.recipe
    must(alice.call(*error["hint"].split()[1:]))  # the hint is the exact next command
    clone = error["hint"].split()[-1]
    assert must(alice.call("template", "dockerfile", clone)).out == created.recipe
    must(
        alice.call(
            "template", "dockerfile", clone, "--set", "--file", file_of("tse-alice", b"FROM scratch\n")
        )
    )
    must(alice.call("template", "delete", clone, "--yes"))


def test_a_global_template_is_changed_by_administrators_only(
    root: Refusals, alice: Refusals, created: Created
) -> None:
    template = created.of_registry("root", scope="global")
    name = template["name"]
    unseen = f"no template {name}"
    for arguments in (
        ("get", name),
        ("enable", name),
        ("clone", name, "--name", "mine"),
        ("delete", name, "--yes"),
    ):
        alice.refused("template", *arguments, code="not_found", says=unseen)
    must(root.call("template", "enable", name))
    patch = '{"description": "mine now"}'
    says = "only an administrator changes it"
    for arguments in (("disable", name), ("enable", name), ("delete", name, "--yes")):
        alice.refused("template", *arguments, code="admin_only", says=says)
    alice.refused("template", "edit", name, "--file", "-", stdin=patch, code="admin_only", says=says)
    spec = json.dumps({"name": "for-all", "scope": "global", "source": {"image_ref": created.reference}})
    says = "only an administrator creates global templates"
    alice.refused("template", "create", "--file", "-", stdin=spec, code="admin_only", says=says)
    alice.refused("template", "list", "--review", code="admin_only", says="only an administrator")


def test_a_registry_template_has_no_dockerfile(alice: Refusals, created: Created) -> None:
    name = created.of_registry("tse-alice")["name"]
    alice.refused("template", "dockerfile", name, code="not_found", says="has no Dockerfile")
    own = file_of("tse-alice", b"FROM scratch\n")
    alice.refused(
        "template", "dockerfile", name, "--set", "--file", own,
        code="conflict", says="has no Dockerfile", hint=f"svc template get {name}",
    )  # fmt: skip


# --- disabled ---------------------------------------------------------------------------------


def test_a_disabled_template_makes_nothing(alice: Refusals, created: Created) -> None:
    template = created.of_registry("tse-alice")
    name = template["name"]
    must(alice.call("template", "disable", name))
    for arguments in (
        ("ws", "create", "--template", name, "--name", "none"),
        ("ws", "setup", "--template", name, "--name", "none"),
        ("image", "pull", name),
        ("image", "pull", name, "--wait"),
    ):
        alice.refused(
            *arguments, code="template_disabled", says=f"the template {template['name']} is disabled",
            hint=f"svc template enable {name}",
        )  # fmt: skip
    must(alice.call("template", "enable", name))


def test_another_image_disables(alice: Refusals, created: Created, registry: str) -> None:
    """ "A new Dockerfile or image_ref disables again"."""
    template = created.of_registry("tse-alice")
    name = template["name"]
    assert template["status"] == "enabled"
    patch = json.dumps({"source": {"image_ref": f"{registry}/tests/other:1"}})
    must(alice.call("template", "edit", name, "--file", "-", stdin=patch))
    alice.refused(
        "ws", "setup", "--template", name, "--name", "none",
        code="template_disabled", says="is disabled; you can enable it", hint=f"svc template enable {name}",
    )  # fmt: skip


def test_an_imported_template_is_disabled_whatever_it_says(alice: Refusals, created: Created) -> None:
    """`template import`: disabled, "always"; and only enable opens it."""
    source = {"type": "registry", "image_ref": created.reference}
    path = file_of("tse-alice", bundle(source, None))
    record = must(alice.call("template", "import", path, "--json")).json()
    created.ids.append(("tse-alice", record["id"]))
    name = record["name"]
    assert record["status"] == "disabled"
    for arguments in (("ws", "setup", "--template", name, "--name", "none"), ("image", "pull", name)):
        alice.refused(
            *arguments, code="template_disabled", says="is disabled; you can enable it",
            hint=f"svc template enable {name}",
        )  # fmt: skip
    for patch, field in (
        ({"status": "enabled"}, "status"),
        ({"managed": True}, "managed"),
        ({"scope": "global"}, "scope"),
        ({"owner": "tse-bob"}, "owner"),
        ({"source": {"local_only": True}}, "source.local_only"),
        ({"source": {"type": "dockerfile"}}, "source.type"),
    ):
        error = alice.refused(
            "template", "edit", name, "--file", "-", stdin=json.dumps(patch),
            code="validation_failed", says=field,
        )  # fmt: skip
        assert [one["field"] for one in error["fields"]] == [field]
    must(alice.call("template", "edit", name, "--file", "-", stdin='{"description": "looked at"}'))
    assert must(alice.call("template", "get", name, "--json")).json()["status"] == "disabled"
    must(alice.call("template", "enable", name))


# --- not built, not allowed -------------------------------------------------------------------


def test_enabled_only_once_it_is_built(alice: Refusals, created: Created) -> None:
    """ "A Dockerfile-backed clone or import must be built before it can be enabled"."""
    own = created.of_recipe("tse-alice")
    clone = must(
        alice.call("template", "clone", own["id"], "--name", f"clone-{own['name']}", "--json")
    ).json()
    path = file_of("tse-alice", bundle({"type": "dockerfile"}, created.recipe))
    imported = must(alice.call("template", "import", path, "--build-later", "--json")).json()
    created.ids += [("tse-alice", clone["id"]), ("tse-alice", imported["id"])]
    for record in (own, clone, imported):
        name = record["id"]
        assert record["status"] == "disabled"
        hint = f"svc image build {record['name']} --wait"
        says = f"{record['name']} is made from a Dockerfile: build it once"
        alice.refused("template", "enable", name, code="build_required", says=says, hint=hint)
        alice.refused("image", "pull", name, code="template_disabled", says="is disabled")
    must(alice.call("image", "build", imported["id"], "--wait"))
    must(alice.call("template", "enable", imported["id"]))
    hint = f"svc image build {imported['name']} --wait"
    alice.refused("image", "pull", imported["id"], code="conflict", says="is built, not pulled", hint=hint)
    alice.refused("template", "enable", own["id"], code="build_required", says="build it once")
    change = file_of("tse-alice", created.recipe.encode() + b"RUN true\n")
    must(alice.call("template", "dockerfile", imported["id"], "--set", "--file", change))
    alice.refused("template", "enable", imported["id"], code="build_required", says="as it is now")
    alice.refused(
        "ws", "create", "--template", imported["id"], "--name", "none",
        code="template_disabled", says="is disabled",
    )  # fmt: skip


def test_the_review_is_of_what_was_looked_at(root: Refusals, created: Created) -> None:
    template = created.of_registry("root", scope="global")
    name = template["name"]
    must(root.call("template", "edit", name, "--file", "-", stdin='{"description": "another"}'))
    root.refused(
        "template", "enable", name, "--revision", "1",
        code="conflict", says=f"{template['name']} is at revision 2, not 1",
        hint=f"svc template get {name}",
    )  # fmt: skip


def test_off_the_list_nothing_is_fetched(alice: Refusals, created: Created) -> None:
    off = created.template("tse-alice", {"type": "registry", "image_ref": "off-list.example/a:1"})
    assert "registry_not_allowed" in [one["code"] for one in off["findings"]]
    says, hint = "off-list.example", "svc image allowlist"
    must(alice.call("template", "disable", off["id"]))
    alice.refused("template", "enable", off["id"], code="registry_not_allowed", says=says, hint=hint)
    alice.refused("image", "pull", off["id"], code="template_disabled", says="is disabled")
    recipe = "FROM off-list.example/a:1\nRUN true\n"
    built = created.template("tse-alice", {"type": "dockerfile", "dockerfile": recipe})
    alice.refused("image", "build", built["id"], code="registry_not_allowed", says=says, hint=hint)
    alice.refused("template", "enable", built["id"], code="registry_not_allowed", says=says, hint=hint)
    still = created.template("tse-alice", {"type": "registry", "image_ref": "off-list.example/b:1"})
    for arguments in (
        ("image", "pull", still["id"]),
        ("ws", "setup", "--template", still["id"], "--name", "none"),
    ):
        alice.refused(*arguments, code="registry_not_allowed", says=says, hint=hint)


def test_what_comes_from_a_registry_is_not_built(root: Refusals, alice: Refusals, created: Created) -> None:
    name = created.of_registry("tse-alice")["name"]
    hint = f"svc image pull {name} --wait"
    alice.refused("image", "build", name, code="conflict", says="is pulled, not built", hint=hint)
    source = {"type": "registry", "image_ref": created.reference, "dockerfile": created.recipe}
    published = created.template("root", source, scope="global")["name"]
    must(root.call("template", "enable", published))
    hint = f"svc image pull {published} --wait"
    alice.refused("image", "build", published, code="conflict", says="failed download", hint=hint)


# --- what is needed, what is there already -----------------------------------------------------


def test_what_a_workspace_needs_is_kept(alice: Refusals, created: Created) -> None:
    template = created.of_registry("tse-alice")
    name, workspace = template["name"], f"needs-{next(NUMBERS)}"
    must(alice.call("ws", "setup", "--template", name, "--name", workspace))
    try:
        error = alice.refused("image", "delete", name, "--yes", code="conflict", says=workspace)
        assert error["hint"]
        hint = f"svc template disable {name}"
        says = "1 workspace was made from"
        alice.refused("template", "delete", name, "--yes", code="conflict", says=says, hint=hint)
        must(alice.call("image", "prune", "--yes"))
        assert must(alice.call("image", "status", name, "--json")).json()["status"] == "ready"
    finally:
        must(alice.call("ws", "delete", workspace, "--yes"))


def test_a_start_never_pulls_or_builds(alice: Refusals, created: Created, registry: str) -> None:
    """ "Starting a workspace never pulls or builds an image. The image must be prepared first with
    `image pull` or `image build`."
    """
    source = {"type": "registry", "image_ref": f"{registry}/tests/absent:1"}
    name, workspace = created.template("tse-alice", source)["name"], f"absent-{next(NUMBERS)}"
    must(alice.call("ws", "create", "--template", name, "--name", workspace))
    try:
        hint = f"svc image pull {name} --wait"
        alice.refused("ws", "start", workspace, code="image_missing", says="never pulls", hint=hint)
    finally:
        must(alice.call("ws", "delete", workspace, "--yes"))


def test_confirmations_are_not_guessed(alice: Refusals, created: Created) -> None:
    """ "aborting a confirmation exits with code 1"; without a terminal there is nobody to ask."""
    name = created.of_registry("tse-alice")["name"]
    for arguments in (("image", "prune"), ("image", "delete", name), ("template", "delete", name)):
        said = alice.call(*arguments)
        assert (said.code, said.out) == (1, ""), said
        assert "--yes" in said.err


def test_an_existing_file_is_not_overwritten(alice: Refusals, created: Created) -> None:
    name = created.of_registry("tse-alice")["name"]
    path = file_of("tse-alice", b"mine")
    Path(path).chmod(0o666)
    said = alice.call("template", "export", name, "--out", path)
    assert said.code == 1 and f"{path} already exists" in said.err
    assert f"hint: svc template export {name} --out {path} --force" in said.err
    assert Path(path).read_bytes() == b"mine"


@pytest.mark.parametrize(
    "arguments", [("template", "export", "x", "--out", "y", "--json"), ("template", "export", "x"),
              ("template", "dockerfile", "x", "--set"), ("template", "dockerfile", "x", "--file", "y"),
              ("template", "clone", "x"), ("template", "create"), ("template", "edit", "x"),
              ("template", "import"), ("image", "pull"), ("image", "build", "--wait"),
              ("template", "enable", "x", "--revision", "0"), ("admin", "template", "import", "x"),
              ("admin", "template", "import", "x", "--global", "--owner", "y"), ("admin", "template"),
              ("image", "status", "x", "--server", "http://x"), ("template", "list", "--token", "x")],
    ids=lambda arguments: " ".join(arguments),
)  # fmt: skip
def test_wrong_usage_is_exit_2(alice: Refusals, arguments: tuple[str, ...]) -> None:
    """Also `template export`, "which write a local file and do not accept `--json`"."""
    said = alice.call(*arguments)
    assert (said.code, said.out) == (2, ""), said
    assert said.err.startswith(("svc: ", "usage: ")), said.err


def test_wrong_files_name_the_field(alice: Refusals, created: Created) -> None:
    """ "Creates from JSON; `-` reads standard input"."""
    good = {"name": "wrong", "source": {"type": "registry", "image_ref": created.reference}}
    for change, field in (
        ({"name": "No Slug"}, "name"),
        ({"source": {"type": "registry"}}, "source.image_ref"),
        ({"source": {"type": "dockerfile"}}, "source.dockerfile"),
        ({"source": {"type": "dockerfile", "dockerfile": "RUN x\n"}}, "source.dockerfile"),
        ({"source": {"type": "registry", "image_ref": "debian:12"}}, "source.image_ref"),
        ({"ports": [{"name": "web", "container_port": 70000}]}, "ports.0.container_port"),
        ({"launchers": [{"name": "lab", "command": []}]}, "launchers.0.command"),
        ({"mounts": [{"root": "work", "path": "data"}]}, "mounts.0.path"),
        ({"gpu": {"min_cuda": "twelve"}}, "gpu.min_cuda"),
        ({"limits": {"cpu_limit": -1}}, "limits.cpu_limit"),
        ({"env": [{"name": "1X", "value": ""}]}, "env.0.name"),
        ({"colour": "red"}, "colour"),
    ):
        error = alice.refused(
            "template", "create", "--file", "-", stdin=json.dumps(good | change),
            code="validation_failed", says=spoken(field),
        )  # fmt: skip
        assert field in [one["field"] for one in error["fields"]], error
    said = alice.call("template", "create", "--file", "-", stdin="{not json")
    assert said.code == 1 and said.err.startswith("svc: ")
    assert alice.call("template", "create", "--file", "/nonexistent").code == 1


def test_somebody_elses_is_not_there(service: Service, alice: Refusals, created: Created, bob: Call) -> None:
    """The same answer as for what does not exist, also to a superuser without `--owner`."""
    name = created.of_recipe("tse-alice")["id"]
    theirs = Refusals(service, "tse-bob")
    own = file_of("tse-bob", b"FROM scratch\n")
    for arguments in (
        ("template", "get", name), ("template", "clone", name, "--name", "x"),
        ("template", "dockerfile", name), ("template", "dockerfile", name, "--set", "--file", own),
        ("template", "enable", name),
        ("template", "delete", name, "--yes"), ("image", "build", name), ("image", "pull", name),
        ("image", "status", name), ("image", "delete", name, "--yes"),
        ("ws", "create", "--template", name, "--name", "x"),
        ("ws", "setup", "--template", name, "--name", "x"),
    ):  # fmt: skip
        theirs.refused(*arguments, code="not_found", says=f"no template {name}")
    assert bob("template", "export", name, "--out", "stolen.tar").code == 1
    assert not Path(pwd.getpwnam("tse-bob").pw_dir, "stolen.tar").exists()
