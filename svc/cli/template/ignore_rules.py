"""`.dockerignore`: the files of a directory that are left out of a build context, as Docker and Podman do.

A pattern is relative to the directory and leaves out what it matches with everything
below it; the last one that matches decides, and `!` takes a file in again. `*` and `?`
stay within a component, `**` is any number of them, `[a-z]` one character.
"""

from __future__ import annotations

import os
import posixpath
import re

from svc.commandline import output
from svc.errors import FileRefused

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = (".containerignore", ".dockerignore")  # the first that exists, as `podman build`
SIZE_MAX = 1024 * 1024
_SPECIAL = re.compile(r"[\\*?\[\]]|^[#!]")  # what a pattern takes for more than itself


class IgnoreRules:
    """The rules of one file; `name` is the file to add another to."""

    def __init__(self, text: str = "", name: str = NAMES[-1]) -> None:
        self.name = name
        self._rules = [*_compiled(text, name)]
        self.has_exceptions = any(exception for exception, _ in self._rules)

    @classmethod
    def of(cls, directory: str) -> IgnoreRules:
        """The rules of a directory, none without a file; raises FileRefused."""
        for name in NAMES:
            path = os.path.join(directory, name)
            try:
                with open(path, "rb") as file:
                    text = file.read(SIZE_MAX).decode("utf-8-sig", "surrogateescape")
            except FileNotFoundError:
                continue
            except OSError as error:
                raise FileRefused(f"cannot read {path}: {error.strerror}") from None
            return cls(text, path)
        return cls(name=os.path.join(directory, NAMES[-1]))

    def leave_out(self, path: str) -> bool:
        """Whether a file, or a directory with all that no exception names, is left out."""
        parts = path.split("/")
        candidates = ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
        left_out = False
        for exception, pattern in self._rules:
            if exception == left_out and any(map(pattern.fullmatch, candidates)):
                left_out = not exception
        return left_out

    def command(self, paths: list[str], why: str) -> str:
        """The shell command that leaves these out too, as a hint."""
        quoted = " ".join(output.shell_quote(_SPECIAL.sub(r"\\\g<0>", path)) for path in paths)
        return f"printf '\\n%s\\n' {quoted} >> {output.shell_quote(self.name)}  # {why}"


def _compiled(text: str, name: str) -> Iterable[tuple[bool, re.Pattern[str]]]:
    """(is an exception, pattern) of each line."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#"):
            continue
        line = line.strip()
        exception = line.startswith("!")
        line = line.removeprefix("!").strip()
        if not line:
            if exception:
                raise FileRefused(f"{name}, line {number}: a ! without a pattern")
            continue
        cleaned = posixpath.normpath(line)
        if len(cleaned) > 1:
            cleaned = cleaned.lstrip("/")
        try:
            yield exception, re.compile(_expression(cleaned), re.DOTALL)
        except re.error:
            raise FileRefused(f"{name}, line {number}: {line} is not a pattern") from None


def _expression(pattern: str) -> str:
    """The regular expression of one pattern."""
    found, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*" and pattern[at : at + 1] == "*":
            at += 2 if pattern[at + 1 : at + 2] == "/" else 1
            found.append(".*" if at >= len(pattern) else "(?:.*/)?")
        elif char == "*":
            found.append("[^/]*")
        elif char == "?":
            found.append("[^/]")
        elif char == "\\" and at < len(pattern):
            found.append(re.escape(pattern[at]))
            at += 1
        elif char in "[]":  # a class is written the same in both
            found.append(char)
        else:
            found.append(char if char in "-^" else re.escape(char))
    return "".join(found)
