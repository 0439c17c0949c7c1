"""Which shell a terminal has, and that its look-up leaves no trace."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from svc_helper.shim import consoles

INTERPRETERS = (["dash"], ["bash", "--posix"], ["busybox", "sh"])  # what images have as their /bin/sh


def run_shell(
    directory: Path, login_shell: str | None, *programs: str, by: list[str] = INTERPRETERS[0]
) -> tuple[str, dict[str, str]]:
    """Run the look-up with only these programs to be found: the one that it becomes, and its variables."""
    binaries = directory / "bin"
    binaries.mkdir(exist_ok=True)
    for name in ("sh", *programs):
        program = binaries / name
        program.write_text('#!/bin/sh\necho "$0" "$#"\nexec /usr/bin/env\n')
        program.chmod(0o755)
    passwd = directory / "passwd"
    rows = ["other:x:4:4::/:/bin/wrong", *([] if login_shell is None else [f"me:x:1234:1::/h:{login_shell}"])]
    passwd.write_text("\n".join(rows) + "\n")
    return become(directory, passwd, by)


def become(directory: Path, passwd: Path, by: list[str]) -> tuple[str, dict[str, str]]:
    """Run the look-up with this file of accounts, by this interpreter."""
    binaries = directory / "bin"
    script = consoles._SHELL.replace("/etc/passwd", str(passwd))
    own = {"PATH": str(binaries), "name": "kept", "uid": "kept too", "shell": "mine", "home": "1"}
    done = subprocess.run(
        [shutil.which(by[0]) or "", *by[1:], "-c", script, "sh", "1234"],
        env=own,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stderr == ""
    first, *lines = done.stdout.splitlines()
    found = dict(line.split("=", 1) for line in lines)
    of_sh = ("PWD", "OLDPWD", "_", "SHLVL")
    assert {key: value for key, value in found.items() if key not in of_sh} == own
    program, count = first.rsplit(" ", 1)
    assert count == "0"
    return Path(program).name, found


@pytest.mark.parametrize(
    ("login_shell", "programs", "becomes"),
    [
        ("/bin/zsh", ["zsh", "bash"], "zsh"),
        ("/bin/bash", ["bash"], "bash"),
        ("/bin/sh", ["bash"], "bash"),
        ("/bin/ash", [], "sh"),
        ("/usr/sbin/nologin", ["nologin", "bash"], "bash"),
        ("/bin/false", [], "sh"),
        ("/bin/gone", ["bash"], "bash"),
        ("", ["bash"], "bash"),
        (None, [], "sh"),
        (None, ["bash"], "bash"),
        ("/x y; touch z", ["bash"], "bash"),
    ],
)
def test_the_shell(tmp_path: Path, login_shell: str | None, programs: list[str], becomes: str) -> None:
    login = login_shell.replace("/bin/zsh", str(tmp_path / "bin/zsh")) if login_shell else login_shell
    if login_shell == "/bin/bash":
        login = str(tmp_path / "bin/bash")
    assert run_shell(tmp_path, login, *programs)[0] == becomes


@pytest.mark.parametrize("by", INTERPRETERS, ids=" ".join)
def test_every_shell_finds_it(tmp_path: Path, by: list[str]) -> None:
    assert run_shell(tmp_path, str(tmp_path / "bin/zsh"), "zsh", "bash", by=by)[0] == "zsh"
    assert run_shell(tmp_path, "/bin/sh", by=by)[0] == "bash"
    assert become(tmp_path, tmp_path / "gone", by)[0] == "bash", "there is no file of accounts"


def test_term_is_the_workspaces_own_unless_it_is_podmans() -> None:
    assert consoles._with_term(["A=1", "TERM=xterm"]) == ["A=1", "TERM=xterm-256color"]
    assert consoles._with_term(["A=1"]) == ["A=1", "TERM=xterm-256color"]
    assert consoles._with_term(["TERM=vt100", "A=1"]) == ["TERM=vt100", "A=1"]
    assert consoles._with_term(["TERM=dumb"]) == ["TERM=xterm-256color"]


@pytest.mark.parametrize(
    ("env", "added"),
    [
        (["PATH=/bin"], ["LC_CTYPE=C.UTF-8"]),
        (["LANG="], ["LC_CTYPE=C.UTF-8"]),
        (["LANGUAGE=de"], ["LC_CTYPE=C.UTF-8"]),
        (["LANG=de_DE.UTF-8"], []),
        (["LC_ALL=C"], []),
        (["PATH=/bin", "LC_CTYPE=en_US.ISO-8859-1"], []),
    ],
)
def test_characters_are_utf_8_unless_a_locale_is_set(env: list[str], added: list[str]) -> None:
    assert consoles._with_locale(env) == [*env, *added]
