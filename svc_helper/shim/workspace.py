"""The workspace of a shim, shared by all its parts, and the shim's log."""

from __future__ import annotations

from svc_helper.agent import calls, paths
from svc_helper.agent.home import Home
from svc_helper.agent.runtime.crun import Running
from svc_helper.shim.loop import Loop
from svc_helper.wire.quick_typing import NamedTuple


class Workspace(NamedTuple):
    """A run of a workspace's container, and the loop that serves it."""

    id: str
    home: Home
    running: Running
    loop: Loop

    @property
    def launchers(self) -> str:
        """The directory of its launchers' states and output."""
        return paths.launchers(self.home.home, self.id)

    @property
    def run(self) -> str:
        """The id of this run of the container."""
        return self.running.run

    def log(self, message: str, level: str = "info", **facts: object) -> None:
        """Write one log line."""
        calls.log(message, level, process="shim", workspace=self.id, **facts)
