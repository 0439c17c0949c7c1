"""What every part of a shim knows of its workspace, and the shim's log."""

from __future__ import annotations

import json
import os
import time
from typing import NamedTuple

from svc_helper.agent import paths
from svc_helper.agent.home import Home
from svc_helper.agent.runtime.crun import Running
from svc_helper.shim.loop import Loop


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
        """The name of this run of the container: another one begins with new processes."""
        return self.running.run

    def log(self, message: str, level: str = "info", **facts: object) -> None:
        """One line {at, level, process, workspace, message, ...facts}."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        said = {"at": at, "level": level, "process": "shim", "workspace": self.id, "message": message}
        try:
            os.write(2, json.dumps(said | facts).encode() + b"\n")
        except OSError:
            pass  # nobody keeps the log any more
