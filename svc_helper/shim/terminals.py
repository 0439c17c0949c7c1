"""The terminals of a running workspace: opened, attached to, listed and closed by requests of the agent."""

from __future__ import annotations

import os
import time

from svc_helper.agent.calls import Failure
from svc_helper.shim.consoles import Consoles
from svc_helper.shim.control import Do, Request, sent_socket
from svc_helper.shim.terminal import Terminal
from svc_helper.shim.viewers import KIND
from svc_helper.shim.workspace import Workspace
from svc_helper.wire.limits import TERMINAL_IDLE_S, TERMINALS_MAX
from svc_helper.wire.terminal_frames import read_size

EXITED_KEPT_S = 600  # for its exit code and its last screen
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


class Terminals:
    """The terminals of one run of a container."""

    def __init__(self, workspace: Workspace, directory: str) -> None:
        self._workspace = workspace
        self._consoles = Consoles(workspace, directory)
        self._terminals: dict[str, Terminal] = {}
        self.table: dict[str, Do] = {
            "terminal.open": self._open,
            "terminal.attach": self._attach,
            "terminal.list": self._list,
            "terminal.close": self._close,
        }

    def __bool__(self) -> bool:
        """Whether the shim is needed for them."""
        return bool(self._terminals)

    def _open(self, request: Request) -> None:
        size, command = read_size(request.args), request.args["command"]
        self._make_room()
        terminal_id = "t-" + "".join(_LETTERS[byte % 32] for byte in os.urandom(6))
        viewer = sent_socket(request.fds, KIND) if request.fds else None
        try:
            console = self._consoles.start(terminal_id, command, size)
        except (Failure, OSError):
            if viewer is not None:
                viewer.close()
            raise
        terminal = self._terminals[terminal_id] = Terminal(self._workspace, terminal_id, command, size)
        terminal.begin(console, request, viewer)

    def _make_room(self) -> None:
        """Forget the terminal that ended first if there are too many; raises Failure if all are running."""
        self._forget_unstarted()
        if len(self._terminals) < TERMINALS_MAX:
            return
        ended = [one for one in self._terminals.values() if one.exited_at is not None]
        if not ended:
            raise Failure(
                "too_many", f"{TERMINALS_MAX} terminals are open in this workspace; close one of them"
            )
        del self._terminals[min(ended, key=lambda one: one.exited_at or 0.0).id]

    def _attach(self, request: Request) -> None:
        self._get(request).attach(request)

    def _list(self, request: Request) -> None:
        self._forget_unstarted()
        request.answer({"terminals": [one.row() for one in self._terminals.values()]})

    def _close(self, request: Request) -> None:
        terminal = self._get(request)
        terminal.close("closed", request)
        del self._terminals[terminal.id]

    def _get(self, request: Request) -> Terminal:
        found = self._terminals.get(request.args["terminal"])
        if found is None:
            raise Failure("not_found", "there is no such terminal")
        return found

    def check(self) -> None:
        """Close those that have been idle for too long, and forget those that ended a while ago."""
        now = time.monotonic()
        for terminal in list(self._terminals.values()):
            if terminal.exited_at is not None:
                if not terminal.watched and now - terminal.exited_at > EXITED_KEPT_S:
                    del self._terminals[terminal.id]
            elif not terminal.watched and now - terminal.active > TERMINAL_IDLE_S:
                terminal.close("idle")
        self._forget_unstarted()

    def _forget_unstarted(self) -> None:
        """Forget those whose opener was told that they could not be made."""
        self._terminals = {one.id: one for one in self._terminals.values() if not one.failed}

    def end(self, *, container_ended: bool) -> None:
        """Close all of them."""
        for terminal in self._terminals.values():
            if not container_ended:
                terminal.kill()
            terminal.workspace_ended()
        self._terminals.clear()
