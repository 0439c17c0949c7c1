"""Doctor check of apps in the browser: whether this host has them at their addresses."""

from __future__ import annotations

import os
from collections.abc import Iterator

from svc.admin.checks.confinement import app_processes
from svc.admin.findings import Finding, Host, fail, ok
from svc.host.accounts import APPS, role_account

CODE = "apps"


def apps(host: Host) -> Iterator[Finding]:
    """Whether the running service serves apps on loopback; nothing where they are off.

    It serves them on both addresses or on none: whoever had one would be where browsers look for them.
    """
    port = host.settings.apps_local_port
    if host.server is None or os.geteuid() != 0 or not port:
        return
    if any(one.name == role_account(APPS) for one in app_processes(host.server)):
        yield ok(CODE, f"apps in the browser: http://NAME.localhost:{port}, on 127.0.0.1 and ::1")
    else:
        was_taken = f"port {port} of 127.0.0.1 or ::1 was taken when the service started"
        yield fail(CODE, f"no apps in the browser: {was_taken}", f"ss -ltnp 'sport = :{port}'")
