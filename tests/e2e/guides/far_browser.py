"""The `ssh -N -L` line of a page, typed on another computer: this host, by a real sshd."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e import sshd
from e2e.installation import PREFIX, Service
from ports import free_port

CONFIG = """\
Host *
Port {port}
IdentityFile {key}
UserKnownHostsFile {known}
StrictHostKeyChecking accept-new
BatchMode yes
ExitOnForwardFailure yes
"""


def write(user: str, path: Path, text: str, mode: int = 0o644) -> None:
    """A file of the user's."""
    path.write_text(text)
    path.chmod(mode)
    account = pwd.getpwnam(user)
    os.chown(path, account.pw_uid, account.pw_gid)


@contextmanager
def laptop(service: Service, user: str) -> Iterator[Path]:
    """A directory with `ssh` and `scp` of a computer that has a key for this host; a real sshd answers."""
    home = Path(pwd.getpwnam(user).pw_dir)
    folder = Path(tempfile.mkdtemp(prefix="tse-laptop-"))
    folder.chmod(0o755)
    env = {name: value for name, value in service.env.items() if name.startswith("SVC_") and value}
    with sshd.running(folder, env | {"PATH": f"{PREFIX}/bin:{service.env['PATH']}"}) as server:
        key, config = home / "id_laptop", home / "laptop_config"
        write(user, key, server.key.read_text(), 0o600)
        write(user, config, CONFIG.format(port=server.port, key=key, known=home / "known"))
        (folder / "bin").mkdir()
        for name in ("ssh", "scp"):
            program = folder / "bin" / name
            program.write_text(f'#!/bin/sh\nexec /usr/bin/{name} -F {config} "$@"\n')
            program.chmod(0o755)
        try:
            yield folder / "bin"
        finally:
            shutil.rmtree(folder)


@contextmanager
def through_ssh(line: str, user: str, at: str) -> Iterator[str]:
    """The address on the other computer while that line runs; `at` is the port's address on the host.

    The reader fills in PORT, USER and HOST; the number on the other computer is one that is free.
    """
    number = re.search(r"http://127\.0\.0\.1:(\d+)", at)
    assert number, at
    home, here = Path(pwd.getpwnam(user).pw_dir), free_port()
    folder = Path(tempfile.mkdtemp(prefix="tse-ssh-"))  # not pytest's, which every run closes for others
    folder.chmod(0o755)
    with sshd.running(folder) as server:
        key = home / "id_test"
        write(user, key, server.key.read_text(), 0o600)
        config = CONFIG.format(port=server.port, key=key, known=home / "known")
        write(user, home / "ssh_config", config)
        typed = re.sub(r"-L (?:\d+|PORT):", f"-L {here}:", line)
        typed = typed.replace("PORT", number[1]).replace("USER@HOST", f"{user}@127.0.0.1")
        argv = typed.replace("ssh -N", f"ssh -F {home}/ssh_config -N").split()
        client = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            user=pwd.getpwnam(user).pw_uid,
            cwd=home,
            env={"HOME": str(home)},
        )
        try:
            yield f"http://127.0.0.1:{here}"
        finally:
            client.kill()  # its handler of SIGTERM only sets a flag, which one that waits may not see
            client.wait(10)
            shutil.rmtree(folder)
