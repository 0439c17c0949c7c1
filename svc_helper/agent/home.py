"""The account that an agent serves: its directories, and Podman's environment and configuration.

Imported before Podman is started, so without slow imports (json, typing). The
agent's files are in $XDG_RUNTIME_DIR/svc, which only the user can access; the
user's own configuration files are never changed.
"""

from __future__ import annotations

import os
import stat

from svc_helper.agent import outbound, paths, user_files

_CONTAINERS_CONF = """\
[containers]
http_proxy = false
log_driver = "k8s-file"
log_size_max = {log_max}
{pids_limit}
[engine]
cgroup_manager = "{manager}"
# Podman's own, and a locale: without one conmon takes no path that has more than ASCII, as a home may have.
conmon_env_vars = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"]
events_logger = "file"
exit_command_delay = 1
hooks_dir = ["{hooks}"]
{runtime}
{locks}
"""
# Found by XDG_CONFIG_HOME, before the user's own file.
_STORAGE_CONF = """\
[storage]
driver = "overlay"
graphroot = "{graph_root}"
runroot = "{run_root}"
"""
PIDS_DEFAULT = 2048  # Podman's, for a container without a limit, where the pids controller is delegated
LOG_SIZE_MAX = 64 * 1024 * 1024  # bytes of one file of a container's output; see runtime/conmon_log.py
CRUN = "/usr/bin/crun"
CGROUPS = "/sys/fs/cgroup"


STORAGE = "storage"  # the store itself, in the store directory


def is_unmoved(store: str, home: str) -> bool:
    """Whether workspaces have their containers in the former store, which `svc admin move-store` moves."""
    if os.path.isdir(f"{store}/{STORAGE}"):
        return False
    directory = os.path.dirname(paths.workspace(home, "any"))
    try:
        return any(os.path.exists(f"{directory}/{name}/created.json") for name in os.listdir(directory))
    except OSError:
        return False


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
        store: str = "",
    ) -> None:
        self.user, self.uid, self.home = user, uid, home
        self.roots, self.read_only, self.systemd = roots, frozenset(read_only), systemd
        self.registries, self.registries_conf = registries, registries_conf
        self.runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
        self.own = f"{self.runtime}/svc"
        self._prepared: tuple[int, int] | None = None  # device and inode of that directory
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
        self.store = "" if not store or is_unmoved(store, home) else store
        if self.store:  # a Podman apart from the user's own, whose files and processes stay as they are
            self.environment |= {
                "XDG_RUNTIME_DIR": self.podman_runtime,
                "XDG_CONFIG_HOME": f"{self.own}/config",
                "XDG_DATA_HOME": self.store,
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
            # The other kind is one piece of shared memory for every Podman of the user.
            locks='lock_type = "file"' if self.store else "",
        )
        self.write("containers.conf", text)
        if self.store:
            self._prepare_store()
        self._prepared = self._own_inode()

    def is_lost(self) -> bool:
        """Whether somebody has removed or exchanged the agent's directory, with Podman's files beside it."""
        return self._prepared != self._own_inode()

    def _own_inode(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.own)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _prepare_store(self) -> None:
        """The directories and the configuration of a Podman with a store directory."""
        if self.store_fault():
            return
        login = f"{self.podman_runtime}/containers/auth.json"
        directories = (os.path.dirname(login), f"{self.own}/config/containers", f"{self.store}/{STORAGE}")
        for directory in directories:
            os.makedirs(directory, 0o700, exist_ok=True)
        # A `podman login` of the user counts. conmon has no DBUS_SESSION_BUS_ADDRESS for crun, which
        # finds the user's manager by the runtime directory, and else asks the host's, which refuses.
        for link, target in ((login, "containers/auth.json"), (f"{self.podman_runtime}/bus", "bus")):
            if not os.path.lexists(link):
                os.symlink(f"{self.runtime}/{target}", link)
        text = _STORAGE_CONF.format(
            graph_root=f"{self.store}/{STORAGE}", run_root=f"{self.podman_runtime}/containers"
        )
        self.write("config/containers/storage.conf", text)

    def store_fault(self) -> str:
        """Why the store directory cannot be used; empty if it can, or if there is none."""
        if not self.store:
            return ""
        try:
            status = os.lstat(self.store)
        except OSError as error:
            return f"{self.store}: {error.strerror}"
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != self.uid:
            return f"{self.store} is not a directory of {self.user}"
        if status.st_mode & 0o077:
            os.chmod(self.store, 0o700)
        return ""

    @property
    def podman_runtime(self) -> str:
        """The runtime directory of svc's Podman, with its records of running containers."""
        return f"{self.own}/podman" if self.store else self.runtime

    @property
    def builds(self) -> str:
        """The directory of running builds: on the disk of the images, where ids of containers can be set."""
        return f"{self.store}/builds" if self.store else f"{self.home}/.cache/svc/builds"

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
