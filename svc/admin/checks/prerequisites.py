"""Doctor checks of rootless Podman's prerequisites: programs and their versions, kernel, devices."""

from __future__ import annotations

import functools
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from functools import partial

from svc.admin.findings import Finding, Host, fail, lines_of, ok, warn
from svc.host.owner import Owner, run_as
from svc_helper.wire.limits import NETWORK_PROGRAMS, PODMAN_PROGRAM_DIRECTORIES

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
VERSION_S = 10
PODMAN_FIRST = (4, 3)  # of Debian 12
PASTA_FIRST = (
    5,
    0,
)  # connects containers by pasta, and networks by nft, where older ones have slirp4netns and iptables
USER_NAMESPACE_SETTINGS = (  # name, the value that denies them, the one that allows
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # of Ubuntu
    ("kernel.unprivileged_userns_clone", "0", "1"),  # of Debian
    ("user.max_user_namespaces", "0", "65536"),
)
CONTROLLERS = ("cpu", "memory", "pids")
PACKAGES = {
    "podman": "podman",
    "conmon": "conmon",
    "crun": "crun",
    "catatonit": "catatonit",
    "newuidmap": "uidmap",
    "newgidmap": "uidmap",
    "skopeo": "skopeo",
    "setpriv": "util-linux",
}


def podman_way(host: Host) -> Iterator[Finding]:
    """How users' containers run, by the helper's criterion."""
    if host.systemd:
        yield ok("podman_way", "systemd: containers live in each user's own slice and manager")
    else:
        yield ok(
            "podman_way", "cgroupfs: no systemd here; resource limits need controllers delegated by hand"
        )


def programs(_host: Host) -> Iterator[Finding]:
    """Podman and the programs that it runs."""
    for name, package in PACKAGES.items():
        path = shutil.which(name, path=PATH)
        if path is None:
            level = warn if name == "crun" else fail
            yield level(name, f"{name} is not installed", f"sudo apt-get install {package}")
        elif name in ("newuidmap", "newgidmap") and not _raises_rights(path):
            yield fail(
                name,
                f"{path} gives no rights: it is not set-uid root, has no file capabilities, or is on nosuid",
                f"sudo apt-get install --reinstall {package}",
            )
        else:
            yield ok(name, path)


def connections(host: Host) -> Iterator[Finding]:
    """The program with which Podman connects a container to the host's network."""
    by_pasta = _connects_by_pasta(host)
    if by_pasta:
        path = shutil.which("pasta", path=PATH)
        yield (
            ok("pasta", path)
            if path
            else fail("pasta", "pasta is not installed: no workspace starts", "sudo apt-get install passt")
        )
    path = shutil.which("slirp4netns", path=PATH)
    if path:
        yield ok("slirp4netns", path)
    elif by_pasta:
        yield warn(
            "slirp4netns",
            "slirp4netns is not installed: workspaces made by Podman 4 do not start",
            "sudo apt-get install slirp4netns",
        )
    else:
        yield fail(
            "slirp4netns",
            "slirp4netns is not installed: no workspace starts",
            "sudo apt-get install slirp4netns",
        )


def networks(host: Host) -> Iterator[Finding]:
    """The programs with which Podman makes networks of workspaces (`--network`)."""
    directories = [host.seen(path) for path in PODMAN_PROGRAM_DIRECTORIES]
    missing = [
        name
        for name in NETWORK_PROGRAMS
        if not any(os.path.exists(f"{directory}/{name}") for directory in directories)
    ]
    filters, package = (
        ("nft", "nftables") if _connects_by_pasta(host) else ("iptables", "iptables")
    )  # netavark runs it
    if shutil.which(filters, path=PATH) is None:
        missing.append(filters)
    if missing:
        names = " ".join(package if name == filters else name for name in missing)
        yield warn(
            "networks",
            f"{', '.join(missing)} not installed: workspaces with a network do not start",
            f"sudo apt-get install {names}",
        )
    else:
        yield ok("networks", f"netavark, aardvark-dns and {filters} are installed")


def podman_version(host: Host) -> Iterator[Finding]:
    """Whether Podman is one that svc knows."""
    path = shutil.which("podman", path=PATH)
    if path is None:
        return  # reported above
    version = _version_of(path, host.owner)
    name = f"podman {'.'.join(map(str, version))}"
    if not version:
        yield warn("podman_version", f"{path} does not tell its version", "podman --version")
    elif version < PODMAN_FIRST:
        first = ".".join(map(str, PODMAN_FIRST))
        yield fail("podman_version", f"{name} is older than {first}", "sudo apt-get install podman")
    else:
        yield ok("podman_version", name)


def _connects_by_pasta(host: Host) -> bool:
    path = shutil.which("podman", path=PATH)
    return path is not None and _version_of(path, host.owner) >= PASTA_FIRST


@functools.cache
def _version_of(path: str, owner: Owner) -> tuple[int, ...]:
    """Podman's own word, run by an account without privileges; empty where it has none."""
    untrusted = run_as(owner, partial(_reply_of, path), VERSION_S + 5)
    match = re.search(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?", str(untrusted))
    return tuple(int(part) for part in match.groups() if part) if match else ()


def _reply_of(path: str) -> str:
    """Podman 4 tells its version only where HOME is a directory, 5 only with one of settings too."""
    argv = [path, "--version"]
    environment = {"PATH": PATH, "HOME": "/", "XDG_CONFIG_HOME": "/", "LANG": "C.UTF-8"}
    try:
        reply = subprocess.run(argv, env=environment, cwd="/", capture_output=True, timeout=VERSION_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return reply.stdout[:200].decode(errors="replace")


def _raises_rights(path: str) -> bool:
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        return False
    status = os.stat(path)
    if status.st_uid == 0 and status.st_mode & stat.S_ISUID:
        return True
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def user_namespaces(host: Host) -> Iterator[Finding]:
    """Whether an account without privileges may make a user namespace, as Podman does; one tries."""
    if run_as(host.owner, _unshares, VERSION_S + 5) is True:
        yield ok("user_namespaces", "accounts without privileges make user namespaces")
        return
    for name, denying, allowing in USER_NAMESPACE_SETTINGS:
        if lines_of(host.seen(f"/proc/sys/{name.replace('.', '/')}")) == [denying]:
            yield fail(
                "user_namespaces",
                f"{name} is {denying}: users make no user namespaces, and no workspace starts",
                f"sudo sysctl -w {name}={allowing}   (and for the next boot, that setting in /etc/sysctl.d)",
            )
            return
    yield fail(
        "user_namespaces",
        "users make no user namespaces, and no workspace starts",
        "unshare --user --map-root-user true",
    )


def _unshares() -> bool:
    argv = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    try:
        done = subprocess.run(argv, env={"PATH": PATH}, cwd="/", capture_output=True, timeout=VERSION_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def cgroups(host: Host) -> Iterator[Finding]:
    """The unified hierarchy, and the controllers that resource limits need."""
    root = host.seen("/sys/fs/cgroup")
    path = os.path.join(root, "cgroup.controllers")
    if not os.path.exists(path):
        yield fail(
            "cgroup2",
            "/sys/fs/cgroup is not the unified hierarchy (cgroup2); containers cannot start",
            "boot with systemd.unified_cgroup_hierarchy=1",
        )
        return
    yield ok("cgroup2", "/sys/fs/cgroup is the unified hierarchy")
    present = set(" ".join(lines_of(path)).split())
    missing = [name for name in CONTROLLERS if name not in present]
    if missing:
        yield warn(
            "controllers",
            f"no controller for {', '.join(missing)}: {without_limits(host)}",
            "boot with cgroup_no_v1=all",
        )
        return
    yield ok("controllers", f"{', '.join(CONTROLLERS)} are available")


def without_limits(host: Host) -> str:
    """The effect on workspaces that have such limits."""
    policy = host.settings.missing_limits
    if policy == "refuse" or (policy == "auto" and host.systemd):
        return "workspaces with such limits do not start (SVC_MISSING_LIMITS)"
    return "such limits of workspaces have no effect"


def devices(host: Host) -> Iterator[Finding]:
    """The two devices that every user's Podman opens."""
    for code, name, level, why in (
        ("dev_net_tun", "net/tun", fail, "no network in containers"),
        ("dev_fuse", "fuse", warn, "no fuse-overlayfs"),
    ):
        path = host.seen(f"/dev/{name}")
        try:
            status = os.stat(path)
        except OSError:
            yield level(code, f"/dev/{name} is missing: {why}", f"sudo modprobe {name.rpartition('/')[2]}")
            continue
        if not stat.S_ISCHR(status.st_mode) or status.st_mode & 0o006 != 0o006:
            yield level(
                code, f"/dev/{name} is not accessible to users: {why}", f"sudo chmod 0666 /dev/{name}"
            )
        else:
            yield ok(code, f"/dev/{name} is accessible to users")
