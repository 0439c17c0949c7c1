"""No text of the program tells anybody to change a file by its path where others can write.

Root pastes a remedy some time after it was printed. Whoever can write the directory puts a link
there meanwhile, and the pasted chown is one of any file. What such a remedy would do is done by a
command of ours, on descriptors (svc/admin/repair.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from conventions.inspection import ROOT, modules, tree

from svc.host import owner

PROGRAMS = "chown|chgrp|chmod|chattr|setfacl|rm|rmdir|unlink|shred|mv|ln|cp|dd|tee|truncate|touch|mkdir"
CHANGING = re.compile(
    r"(?<![\w./-])(?<!\bfs )"  # svc fs rm, svc fs mv: as the user, beneath a root
    rf"({PROGRAMS})\s+[^\s.,;)]|\bsudo (-u \S+ )?({PROGRAMS}|install)\b|(?<![\w-] )\binstall +-"
)
ALLOWED = {  # only root can write the directory, whatever the settings are
    ("svc/admin/checks/prerequisites.py", "sudo chmod 0666 /dev/{}"),
    ("svc/admin/checks/service.py", "printf '%s\\n' {} | sudo tee {}"),  # /etc/pam.d/svc
    (
        "svc/admin/checks/accounts.py",
        "printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | sudo install -D -m 0644 /dev/stdin"
        " /etc/systemd/system/user@.service.d/svc.conf && sudo systemctl daemon-reload",
    ),
    # the service's own account does it, in its own directory: the command begins with runuser -u svc
    ("svc/admin/checks/database.py", "sudo runuser -u {} -- rm {}"),
    ("svc/admin/restore/missing_files.py", "mv --backup=numbered {} {}; "),
    ("svc_helper/provision/accounts.py", "mv -T {} {}.former"),  # /run/user
    # the user itself does it, in its own home
    ("svc/admin/checks/accounts.py", "sudo -iu {} rm -f {}   (images and files stay)"),
    ("svc/admin/checks/accounts.py", "sudo rm -r {}"),  # in /dev/shm, by a fixed name; rm follows no link
    # no remedy: the user's own process runs it
    (
        "svc_helper/agent/podman/moved_layers.py",
        'set -e\nwhile [ $# -ge 2 ]; do\n    if [ -e "$1" ]; then rm -rf -- "$2"; mv -T -- "$1" "$2"; fi\n'
        "    shift 2\ndone",
    ),
    ("svc/admin/checks/stores.py", "sudo mv -T {} {}.former"),  # only root can write what it is in
    # its directory is root's by the check of state_dir, and rm follows no link
    ("svc/admin/checks/audit.py", "find out who wrote to {}; if its file was put back by hand: sudo rm {}"),
    # only root can change the way to it, by the check right before
    ("svc/admin/checks/tls.py", "sudo chmod o= {}   (then renew it: others may know it)"),
    # the user's own shell, about a file of the directory that the user has named
    ("svc/cli/template/trees.py", "in its directory: mv {} {}"),
    # only root can change the way to it, by the check right before
    ("svc/admin/backup/target.py", "sudo install -d -m 0700 {}   (or mount the disk that belongs there)"),
    # the user's own shell, about the file that its output went to
    (
        "svc/cli/token.py",
        "warning: other users can read the file that it was written to; protect it: chmod 600",
    ),
}


def texts(module: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text of a module but its docstrings, with its line; a place of an f-string is {}."""
    skipped = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node) if part is not node}
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def hints(module: ast.Module) -> Iterator[tuple[int, str]]:
    """The texts that a module gives as `hint`, with their lines; a call in one is a command of ours."""
    for node in ast.walk(module):
        is_hint = isinstance(node, ast.keyword) and node.arg == "hint"
        if is_hint and isinstance(node.value, ast.Constant | ast.JoinedStr):
            parts = getattr(node.value, "values", [node.value])
            yield node.value.lineno, "".join(map(_part, parts))


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    is_call = isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Call)
    return "sudo svc admin doctor" if is_call else "/a/path"


def test_hints_of_the_owners_process_are_printed() -> None:
    """run_as drops what is none of the harmless forms, since the database's owner is not trusted."""
    folders = [ROOT / "svc/db", ROOT / "svc/tls"]
    paths = [
        *(path for folder in folders for path in folder.glob("*.py")),
        ROOT / "svc/admin/people/account_rows.py",
    ]
    dropped = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in paths
        for line, text in hints(tree(path))
        if path.name not in ("accounts.py", "location.py")  # root's own process raises these
        and text != "sudo svc admin ..."  # to whoever is not root
        and not owner.HARMLESS.fullmatch(text)
    ]
    assert not dropped


def test_no_remedy_changes_a_file_by_its_path() -> None:
    found, used = [], set()
    for path in modules():
        name = str(path.relative_to(ROOT))
        for line, text in texts(tree(path)):
            if not CHANGING.search(text):
                continue
            if (name, text) in ALLOWED:
                used.add((name, text))
            else:
                found.append(f"{name}:{line}: {text}")
    assert not found
    assert used == ALLOWED, "not printed any more"


@pytest.mark.parametrize(
    "source",
    [
        'fail(code, found, f"sudo chown {owner} {path} && sudo chmod {mode} {path}")',
        'HostRefused("x", hint=f"rm {path}")',
        'hint = f"sudo rm -i {path}"',
        'hint = "move it: sudo mv " + path + " aside"',
        'hint = "sudo -u svc rm x"',
        'print(f"sudo install -m 0600 x {path}")',
        'hint = f"sudo chown -R svc:svc {path}"',
    ],
)
def test_such_a_remedy_is_found(source: str) -> None:
    assert any(CHANGING.search(text) for _, text in texts(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring about chown PATH."""',
        'argv = ["podman", "rm", "--force"]',
        'examples = "svc fs rm work/old.csv"',
        'hint = "sudo svc admin doctor --repair"',
        'hint = "sudo apt-get install --reinstall uidmap"',
    ],
)
def test_what_is_none_is_not(source: str) -> None:
    assert not any(CHANGING.search(text) for _, text in texts(ast.parse(source)))
