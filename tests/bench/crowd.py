"""One user with 1 and with 200 workspaces: what that costs, beside as many containers of Podman."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pairs import Row, Shell, pair
from bench.stage import IMAGE, Stage
from e2e.installation import SVC

MANY = 200
OTHER = "bench-crowd"
TEMPLATE = "base"


def rows(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """The list and a start, first beside one workspace, then beside MANY; all have their containers."""
    shell("podman", "create", "--name", OTHER, "--init", "--pull=never", f"{set_up.registry}/{IMAGE}")
    created = []
    try:
        yield from _beside(shell, 1)
        for number in range(MANY - 1):
            created.append(f"crowd-{number}")
            shell(str(SVC), "ws", "create", "--template", TEMPLATE, "--name", created[-1])
        yield from _beside(shell, MANY)
    finally:
        shell("podman", "rm", "-f", "-t", "0", OTHER)
        for name in created:
            shell(str(SVC), "ws", "delete", name, "--yes")


def _beside(shell: Shell, count: int) -> Iterator[Row]:
    svc, many = str(SVC), f"{count} workspace{'s' if count > 1 else ''}"
    start, p_start = (svc, "ws", "start", "bench"), ("podman", "start", OTHER)
    listing, ps = (svc, "ws", "list"), ("podman", "ps", "--all")
    yield pair(f"ws list, {many} | podman ps -a", shell.side(*listing), shell.side(*ps), bar=1.0)

    def stopped() -> None:
        shell(svc, "ws", "stop", "bench")

    def other_stopped() -> None:
        shell("podman", "stop", "-t", "1", OTHER)

    yield pair(f"ws start, {many} | podman start", shell.side(*start, before=stopped),
               shell.side(*p_start, before=other_stopped), bar=1.0)  # fmt: skip
    stopped(), other_stopped()
