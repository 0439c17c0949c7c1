"""`.dockerignore`: what the examples of Docker's own documentation and sources leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.cli.template.ignore_rules import IgnoreRules
from svc.errors import FileRefused


@pytest.mark.parametrize(
    ("text", "left_out", "kept"),
    [
        ("", (), ("a", ".git/HEAD")),
        ("# comment\n\n  \n#a", (), ("a", "# comment")),
        ("*/temp*", ("somedir/temporary.txt", "somedir/temp"), ("temp", "a/b/temp")),
        ("*/*/temp*", ("a/b/temporary.txt",), ("a/temp", "a/b/c/temp")),
        ("temp?", ("tempa", "tempb/x"), ("temp", "tempab", "a/tempa")),
        ("**/*.go", ("a.go", "a/b.go", "a/b/c.go"), ("a.gox", "ago")),
        ("*.md\n!README.md", ("x.md",), ("README.md", "docs/x.md")),
        ("*.md\n!README*.md\nREADME-secret.md", ("a.md", "README-secret.md"), ("README.md", "README-x.md")),
        ("*.md\nREADME-secret.md\n!README*.md", ("a.md",), ("README-secret.md", "README.md")),
        ("/foo/bar\nfoo2/", ("foo/bar", "foo/bar/x", "foo2", "foo2/y"), ("a/foo/bar", "foo")),
        ("./a/../b", ("b", "b/c"), ("a", "a/b")),
        ("docs\n!docs/keep", ("docs", "docs/x", "docs/keep2"), ("docs/keep", "docs/keep/x")),
        ("**", ("a", "a/b"), ()),
        ("a/**", ("a/b", "a/b/c"), ("a", "b/a")),
        ("a/**/b", ("a/b", "a/x/b", "a/x/y/b"), ("a/xb", "b")),
        ("**/node_modules", ("node_modules", "a/node_modules/x"), ("node_modules2",)),
        ("[a-c].txt", ("a.txt", "c.txt"), ("d.txt", "ab.txt")),
        ("[^a].txt", ("b.txt",), ("a.txt",)),
        (r"a\*b", ("a*b",), ("axb",)),
        ("a.b+(c)|d$", ("a.b+(c)|d$",), ("aXb+(c)|d$", "a.b")),
        ("  spaced  \r\nnext\r\n", ("spaced", "next"), ("  spaced  ",)),
        ("! x", (), ("x",)),
        ("*\n!src\nsrc/secret", ("a", "src/secret", "src/secret/x"), ("src", "src/main.py")),
    ],
)
def test_patterns(text: str, left_out: tuple[str, ...], kept: tuple[str, ...]) -> None:
    rules = IgnoreRules(text)
    assert [path for path in left_out if not rules.leave_out(path)] == []
    assert [path for path in kept if rules.leave_out(path)] == []


@pytest.mark.parametrize(("text", "line"), [("a\n[a", 2), ("!", 1), ("\n\n! ", 3)])
def test_a_line_that_is_no_pattern_is_named(text: str, line: int) -> None:
    with pytest.raises(FileRefused, match=f"line {line}:"):
        IgnoreRules(text)


def test_the_file_of_a_directory(tmp_path: Path) -> None:
    """Podman's own name comes first."""
    assert not IgnoreRules.of(str(tmp_path)).leave_out("a")
    (tmp_path / ".dockerignore").write_bytes(b"\xef\xbb\xbfa\nb\xff\n")
    rules = IgnoreRules.of(str(tmp_path))
    assert rules.leave_out("a") and rules.leave_out("b\udcff") and not rules.leave_out("b")
    assert rules.command(["x y"], "why") == f"printf '\\n%s\\n' 'x y' >> {tmp_path}/.dockerignore  # why"
    (tmp_path / ".containerignore").write_text("c")
    assert not IgnoreRules.of(str(tmp_path)).leave_out("a")
    (tmp_path / ".containerignore").unlink()
    (tmp_path / ".dockerignore").unlink()
    (tmp_path / ".dockerignore").mkdir()
    with pytest.raises(FileRefused, match="cannot read"):
        IgnoreRules.of(str(tmp_path))
