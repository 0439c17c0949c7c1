"""The Debian package of svc: what dpkg has installed, made into a .deb again, and installed from one.

A .deb that is made from the installed files has dpkg's own control fields, maintainer scripts and
configuration files, so that installing it later leaves dpkg's record true. It is made only from
files that are as the package brought them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from svc.errors import Conflict, FileRefused, HostRefused
from svc.host.switching import IN_SWITCH

NAME = "svc"
ROOT = "/"  # of dpkg; tests have one of their own
PROGRAM = "usr/lib/svc/svc"  # the launcher, below ROOT
OS_RELEASE = "/etc/os-release"
SYSTEM = re.compile(r'^(ID|VERSION_ID)="?([a-z0-9.-]+)"?$', re.MULTILINE)
TREE = "usr/lib/svc/"
SHIPPED = "usr/lib/svc/shipped"  # below it the configuration files as the package brought them
# Fields of dpkg's record that a package itself does not have
OF_RECORD = ("Status", "Conffiles", "Config-Version", "Triggers-Awaited", "Triggers-Pending")
# What dpkg may have been told to leave out (path-exclude), as on the images of containers
LEFT_OUT = (
    "/usr/share/doc/",
    "/usr/share/man/",
    "/usr/share/info/",
    "/usr/share/locale/",
    "/usr/share/lintian/",
)
FRONTEND_LOCK = "var/lib/dpkg/lock-frontend"
LOCK_S = 60.0
QUERY_S = 60
BUILD_S = 600
INSTALL_S = 1800  # dpkg waits for the disk at each file
PART = 1024 * 1024
SAID = 300  # characters of what a program said


class Installed(NamedTuple):
    """The package as dpkg has it; `release` is its version without the system, "0.1.0" of "0.1.0+deb12".

    Without a system: it was built before packages said theirs.
    """

    version: str
    architecture: str
    system: str
    release: str


class Fields(NamedTuple):
    """What a .deb says of itself; as Installed."""

    package: str
    version: str
    architecture: str
    system: str
    release: str


def installed() -> Installed | None:
    """The installed package; None when dpkg has none, or there is no dpkg."""
    form = "${Version}\t${Architecture}\t${db:Status-Status}\t${Svc-System}\t${Svc-Release}"
    try:
        text = _query("-W", f"-f={form}", NAME)
    except HostRefused:
        return None
    version, architecture, status, system, release = (*text.split("\t"), "", "", "", "")[:5]
    if status in ("", "not-installed", "config-files"):
        return None
    return Installed(version, architecture, system, release or version)


def own() -> Installed | None:
    """The installed package if this program is of it; None for a checkout's program."""
    tree = os.path.realpath(os.path.join(ROOT, TREE))
    return installed() if os.path.realpath(__file__).startswith(f"{tree}/") else None


def program() -> str:
    """The path of the package's launcher."""
    return os.path.join(ROOT, PROGRAM)


def architecture() -> str:
    """What dpkg calls this host's architecture."""
    return run(["dpkg", "--print-architecture"], QUERY_S).strip()


def system() -> str:
    """ID and VERSION_ID of this host's operating system: `debian-12`."""
    try:
        with open(OS_RELEASE, encoding="utf-8", errors="replace") as file:
            found = dict(SYSTEM.findall(file.read(4096)))
    except OSError:
        found = {}
    return f"{found.get('ID', 'unknown')}-{found.get('VERSION_ID', 'unknown')}"


def fields(path: str) -> Fields:
    """What a .deb says of itself; raises FileRefused for what is none."""
    names = ("Package", "Version", "Architecture", "Svc-System", "Svc-Release")
    try:
        text = run(["dpkg-deb", "-f", path, *names], QUERY_S)
    except HostRefused as error:
        raise FileRefused(f"{path} is not a Debian package: {error.message}") from None
    found = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    package, version, architecture, system, release = (found.get(key, "") for key in names)
    return Fields(package, version, architecture, system, release or version)


@contextmanager
def locked() -> Iterator[None]:
    """No other program installs packages during the block; raises Conflict when one does not end.

    The lock is the one that apt takes; dpkg is told of it (DPKG_FRONTEND_LOCKED), else it would wait for us.
    """
    descriptor = os.open(os.path.join(ROOT, FRONTEND_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise Conflict(
                        "another program is installing packages, so that nothing was begun",
                        hint="run it again when that has ended   (sudo fuser -v /var/lib/dpkg/lock-frontend)",
                    ) from None
            time.sleep(0.5)
        yield
    finally:
        os.close(descriptor)


def install(path: str) -> None:
    """Have dpkg install the .deb over what there is; an administrator's configuration files stay.

    The caller has the lock. dpkg has a session of its own: it completes its work even if the caller is
    killed. Its maintainer scripts see SVC_SWITCHING and leave the service alone. Raises HostRefused.
    """
    keep = ["--force-confdef", "--force-confold"]
    run(["dpkg", *_at_root(), *keep, "-i", path], INSTALL_S, {IN_SWITCH: "1", "DPKG_FRONTEND_LOCKED": "1"})


# --- a .deb of what is installed ---------------------------------------------------------


def rebuild(directory: str, name: str) -> None:
    """Make the .deb `name` in the directory; raises FileRefused when installed files were changed."""
    tree = os.path.join(directory, "tree")
    os.mkdir(tree, 0o755)
    configuration = _control(tree)
    kept = _copy_all(tree, configuration)
    _use_shipped(tree, {path: sum_ for path, sum_ in configuration.items() if path in kept})
    _write_conffiles(tree, [path for path in configuration if path in kept])
    path = os.path.join(directory, name)
    run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, path], BUILD_S)
    shutil.rmtree(tree)
    os.chmod(path, 0o600)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _control(tree: str) -> dict[str, str]:
    """Write the control files as dpkg has them; returns what _configuration does."""
    directory = os.path.join(tree, "DEBIAN")
    os.mkdir(directory, 0o755)
    paragraph: list[str] = []
    skipped = False
    for line in _query("-s", NAME).splitlines():
        if not line.startswith((" ", "\t")):
            skipped = line.split(":", 1)[0] in OF_RECORD
        if line and not skipped:
            paragraph.append(line)
    with open(os.path.join(directory, "control"), "w", encoding="utf-8") as file:
        file.write("\n".join(paragraph) + "\n")
    for name in _query("--control-list", NAME).split():
        if name in ("control", "md5sums", "conffiles"):
            continue
        shutil.copyfile(_query("--control-path", NAME, name).strip(), os.path.join(directory, name))
        executable = name in ("preinst", "postinst", "prerm", "postrm", "config")
        os.chmod(os.path.join(directory, name), 0o755 if executable else 0o644)
    return _configuration()


def _configuration(*, obsolete: bool = False) -> dict[str, str]:
    """The package's configuration files, with the digest of what the package brought.

    `obsolete`: those of earlier versions, which are no part of it.
    """
    lines = [line.split() for line in _query("-W", "-f=${Conffiles}", NAME).splitlines() if line.strip()]
    return {line[0]: line[1] for line in lines if ("obsolete" in line[2:]) is obsolete}


def _sums() -> dict[str, str]:
    """The digest of each file but the configuration files, as dpkg has recorded them."""
    if "md5sums" not in _query("--control-list", NAME).split():
        return {}
    lines = _query("--control-show", NAME, "md5sums").splitlines()
    return {f"/{path}": sum_ for sum_, path in (line.split(None, 1) for line in lines)}


def _copy_all(tree: str, configuration: Iterable[str]) -> set[str]:
    """Copy the package's files; returns the paths. Raises FileRefused for changed or missing ones."""
    left_out = {"", "/.", *_configuration(obsolete=True)}
    listed = [path for path in _query("-L", NAME).splitlines() if path not in left_out]
    diverted = [path for path in listed if not path.startswith("/")]
    if diverted:
        raise FileRefused(f"dpkg says of a file of {NAME}: {diverted[0]}", hint="dpkg-divert --list")
    sums = _sums()
    directories = {os.path.dirname(path) for path in listed}
    kept, changed = set(), []
    for path in listed:
        if _copy(path, tree, path in directories, sums.get(path), path in configuration):
            kept.add(path)
        elif path in directories:
            continue  # what is missing below it speaks for itself: settings may be gone, with their directory
        elif path not in configuration and not path.startswith(LEFT_OUT):
            changed.append(path)
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise FileRefused(
            f"{changed[0]}{more} is not as the package {NAME} brought it, so that no copy of the program"
            " can be kept",
            hint=f"sudo dpkg --verify {NAME}   (then install the same package again)",
        )
    _write_sums(tree, {path: sum_ for path, sum_ in sums.items() if path in kept})
    return kept


def _copy(path: str, tree: str, is_parent: bool, sum_: str | None, is_configuration: bool) -> bool:
    """Copy one path; False for a file that is missing, or not as the package brought it."""
    source, target = os.path.join(ROOT, path.lstrip("/")), tree + path
    try:
        status = os.stat(source) if is_parent else os.lstat(source)
    except OSError:
        return False
    if stat.S_ISDIR(status.st_mode):
        os.makedirs(target, exist_ok=True)
        os.chmod(target, stat.S_IMODE(status.st_mode))
        return True
    if stat.S_ISLNK(status.st_mode) and sum_ is None and not is_configuration:
        os.symlink(os.readlink(source), target)
        return True
    if not stat.S_ISREG(status.st_mode) or is_parent:
        return False
    digest = hashlib.md5(usedforsecurity=False)  # which dpkg keeps: against accidents
    with open(source, "rb") as reading, open(target, "xb") as writing:
        while part := reading.read(PART):
            writing.write(part)
            digest.update(part)
    os.chmod(target, stat.S_IMODE(status.st_mode))
    return is_configuration or digest.hexdigest() == sum_


def _use_shipped(tree: str, configuration: Mapping[str, str]) -> None:
    """Put the shipped files in place of those that an administrator has changed.

    dpkg would take a changed file in the package for the package's own, and a later upgrade would
    replace the administrator's. A package without copies of its own leaves no choice.
    """
    for path, sum_ in configuration.items():
        shipped = os.path.join(ROOT, SHIPPED) + path
        if _digest(tree + path) != sum_ and os.path.isfile(shipped) and _digest(shipped) == sum_:
            shutil.copyfile(shipped, tree + path)


def _digest(path: str) -> str:
    """As dpkg records it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _write_sums(tree: str, sums: dict[str, str]) -> None:
    with open(os.path.join(tree, "DEBIAN", "md5sums"), "w", encoding="utf-8") as file:
        file.writelines(f"{sum_}  {path[1:]}\n" for path, sum_ in sorted(sums.items()))


def _write_conffiles(tree: str, paths: Sequence[str]) -> None:
    if paths:
        with open(os.path.join(tree, "DEBIAN", "conffiles"), "w", encoding="utf-8") as file:
            file.writelines(f"{path}\n" for path in paths)


# --- programs ----------------------------------------------------------------------------


def _at_root() -> list[str]:
    """Options for another root: its files and its record, without a change of the root directory."""
    if ROOT == "/":
        return []
    return [
        f"--instdir={ROOT}",
        f"--admindir={os.path.join(ROOT, 'var/lib/dpkg')}",
        "--force-script-chrootless",
    ]


def _query(*arguments: str) -> str:
    place = [] if ROOT == "/" else [f"--admindir={os.path.join(ROOT, 'var/lib/dpkg')}"]
    return run(["dpkg-query", *place, *arguments], QUERY_S)


def environment(more: dict[str, str]) -> dict[str, str]:
    """The environment of the programs: the settings in it, and nothing else of the caller's."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("SVC_")}
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return settings | {"PATH": path, "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **more}


def run(argv: list[str], within_s: float, more: dict[str, str] | None = None) -> str:
    """The output of a program; raises HostRefused with the last lines that it said.

    Into files and not pipes, which would break when the caller is killed, and dpkg with them.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            reply = subprocess.run(
                argv, env=environment(more or {}), stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                timeout=within_s, start_new_session=True,
            )  # fmt: skip
        except FileNotFoundError:
            raise HostRefused(f"there is no program {argv[0]} on this host") from None
        except subprocess.TimeoutExpired:
            raise HostRefused(f"{argv[0]} did not end within {within_s:.0f} s") from None
        output.seek(0)
        errors.seek(0)
        if reply.returncode != 0:
            said = errors.read().decode("utf-8", "replace").strip().splitlines() or ["it gave no reason"]
            raise HostRefused(f"{argv[0]} failed ({reply.returncode}): {last_lines(said)}")
        return output.read().decode("utf-8", "surrogateescape")


def last_lines(lines: Sequence[str]) -> str:
    """The end of what a program said, for a message."""
    return " / ".join(line.strip() for line in lines[-3:])[-SAID:]
