"""`svc server`: the supervisor and its children; imports nothing of the web."""

from __future__ import annotations

from svc.commandline.arguments import Argument, Arguments, Command, path, whole

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.settings import Settings

NOT_NEEDED = {"SVC_BACKUP_DIR", "SVC_RECOVERY_DIR", "SVC_UPDATE_SOURCE"}  # only `svc admin` uses them
EXAMPLES = """\
svc server                          as the installed service does
svc server --dev --db ./svc.db      for trying things out, as an ordinary user:
                                    loopback only, plain HTTP, a secret that is
                                    forgotten, one user (you)"""


def run(args: Arguments) -> int:
    """Start the HTTP server.

    It has the host-local socket for the people on this host and the TLS listener
    for tokens and browsers. The installed service runs this command and reads its
    configuration from /etc/svc/svc.env. Exit code 78 means that a database or a
    setting cannot be used until somebody mends it: systemd does not start it again.
    """
    from svc.commandline import output
    from svc.errors import DatabaseRefused, SettingInvalid
    from svc.server.restart import UNUSABLE

    try:
        return _run(args)
    except (DatabaseRefused, SettingInvalid) as error:
        if error.retry_after_s is not None:
            raise
        output.error(error)
        return UNUSABLE


def _run(args: Arguments) -> int:
    import os

    from svc.cli.env import warn
    from svc.server.supervisor import serve
    from svc.settings import NAMES, Settings

    flags = {"SVC_DB": args.db, "SVC_PORT": None if args.port is None else str(args.port)}
    settings = Settings(flags=flags)
    if args.dev and os.geteuid() != 0:
        settings = Settings(flags=dev_defaults(settings) | flags)
    _ = settings.socket  # an address of another host is wrong usage
    settings.require(name for name in NAMES if name not in NOT_NEEDED)
    warn(settings.faults(), settings.unknown())
    return serve(settings, dev=args.dev)


def dev_defaults(settings: Settings) -> dict[str, str | None]:
    """Paths in the home directory for an ordinary user's `--dev` server, unless they are set."""
    import os
    import sys

    runtime = os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~/.local/state")
    paths = {
        "SVC_SOCKET": os.path.join(runtime, "svc-dev", "svc.sock"),
        "SVC_STATE_DIR": os.path.expanduser("~/.local/state/svc"),
    }
    unset = {name: path for name, path in paths.items() if settings.resolved[name].source == "default"}
    if "SVC_SOCKET" in unset:
        print(f"svc: in another shell: export SVC_SOCKET={unset['SVC_SOCKET']}", file=sys.stderr)
    return dict(unset)


COMMAND = Command(
    "server",
    run,
    Argument("--db", "database path (default: SVC_DB, else svc.db)", metavar="PATH", type=path),
    Argument("--port", "TCP port (default: SVC_PORT, else 24680)", metavar="PORT", type=whole(1, 65535)),
    Argument("--dev", "localhost CORS, an ephemeral secret, plain HTTP on loopback", kind="flag"),
    examples=EXAMPLES,
    json=False,
)
