"""Paths of the agent's own files of one workspace."""

from __future__ import annotations


def workspace(home: str, workspace_id: str) -> str:
    """The directory of one workspace below the user's home directory; it may not exist yet.

    It contains the parameters that the container was created with, in `output/` the
    container's output, and in `launchers/` the output and the states of its launchers.
    `ctr.remove` removes it.
    """
    return f"{home}/.local/state/svc/workspaces/{workspace_id}"


def output(home: str, workspace_id: str) -> str:
    """The directory of the container's output: output.log, and output.N.log for each file of it."""
    return f"{workspace(home, workspace_id)}/output"


def launchers(home: str, workspace_id: str) -> str:
    """The directory of the launchers' states and output: NAME.json, and NAME.N.log for each file of it."""
    return f"{workspace(home, workspace_id)}/launchers"
