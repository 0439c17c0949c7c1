"""`svc`, stopped dead (SIGSTOP) at one place of `admin create-user`, for a test to kill it there.

`python3 -I cut.py PLACE admin create-user NAME`, where PLACE is `before`, `in` or
`after` and `begin` or `finish` (what is done to the row, `in` its transaction), or
`before` or `after` and a step of the root helper's table. It is the real program
with its real processes; whichever comes to the place stops itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROWS = ("begin", "finish")
START = "sys.exit(main())"  # the end of what svc.helper.start starts the helper with


def stopping(when: str, do: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which stops its process before or after it has worked."""

    def stop(*args: Any, **options: Any) -> Any:
        if when == "before":
            os.kill(os.getpid(), signal.SIGSTOP)
        answer = do(*args, **options)
        if when == "after":
            os.kill(os.getpid(), signal.SIGSTOP)
        return answer

    return stop


def in_rows(when: str, name: str) -> None:
    """Stop at one of the two transactions on the account's row: around it, or in it before its last words."""
    from svc.admin.people import account_rows

    if when != "in":
        setattr(account_rows, name, stopping(when, getattr(account_rows, name)))
        return
    note, last = account_rows.note, {"begin": "begun", "finish": "ok"}[name]

    def stop(action: str, target: str, outcome: str, **detail: Any) -> None:
        note(action, target, outcome, **detail)
        if (action, outcome) == (account_rows.ACTION, last):
            os.kill(os.getpid(), signal.SIGSTOP)

    account_rows.note = stop


def in_helper(place: str) -> None:
    """Have the helper that will be started stop at a step of its table."""
    from svc.helper import start

    command = start.command

    def patched(*args: Any) -> list[str]:
        line = command(*args)
        here = str(Path(__file__).parent)
        (at,) = [number for number, argument in enumerate(line) if argument.endswith(START)]
        mine = f"sys.path.insert(0, {here!r}); import cut; cut.in_steps({place!r}); "
        line[at] = line[at].replace(START, mine + START)
        return line

    start.command = patched


def in_steps(place: str) -> None:
    """In the helper: stop before or after the step of that name."""
    from svc_helper.provision import accounts

    when, _, name = place.partition(" ")
    assert name in dict(accounts.STEPS), f"no step is called {name}"
    accounts.STEPS = tuple((step, stopping(when, do) if step == name else do) for step, do in accounts.STEPS)


def main() -> int:
    """Arrange the stop, then be `svc`."""
    place, *argv = sys.argv[1:]
    when, _, name = place.partition(" ")
    if name in ROWS:
        in_rows(when, name)
    else:
        in_helper(place)
    from svc.__main__ import main as svc

    sys.argv = ["svc", *argv]
    return svc(argv)


if __name__ == "__main__":
    sys.exit(main())
