"""Local files for a build context: a directory or a tar, packed as the plain tar that the service takes.

Only regular files are packed, with their names, contents and the executable bit.
Anything else is refused by name: a context that lacks a file is found out by the build
at best.
"""

from __future__ import annotations

import os
import stat
import tarfile
import tempfile
from collections import Counter

from svc.cli.template.ignore_rules import IgnoreRules
from svc.commandline import local_files, output
from svc.errors import FileRefused
from svc.limits import BUNDLE_COMPONENT_MAX, BUNDLE_MAX, BUNDLE_MEMBERS_MAX, BUNDLE_PATH_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import IO, Any, NoReturn

NAMED_MAX, LARGEST = 5, 3  # files in one message
OUTSTANDING = 0.1  # of all files or bytes: what has less is not worth leaving out
NEEDED = ("Dockerfile", "Containerfile", ".dockerignore", ".containerignore")
PREFIX = "context/"  # of each path, in the archive of a whole template
NAME_FIELD, PREFIX_FIELD = 100, 155  # bytes of the two fields of a plain tar header that a slash joins
TOO_LONG = "the path is too long for a build context; with shorter names of its directories it fits"
_KINDS = {
    stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


class Packed:
    """A plain tar in an unnamed file, to send when it is complete; raises FileRefused for what is no part."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  finished() gives it away
        # surrogateescape: the service refuses a name that is not UTF-8, and names it
        self._tar = tarfile.open(  # noqa: SIM115  closed by finished()
            fileobj=self._file, mode="w", format=tarfile.USTAR_FORMAT, encoding="utf-8",
            errors="surrogateescape",
        )  # fmt: skip
        self._count = self._bytes = 0

    def add(self, name: str, content: IO[bytes], size: int, *, executable: bool = False) -> None:
        """Add one file of this size."""
        self._count += 1
        self._bytes += size
        if self._count > BUNDLE_MEMBERS_MAX + 1 or self._bytes > BUNDLE_MAX:  # the manifest is no member
            refuse_size(self._count, self._bytes)
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, 0o755 if executable else 0o644
        try:
            self._tar.addfile(member, content)
        except ValueError:  # of tarfile, for a name that its header does not hold
            raise FileRefused(f"{name}: {_unfit(name) or TOO_LONG}") from None
        except OSError as error:
            reason = error.strerror or "it became shorter while it was read"
            raise FileRefused(f"cannot read {name}: {reason}") from None

    def add_directory(self, directory: str, prefix: str = "", *, rules: IgnoreRules | None = None) -> None:
        """Add the files below a directory, but for those that the rules leave out."""
        for path, executable in _Scan(directory, rules).files:
            file, size = local_files.open_regular(os.path.join(directory, path), os.O_NOFOLLOW)
            with file:
                self.add(prefix + path, file, size, executable=executable)

    def add_tar(self, path: str) -> None:
        """Add the files of a tar, of any form and compression; `-` is standard input."""
        source, _ = local_files.open_to_send(path)
        try:
            with tarfile.open(fileobj=source, mode="r|*") as tar:
                for member in tar:
                    self._add_member(path, tar, member)
        except (tarfile.TarError, EOFError, OSError) as error:
            reason = getattr(error, "strerror", None) or "not a tar archive, or a damaged one"
            raise FileRefused(f"cannot read {path}: {reason}") from None

    def _add_member(self, path: str, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        if member.isdir():
            return
        name = member.name.removeprefix("./")
        content = tar.extractfile(member) if member.isreg() else None
        if content is None:
            kind = "a link" if member.issym() or member.islnk() else "a special file"
            raise FileRefused(
                f"{output.visible(name)} in {path} is {kind}; a build context has regular files only",
                hint=f"tar --dereference --hard-dereference -cf {output.shell_quote(path)} ..."
                "  # packs the files that links lead to",
            )
        self.add(name, content, member.size, executable=bool(member.mode & 0o111))

    def finished(self) -> tuple[Any, int]:
        """The whole archive and its size."""
        self._tar.close()
        size = self._file.seek(0, os.SEEK_END)
        if size > BUNDLE_MAX:
            refuse_size(self._count, size)
        self._file.seek(0)
        return self._file, size


def refuse_size(count: int, size: int, advice: str = "", hint: str = "") -> NoReturn:
    """Raise FileRefused for so many files, or bytes."""
    if count > BUNDLE_MEMBERS_MAX - 1:
        message = f"a build context has at most {BUNDLE_MEMBERS_MAX - 1} files, not {count}"
    else:
        limit = output.size(BUNDLE_MAX, True)
        message = f"a build context with its Dockerfile has at most {limit}, not {output.size(size, True)}"
    raise FileRefused(message + advice, hint=hint)


class _Scan:
    """What is below a directory: `files` are (path, executable), sorted."""

    def __init__(self, directory: str, rules: IgnoreRules | None) -> None:
        self._root, self._rules = directory, rules
        self._bytes: dict[str, int] = {}  # of the top entries
        self.files: list[tuple[str, bool]] = []
        self._refused: list[tuple[str, str]] = []
        self._unfit: list[tuple[str, str]] = []  # paths, and why the service does not take them
        self._empty: list[str] = []
        self._visit("")
        self._require_plain()
        self._require_fit()
        self._require_size()
        self._note_empty()
        self.files.sort()

    def _visit(self, below: str) -> None:
        """Note what is in a directory."""
        if len(below) > BUNDLE_PATH_MAX:  # of a tree without end, nothing more is looked at
            self._unfit.append((below, _unfit(below)))
            return
        try:
            with os.scandir(os.path.join(self._root, below)) as entries:
                present = sorted(entries, key=lambda entry: entry.name)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileRefused(f"cannot read {os.path.join(self._root, below)}: {reason}") from None
        if below and not present and not (self._rules and self._rules.leave_out(below)):
            self._empty.append(below)
        for entry in present:
            path = f"{below}/{entry.name}" if below else entry.name
            left_out = self._rules is not None and self._rules.leave_out(path)
            if entry.is_dir(follow_symlinks=False):
                if not left_out or (
                    self._rules and self._rules.has_exceptions and len(path) < BUNDLE_PATH_MAX
                ):
                    self._visit(path)
            elif not left_out:
                self._file(path, entry)

    def _file(self, path: str, entry: os.DirEntry[str]) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            raise FileRefused(f"cannot read {os.path.join(self._root, path)}: {error.strerror}") from None
        if not stat.S_ISREG(status.st_mode):
            self._refused.append((path, _KINDS.get(stat.S_IFMT(status.st_mode), "a special file")))
            return
        top = path.partition("/")[0]
        self._bytes[top] = self._bytes.get(top, 0) + status.st_size
        self.files.append((path, bool(status.st_mode & 0o111)))
        if why := _unfit(path):
            self._unfit.append((path, why))
        if len(self.files) > 100 * BUNDLE_MEMBERS_MAX:  # somebody's whole disk
            self._require_size()

    def _require_plain(self) -> None:
        """Raise FileRefused for links and special files, with the way to leave them out."""
        if not self._refused:
            return
        first = [os.path.join(self._root, path) for path, _ in self._refused[:NAMED_MAX]]
        more = len(self._refused) - len(first)
        named = ", ".join(map(output.visible, first)) + (f" and {more} more" if more else "")
        kinds = {kind for _, kind in self._refused}
        what = kinds.pop() if len(self._refused) == 1 else "links or special files"
        verb = "is" if len(self._refused) == 1 else "are"
        way_out, hint = ": put a file in the place of each, or remove it", ""
        if self._rules is not None:
            way_out = ""
            hint = self._rules.command([path for path, _ in self._refused[:NAMED_MAX]], "leaves them out")
        raise FileRefused(
            f"{named} {verb} {what}; a build context has regular files only{way_out}", hint=hint
        )

    def _require_fit(self) -> None:
        """Raise FileRefused for names that a build context cannot have, with the way to leave them out."""
        if not self._unfit:
            return
        path, why = self._unfit[0]
        more = len(self._unfit) - 1
        others = f" ({more} more {'file has' if more == 1 else 'files have'} such names)" if more else ""
        paths = [path for path, _ in self._unfit[:NAMED_MAX]]
        leaves = "leaves them out" if more else "leaves it out"
        hint = self._rules.command(paths, leaves) if self._rules else ""
        raise FileRefused(f"{output.visible(os.path.join(self._root, path))}: {why}{others}", hint=hint)

    def _require_size(self) -> None:
        size = sum(self._bytes.values())
        if len(self.files) < BUNDLE_MEMBERS_MAX and size <= BUNDLE_MAX:
            return
        many = len(self.files) >= BUNDLE_MEMBERS_MAX
        weight = Counter(path.partition("/")[0] for path, _ in self.files) if many else self._bytes
        largest = sorted(weight, key=lambda name: -weight[name])[:LARGEST]
        if many:  # of files side by side none is to blame
            largest = [name for name in largest if weight[name] > 1]
        sizes = [f"{weight[name]} files" if many else output.size(weight[name], True) for name in largest]
        named = ", ".join(f"{output.visible(n)} ({s})" for n, s in zip(largest, sizes, strict=True))
        outstanding = [name for name in largest[:1] if weight[name] >= sum(weight.values()) * OUTSTANDING]
        outstanding = [name for name in outstanding if name not in NEEDED]
        hint = ""
        if self._rules is not None and outstanding:
            hint = self._rules.command(outstanding, "if the build does not need it")
        advice = f"; the largest here: {named}" if largest else "; all are in one directory"
        refuse_size(len(self.files), size, advice, hint)

    def _note_empty(self) -> None:
        if self._empty:
            more = f" and {len(self._empty) - 1} more" if len(self._empty) > 1 else ""
            path = os.path.join(self._root, self._empty[0])
            output.note(f"{path}{more}: an empty directory is no part of a build context")


def _unfit(path: str) -> str:
    """Why a build context cannot have a file of this path, with the way out; empty if it can."""
    whole = PREFIX + path
    size, name_size = len(os.fsencode(whole)), max(len(os.fsencode(part)) for part in path.split("/"))
    if name_size > BUNDLE_COMPONENT_MAX:
        return f"a name in a build context has at most {BUNDLE_COMPONENT_MAX} bytes, this one {name_size}"
    if size > BUNDLE_PATH_MAX:
        most = BUNDLE_PATH_MAX - len(PREFIX)
        return f"a path in a build context has at most {most} bytes, this one {size - len(PREFIX)}"
    if size > NAME_FIELD and os.fsencode(whole).find(b"/", size - NAME_FIELD - 1) > PREFIX_FIELD:
        return TOO_LONG
    if "\\" in path:
        return f"a name in a build context has no backslash; {_renaming(path, path.replace(chr(92), '_'))}"
    if not path.isascii():
        import unicodedata

        composed = unicodedata.normalize("NFC", path)
        if composed != path:
            return f"the name is not in Unicode's composed form (NFC); {_renaming(path, composed)}"
    return ""


def _renaming(path: str, fit: str) -> str:
    """The command that gives the first unfit name of a path the one that it has in `fit`."""
    name, other = next(
        pair for pair in zip(path.split("/"), fit.split("/"), strict=True) if pair[0] != pair[1]
    )
    return f"in its directory: mv {output.shell_quote(name)} {output.shell_quote(other)}"
