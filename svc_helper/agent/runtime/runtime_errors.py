"""Error messages of crun and Podman that mean that the command itself cannot be run."""

from __future__ import annotations

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes of a shell and of Podman
_CANNOT_RUN = ("executable", "exec container process", "chdir", "oci permission denied")


def cannot_run(program: str, untrusted_error: str) -> tuple[int, str] | None:
    """The exit code and error line, as of a shell, of a command that cannot be run; None for other errors."""
    error = untrusted_error.lower()
    if "argument list too long" in error:  # of crun without a word of what it did
        return NOT_EXECUTABLE, f"{program}: Argument list too long\n"
    if not any(sign in error for sign in _CANNOT_RUN):
        return None
    if "not found" in error or "no such file" in error:
        return NOT_FOUND, f"{program}: not found\n"
    return NOT_EXECUTABLE, f"{program}: cannot be executed\n"
