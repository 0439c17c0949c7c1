"""`svc whoami`."""

from __future__ import annotations

from svc.client.requests import ask, show_record
from svc.commandline import output
from svc.commandline.arguments import Arguments, Command
from svc.commandline.output import plain

FIELDS = (
    ("NAME", "name", plain),
    ("DISPLAY NAME", "display_name", plain),
    ("USER ID", "uid", plain),
    ("SUPERUSER", "superuser", plain),
    ("LINUX ACCOUNT", "linux_account.name", plain),
    ("HOME", "linux_account.home", plain),
    ("FILE ROOTS", "roots", plain),
    ("VIA", "via", plain),
)


def whoami(args: Arguments) -> int:
    """Show the Linux account that the socket authenticated.

    The service gets the caller from the kernel: there is no login, no password
    and no token. Exit code 3: this Linux account has no service account. Administrators
    also get notices on the licence, on standard error.
    """
    answer = ask(args, "GET", "/api/users/me")
    show_record(args, answer, FIELDS)
    if not args.json:
        for notice in answer.json().get("notices") or []:
            output.note(output.text(notice, "message"))
            output.remark(f"hint: {output.visible(output.text(notice, 'hint'))}")
    return 0


COMMAND = Command("whoami", whoami, examples="svc whoami\nsvc whoami --json")
