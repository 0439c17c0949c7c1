"""Directories and archives as the plain tar that the service takes."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from svc.cli.template.ignore_rules import IgnoreRules
from svc.cli.template.trees import Packed
from svc.domain.templates import bundles
from svc.errors import FileRefused
from svc.limits import BUNDLE_MAX, BUNDLE_MEMBERS_MAX

Tree = dict[str, tuple[bytes, bool]]


def received(packed: Packed) -> Tree:
    """What the service finds in an archive."""
    file, size = packed.finished()
    with file:
        data = file.read()
    assert len(data) == size
    return {one.path: (one.open().read(), one.executable) for one in bundles.read_context(io.BytesIO(data))}


def of(directory: Path, text: str | None = None) -> Tree:
    packed = Packed()
    packed.add_directory(str(directory), rules=None if text is None else IgnoreRules(text))
    return received(packed)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory with a program and what lies around in one."""
    root = tmp_path / "tree"
    for path, content in {"run": b"#!", "a/b/c": b"c", "a/x.pyc": b"0", ".git/HEAD": b"ref"}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    (root / "run").chmod(0o700)
    return root


def test_files_with_their_executable_bit(tree: Path, capsys: Any) -> None:
    (tree / "empty/deeper").mkdir(parents=True)
    (tree / "a" / ("n" * 90)).mkdir()
    (tree / "a" / ("n" * 90) / ("m" * 90)).write_bytes(b"long")
    found = of(tree)
    assert found["run"] == (b"#!", True) and found["a/b/c"] == (b"c", False)
    assert found[f"a/{'n' * 90}/{'m' * 90}"] == (b"long", False)
    assert len(found) == 5
    assert f"{tree}/empty/deeper: an empty directory" in capsys.readouterr().err


def test_what_is_left_out_is_not_looked_at(tree: Path, capsys: Any) -> None:
    (tree / "a/link").symlink_to("/etc/passwd")
    os.mkfifo(tree / ".git/pipe")
    (tree / "a/none").mkdir()
    assert set(of(tree, "a\n.git")) == {"run"}
    assert set(of(tree, "*\n!a/b\nrun")) == {"a/b/c"}
    assert capsys.readouterr().err == ""


def test_links_and_special_files_are_named(tree: Path) -> None:
    (tree / "link").symlink_to("run")
    with pytest.raises(FileRefused, match="link is a symbolic link") as caught:
        of(tree, "")
    assert caught.value.hint == "printf '\\n%s\\n' link >> .dockerignore  # leaves them out"
    with pytest.raises(FileRefused, match="put a file in the place of each"):
        of(tree)
    for number in range(7):
        os.mkfifo(tree / f"pipe{number}")
    with pytest.raises(FileRefused, match="and 3 more are links or special files"):
        of(tree, "")
    with pytest.raises(FileRefused, match="cannot read"):
        of(tree / "none")


def test_too_much_is_said_before_it_is_read(tree: Path) -> None:
    with open(tree / "a/large", "wb") as file:
        file.truncate(BUNDLE_MAX + 1)
    with pytest.raises(
        FileRefused, match=r"at most 64\.0 MiB, not 64\.0 MiB; the largest here: a \("
    ) as caught:
        of(tree, "")
    assert caught.value.hint.startswith("printf '\\n%s\\n' a >> .dockerignore")
    (tree / "a/large").unlink()
    for number in range(BUNDLE_MEMBERS_MAX):
        (tree / f"a/{number}").touch()
    with pytest.raises(
        FileRefused, match=r"at most 4095 files, not 4100; the largest here: a \(4098 files\)"
    ):
        of(tree, "")


@pytest.mark.parametrize(
    ("path", "why", "pattern"),
    [
        ("n" * 101, "a name in a build context has at most 100 bytes, this one 101", "n" * 101),
        ("d" * 101 + "/x", "a name in a build context has at most 100 bytes, this one 101", "d" * 101 + "/x"),
        ("/".join(["d" * 99] * 2 + ["n" * 48]), "has at most 247 bytes, this one 248", ""),
        (
            "/".join(["d" * 60, "d" * 60, "d" * 30, "n" * 94]),
            "with shorter names of its directories it fits",
            "",
        ),
        (
            "cafe\u0301",
            "composed form \\(NFC\\); in its directory: mv 'cafe\u0301' caf\u00e9",
            "'cafe\u0301'",
        ),
        ("re\u0301s/x", "in its directory: mv 're\u0301s' r\u00e9s", "'re\u0301s/x'"),
        ("a\\b[1]", r"has no backslash; in its directory: mv 'a\\b\[1\]' 'a_b\[1\]'", r"'a\\b\[1\]'"),
    ],
)
def test_names_that_a_build_context_cannot_have(tree: Path, path: str, why: str, pattern: str) -> None:
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).touch()
    with pytest.raises(FileRefused, match=why) as caught:
        of(tree, "")
    assert caught.value.hint == f"printf '\\n%s\\n' {pattern or path} >> .dockerignore  # leaves it out"
    line = pattern.strip("'") or path
    assert path not in of(tree, line), "the line does what the hint says"


def test_the_longest_name_of_a_build_context(tree: Path) -> None:
    longest = "/".join(["d" * 97, "d" * 48, "n" * 100])
    (tree / longest).parent.mkdir(parents=True)
    (tree / longest).touch()
    assert len(longest) == 247
    assert longest in of(tree)


def test_files_side_by_side_are_none_to_blame(tree: Path) -> None:
    for path in (".git/HEAD", "a/b/c", "a/x.pyc"):
        (tree / path).unlink()
    (tree / "Dockerfile").write_text("FROM x")
    for number in range(BUNDLE_MEMBERS_MAX):
        (tree / f"f{number}").touch()
    with pytest.raises(FileRefused, match="not 4098; all are in one directory") as caught:
        of(tree, "")
    assert caught.value.hint == ""


def test_a_dockerfile_is_never_to_be_left_out(tree: Path) -> None:
    with open(tree / "Dockerfile", "wb") as file:
        file.truncate(BUNDLE_MAX + 1)
    with pytest.raises(FileRefused, match=r"the largest here: Dockerfile") as caught:
        of(tree, "")
    assert caught.value.hint == ""


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_archives_of_any_form(tree: Path, tmp_path: Path, form: int, mode: Any) -> None:
    path = tmp_path / "some.tar"
    with tarfile.open(path, mode, format=form) as tar:
        tar.add(tree, ".")
    packed = Packed()
    packed.add_tar(str(path))
    assert received(packed) == of(tree)


def test_archives_that_are_refused(tree: Path, tmp_path: Path) -> None:
    def added(path: Path) -> None:
        Packed().add_tar(str(path))

    (tree / "link").symlink_to("run")
    with tarfile.open(tmp_path / "link.tar", "w") as tar:
        tar.add(tree / "link", "link")
    with pytest.raises(FileRefused, match=r"link in .* is a link") as caught:
        added(tmp_path / "link.tar")
    assert "--dereference" in caught.value.hint
    (tmp_path / "text").write_text("no archive")
    for path, why in (
        (tmp_path / "text", "not a tar"),
        (tmp_path / "none", "No such file"),
        (tree, "regular"),
    ):
        with pytest.raises(FileRefused, match=why):
            added(path)
    with tarfile.open(tmp_path / "bomb.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("zeros")
        member.size = BUNDLE_MAX + 1
        with open("/dev/zero", "rb") as zeros:
            tar.addfile(member, zeros)
    with pytest.raises(FileRefused, match="at most"):
        added(tmp_path / "bomb.tar.gz")
