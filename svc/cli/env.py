"""`svc env`: the settings in force, read on the spot; asks no server."""

from __future__ import annotations

import os

from svc.cli import output
from svc.cli.arguments import add_command
from svc.settings import TABLE, Settings, read_env_file, written

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    import argparse

    from svc.cli.arguments import Words

COLUMNS = (("NAME", "name", output.plain), ("VALUE", "value", output.plain), ("FROM", "source", output.plain))
MASK = "********"
EXAMPLES = """\
svc env
svc env --all
svc env | cut -f1,2"""


def add_parser(words: Words) -> None:
    """Add the word `env`."""
    parser = add_command(words, "env", env, EXAMPLES)
    parser.add_argument(
        "--all", action="store_true", help="add the settings that nobody has set, with their defaults"
    )


def env(args: argparse.Namespace) -> int:
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
        from json import dumps

        output.raw(dumps({"items": rows, "total": len(rows)}).encode() + b"\n")
    else:
        output.table(COLUMNS, rows, f"All {len(TABLE)} settings have their defaults: svc env --all")
    Settings(file=file).warn_unknown()
    return 0
