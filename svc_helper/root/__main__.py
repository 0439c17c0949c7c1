"""The resident root helper: `python -I -S -c '... main()' --config JSON`, its socket pairs inherited.

JSON: {"socket", "state_dir", "file_roots", "store_dir", "fds": {"unix": 3, ...}, "uids": {"unix": 990, ...},
"single_user"}; for tests also "systemd" (true or false; default: as the host has it), "agent_command"
(exec'd as the agent, its configuration added) and "pam_service". `svc server` starts one for the
app's three pairs.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import sys

from svc_helper import interpreter
from svc_helper.root import capabilities
from svc_helper.root.agents import Host
from svc_helper.root.drop import journal
from svc_helper.root.serve import Config, Server


def name_process(name: str) -> None:
    """Set the name that `ps` and `top` print."""
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def read_config(text: str) -> Config:
    """The configuration on the command line; raises KeyError or ValueError if it is malformed."""
    config = json.loads(text)
    systemd = config.get("systemd")
    host = Host(
        state_dir=config["state_dir"],
        file_roots=config["file_roots"],
        systemd=os.path.isdir("/run/systemd/system") if systemd is None else systemd,
        single_user=config["single_user"],
        agent_command=config.get("agent_command") or interpreter.command("svc_helper.agent.__main__"),
        pam_service=config.get("pam_service", "svc"),
        store_dir=config.get("store_dir", ""),
    )
    return Config(host, config.get("socket", ""), config["fds"], config["uids"])


def main(server: type[Server] = Server) -> int:
    """Serve the socket pairs until all are closed; returns the exit status 0."""
    name_process("svc-helper")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the supervisor
    # Only the soft limits, since agents get those of a login again: not every root may raise a hard one.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # a few descriptors per active user
    os.umask(0o022)
    # Of the unit's journal, make a stream that only root holds: journalctl -t svc-helper _UID=0
    stream = journal("svc-helper") if stat.S_ISSOCK(os.fstat(2).st_mode) else None
    if stream is not None:
        os.dup2(stream, 2)
    if server is Server:  # provisioning needs all of root's, as useradd does
        capabilities.keep(capabilities.HELPER)
    server(read_config(sys.argv[sys.argv.index("--config") + 1])).run()
    return 0
