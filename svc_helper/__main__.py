"""The helper program: `python -I -S -c '... main()' --config JSON`, started by root with its pairs open.

JSON: {"socket", "state_dir", "file_roots", "app_uid", "fds": {"unix": 3, ...},
"systemd": true|false|null, "single_user"}; for tests also "agent_command" (what
is exec'd as the agent, its configuration added) and "pam_service". The server
starts one for the app's three pairs, `svc admin` one of its own for the pair
"admin".
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys

from svc_helper.agents import Host, python
from svc_helper.serve import Config, Server


def name_process(name: str) -> None:
    """What `ps` and `top` show in place of python3."""
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def read_config(text: str) -> Config:
    """The configuration in force; raises KeyError or ValueError for a starter's mistake."""
    given = json.loads(text)
    systemd = given["systemd"]
    host = Host(
        state_dir=given["state_dir"],
        file_roots=given["file_roots"],
        systemd=os.path.isdir("/run/systemd/system") if systemd is None else systemd,
        single_user=given["single_user"],
        agent_command=given.get("agent_command") or python("svc_helper.agent.__main__"),
    )
    return Config(
        host, given.get("socket", ""), given["app_uid"], given["fds"], given.get("pam_service", "svc")
    )


def main() -> int:
    """Serve the pairs; 0 when they have all ended."""
    name_process("svc-helper")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the supervisor
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # a few descriptors per active user
    os.umask(0o022)
    Server(read_config(sys.argv[sys.argv.index("--config") + 1])).run()
    return 0
