"""The skill for coding agents: installed by an ordinary user, and true in each of its commands."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.installation import IMAGE, SVC, Call, Outcome, Service, command, run
from e2e.pages import Block, blocks, play
from e2e.surroundings import make_accounts, must, new_template

USER, PASSWORD = "tse-pia", "a kettle on the third step"
LAUNCHER = {"name": "web", "command": ["sh", "-c", "echo listening; exec sleep 4720"]}
# In a mount namespace of its own, with a small or read-only file system as ~/.claude.
MOUNTED = (
    'mount -t tmpfs -o "$MOUNT" none "$HOME/.claude" && exec setpriv --reuid "$USER" --regid "$USER" '
    '--init-groups "$0" "$@"'
)


@pytest.fixture(scope="module")
def home(service: Service, registry: str) -> Path:
    """The home of a user with an account, the template `python`, and what the examples name."""
    make_accounts(service.env, {USER: PASSWORD})
    source = {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}
    new_template(USER, service.env, "python", source, launchers=[LAUNCHER])
    account = pwd.getpwnam(USER)
    home = Path(account.pw_dir)
    (home / "project").mkdir()
    (home / "project/Dockerfile").write_text(f"FROM {registry}/{IMAGE}\nRUN echo built >/built\n")
    (home / "data.csv").write_text("a,b\n1,2\n")
    shutil.copyfile(Path(service.env["SVC_DB"]).parent / "tls/cert.pem", home / "svc.pem")
    for path in (home / "project", *home.glob("project/*"), home / "data.csv", home / "svc.pem"):
        os.chown(path, account.pw_uid, account.pw_gid)
    return home


@pytest.fixture(scope="module")
def pia(service: Service, home: Path) -> Call:
    """pia(*argv) -> Outcome."""
    return lambda *argv, **more: run(USER, *argv, env=service.env, **more)


@pytest.fixture(scope="module")
def skill(pia: Call, home: Path) -> Path:
    """The installed skill's directory."""
    must(pia("skill", "install", "--path", "skills"))
    return home / "skills/svc"


# --- its commands ---------------------------------------------------------------------------


def shape(skill: Path, name: str) -> set[str]:
    """The keys of an object as references/json.md has them."""
    section = re.search(
        rf"^## {name}\n(.*?)(?=^## |\Z)", (skill / "references/json.md").read_text(), re.M | re.S
    )
    assert section, name
    return set(re.findall(r"^- `(\w+)`", section[1], re.MULTILINE))


def printed_by(skill: Path) -> dict[str, str]:
    """Command -> the name of what it prints with --json."""
    rows = re.findall(
        r"^\| `(svc [a-z ]+)` \| `(\w+)`", (skill / "references/json.md").read_text(), re.MULTILINE
    )
    assert len(rows) > 40
    return dict(rows)


def objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects among what was printed, each on a line."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def named(script: str, known: dict[str, str]) -> list[str]:
    """What each line with --json prints, in order."""
    lines = [line for line in script.splitlines() if line.startswith("svc ") and "--json" in line]
    return [known[max((name for name in known if line.startswith(f"{name} ")), key=len)] for line in lines]


def test_each_command_of_the_ten_tasks_is_true(skill: Path, home: Path, service: Service) -> None:
    """As an ordinary user without a terminal; what --json prints has the keys that the skill names."""
    at = f"localhost:{service.env['SVC_PORT']}"
    tasks = [block for block in blocks(skill / "SKILL.md") if block.kind == "sh"]
    assert len({block.heading for block in tasks}) == 10
    seen = {block: run_block(block, at, service) for block in tasks}
    known = printed_by(skill)
    for block, outcome in seen.items():
        expected = named(block.text, known)
        if "curl" in block.text and "token" in block.text:  # the answer of the call from elsewhere
            expected.append("WorkspacePage")
        assert [set(found) for found in objects(outcome.out)] == [shape(skill, name) for name in expected], (
            block
        )
    said = "".join(outcome.out + outcome.err for outcome in seen.values())
    assert "exit code 7" in said
    assert "started\nfinished\n" in said
    assert "hello\n" in said
    assert "listening" in said
    secret = (home / "ci-token").read_text().strip()
    assert secret.startswith("svc_pat_") and secret not in said


def run_block(block: Block, at: str, service: Service) -> Outcome:
    """The outcome of a block, which has to succeed, without a question."""
    outcome = play(USER, block.text.replace("HOST:24680", at), service.env)
    assert outcome.code == 0, f"{block.heading}\n{block.text}\n{outcome.out}{outcome.err}"
    return outcome


def test_without_yes_nothing_is_deleted(pia: Call, home: Path, service: Service) -> None:
    """ "aborting a confirmation exits with code 1": as the skill says."""
    (home / "work").mkdir(exist_ok=True)
    play(USER, "echo x >work/keep", service.env)
    said = pia("fs", "rm", "work/keep")
    assert (said.code, said.err.endswith("--yes\n")) == (1, True)
    assert (home / "work/keep").exists()


def test_an_account_that_is_none_is_exit_code_3(svc: Call) -> None:
    said = svc("tse-carol", "whoami", "--json")
    assert (said.code, "hint: sudo svc admin create-user tse-carol" in said.err) == (3, True)


# --- its installation -------------------------------------------------------------------------


@pytest.fixture
def mounted(home: Path, service: Service) -> Iterator[Callable[[str], Outcome]]:
    """mounted(options) -> the outcome of an installation onto a tmpfs with these mount options."""
    folder = home / ".claude"
    folder.mkdir()
    account = pwd.getpwnam(USER)

    def call(options: str) -> Outcome:
        env = service.env | {"HOME": str(home), "USER": USER, "MOUNT": f"uid={account.pw_uid},{options}"}
        argv = ["unshare", "--mount", "sh", "-c", MOUNTED, SVC, "skill", "install", "--agent", "claude"]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        return Outcome(done.returncode, done.stdout, done.stderr)

    yield call
    folder.rmdir()  # nothing was written below the mount


def test_on_a_full_and_on_a_read_only_file_system(mounted: Callable[[str], Outcome], home: Path) -> None:
    place = f"{home}/.claude/skills"
    said = mounted("size=16k")
    assert (said.code, said.out) == (1, "")
    assert said.err == (f"svc: cannot write {place}/svc: No space left on device\nhint: df -h {place}\n")
    said = mounted("ro")
    assert said.err == (
        f"svc: cannot write {place}: Read-only file system\nhint: svc skill install --path DIR\n"
    )
    assert mounted("size=1m").out == f"{place}/svc\t{USER}\tfalse\n"


def test_nothing_of_others_is_written_to(pia: Call, home: Path) -> None:
    """A foreign directory, a foreign link, a directory that everybody may write to."""
    other = Path(pwd.getpwnam("tse-bob").pw_dir)
    stranger = pwd.getpwnam("tse-bob").pw_uid
    said = pia("skill", "install", "--path", f"{other}/skills")
    assert (said.code, f"refusing to use {other}: it belongs to tse-bob, not to {USER}" in said.err) == (
        1,
        True,
    )
    (home / "led").symlink_to("/tmp")
    os.chown(home / "led", stranger, stranger, follow_symlinks=False)
    said = pia("skill", "install", "--path", "led/skills")
    assert f"refusing to use the link {home}/led: it belongs to tse-bob" in said.err
    (home / "led").unlink()
    said = pia("skill", "install", "--path", "/usr/local/lib/skills")
    assert "cannot write /usr/local/lib/skills: Permission denied" in said.err


def test_root_in_a_users_home_is_sent_to_that_user(service: Service, home: Path) -> None:
    said = command("root", str(SVC), "skill", "install", "--path", str(home), env=service.env)
    assert said.code == 1
    assert said.err == (
        f"svc: refusing to use {home}: it belongs to {USER}, not to root\n"
        f"hint: sudo -u {USER} svc skill install --help\n"
    )


def test_it_needs_no_server(home: Path, service: Service) -> None:
    """ "Local only, does not contact the server"."""
    env = service.env | {"SVC_SOCKET": "/run/svc-e2e/none.sock", "CODEX_HOME": f"{home}/codex"}
    printed = must(run(USER, "skill", "install", "--agent", "codex", "--json", env=env)).json()
    assert printed == {"path": f"{home}/codex/skills/svc", "user": USER, "replaced": False}
    files = [path for path in (home / "codex/skills/svc").rglob("*") if path.is_file()]
    assert len(files) == 4
    assert {path.owner() for path in files} == {USER}
