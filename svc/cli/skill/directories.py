"""Open the directory that the skill is written into, by descriptors and through nobody else's links.

A skill is instructions for a program that acts with the caller's rights. So the path is
walked component by component: each directory belongs to root or the caller and is not
open to every user, and a link is followed only if it belongs to one of them.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from contextlib import contextmanager

from svc.commandline.output import shell_quote
from svc.errors import FileRefused

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterator

LINKS_MAX = 40  # as the kernel's own limit
NEW_MODE = 0o755  # of a directory that is created, less the umask
ELSEWHERE = "svc skill install --path DIR"
_ENTRY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened(path: str, new: int) -> Iterator[int]:
    """The descriptor of a directory; raises FileRefused.

    The last `new` components are created if they are missing, and removed again when
    the block raises. The last component may not be a link.
    """
    created: list[tuple[int, str]] = []
    held: list[int] = []
    try:
        held.append(_walk(path, new, created))
        yield held[0]
    except BaseException:  # Ctrl-C and signals too: what was created is removed
        for parent, name in reversed(created):
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError:
                pass  # used by somebody else meanwhile
        raise
    finally:
        for descriptor in (*held, *(parent for parent, _ in created)):
            os.close(descriptor)


def require_own(status: os.stat_result, path: str, *, roots_too: bool = True) -> None:
    """Raise FileRefused unless it belongs to the caller, or with `roots_too` to root."""
    me = os.geteuid()
    if status.st_uid == me or (roots_too and status.st_uid == 0):
        return
    owner = user_name(status.st_uid)
    hint = f"sudo -u {shell_quote(owner)} svc skill install --help" if me == 0 else ELSEWHERE
    what = "the link " if stat.S_ISLNK(status.st_mode) else ""
    raise FileRefused(
        f"refusing to use {what}{path}: it belongs to {owner}, not to {user_name(me)}", hint=hint
    )


def user_name(uid: int) -> str:
    """The name of a Linux account, or `uid N` if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def refusal(error: OSError, path: str) -> FileRefused:
    """The error of a path that cannot be used, with what helps."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = f"df -h {shell_quote(os.path.dirname(path))}" if full else ELSEWHERE
    return FileRefused(f"cannot write {path}: {error.strerror or error}", hint=hint)


def _walk(path: str, new: int, created: list[tuple[int, str]]) -> int:
    try:
        rest = _parts(os.path.join(os.getcwd(), path))
        directory = os.open("/", _ENTRY)
    except OSError as error:  # the current directory was removed
        raise refusal(error, path) from None
    walked, links = "", 0
    try:
        while rest:
            name = rest.pop()
            entry = _entry(directory, name, f"{walked}/{name}", created if len(rest) < new else None)
            try:
                status = os.fstat(entry)
                if stat.S_ISLNK(status.st_mode):
                    links += 1
                    target = _target(entry, status, f"{walked}/{name}", is_last=not rest, links=links)
                    rest += _parts(target)
                    if target.startswith("/"):
                        directory, walked = _replaced(directory, os.open("/", _ENTRY)), ""
                    continue
                walked = f"{walked}/{name}"
                _require_directory(status, walked)
                directory, entry = entry, directory
            finally:
                os.close(entry)
        return _readable(directory, walked or "/")
    finally:
        os.close(directory)


def _parts(path: str) -> list[str]:
    """The components of a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _replaced(directory: int, other: int) -> int:
    os.close(directory)
    return other


def _entry(directory: int, name: str, path: str, created: list[tuple[int, str]] | None) -> int:
    """The descriptor (O_PATH) of one entry or link; unless `created` is None, a missing one is created."""
    try:
        try:
            return os.open(name, _ENTRY, dir_fd=directory)
        except FileNotFoundError:
            if created is None:
                raise FileRefused(f"{path} does not exist", hint=ELSEWHERE) from None
        os.mkdir(name, NEW_MODE, dir_fd=directory)
        created.append((os.dup(directory), name))
        return os.open(name, _ENTRY, dir_fd=directory)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, OSError):
            raise refusal(error, path) from None
        raise FileRefused(f"cannot write {path}: {error}", hint=ELSEWHERE) from None


def _target(link: int, status: os.stat_result, path: str, *, is_last: bool, links: int) -> str:
    """Where a link leads, if it may be followed."""
    target = os.readlink("", dir_fd=link)
    if is_last:
        hint = f"svc skill install --path {shell_quote(target)}" if target.startswith("/") else ELSEWHERE
        raise FileRefused(f"refusing to write through the link {path} to {target}", hint=hint)
    require_own(status, path)
    if links > LINKS_MAX:
        raise FileRefused(f"too many links: {path}", hint=ELSEWHERE)
    return target


def _require_directory(status: os.stat_result, path: str) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise FileRefused(f"{path} is not a directory", hint=ELSEWHERE)
    require_own(status, path)
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise FileRefused(f"refusing to use {path}: every user can write there", hint=ELSEWHERE)


def _readable(directory: int, path: str) -> int:
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        raise refusal(error, path) from None
