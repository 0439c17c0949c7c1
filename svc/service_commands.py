"""The commands that start, stop and show the service on this host, for hints: with systemd or without it."""

from __future__ import annotations

import os

SYSTEMD = "/run/systemd/system"  # where it is, systemd runs, as sd_booted(3) asks


def start_command() -> str:
    """What starts the service."""
    return "sudo systemctl start svc" if os.path.isdir(SYSTEMD) else "sudo svc server"


def stop_command(remark: str = "") -> str:
    """What stops the service, with a remark behind it; without systemd only its process can be named."""
    return f"sudo systemctl stop svc{remark}" if os.path.isdir(SYSTEMD) else "stop that process first"


def status_command(without_systemd: str) -> str:
    """What shows how the service is; the other command where no systemd runs."""
    return "sudo systemctl status svc" if os.path.isdir(SYSTEMD) else without_systemd
