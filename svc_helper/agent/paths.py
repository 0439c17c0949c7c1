"""Where the agent keeps what belongs to one workspace, apart from Podman."""

from __future__ import annotations


def workspace(home: str, workspace_id: str) -> str:
    """The directory of one workspace below the user's home directory; it may not be there yet.

    In it are what the container was created with and, in `launchers/`, the
    output and the states of its launchers. `ctr.remove` takes it away.
    """
    return f"{home}/.local/state/svc/workspaces/{workspace_id}"


def launchers(home: str, workspace_id: str) -> str:
    """The directory of the launchers' states and output: NAME.json, NAME.log, NAME.log.1."""
    return f"{workspace(home, workspace_id)}/launchers"
