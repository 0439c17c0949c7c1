"""The account that an agent serves: its directories, and Podman's environment and configuration.

Imported before Podman is started, so without slow imports (json, typing). The
agent's files are in $XDG_RUNTIME_DIR/svc, which only the user can access; the
user's own configuration files are never changed.
"""

from __future__ import annotations

import os

from svc_helper.agent import outbound, user_files

_CONTAINERS_CONF = """\
[containers]
http_proxy = false
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
PIDS_DEFAULT = 2048  # Podman's, for a container without a limit, where the pids controller is delegated
LOG_SIZE_MAX = 64 * 1024 * 1024  # bytes of one file of a container's output; see containers/conmon_log.py
CRUN = "/usr/bin/crun"
CGROUPS = "/sys/fs/cgroup"


class Home:
    """One user's account and the paths that the agent uses for it."""

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
            **outbound.variables(os.path.dirname(registries)),
        }
        if systemd:  # the user's own manager creates the containers' scopes
            self.environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={self.runtime}/bus"

    def prepare(self) -> None:
        """Create the agent's directory and write the configuration of its Podman."""
        for name in ("", "/containers", "/locks", "/hooks"):
            os.makedirs(self.own + name, 0o700, exist_ok=True)
        os.chmod(self.own, 0o700)
        text = _CONTAINERS_CONF.format(
            log_max=LOG_SIZE_MAX,
            # Without the pids controller, Podman's default limit would make every start fail.
            pids_limit=f"pids_limit = {PIDS_DEFAULT if 'pids' in self.controllers else 0}",
            # Podman ignores a missing hooks directory: see overrides.py.
            hooks=f"{self.own}/hooks",
            manager="systemd" if self.systemd else "cgroupfs",
            runtime='runtime = "crun"' if os.path.exists(CRUN) else "",
        )
        self.write("containers.conf", text)

    def write(self, name: str, text: str) -> None:
        """Replace one of the agent's own files."""
        user_files.replace(f"{self.own}/{name}", text)

    @property
    def manager_group(self) -> str:
        """The cgroup directory of the user's systemd manager."""
        return f"{CGROUPS}/user.slice/user-{self.uid}.slice/user@{self.uid}.service"

    def _delegated(self) -> frozenset[str]:
        """The cgroup controllers that limit this user's containers; none without systemd."""
        if not self.systemd:
            return frozenset()
        try:
            with open(f"{self.manager_group}/cgroup.controllers", encoding="ascii") as file:
                return frozenset(file.read().split())
        except OSError:
            return frozenset()
