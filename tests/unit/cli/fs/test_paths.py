"""Places in file roots as a command line has them, with any byte that a name may have."""

from __future__ import annotations

import os
import subprocess
from urllib.parse import parse_qs, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.cli.fs import paths as fs_paths
from svc.errors import AlreadyThere, NotFound, TooManyRequests, UsageError

NAMES = st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name)


@pytest.mark.parametrize(
    "text", ["work", "work/", "work/a", "work/a b/c", "models/x", "work/http://x", "a/../b"]
)
def test_places(text: str) -> None:
    assert fs_paths.root_path(text) == text


@pytest.mark.parametrize("text", ["", "/", "/etc/passwd", ".", "../work", "http://x/y", "-", "a b/c", "~/x"])
def test_no_places(text: str) -> None:
    with pytest.raises(ValueError, match="<root>/<path>"):
        fs_paths.root_path(text)


def test_a_slash_after_a_directory_says_nothing() -> None:
    assert [fs_paths.directory(text) for text in ("work/", "work", "work/a/", "work/a//")] == [
        "work", "work", "work/a", "work/a"
    ]  # fmt: skip


def test_a_slash_keeps_the_name() -> None:
    """ "A trailing `/` on the destination keeps the local file name"."""

    def into(destination: str, name: str = "a.txt") -> str:
        return fs_paths.into(destination, name, "upload", "deep/a.txt")

    assert into("work/in/") == "work/in/a.txt"
    assert into("work/") == "work/a.txt"
    assert into("work/in") == "work/in"
    with pytest.raises(UsageError):
        into("work/in/", "")
    with pytest.raises(UsageError) as refused:  # as work/in is refused by the service, if it is a directory
        into("work")
    assert refused.value.hint == "svc fs upload deep/a.txt work/"


@given(NAMES)
def test_every_byte_arrives(path: bytes) -> None:
    """What the server decodes once is what the shell has given."""
    place = "work/" + os.fsdecode(path)
    url = fs_paths.url(place, "read", offset=None)
    before, _, query = url.partition("?path=")
    assert (before, unquote_to_bytes(query)) == ("/api/fs/work/read", path)
    assert url.isascii() and url.isprintable() and " " not in url
    assert unquote_to_bytes(fs_paths.encoded(place)) == path
    assert fs_paths.name(place) == os.fsdecode(path.rpartition(b"/")[2])


def test_what_else_is_asked() -> None:
    asked = parse_qs(fs_paths.url("work/a", "file", force=True, recursive=False, offset=0).partition("?")[2])
    assert asked == {"path": ["a"], "force": ["true"], "offset": ["0"]}
    assert fs_paths.url("work", "list") == "/api/fs/work/list?path="


@pytest.mark.allow_commands("bash")
@pytest.mark.parametrize(
    "name",
    ["a", "a b", "it's", "$HOME", "`id`", "*", "~", "a\\b", "a\nb", "\x1b[2J'\\x", "é 図", "\x80", "",
     "a\x1bf0", os.fsdecode(b"caf\xe9"), "\u202eabc", "!x", "a;b", "#x"],
)  # fmt: skip
def test_a_command_is_one_that_a_shell_takes(name: str) -> None:
    command = fs_paths.command("upload", name, "work/" + name)
    assert command.isprintable()
    printed = command.removeprefix("svc fs upload ")
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {printed}"],
        capture_output=True,
        timeout=30,
        env={"LC_ALL": "C.UTF-8"},
    )
    given = os.fsencode(name)
    assert done.stdout == given + b"\0work/" + given + b"\0"


def test_force_and_names_that_look_like_options() -> None:
    assert fs_paths.command("upload", "a", "work/a", force=True) == "svc fs upload a work/a --force"
    assert fs_paths.command("upload", "-rf", "work/", force=True) == "svc fs upload --force -- -rf work/"
    assert fs_paths.command("upload", "-", "work/a") == "svc fs upload - work/a"


def test_an_error_leads_on() -> None:
    again, forced = "svc fs upload a work/a", "svc fs upload a work/a --force"
    assert fs_paths.hinted(AlreadyThere("there", hint="x"), again, forced).hint == forced
    assert fs_paths.hinted(TooManyRequests("many"), again, forced).hint == again
    assert fs_paths.hinted(TooManyRequests("many", hint="x"), again, forced).hint == "x"
    assert fs_paths.hinted(NotFound("none"), again, forced).hint == ""
