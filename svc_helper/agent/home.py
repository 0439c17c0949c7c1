"""Whose agent this is: the account, its directories, Podman's environment and configuration.

Imported before Podman is started, so it imports nothing that takes time (no
json, no typing). Own files live in $XDG_RUNTIME_DIR/svc, which only the user can
reach; the user's own configuration files are left alone.
"""

from __future__ import annotations

import os

from svc_helper import atomic_file

_CONTAINERS_CONF = """\
[containers]
log_driver = "k8s-file"
log_size_max = {log_max}
{pids_limit}
[engine]
cgroup_manager = "{manager}"
events_logger = "file"
exit_command_delay = 1
hooks_dir = ["{hooks}"]
{runtime}
"""
PIDS_DEFAULT = 2048  # of a container without a limit of its own, where processes can be counted; Podman's
LOG_SIZE_MAX = 10 * 1024 * 1024  # of one container's output on disk
CRUN = "/usr/bin/crun"
CGROUPS = "/sys/fs/cgroup"


class Home:
    """One user's account and the paths that the agent uses for it."""

    __slots__ = (
        "controllers",
        "environment",
        "home",
        "own",
        "read_only",
        "registries",
        "registries_conf",
        "roots",
        "runtime",
        "systemd",
        "uid",
        "user",
    )

    def __init__(
        self,
        *,
        user: str,
        uid: int,
        home: str,
        roots: dict[str, str],
        systemd: bool,
        registries: str,
        registries_conf: str,
        read_only: list[str] | tuple[str, ...] = (),
    ) -> None:
        self.user, self.uid, self.home = user, uid, home
        self.roots, self.read_only, self.systemd = roots, frozenset(read_only), systemd
        self.registries, self.registries_conf = registries, registries_conf
        self.runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
        self.own = f"{self.runtime}/svc"
        self.controllers = self._delegated()
        self.environment = {
            "HOME": home,
            "USER": user,
            "LOGNAME": user,
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": self.runtime,
            "CONTAINERS_CONF": f"{self.own}/containers.conf",
            "CONTAINERS_REGISTRIES_CONF": registries_conf,
        }
        if systemd:  # the user's own manager makes the containers' scopes
            self.environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={self.runtime}/bus"

    def prepare(self) -> None:
        """Make the agent's own directory and write the configuration that its Podman runs with."""
        for name in ("", "/containers", "/locks", "/hooks"):
            os.makedirs(self.own + name, 0o700, exist_ok=True)
        os.chmod(self.own, 0o700)
        text = _CONTAINERS_CONF.format(
            log_max=LOG_SIZE_MAX,
            # Podman's default limit of processes fails hard where nothing can count them.
            pids_limit=f"pids_limit = {PIDS_DEFAULT if 'pids' in self.controllers else 0}",
            # Podman goes on without the hooks of a directory that is not there: see overrides.py.
            hooks=f"{self.own}/hooks",
            manager="systemd" if self.systemd else "cgroupfs",
            runtime='runtime = "crun"' if os.path.exists(CRUN) else "",
        )
        self.write("containers.conf", text)

    def write(self, name: str, text: str) -> None:
        """Replace one of the agent's own files; readers see the old or the new, never a part."""
        atomic_file.replace(f"{self.own}/{name}", text.encode(), durable=False)

    def _delegated(self) -> frozenset[str]:
        """The cgroup controllers that limit this user's containers; without systemd none do."""
        if not self.systemd:
            return frozenset()
        manager = f"{CGROUPS}/user.slice/user-{self.uid}.slice/user@{self.uid}.service"
        try:
            with open(f"{manager}/cgroup.controllers", encoding="ascii") as file:
                return frozenset(file.read().split())
        except OSError:
            return frozenset()
