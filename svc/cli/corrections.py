"""The command line that was probably meant, for one that was refused: as of podman, docker, kubectl and curl.

Imported only after a mistake. A line that is returned is well-formed, so that it can be typed as it is; a
name in capitals stands for what only the user knows.
"""

from __future__ import annotations

import os

from svc.commandline.arguments import LISTS, REMOVALS, Command, CommandGroup, Deferred, parse, port
from svc.commandline.output import shell_quote
from svc.commandline.suggestions import COMMANDS, IN_GROUP, OPTIONS

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Token = tuple[str, str | None]  # an option with its value, None for a flag; "" with a positional
    Declared = Command | CommandGroup | Deferred | None
    Declaration = Callable[[str], Declared]  # of the command of that name; None if there is none
    Correction = tuple[str, str]  # what to add to the message, and the line; either may be empty

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
PODS = ("pod", "pods", "container", "containers")
# Options of other programs that take a value, and are not only called otherwise here.
VALUED = {
    "--env", "--format", "--header", "--mount", "--request", "--user", "--volume", "--workdir",
    "-H", "-X", "-e", "-u", "-v", "-w",
}  # fmt: skip
FLAGS = ("-a", "-w")  # of lists; the second has a value elsewhere
EXEC, RUN, SHELL, LIST, ADD = (
    ("ws", "exec"),
    ("ws", "run"),
    ("ws", "shell"),
    ("ws", "list"),
    ("ws", "port", "add"),
)
USER = "commands run as the user that the template (run_as) or its image names"
MOUNTS = "mounts are of the template, and your file root work is at /work in every workspace"
EVERY_STATE = "svc ws list has workspaces in every state; -A has those of every user (administrators only)"
IN_DIRECTORY = 'cd "$0" && exec "$@"'  # `env -C` is not in every image


class Line:
    """A refused command line: the command's names, its own arguments, and the command after --."""

    def __init__(self, names: tuple[str, ...], command: Command, rest: list[str]) -> None:
        end = rest.index("--") if "--" in rest else len(rest)
        self.names = names
        self.command = command
        self.options = {name: each for each in command.arguments if each.is_option for name in each.names}
        self.positionals = [each for each in command.arguments if not each.is_option]
        self.inside = rest[end + 1 :]
        self.remark = ""
        self.tokens = self._tokens(rest[:end])
        if names not in (EXEC, RUN, SHELL):
            self.tokens += [("", each) for each in self.inside]
            self.inside = []
        self.typed = self.arguments(), self.inside if end < len(rest) else []

    def _tokens(self, own: list[str]) -> list[Token]:
        named = {each.partition("=")[0] for each in own}
        most = 0 if self.names == RUN and named & {"--template", "--image"} else 1
        tokens: list[Token] = []
        left = own[::-1]
        while left:
            text = left.pop()
            name, equals, value = text.partition("=")
            if not text.startswith("-") or text == "-":
                is_inside = self.names in (EXEC, RUN, SHELL) and not self.inside
                if is_inside and sum(not each for each, _ in tokens) >= most:
                    self.inside = [text, *left[::-1]]  # typed without --
                    break
                tokens.append(("", text))
            elif equals and text.startswith("--"):
                tokens.append((name, value))
            elif text not in self.options and all(f"-{letter}" in self.options for letter in text[1:]):
                left += [f"-{letter}" for letter in reversed(text[1:])]  # `-rf`
            else:
                tokens.append((text, left.pop() if left and self._takes_value(text) else None))
        return tokens

    def _takes_value(self, name: str) -> bool:
        option = self.options.get(name) or self.options.get(OPTIONS.get(name, ""))
        if option is not None:
            return option.kind != "flag"
        return name in VALUED and not (name in FLAGS and self.names[-1] in LISTS)

    def take(self, *options: str) -> str | None:
        """Take options of another program off the line: the last value, empty for a flag; None for none."""
        foreign = [name for name in options if name not in self.options]
        found = [value or "" for name, value in self.tokens if name in foreign]
        self.tokens = [each for each in self.tokens if each[0] not in foreign]
        return found[-1] if found else None

    def values(self, *options: str) -> list[str]:
        """The values of an option, "" for the positionals."""
        return [value for name, value in self.tokens if name in options and value is not None]

    def arguments(self) -> list[str]:
        """The command's own arguments."""
        pairs = [[name, value] if name else [value] for name, value in self.tokens]
        return [text for pair in pairs for text in pair if text is not None]

    def is_well_formed(self) -> bool:
        """Whether it can be typed as it is."""
        is_whole = bool(self.inside) or self.names not in (EXEC, RUN)
        return is_whole and parse(self.command, self.arguments()) is not None

    def text(self) -> str:
        """The command line, quoted for a shell."""
        return joined(["svc", *self.names, *self.arguments(), *["--"] * bool(self.inside), *self.inside])


def joined(parts: Iterable[str]) -> str:
    """Arguments quoted for a shell; those of `svc admin` with sudo."""
    parts = list(parts)
    return " ".join([*["sudo"] * (parts[:2] == ["svc", "admin"]), *map(shell_quote, parts)])


def correct(argv: list[str], declaration: Declaration) -> Correction:
    """What was probably meant by a refused command line."""
    declared = declaration(argv[0])
    if declared is None:
        return _turned_round(argv, declaration)
    if (line := _line(argv, declared)) is None:
        return "", ""
    for rule in RULES:
        rule(line)
    if whole := _detached(line) or _watched(line) or _outside_roots(line):
        return line.remark, whole
    is_other = (line.arguments(), line.inside) != line.typed
    return line.remark, line.text() if is_other and line.is_well_formed() else ""


def _line(argv: list[str], declared: Declared) -> Line | None:
    """The line of one command; None for a group's."""
    parts = [argv[0]]
    while isinstance(declared, CommandGroup):
        declared = declared.find(argv[len(parts)]) if len(parts) < len(argv) else None
        declared = declared.load() if isinstance(declared, Deferred) else declared
        parts += [declared.name] if declared else []
    return Line(tuple(parts), declared, argv[len(parts) :]) if isinstance(declared, Command) else None


def _turned_round(argv: list[str], declaration: Declaration) -> Correction:
    """`svc ws delete first` for `svc delete ws first`, and for `svc rm first`."""
    verb, *rest = argv
    noun = rest[0] if rest else ""
    noun = "ws" if noun in PODS else COMMANDS.get(noun, f"svc {noun}").removeprefix("svc ")
    remark, group = "", declaration(noun)
    named = [each for each in rest if not each.startswith("-")]
    if isinstance(group, CommandGroup):
        rest = rest[1:]
    elif verb in REMOVALS and named:
        noun = "fs" if any("/" in each for each in named) else "ws"
        remark = "`svc ws delete` deletes a workspace, `svc fs rm` removes a file"
        group = declaration(noun)
    if not isinstance(group, CommandGroup):
        return "", ""
    verb = "list" if verb == "get" and not rest else verb
    meant = [each for each in (verb, *IN_GROUP.get(verb, ())) if group.find(each)]
    if not meant or (found := group.find(meant[0])) is None:
        return "", ""
    line = _line([noun, found.name, *rest], group)
    is_whole = line is not None and line.is_well_formed()
    return remark, joined(["svc", noun, found.name, *(rest if is_whole else ["--help"])])


# --- options ------------------------------------------------------------------------


def _rename_options(line: Line) -> None:
    """Options that are called otherwise here, with the value as it is written here."""
    renamed: list[Token] = []
    for typed, value in line.tokens:
        ours = OPTIONS.get(typed, "")
        name = ours if typed not in line.options and ours in line.options else typed
        is_port = name in line.options and line.options[name].dest == "ports"
        renamed.append((name, _as_port(value) if value and is_port else value))
    line.tokens = renamed


def _as_port(value: str) -> str:
    """`port-80=80` for `8080:80`, and for `80`: the number on the host is the service's choice."""
    numbers = value.split("/")[0].split(":")[-2:]
    return f"port-{numbers[-1]}={numbers[-1]}" if all(map(str.isdecimal, numbers)) else value


def _drop_options(line: Line) -> None:
    """Options that are not needed, or in whose place there is something else."""
    if line.names[0] == "ws" and line.take("-v", "--volume", "--mount") is not None:
        line.remark = MOUNTS
    if line.names[0] == "ws" and line.take("-u", "--user") is not None:
        line.remark = USER
    if line.names == LIST and line.take("-a") is not None:
        line.remark = EVERY_STATE
    if line.names[-1] in LISTS and line.take("--no-trunc") is not None:
        line.remark = "in a pipe nothing is cut"
    if "--json" in line.options and line.take("--format") is not None and not line.values("--json"):
        line.tokens.append(("--json", None))


def _wrap_command(line: Line) -> None:
    """Variables and the directory of a command inside, by the programs that set them."""
    if line.names not in (EXEC, RUN) or not line.inside:
        return
    if (directory := line.take("-w", "--workdir")) is not None:
        line.inside = ["sh", "-c", IN_DIRECTORY, directory, *line.inside]
    if line.names == EXEC and (variables := line.values("-e", "--env")):
        line.take("-e", "--env")
        line.inside = ["env", *variables, *line.inside]


def _detached(line: Line) -> str:
    """What runs on by itself: a workspace with that command, or a terminal."""
    if line.names not in (EXEC, RUN) or line.take("-d", "--detach") is None or not line.inside:
        return ""
    inside = _shell_line(line.inside)
    if line.names == EXEC:
        line.remark = "a terminal goes on when you leave it"
        return joined(["svc", "ws", "shell", *(line.values("") or ["WORKSPACE"]), "--command", inside])
    name = (line.values("--name") or ["NAME"])[-1]
    line.remark = "a workspace of its own runs on"
    kept = [each for each in line.tokens if each[0] not in ("--rm", "-i", "--name")]
    line.tokens = [*kept, ("--name", name), ("--command", inside)]
    return f"{joined(['svc', 'ws', 'setup', *line.arguments()])} && {joined(['svc', 'ws', 'start', name])}"


def _watched(line: Line) -> str:
    """A list again and again."""
    if line.names[-1] not in LISTS or line.take("-w", "--watch") is None or not line.is_well_formed():
        return ""
    line.remark = "`svc events --follow` prints what changes"
    return f"watch {line.text()}"


def _shell_line(parts: list[str]) -> str:
    """Arguments as the one argument of --command, which sh reads."""
    return " ".join(map(shell_quote, parts))


# --- positionals --------------------------------------------------------------------


def _name_files(line: Line) -> None:
    """A local file whose name begins with a dash."""
    if any("FILE" in each.name for each in line.positionals):
        line.tokens = [
            ("", f"./{name}") if name not in ("", *line.options) and os.path.lexists(name) else (name, value)
            for name, value in line.tokens
        ]


def _name_roots(line: Line) -> None:
    """Absolute paths of files that are below a file root."""
    if line.names[0] != "fs":
        return
    declared = iter(line.positionals)
    tokens: list[Token] = []
    for name, value in line.tokens:
        place = None if name else next(declared, None)
        is_local = place is None or place.name == "LOCAL-FILE"
        tokens.append((name, value if is_local or value is None else below_root(value)))
    line.tokens = tokens


def _outside_roots(line: Line) -> str:
    """What lists the file roots, where a path begins with none."""
    try:
        for place, value in zip(line.positionals, line.values(""), strict=False):
            place.value(value)
    except ValueError:
        return "svc fs roots" if line.names[0] == "fs" else ""
    return ""


def below_root(path: str) -> str:
    """`work/x` for /work/x, the path in workspaces, and for the path on this host; else the path itself."""
    if not path.startswith("/"):
        return path
    from svc.settings import Settings

    home = os.path.expanduser("~")
    settings = Settings()
    roots = settings.file_roots if settings.is_valid("SVC_FILE_ROOTS") else {}
    places: list[tuple[str, str]] = [("work", "/work"), *roots.items()]
    for name, place in places:
        place = place.removesuffix(":ro").replace("%h", home).replace("%u", os.path.basename(home))
        if path == place or path.startswith(f"{place}/"):
            return name + path[len(place) :]
    return path


def _name_port(line: Line) -> None:
    """`web --container-port 8080` for `web 8080`, `web=8080` and, with a name made up, `8080:80`."""
    if line.names != ADD or len(typed := line.values("")) not in (2, 3):
        return
    workspace, name, *number = typed
    text = f"{name}={number[0].split(':')[-1]}" if number else _as_port(name)
    try:
        parts = port(text)
    except ValueError:
        return
    chosen = [(f"--{key.replace('_', '-')}", str(value)) for key, value in parts.items() if key != "name"]
    options = [each for each in line.tokens if each[0]]
    line.tokens = [("", workspace), ("", parts["name"]), *options]
    line.tokens += [each for each in chosen if not line.values(each[0])]


def _order_request(line: Line) -> None:
    """`svc api METHOD PATH` for the options of curl."""
    if line.names != ("api",):
        return
    typed = line.values("")
    method = line.take("-X", "--request") or next((each for each in typed if each.upper() in METHODS), "")
    line.take("-H", "--header", "-s", "--silent", "-i", "--include")
    paths = [each for each in typed if each.startswith("/")]
    default = "POST" if line.values("--body") else "GET"
    options = [each for each in line.tokens if each[0]]
    line.tokens = [("", method or default), *(("", each) for each in paths), *options]


def _name_options(line: Line) -> None:
    """Positionals that a command does not have, as the options that it needs."""
    if line.names == SHELL and line.inside:
        line.tokens.append(("--command", _shell_line(line.inside)))
        line.inside = []
    if any(each.kind == "list" for each in line.positionals):
        return
    surplus = line.values("")[len(line.positionals) :]
    required = [each for each in line.command.arguments if each.is_option and each.required]
    missing = [each for each in required if not line.values(*each.names)]
    if not surplus or len(surplus) > len(missing):
        return
    at = len(missing) - len(surplus)
    filled = [*(each.metavar for each in missing[:at]), *surplus]
    if "TEMPLATE" in filled:
        line.remark = "`svc template list` has the templates"
    kept = [("", each) for each in line.values("")[: len(line.positionals)]]
    options = [each for each in line.tokens if each[0]]
    chosen = [(each.name, value) for each, value in zip(missing, filled, strict=True)]
    line.tokens = [*kept, *chosen, *options]


RULES = (
    _rename_options,
    _drop_options,
    _wrap_command,
    _name_files,
    _name_roots,
    _name_port,
    _order_request,
    _name_options,
)
