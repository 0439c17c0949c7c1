"""`svc env`: the settings in force, read on the spot; asks no server."""

from __future__ import annotations

import os

from svc.cli import output
from svc.cli.arguments import Argument, Arguments, Command
from svc.cli.jsontext import dumps
from svc.settings import TABLE, Settings, read_env_file, written

COLUMNS = (("NAME", "name", output.plain), ("VALUE", "value", output.plain), ("FROM", "source", output.plain))
MASK = "********"
EXAMPLES = """\
svc env
svc env --all
svc env | cut -f1,2"""


def env(args: Arguments) -> int:
    """Print the settings in force on this host and where each comes from.

    The process environment wins over /etc/svc/svc.env, which wins over the
    default. Secrets are masked. Exit code 1 says that a setting has a bad value.
    Columns: name, value, source.
    """
    file = read_env_file()
    rows = [
        {"name": setting.name, "value": MASK if setting.secret and text else text, "source": source}
        for setting, text, source in written({}, os.environ, file)
        if args.all or source != "default"
    ]
    if args.json:
        output.raw(dumps({"items": rows, "total": len(rows)}) + b"\n")
    else:
        output.table(COLUMNS, rows, f"All {len(TABLE)} settings have their defaults: svc env --all")
    Settings(file=file).warn_unknown()
    return 0


WORD = Command(
    "env",
    env,
    Argument("--all", "add the settings that nobody has set, with their defaults", kind="flag"),
    examples=EXAMPLES,
)
