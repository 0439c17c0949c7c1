"""Another computer with ssh and a browser: its own network, from which this host's sshd is reached."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from e2e import sshd
from e2e.far_host import NEAR, FarHost, far_host
from e2e.installation import Service
from waiting import until

CLONE_NEWNET = 0x40000000
NOBODY = 65534
CONFIG = """\
Host *
Port {port}
IdentityFile {key}
UserKnownHostsFile {known}
StrictHostKeyChecking accept-new
BatchMode yes
ExitOnForwardFailure yes
"""
Result = TypeVar("Result")


class Computer:
    """Its keyboard and its browser."""

    def __init__(self, host: FarHost, programs: Path) -> None:
        self.host, self.programs = host, programs

    @contextmanager
    def typed(self, line: str, port: int) -> Iterator[None]:
        """A line of ssh as it was printed, until it listens there on this port; ended at the end."""
        script = f'PATH={self.programs}:"$PATH"; exec {line}'
        client = subprocess.Popen(
            self.host.argv("sh", "-c", script), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/"
        )
        try:
            until(lambda: client.poll() is not None or self.inside(lambda: sshd.listens(port)), 60)
            assert client.poll() is None, client.communicate()[1].decode()
            yield
        finally:
            client.send_signal(signal.SIGTERM)
            client.communicate(timeout=30)

    def inside(self, call: Callable[[], Result]) -> Result:
        """Call a function whose sockets and programs have that computer's network; its result."""
        with ThreadPoolExecutor(1, initializer=self._enter) as thread:
            return thread.submit(call).result()

    def _enter(self) -> None:
        """Give this thread alone the other network, for its rest."""
        descriptor = os.open(f"/proc/{self.host.pid}/ns/net", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(descriptor)


@contextmanager
def another_computer(service: Service) -> Iterator[Computer]:
    """One whose key every account here accepts; gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="tsx-computer-"))
    folder.chmod(0o755)
    certificate = Path(service.env["SVC_STATE_DIR"]) / "data/tls/cert.pem"
    try:
        with (
            far_host(int(service.env["SVC_PORT"]), certificate) as host,
            sshd.running(folder, address=NEAR) as server,
        ):
            yield Computer(host, _programs(folder, server))
    finally:
        shutil.rmtree(folder)


def _programs(folder: Path, server: sshd.Sshd) -> Path:
    """The folder with ssh, which has its key and knows the number of the server."""
    own, programs = folder / "own", folder / "bin"
    own.mkdir(mode=0o700)
    programs.mkdir()
    key = own / "key"
    shutil.copyfile(server.key, key)
    key.chmod(0o600)
    config = own / "config"
    config.write_text(CONFIG.format(port=server.port, key=key, known=own / "known"))
    for path in (own, key, config):
        os.chown(path, NOBODY, NOBODY)
    ssh = programs / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {config} "$@"\n')
    ssh.chmod(0o755)
    return programs
