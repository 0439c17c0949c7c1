"""Error messages of crun and Podman that mean that the command itself cannot be run."""

from __future__ import annotations

import os
import re

from svc_helper.agent import user_files
from svc_helper.agent.home import Home
from svc_helper.agent.runtime import crun
from svc_helper.agent.runtime.crun import Running
from svc_helper.wire.quick_typing import Any

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes of a shell and of Podman
_CANNOT_RUN = ("executable", "exec container process", "is not a regular file")
# crun's whole message when the kernel refuses a program that is there. It is in the command's own standard
# error too; crun 1.21 (Debian 13) writes it only there, to a terminal in red.
_EXEC = re.compile(r'\{"msg":"exec: ([A-Za-z ]+)"|(?:\x1b\[1;31m)?exec: ([A-Za-z ]+)(?:\x1b\[0m)?\r?\n?\Z')
_HEAD = 256  # bytes of a first line that Linux reads
_ELF = b"\x7fELF"
_NAMED_MAX = 100  # characters of an interpreter's path
_FOLDERS_MAX = 100  # of PATH
_PARTS_MAX = 400  # of a path, with those of its links


def refused_by_kernel(untrusted_errors: str) -> bool:
    """Whether the kernel refused the program, by crun's log or the command's whole standard error."""
    return _EXEC.match(untrusted_errors) is not None


def cannot_run(
    program: str, untrusted_error: str, home: Home | None = None, running: Running | None = None
) -> tuple[int, str] | None:
    """The exit code and error line, as of a shell, of a command that cannot be run; None for other errors.

    With the container that it was to run in, the line says what is wrong with the program's file.
    """
    error = untrusted_error.lower()
    if "argument list too long" in error:  # of crun without a word of what it did
        return NOT_EXECUTABLE, f"{program}: Argument list too long\n"
    if refused := _EXEC.match(untrusted_error):
        head = _head(home, running, program) if home and running else None
        return _refused(program, refused[1] or refused[2], head)
    if "chdir" in error:
        return NOT_EXECUTABLE, f"{program}: the working directory is not there, or may not be entered\n"
    if not any(sign in error for sign in _CANNOT_RUN):
        return None
    if "not found" in error or "no such file" in error:
        return NOT_FOUND, f"{program}: not found\n"
    return NOT_EXECUTABLE, f"{program}: cannot be executed\n"


def _refused(program: str, untrusted_reason: str, head: bytes | None) -> tuple[int, str]:
    """The exit code and error line for a file that is there, with the beginning of it if it could be read."""
    interpreter = _interpreter(head) if head else ""
    if untrusted_reason == "No such file or directory":
        why = "the interpreter that it names is not there"
        if interpreter:
            why = f"its first line names {interpreter}, which is not there"
            why += " (the lines end as in Windows)" if interpreter.endswith("\\r") else ""
        elif head and head.startswith(_ELF):
            why = "the loader that it names is not there: it was built for another C library"
        return NOT_FOUND, f"{program}: {why}\n"
    why = "cannot be executed"
    if untrusted_reason == "Exec format error":
        why = "it has no #! line, or is a program for another processor architecture"
        if interpreter:
            why = f"its first line names {interpreter}, which is no program for this machine"
        elif head is not None and head.startswith(b"#!"):
            why = "its first line names no program"
        elif head is not None:
            is_elf = head.startswith(_ELF)
            why = "a program for another processor architecture" if is_elf else "it has no #! line"
            why = why if head else "it is empty"
    elif interpreter:
        why = f"its first line names {interpreter}, which cannot be executed"
    return NOT_EXECUTABLE, f"{program}: {why}\n"


def _interpreter(head: bytes) -> str:
    """What a script's first line names, in printable characters; empty for other files and longer lines."""
    line, newline, _ = head.partition(b"\n")
    path = next(iter(line[2:].replace(b"\t", b" ").strip(b" ").split(b" ")))
    if not line.startswith(b"#!") or not path.strip() or (not newline and len(head) == _HEAD):
        return ""
    return path.decode(errors="replace").encode("unicode_escape").decode()[:_NAMED_MAX]


def _head(home: Home, running: Running, program: str) -> bytes | None:
    """The beginning of a program's file in the container; None if it cannot be read."""
    for path in _paths(crun.read_process(home, running) or {}, program):
        try:
            return user_files.read(_path_inside(f"/proc/{running.pid}/root", path), _HEAD)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError):
            break
    return None


def _paths(process: dict[str, Any], program: str) -> list[str]:
    """Where the program may be, as the kernel or a search in PATH finds it."""
    if "/" in program:
        return [os.path.join(str(process.get("cwd") or "/"), program)]
    entries = (str(entry) for entry in process.get("env") or ())
    path = next((entry[5:] for entry in entries if entry.startswith("PATH=")), "")
    return [os.path.join(folder, program) for folder in path.split(":")[:_FOLDERS_MAX] if folder]


def _path_inside(root: str, path: str) -> str:
    """The path of what a process with this root would open: absolute links and `..` stay inside.

    Only for messages to the user, who may read any file that it leads to if the container changes meanwhile.
    """
    parts, found = path.split("/")[::-1], list[str]()
    for _ in range(_PARTS_MAX):
        part = parts.pop() if parts else ""
        if part == "..":
            found = found[:-1]
        elif part not in ("", "."):
            try:
                target = os.readlink("/".join([root, *found, part]))
            except OSError:  # no link
                found.append(part)
            else:
                found = [] if target.startswith("/") else found
                parts += target.split("/")[::-1]
    return "/".join([root, *found])
