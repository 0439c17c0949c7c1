"""Write the skill as a whole: a draft beside its place, then one rename.

A reader finds the former skill, the new one or none, never a part: with `--force` the
kernel exchanges both (RENAME_EXCHANGE), and the former one is removed afterwards.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager

from svc.cli.skill.directories import ELSEWHERE, NEW_MODE, refusal, require_own
from svc.commandline import output
from svc.commandline.local_files import ExitingOnSignals
from svc.errors import FileRefused

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

NAME = "svc"  # of the skill, and of its directory
MAIN = "SKILL.md"
FOLDER = "references"
DRAFT = ".svc-skill-"
NOREPLACE, EXCHANGE = 1, 2  # RENAME_* of renameat2(2)
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # by the file system or the kernel
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def install(directory: int, path: str, files: Mapping[str, bytes], *, force: bool, forced: str) -> bool:
    """Write the skill into a directory; whether it replaced a former one. Raises FileRefused.

    `files` are its texts by their names, `path` is where it gets, for messages, and
    `forced` the command that replaces an existing one.
    """
    with ExitingOnSignals(), _locked(directory, path) as alone:
        exists = _require_replaceable(directory, path, force=force, forced=forced)
        if alone:
            _remove_stale_drafts(directory)
        draft = f"{DRAFT}{os.urandom(6).hex()}"
        try:
            _write(directory, draft, files)
            if exists:
                _exchange(directory, draft)
            else:
                _give_name(directory, draft)
            os.fsync(directory)
        except FileExistsError:
            raise FileRefused(f"{path} already exists", hint=forced) from None
        except OSError as error:
            raise refusal(error, path) from None
        finally:
            _remove(directory, draft)  # incomplete, or by now the former skill
        if draft in os.listdir(directory):
            output.note(f"the former skill is kept beside the new one: {os.path.dirname(path)}/{draft}")
    return exists


@contextmanager
def _locked(directory: int, path: str) -> Iterator[bool]:
    """Hold the directory's lock; whether that can be, so that drafts in it are of interrupted runs."""
    alone = True
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileRefused(f"{os.path.dirname(path)} is locked by another process; try again") from None
    except OSError:
        alone = False  # a network file system: directories cannot be locked there
    yield alone  # the lock ends with the descriptor


# --- what is there --------------------------------------------------------------------


def _require_replaceable(directory: int, path: str, *, force: bool, forced: str) -> bool:
    """Whether something is there that may be replaced; raises FileRefused for what may not."""
    try:
        status = os.stat(NAME, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise refusal(error, path) from None
    if stat.S_ISLNK(status.st_mode):
        raise FileRefused(f"refusing to replace the link {path}", hint=ELSEWHERE)
    if not stat.S_ISDIR(status.st_mode):
        raise FileRefused(f"{path} is there already and is not a directory", hint=ELSEWHERE)
    require_own(status, path, roots_too=False)
    if not force:
        raise FileRefused(f"{path} already exists", hint=forced)
    try:
        strange = _strange(directory)
    except OSError as error:
        raise refusal(error, path) from None
    if strange:
        raise FileRefused(f"refusing to replace {path}: {strange}", hint=ELSEWHERE)
    return True


def _strange(directory: int) -> str:
    """Why a directory is no skill of svc, which --force would remove with all that is in it; else empty."""
    names = []
    for name, is_text in _content(directory, NAME):
        names.append(name)
        if not is_text:
            return f"{name} in it is not part of the skill; move it away first"
    if names and not _names_skill(directory):
        return f"it has no {MAIN} with `name: {NAME}`"
    return ""


def _names_skill(directory: int) -> bool:
    """Whether the front matter of its main file names the skill."""
    try:
        main = os.open(f"{NAME}/{MAIN}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return False
    with open(main, "rb") as file:
        return f"name: {NAME}".encode() in file.read(4096).splitlines()


def _content(directory: int, folder: str) -> Iterator[tuple[str, bool]]:
    """The names below a skill or draft, and whether each is a text of the kind that a skill has."""
    for name in _names(directory, folder):
        if name == FOLDER and _is(stat.S_ISDIR, directory, f"{folder}/{name}"):
            for text in _names(directory, f"{folder}/{name}"):
                is_text = text.endswith(".md") and _is(stat.S_ISREG, directory, f"{folder}/{name}/{text}")
                yield f"{name}/{text}", is_text
        else:
            yield name, name == MAIN and _is(stat.S_ISREG, directory, f"{folder}/{name}")


def _names(directory: int, folder: str) -> list[str]:
    descriptor = os.open(folder, _DIRECTORY, dir_fd=directory)
    try:
        return sorted(os.listdir(descriptor))
    finally:
        os.close(descriptor)


def _is(kind: Callable[[int], bool], directory: int, name: str) -> bool:
    return kind(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)


# --- the draft --------------------------------------------------------------------------


def _write(directory: int, draft: str, files: Mapping[str, bytes]) -> None:
    """Write the draft; what an agent looks for is written last."""
    os.mkdir(draft, NEW_MODE, dir_fd=directory)
    os.mkdir(f"{draft}/{FOLDER}", NEW_MODE, dir_fd=directory)
    for name in sorted(files, key=lambda name: name == MAIN):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(f"{draft}/{name}", flags, 0o644, dir_fd=directory), "wb") as file:
            file.write(files[name])
            file.flush()
            os.fsync(file.fileno())
    for folder in (f"{draft}/{FOLDER}", draft):
        descriptor = os.open(folder, _DIRECTORY, dir_fd=directory)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _give_name(directory: int, draft: str) -> None:
    """Rename the draft to its place; raises FileExistsError if something is there by now."""
    try:
        _rename(directory, draft, NAME, NOREPLACE)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        if _exists(directory, NAME):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(draft, NAME, src_dir_fd=directory, dst_dir_fd=directory)


def _exchange(directory: int, draft: str) -> None:
    """Exchange the draft and the former skill, where the file system can, else by two renames."""
    try:
        _rename(directory, draft, NAME, EXCHANGE)
        return
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    former = f"{draft}-former"
    os.rename(NAME, former, src_dir_fd=directory, dst_dir_fd=directory)
    try:
        os.rename(draft, NAME, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:  # Ctrl-C and signals too: the former skill gets its name back
        os.rename(former, NAME, src_dir_fd=directory, dst_dir_fd=directory)
        raise
    os.rename(former, draft, src_dir_fd=directory, dst_dir_fd=directory)


def _rename(directory: int, name: str, other: str, flags: int) -> None:
    """renameat2(2) within a directory."""
    import ctypes

    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    if renameat2(directory, os.fsencode(name), directory, os.fsencode(other), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _exists(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _remove(directory: int, draft: str) -> None:
    """Remove a draft or a former skill as far as it has nothing else in it; raises nothing."""
    try:
        for name, is_text in list(_content(directory, draft)):
            if is_text:
                os.unlink(f"{draft}/{name}", dir_fd=directory)
        if FOLDER in _names(directory, draft):
            os.rmdir(f"{draft}/{FOLDER}", dir_fd=directory)
        os.rmdir(draft, dir_fd=directory)
    except OSError:
        pass  # never created, or somebody has put something into it


def _remove_stale_drafts(directory: int) -> None:
    """Remove what killed runs have left."""
    for name in os.listdir(directory):
        if name.startswith(DRAFT):
            _remove(directory, name)
