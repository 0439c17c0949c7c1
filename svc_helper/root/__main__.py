"""The resident root helper: `python -I -S -c '... main()' --config JSON`, its socket pairs inherited.

JSON: {"socket", "state_dir", "file_roots", "app_uid", "fds": {"unix": 3, ...},
"single_user"}; for tests also "systemd" (true or false; default: as the host has it), "agent_command"
(exec'd as the agent, its configuration added) and "pam_service". `svc server` starts one for the
app's three pairs.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys

from svc_helper import interpreter
from svc_helper.root.agents import Host
from svc_helper.root.serve import Config, Server
from svc_helper.root.verbs import RESIDENT, RootVerb


def name_process(name: str) -> None:
    """Set the name that `ps` and `top` print."""
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def read_config(text: str, verbs: dict[str, RootVerb]) -> Config:
    """The configuration on the command line; raises KeyError or ValueError if it is malformed."""
    config = json.loads(text)
    systemd = config.get("systemd")
    host = Host(
        state_dir=config["state_dir"],
        file_roots=config["file_roots"],
        systemd=os.path.isdir("/run/systemd/system") if systemd is None else systemd,
        single_user=config["single_user"],
        agent_command=config.get("agent_command") or interpreter.command("svc_helper.agent.__main__"),
    )
    return Config(
        host,
        config.get("socket", ""),
        config["app_uid"],
        config["fds"],
        config.get("pam_service", "svc"),
        verbs,
    )


def main(verbs: dict[str, RootVerb] = RESIDENT) -> int:
    """Serve the socket pairs until all are closed; returns the exit status 0."""
    name_process("svc-helper")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the supervisor
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # a few descriptors per active user
    os.umask(0o022)
    Server(read_config(sys.argv[sys.argv.index("--config") + 1], verbs)).run()
    return 0
