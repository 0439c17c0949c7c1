"""Small files of the host that a snapshot has and the host lacks."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from unit.admin.backup.test_host_files import ME

from svc.admin.backup import host_files
from svc.admin.restore import missing_files
from svc.settings import Settings


@pytest.mark.allow_commands("sh")
def test_what_is_unpacked_of_roots_secrets_is_for_root_alone(settings: Settings, tmp_path: Path) -> None:
    """By the command that a restore names, whatever the mask of the shell that it is typed in."""
    archive, programs = tmp_path / "x.host.tar", tmp_path / "programs"
    archive.write_bytes(host_files.collect(settings, ME, with_secrets=True).archive)
    programs.mkdir()
    (programs / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    (programs / "sudo").chmod(0o755)
    modes = {}
    for file in host_files.of_root(settings):
        if not os.path.lexists(file.path) or not file.path.startswith(str(tmp_path)):
            continue
        os.unlink(file.path)
        command = missing_files.unpack_command(str(archive), file, ME)
        environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-c", f"umask 0; {command}"], env=environment, check=True)
        modes[file.name] = stat.S_IMODE(os.stat(file.path).st_mode)
    assert modes.pop("registry-logins.json") == 0o600
    assert set(modes.values()) == {0o644}
