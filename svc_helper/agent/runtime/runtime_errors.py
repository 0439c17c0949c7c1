"""What crun complains of, when it was the command's own fault that it could not be run."""

from __future__ import annotations

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as a shell and Podman say it
_CANNOT_RUN = ("executable", "exec container process", "chdir", "oci permission denied")


def cannot_run(program: str, untrusted_words: str) -> tuple[int, str] | None:
    """The exit code and the line of a command that cannot be run, as a shell has them; else None."""
    words = untrusted_words.lower()
    if not any(sign in words for sign in _CANNOT_RUN):
        return None
    if "not found" in words or "no such file" in words:
        return NOT_FOUND, f"{program}: not found\n"
    return NOT_EXECUTABLE, f"{program}: cannot be executed\n"
