"""A user's own directory for images (SVC_STORE_DIR), made by descriptors below what only root can write."""

import contextlib
import os

from svc_helper.root.drop import Account

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def ensure(pattern: str, account: Account) -> None:
    """In a child: create the account's directory; raises OSError, also for another owner's."""
    directory = opened(path := pattern.replace("%u", account.name), 0o700)  # closed when the child ends
    owner = os.fstat(directory).st_uid
    if owner == 0 and not os.listdir(directory):  # new, also of a run that was killed here
        os.fchown(directory, account.uid, account.gid)
    elif owner != account.uid:
        raise PermissionError(f"{path} belongs to uid {owner}; the remedy: sudo svc admin doctor")


def opened(path: str, mode: int = 0o755) -> int:
    """The directory at this path, created if it is missing; raises OSError if others can write above it."""
    above = opened(os.path.dirname(path)) if path.count("/") > 1 else os.open("/", _FLAGS)
    try:
        if (status := os.fstat(above)).st_uid != 0 or status.st_mode & 0o022:
            raise PermissionError(f"others than root can write the directory of {path}")
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.basename(path), mode, dir_fd=above)
        return os.open(os.path.basename(path), _FLAGS, dir_fd=above)
    finally:
        os.close(above)
