"""A real sshd of this host's, for a user who reaches a port of the host by `ssh -L`."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ports import free_port
from waiting import until


class Sshd(NamedTuple):
    """The port on which it listens, the key that opens every account, and where clients note its own key."""

    port: int
    key: Path
    known: Path


@contextmanager
def running(folder: Path, env: Mapping[str, str] | None = None, address: str = "127.0.0.1") -> Iterator[Sshd]:
    """One that keeps its keys in this directory, which every user must be able to reach.

    Sessions have the variables of `env` besides their own.
    """
    keys = [folder / name for name in ("host", "user")]
    for key in keys:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    allowed = folder / "allowed"
    allowed.write_text((folder / "user.pub").read_text())
    allowed.chmod(0o644)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    at = free_port()
    options = {
        "ListenAddress": f"{address}:{at}", "HostKey": keys[0], "AuthorizedKeysFile": allowed,
        "StrictModes": "no", "UsePAM": "yes", "PidFile": "none", "PrintMotd": "no",
        "Subsystem": "sftp internal-sftp",
    }  # fmt: skip
    if env:
        options["SetEnv"] = " ".join(f"{name}={value}" for name, value in env.items())
    argv = [f"-o{name}={value}" for name, value in options.items()]
    process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *argv])
    try:
        until(lambda: listens(at, address))
        yield Sshd(at, keys[1], folder / "known")
    finally:
        process.terminate()
        process.wait()


def listens(port: int, address: str = "127.0.0.1") -> bool:
    """Whether something listens there, told without a connection."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return True
    return False
