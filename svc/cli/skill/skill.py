"""`svc skill`: install the embedded skill on the use of svc for a coding agent."""

from __future__ import annotations

import os

from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command, CommandGroup
from svc.commandline.output import plain, shell_quote
from svc.errors import FileRefused, UsageError
from svc_helper.wire.quick_json import dumps

AGENTS = {"claude": ("CLAUDE_CONFIG_DIR", ".claude"), "codex": ("CODEX_HOME", ".codex")}
DESCRIPTION = """\
A skill on svc, for your coding agent.

It says how to use svc without a terminal and what never to do: SKILL.md, with the tasks
that come up most, and reference files on commands, JSON answers and errors. It is part
of this program and made from its commands."""
EXAMPLES = """\
svc skill install --agent claude
svc skill install --agent codex --force
svc skill install --path ~/project/.agents/skills"""
COLUMNS = (("PATH", "path", plain), ("USER", "user", plain), ("REPLACED", "replaced", plain))
TEXTS = ("SKILL.md", "references/commands.md", "references/json.md", "references/errors.md")
NEW_FOR_AGENT, NEW_FOR_PATH = 2, 1  # directories that are created: the agent's own and skills; only DIR


def install(args: Arguments) -> int:
    """Install the skill on svc into an agent's skills directory; contacts no server.

    It is written to `svc` in that directory: below CLAUDE_CONFIG_DIR or ~/.claude for
    claude, CODEX_HOME or ~/.codex for codex, in skills; --path names the skills directory
    itself. An existing skill is replaced only with --force, and in one step. Links, and
    directories of other users or open to everybody, are refused. In a pipe, and with
    --json: path, user, replaced.
    """
    from svc.cli.skill import directories, writing

    forced = command_line(args, force=True)  # "Exactly one of `--agent` or `--path` is required"
    skills, new = place(args)
    with directories.opened(skills, new) as directory:
        path = f"{real_path(directory, skills)}/{writing.NAME}"
        replaced = writing.install(directory, path, texts(), force=args.force, forced=forced)
    record = {"path": path, "user": directories.user_name(os.geteuid()), "replaced": replaced}
    if args.json:
        output.raw(dumps(record).encode() + b"\n")
    else:
        verb = "replaced" if replaced else "installed"
        output.outcome(f"The skill is {verb} for {record['user']}: {path}", COLUMNS, record)
    asked_by = os.environ.get("SUDO_USER", "root")
    if os.geteuid() == 0 and asked_by != "root":
        output.note(f"it is for root's agent; for that of {asked_by} run the command without sudo")
    return 0


def command_line(args: Arguments, *, force: bool = False) -> str:
    """The command line of these arguments; raises UsageError for both or neither of the two options."""
    if (args.agent is None) == (args.path is None):
        both = "cannot both be set" if args.agent else "one of them is required"
        raise UsageError(f"--agent KIND, --path DIR: {both}", hint="svc skill install --help")
    chosen = f"--agent {args.agent}" if args.agent else f"--path {shell_quote(args.path)}"
    return f"svc skill install {chosen}{' --force' if force else ''}"


def place(args: Arguments) -> tuple[str, int]:
    """The skills directory, and how many of its last components may be created; raises FileRefused."""
    if args.path is not None:
        return args.path, NEW_FOR_PATH
    variable, hidden = AGENTS[args.agent]
    instead = "svc skill install --path DIR"
    configured = os.environ.get(variable)
    if configured:
        if not configured.startswith("/"):
            raise FileRefused(f"{variable} is not an absolute path: {configured}", hint=instead)
        return f"{configured}/skills", NEW_FOR_AGENT
    home = os.environ.get("HOME")
    if not home:
        raise FileRefused(f"neither {variable} nor HOME is set, so the place is not known", hint=instead)
    if not home.startswith("/"):
        raise FileRefused(f"HOME is not an absolute path: {home}", hint=instead)
    return f"{home}/{hidden}/skills", NEW_FOR_AGENT


def directory_path(text: str) -> str:
    """A path that is not empty."""
    if not text:
        raise ValueError("an empty path is no directory")
    return text


def real_path(directory: int, path: str) -> str:
    """Where an open directory is."""
    try:
        return os.readlink(f"/proc/self/fd/{directory}").rstrip("/")
    except OSError:  # no /proc
        return os.path.abspath(path).rstrip("/")


def texts() -> dict[str, bytes]:
    """The files of the skill by their names, as they were installed with this program."""
    folder = os.path.join(os.path.dirname(__file__), "text")
    found = {}
    for name in TEXTS:
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


COMMAND = CommandGroup(
    "skill",
    DESCRIPTION,
    Command(
        "install",
        install,
        Argument("--agent", "the kind of agent", choices=tuple(AGENTS)),
        Argument("--path", "the agent's skills directory", metavar="DIR", type=directory_path),
        Argument("--force", "replace an existing skill", kind="flag"),
        examples=EXAMPLES,
        usage="svc skill install [-h] (--agent claude|codex | --path DIR) [--force] [--json]",
    ),
)
