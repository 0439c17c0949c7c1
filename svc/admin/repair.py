"""`svc admin doctor --repair`: sets owner and mode of the service's own files.

A printed `chown` or `chmod` is dangerous where others can write: by the time root pastes
it, the path may be a link to any file. Here each directory and file is opened without
following links, checked, and changed through that descriptor. What the service did not
make (a link, a file of another kind) is moved aside within its directory; nothing is
deleted, and no content is read or written.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count

from svc.admin.findings import Finding, fail, ok
from svc.admin.own_files import ROOT, OwnFile, description, strangeness

CODE = "repair"
LINKS_MAX = 40  # as the kernel's, for one path
PIN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class UnsafeError(Exception):
    """The file cannot be changed safely: what is wrong, and the way out."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def repair(files: Sequence[OwnFile]) -> Iterator[Finding]:
    """Repair each file that exists; a finding for each change, and for what cannot be changed."""
    for file in files:
        try:
            yield from (ok(CODE, change) for change in _repair(file, files))
        except (FileNotFoundError, NotADirectoryError):
            continue  # the checks report what must exist
        except UnsafeError as error:
            yield fail(CODE, f"{file.path} {error.message}", error.remedy)
        except OSError as error:
            yield fail(CODE, f"{file.path} cannot be repaired: {error.strerror}", "sudo svc admin doctor")


def _repair(file: OwnFile, files: Sequence[OwnFile]) -> Iterator[str]:
    """Repair one file; yields what was changed."""
    with ExitStack() as stack:
        directory, name = _open_directory(file, stack)
        strange = strangeness(file, os.stat(name, dir_fd=directory, follow_symlinks=False))
        if not strange:
            pin = os.open(name, PIN, dir_fd=directory)
            stack.callback(os.close, pin)
            found = os.fstat(pin)
            strange = strangeness(file, found)  # of the very file that is changed
            if not strange:
                yield from _set(file, found, pin, files)
                return
        if "hard links" in strange:
            # Under its other name it may be anybody's, and a change would be made to both.
            raise UnsafeError(strange, _other_names(file.path))
        aside = _move_aside(directory, name)
        yield f"{file.path} {strange}; it is now {os.path.join(os.path.dirname(file.path), aside)}"


def _other_names(path: str) -> str:
    """The command that prints all names of a file, which are all on its file system."""
    mount = os.path.dirname(path)
    while not os.path.ismount(mount):
        mount = os.path.dirname(mount)
    return f"sudo find {shlex.quote(mount)} -xdev -samefile {shlex.quote(path)}"


def _set(file: OwnFile, found: os.stat_result, pin: int, files: Sequence[OwnFile]) -> Iterator[str]:
    """Set owner and mode through the descriptor, where they differ."""
    owned = found.st_gid == file.owner.gid and found.st_uid in {file.owner.uid, *file.creators}
    mode = stat.S_IMODE(found.st_mode)
    if file.kind == "socket" or (owned and mode == file.mode):
        return  # the server replaces its socket at each start
    through = f"/proc/self/fd/{pin}"
    tightens = owned and mode & file.mode == file.mode and not mode & stat.S_ISVTX
    if file.kind == "directory" and not tightens and (file.owner == ROOT or not owned):
        _require_alone(file, through, files)
    if not owned:
        os.chown(through, *file.owner)
    os.chmod(through, file.mode)
    yield f"{file.path} was {description(found)} and is {description(os.fstat(pin))}"


def _require_alone(file: OwnFile, through: str, files: Sequence[OwnFile]) -> None:
    """Raise UnsafeError for a directory that has other files too: a wrong setting may name /var/lib."""
    inside = [os.path.relpath(other.path, file.path) for other in files if other.path != file.path]
    known = tuple(path.split("/")[0] for path in inside if not path.startswith(".."))
    others = sorted(name for name in os.listdir(through) if not name.startswith(known))
    if others:
        raise UnsafeError(
            f"holds other files than the service's ({others[0]}) and is left as it is",
            "give the service directories of its own: svc env --all",
        )


def _move_aside(directory: int, name: str) -> str:
    """Rename within the directory to a free name, which is returned."""
    taken = os.listdir(f"/proc/self/fd/{directory}")
    aside = next(new for number in count(1) if (new := f"{name}.aside-{number}") not in taken)
    os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)
    return aside


# --- the way to a file -----------------------------------------------------------------


def _open_directory(file: OwnFile, stack: ExitStack) -> tuple[int, str]:
    """The directory that the file is in, pinned, and the file's name; below `top` no link is followed."""
    path, name = resolved(file.top), ""
    if file.names:
        *below, name = file.names
    else:
        below, (path, name) = [], os.path.split(path)
    descriptor = os.open(path, PIN | os.O_DIRECTORY)
    stack.callback(os.close, descriptor)
    for part in below:
        descriptor = os.open(part, PIN | os.O_DIRECTORY, dir_fd=descriptor)
        stack.callback(os.close, descriptor)
    return descriptor, name


def resolved(path: str) -> str:
    """The path without links; raises UnsafeError where others can change a directory on the way."""
    done, left, links = "/", os.path.abspath(path).split("/")[1:], 0
    while left:
        require_own(done)
        step = os.path.join(done, left.pop(0))
        if not os.path.islink(step):
            done = step
            continue
        links += 1
        if links > LINKS_MAX:
            raise UnsafeError("cannot be reached: too many links", f"ls -l {shlex.quote(step)}")
        left = os.path.normpath(os.path.join(done, os.readlink(step))).split("/")[1:] + left
        done = "/"
    return done


def require_own(directory: str) -> None:
    """Raise UnsafeError unless only root and the caller can replace what is in a directory."""
    status = os.stat(directory, follow_symlinks=False)
    others_write = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
    if status.st_uid not in (0, os.geteuid()) or others_write:
        raise UnsafeError(
            f"is below {directory} ({description(status)}), which others can change; it is left as it is",
            "choose a path where only root can write: svc env --all",
        )
