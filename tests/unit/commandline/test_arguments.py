"""What the quick reading takes, argparse takes likewise; what it leaves, argparse judges."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.__main__ import COMMANDS, build_parser, declaration
from svc.commandline import arguments
from svc.commandline.arguments import Arguments, Command, CommandGroup, Deferred, parse
from svc.errors import UsageError

CLIENT = [name for name in COMMANDS if name not in ("server", "admin")]
ODD = [
    "",
    "-",
    "--",
    "-h",
    "--json",
    "--wait",
    "--yes",
    "--all",
    "--name",
    "x",
    "a/b",
    "http://x",
    "5",
    "-5",
    "GET",
]
ODD += [
    "--timeout",
    "601",
    "--exit-status",
    "--memory",
    "32g",
    "--env",
    "A=b",
    "--template",
    "--file",
    "--jso",
]
ODD += ["--name=x", "--gpu-mode", "shared", "--owner", "--tail", "--body", "@f", "--cpus", "0.5", "/api/x"]
ODD += ["-f", "-n", "-y", "-r", "-A", "-rf", "-o", "-q"]
ODD += ["--container-port", "--launcher", "--follow", "start", "add"]
ODD += ["--force", "--recursive", "--parents", "work/a", "work/b/", "--offset", "--length"]
ODD += ["--expires", "365", "366", "svc_pat_x", "--db", "--superuser", "--global", "--dev", "import"]


def commands() -> list[list[str]]:
    """The command line of every command, without its arguments."""
    return [line for name in COMMANDS for line, _ in declared(declaration(name))]


def declared(found: CommandGroup | Command | Deferred) -> list[tuple[list[str], Command]]:
    """The command line that leads to each command, and the command."""
    if isinstance(found, Deferred):
        deferred, found = found, found.load()
        description = found.description if isinstance(found, CommandGroup) else found.handler.__doc__ or ""
        assert (deferred.name, deferred.help) == (
            found.name,
            description.strip().partition("\n")[0].rstrip("."),
        )
    if isinstance(found, Command):
        return [([found.name], found)]
    below = [each for command in found.commands for each in declared(command)]
    return [([found.name, *line], command) for line, command in below]


def by_argparse(line: list[str]) -> dict[str, object] | None:
    try:
        args, unknown = build_parser(line[:1]).parse_known_args(line, Arguments())
    except (UsageError, SystemExit):
        return None
    return None if unknown else vars(args)


@settings(deadline=None)  # a busy machine is no fault
@given(command=st.sampled_from(commands()), rest=st.lists(st.sampled_from(ODD), max_size=6))
def test_what_is_read_quickly_is_what_argparse_reads(command: list[str], rest: list[str]) -> None:
    line = command + rest
    quick = parse(declaration(line[0]), line[1:])
    if quick is None or "-h" in line or "--help" in line:
        return
    slow = by_argparse(line)
    assert slow is not None
    assert vars(quick) == {
        name: value for name, value in slow.items() if name not in ("version", "prog", "options")
    }


@pytest.mark.parametrize(
    "line",
    [
        "whoami",
        "whoami --json",
        "ws list",
        "ws start demo",
        "ws stop demo --owner alice",
        "ws delete demo --yes paper",
        "ws rm demo",
        "token rm laptop",
        "ws exec demo --timeout 5 --exit-status",
        "ws create --template python --name demo --env A=b --env C=d --memory 32g --restart-on-boot",
        "ws edit demo --file -",
        "ws launchers demo",
        "ws launcher start demo web",
        "ws port add demo web",
        "ws port add demo web --container-port 65535 --kind ssh --user ada --json",
        "ws ports demo",
        "ws monitor demo",
        "ws logs demo --launcher web --tail 5 --follow",
        "ws create --template python --name demo --port web=8888 --port api=80",
        "ws capacity",
        "ws recommend --template python --gpu-use-case light",
        "servers hardware",
        "image pull python --wait",
        "token create --name laptop --expires 30",
        "token revoke laptop",
        "api get /api/version",
        "fs ls work",
        "fs download work/a --force b",
        "fs download --force work/a",
        "fs archive work/a -",
        "fs upload - work/a --force --json",
        "fs read work/a --offset 5 --length 7",
        "fs rm work/a/ --recursive --yes",
        "env --all",
        "server --dev --port 80",
        "admin migrate --db /x.db",
        "admin create-user ada --superuser",
        "admin template import x.tar --global --db /x.db",
    ],
)
def test_ordinary_lines_need_no_argparse(line: str) -> None:
    name, *rest = line.split()
    quick = parse(declaration(name), rest)
    assert quick is not None
    slow = by_argparse(line.split())
    assert slow is not None
    assert vars(quick).items() <= slow.items()


@pytest.mark.parametrize(
    "line",
    [
        "ws",
        "ws bogus",
        "ws start",
        "ws get a b",
        "ws start -x",
        "ws exec demo --timeout 601",
        "ws list --owner",
        "ws port",
        "ws port show demo",
        "ws port add demo",
        "ws port add demo web --container-port 0",
        "ws port add demo web --container-port 65536",
        "ws launcher start demo",
        "ws logs demo --tail x",
        "fs ls /etc",
        "fs ls http://x/y",
        "fs download work/a b c",
        "fs archive --json work/a",
        "fs read work/a --length 1048577",
        "fs upload work/a",
        "admin create-user",
        "admin migrate --db",
        "admin template --global",
    ],
)
def test_mistakes_are_left_to_argparse(line: str) -> None:
    name, *rest = line.split()
    assert parse(declaration(name), rest) is None
    assert by_argparse(line.split()) is None


def test_a_group_s_description_begins_with_its_summary() -> None:
    for name, (_, summary) in COMMANDS.items():
        known = declaration(name)
        if isinstance(known, CommandGroup):
            title = known.description.partition("\n")[0]
            assert title.removesuffix(".").lower() == summary.lower()


def test_every_client_command_is_declared_whole() -> None:
    for name in CLIENT:
        known = declaration(name)
        assert known.name == name
        for _, command in declared(known):
            assert command.handler.__doc__, command.name
            assert command.examples.startswith("svc ") or "| " in command.examples or "> " in command.examples
            assert all(argument.help for argument in command.arguments)
            # "except `template export`, `fs download` and `fs archive`, which write a local file"
            writes_a_file = command.name in ("export", "download", "archive")
            assert (arguments.JSON in command.arguments) is not writes_a_file


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("512m", 2**29), ("32g", 2**35), ("32G", 2**35), ("1.5g", 3 * 2**29), ("2gb", 2**31),
     ("2GiB", 2**31), ("4Gi", 2**32), ("512Mi", 2**29),
     ("10k", 10240), ("7b", 7), ("1t", 2**40), ("0.5g", 2**29), ("32KiB", 2**15),
     ("1.5T", 3 * 2**39), (".5m", 2**19), ("9007199254740993", 2**53 + 1), ("8388607t", (2**23 - 1) * 2**40)],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert arguments.size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "g", "0", "-1", "1x", "1kk", "1 g", "1e5", "nan", "inf", "٣g", "1.2.3g", "9" * 30, "9" * 5000,
     "1ib", "1bb", "1bi", "1gbb", "1giib", "1mg", "g1", "1g1", ".", ".g", "1,5g", "0.1", "8388608t", "1İ"],
)  # fmt: skip
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match=r"size: write bytes, or a number with k, m, g or t|range: at least"):
        arguments.size(text)


def test_a_port() -> None:
    assert arguments.port("web=8888") == {"name": "web", "container_port": 8888}
    assert arguments.port("web=8888:host") == {"name": "web", "container_port": 8888, "access": "host"}
    assert arguments.port("web") == {"name": "web"}
    assert arguments.port("web:host") == {"name": "web", "access": "host"}
    assert arguments.port("login=22/ssh") == {"name": "login", "container_port": 22, "kind": "ssh"}
    assert arguments.port("db/postgres@ada:host") == {
        "name": "db", "kind": "postgres", "user": "ada", "access": "host",
    }  # fmt: skip
    wrong = (
        "",
        "80",
        "=80",
        "web=",
        "web=0",
        "web=65536",
        "web=80=80",
        "web=-1",
        "web=x",
        "web=80:",
        "web=:host",
    )
    kinds = ("web/", "web/ftp", "web/@ada", "db/postgres@", "db@ada", "/ssh", "web:host/ssh", "web/ssh=22")
    for text in (*wrong, *kinds, "web=80:all", "web=80:host:host"):
        with pytest.raises(ValueError, match=r"NAME=PORT|whole number"):
            arguments.port(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "1e3", "four", "1.2.3", "99999999"])
def test_no_cores(text: str) -> None:
    with pytest.raises(ValueError, match="cores"):
        arguments.cores(text)


@pytest.mark.parametrize("text", ["", "0", "601", "1.5", "nan", "٣", "1" * 5000, "+5", " 5", "1_0"])
def test_no_whole_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="1 to 600"):
        arguments.whole(1, 600)(text)


def test_a_reference_is_one_segment() -> None:
    assert arguments.reference("demo") == "demo"
    for text in ("", "a/b", "http://x", "/"):
        with pytest.raises(ValueError, match="not an id"):
            arguments.reference(text)


def test_a_variable() -> None:
    assert arguments.variable("A=b=c") == {"name": "A", "value": "b=c"}
    assert arguments.variable("A=") == {"name": "A", "value": ""}
    for text in ("A", "=b", ""):
        with pytest.raises(ValueError, match="NAME=VALUE"):
            arguments.variable(text)
