"""What is opened below a file root, and that nothing else ever is."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from agent.file_roots import FileRoots

from svc_helper.agent.calls import Failure
from svc_helper.agent.files import beneath
from svc_helper.agent.home import Home

EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)


@pytest.fixture
def root(files: FileRoots) -> Iterator[int]:
    """The descriptor of the root `work`."""
    fd = beneath.root(cast("Home", files.home), "work")
    yield fd
    os.close(fd)


def error_of(function: Callable[..., int], *arguments: Any, **more: Any) -> str:
    """The name of the error that it ends with."""
    with pytest.raises(OSError) as caught:
        os.close(function(*arguments, **more))
    return errno.errorcode[caught.value.errno or 0]


def content(fd: int) -> bytes:
    """What is in an open file; closes it."""
    with os.fdopen(fd, "rb") as file:
        return file.read()


def test_what_is_below(files: FileRoots, root: int) -> None:
    (files.work / "a/b").mkdir(parents=True)
    (files.work / "a/b/f").write_text("inside")
    for path in (b"a/b/f", b"a/b/../b/f"):
        assert content(beneath.open_(root, path, os.O_RDONLY)) == b"inside"
    own = beneath.open_(root, b"", os.O_RDONLY | os.O_DIRECTORY)
    assert not os.get_inheritable(own)
    assert os.path.samestat(os.fstat(own), files.work.stat())
    os.close(own)
    created = beneath.open_(root, b"a/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.close(created)
    assert stat.S_IMODE((files.work / "a/new").stat().st_mode) == 0o600


def test_links_that_stay_below_are_followed(files: FileRoots, root: int) -> None:
    (files.work / "a/b").mkdir(parents=True)
    (files.work / "f").write_text("inside")
    (files.work / "a/b/up").symlink_to("../../f")
    (files.work / "to-a").symlink_to("a")
    assert content(beneath.open_(root, b"to-a/b/up", os.O_RDONLY)) == b"inside"
    assert error_of(beneath.open_, root, b"a/b/up", os.O_RDONLY | os.O_NOFOLLOW) == "ELOOP"
    assert error_of(beneath.open_, root, b"a/b/up", os.O_RDONLY, resolve=beneath.NO_SYMLINKS) == "ELOOP"
    link = beneath.open_(root, b"a/b/up", os.O_PATH | os.O_NOFOLLOW)
    assert stat.S_ISLNK(os.fstat(link).st_mode)
    os.close(link)


@pytest.mark.parametrize(
    ("target", "error", "code"),
    [
        ("../../outside/secret", "EXDEV", "forbidden"),
        ("..", "EXDEV", "forbidden"),
        ("a/../../home/../outside", "EXDEV", "forbidden"),
        ("/etc/passwd", "EXDEV", "forbidden"),
        ("{work}/a", "EXDEV", "forbidden"),  # absolute, even if it would lead back
        ("/proc/self/root", "EXDEV", "forbidden"),
        ("link", "ELOOP", "not_found"),
        ("nothing", "ENOENT", "not_found"),
        ("f/x", "ENOTDIR", "conflict"),
    ],
)
def test_links_that_lead_elsewhere(files: FileRoots, root: int, target: str, error: str, code: str) -> None:
    (files.work / "a").mkdir()
    (files.work / "f").write_text("")
    (files.work / "link").symlink_to(target.format(work=files.work))
    for flags in (os.O_RDONLY, os.O_PATH, os.O_WRONLY):
        assert error_of(beneath.open_, root, b"link", flags) == error
    with pytest.raises(Failure) as caught, beneath.refusing(b"link"):
        beneath.open_(root, b"link", os.O_RDONLY)
    assert caught.value.code == code
    assert caught.value.message.startswith("link: ")


@pytest.mark.parametrize("path", [b"..", b"../outside", b"a/../../..", b"/etc", b"//", b"/"])
def test_paths_that_lead_out(files: FileRoots, root: int, path: bytes) -> None:
    """Refused long before, and here by the kernel all the same."""
    (files.work / "a").mkdir()
    assert error_of(beneath.open_, root, path, os.O_PATH) == "EXDEV"


@pytest.mark.parametrize("path", [b"self/root", b"self/cwd", b"self/fd/0", b"self/exe", b"self/root/etc"])
def test_the_kernels_own_links_lead_out(path: bytes) -> None:
    proc = os.open("/proc", beneath.DIRECTORY)
    try:
        for flags in (os.O_RDONLY, os.O_PATH):
            assert error_of(beneath.open_, proc, path, flags) == "EXDEV"
    finally:
        os.close(proc)


def test_c_would_stop_at_a_nul(files: FileRoots, root: int) -> None:
    (files.work / "f").write_text("")
    for path in (b"f\0", b"f\0/../x", b"\0"):
        with pytest.raises(Failure):
            beneath.open_(root, path, os.O_RDONLY)
    with pytest.raises(Failure):
        beneath.parent(root, b"a/f\0")
    assert list(files.work.iterdir()) == [files.work / "f"]


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"f\0", b"/"])
def test_what_is_not_one_name_is_not_renamed(files: FileRoots, root: int, name: bytes) -> None:
    (files.work / "f").write_text("")
    for names in ((name, b"g"), (b"f", name)):
        with pytest.raises(Failure):
            beneath.rename(root, names[0], root, names[1])
    assert os.listdir(files.work) == ["f"]


def test_renaming(files: FileRoots, root: int) -> None:
    for name in ("f", "g"):
        (files.work / name).write_text(name)
    with pytest.raises(FileExistsError):
        beneath.rename(root, b"f", root, b"g", beneath.NOREPLACE)
    beneath.rename(root, b"f", root, b"g", EXCHANGE)
    assert (files.work / "f").read_text() == "g"
    beneath.rename(root, b"f", root, b"g")
    assert os.listdir(files.work) == ["g"]


def test_the_parent_and_the_last_part(files: FileRoots, root: int) -> None:
    (files.work / "a").mkdir()
    (files.work / "out").symlink_to(files.outside)
    fd, last = beneath.parent(root, b"a/f")
    assert (last, os.path.samestat(os.fstat(fd), (files.work / "a").stat())) == (b"f", True)
    os.close(fd)
    assert error_of(lambda: beneath.parent(root, b"out/secret")[0]) == "EXDEV"
    assert error_of(lambda: beneath.parent(root, b"no/f")[0]) == "ENOENT"
    with pytest.raises(Failure, match="root itself"):
        beneath.parent(root, b"")


def test_another_file_system_only_where_it_may_be() -> None:
    """With NO_XDEV no mount point is crossed; /proc is one on every host."""
    top = os.open("/", beneath.DIRECTORY)
    try:
        os.close(beneath.open_(top, b"proc/self", os.O_PATH | os.O_NOFOLLOW))
        assert error_of(beneath.open_, top, b"proc", beneath.DIRECTORY, resolve=beneath.NO_XDEV) == "EXDEV"
    finally:
        os.close(top)


def test_roots(files: FileRoots) -> None:
    home = cast("Home", files.home)
    later = Path(home.roots["later"])
    fd = beneath.root(home, "later")
    assert os.path.samestat(os.fstat(fd), later.stat()), "made by the first use"
    os.close(fd)
    assert stat.S_IMODE(later.stat().st_mode) == 0o700
    os.close(beneath.root(home, "fixed"))
    for name, write, code in (
        ("fixed", True, "forbidden"),
        ("absent", True, "forbidden"),
        ("absent", False, "not_found"),
        ("nothing", False, "not_found"),
    ):
        with pytest.raises(Failure) as caught:
            beneath.root(home, name, write=write)
        assert caught.value.code == code
        assert name in caught.value.message
    assert not Path(home.roots["absent"]).exists()
    later.rmdir()
    later.write_text("")
    with pytest.raises(Failure, match="the file root later cannot be opened: Not a directory"):
        beneath.root(home, "later")


def test_an_endless_race_ends(monkeypatch: pytest.MonkeyPatch, root: int) -> None:
    """The kernel says EAGAIN as long as something is renamed while it follows a `..`."""
    tries = []

    def never(*_arguments: Any) -> int:
        tries.append(1)
        raise BlockingIOError(errno.EAGAIN, "again")

    monkeypatch.setattr(beneath, "_call", never)
    with pytest.raises(Failure, match="try again"), beneath.refusing(b"x"):
        beneath.open_(root, b"x", os.O_PATH)
    assert len(tries) == 16


def test_a_kernel_without_openat2_serves_no_files(monkeypatch: pytest.MonkeyPatch, root: int) -> None:
    def unknown(*_arguments: Any) -> int:
        raise OSError(errno.ENOSYS, "unknown")

    monkeypatch.setattr(beneath, "_call", unknown)
    with pytest.raises(Failure, match="kernel has no openat2"):
        beneath.open_(root, b"x", os.O_PATH)
    monkeypatch.setattr(beneath, "_has_openat2", lambda: True)
    with pytest.raises(OSError):
        beneath.open_(root, b"x", os.O_PATH)


def test_this_kernel_has_it() -> None:
    assert beneath._has_openat2()


def test_the_umask_of_one_thread(files: FileRoots) -> None:
    """The threads beside it, which make files of the user's own, keep theirs."""
    before = os.umask(0o077)
    created, other_created = threading.Event(), threading.Event()
    try:

        def call() -> None:
            with beneath.umask(0o022):
                created.set()
                other_created.wait(30)
                os.mkdir(files.work / "open")

        thread = threading.Thread(target=call)
        thread.start()
        assert created.wait(30)
        os.mkdir(files.work / "closed")
        other_created.set()
        thread.join()
        os.mkdir(files.work / "closed-too")
    finally:
        os.umask(before)
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files.work.iterdir()}
    assert found == {"open": 0o755, "closed": 0o700, "closed-too": 0o700}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errno.ENOENT, "not_found"),
        (errno.EACCES, "forbidden"),
        (errno.EPERM, "forbidden"),
        (errno.EROFS, "forbidden"),
        (errno.EEXIST, "exists"),
        (errno.ENOTDIR, "conflict"),
        (errno.ENAMETOOLONG, "conflict"),
        (errno.EILSEQ, "conflict"),
        (errno.ENOSPC, "storage_full"),
        (errno.EDQUOT, "storage_full"),
        (errno.EMFILE, "unavailable"),
        (errno.EIO, "failed"),
        (errno.ENOTCONN, "failed"),  # a FUSE server that died
        (12345, "failed"),
    ],
)
def test_every_error_has_a_code_and_words(error: int, code: str) -> None:
    failure = beneath.refusal(OSError(error, "x"), b"dir/name")
    assert failure.code == code
    assert failure.message.startswith("dir/name: ")
    assert beneath.refusal(OSError(error, "x"), b"").message == failure.message.removeprefix("dir/name: ")


def test_a_name_in_a_message_is_only_a_name() -> None:
    hostile = "a\x1b[31m\n\u202e\x9b".encode() + b"\xff\xc3" + "ä b".encode()
    text = beneath.format_path(hostile)
    assert text == "a\\x1b[31m\\n\\u202e\\x9b\\xff\\xc3ä b"
    assert beneath.refusal(OSError(errno.ENOENT, "x"), hostile).message.startswith(text)


def test_a_fifo_and_a_socket_hold_nobody(files: FileRoots, root: int) -> None:
    os.mkfifo(files.work / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(files.work / "socket"))
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
    os.close(beneath.open_(root, b"fifo", flags))
    assert error_of(beneath.open_, root, b"socket", flags) == "ENXIO"
    assert beneath.refusal(OSError(errno.ENXIO, "x"), b"socket").code == "conflict"


def test_drafts() -> None:
    name = beneath.draft()
    assert beneath.is_draft(name)
    assert name != beneath.draft()
    for other in (name + b"0", name[:-1], name.upper(), b".svc-upload-", b"x" + name):
        assert not beneath.is_draft(other)
