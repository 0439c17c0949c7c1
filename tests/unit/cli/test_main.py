"""The program itself: its help, its exit codes, what it loads, and that it stays on this host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_service import Service, Svc

from svc import version
from svc.__main__ import COMMANDS, main

ROOT = Path(__file__).parents[3]
HEAVY = {
    "argparse",
    "re",
    "json",
    "typing",
    "enum",
    "dataclasses",
    "socket",
    "http.client",
    "requests",
    "flask",
    "peewee",
}
HEAVY |= {"subprocess", "datetime", "collections", "asyncio", "logging", "marshmallow", "importlib.metadata"}
WRITE_DOWN = "import sys; from svc.__main__ import main; code = main(sys.argv[1:]); " \
    "print(*sys.modules, file=sys.stderr); raise SystemExit(code)"  # fmt: skip


def test_version_is_a_commit_alone(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "commit", lambda: "0" * 40)
    assert svc("--version") == (0, "0" * 40 + "\n", "")


@pytest.mark.parametrize("flag", ["--help", "-h", "help"])
def test_help_names_every_command(svc: Svc, flag: str) -> None:
    done = svc(flag)
    assert (done.code, done.err) == (0, "")
    assert all(f"  {name} " in done.out for name in COMMANDS)


def test_no_command_is_wrong_usage(svc: Svc) -> None:
    done = svc()
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: svc")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bogus", "no such command: svc bogus\nhint: svc --help"),
        ("--bogus", "options are written after the command: --bogus\nhint: svc --help"),
        ("-x ws list", "options are written after the command: -x\nhint: svc --help"),
        ("--json ws list", "options are written after the command: --json\nhint: svc ws list --json"),
        ("--", "a command is written before --\nhint: svc --help"),
        ("-- ws list", "a command is written before --\nhint: svc --help"),
        ("help --", "a command is written before --\nhint: svc --help"),
        ("-V", "no such option: -V; did you mean --version?\nhint: svc --version"),
        ("--verzion", "no such option: --verzion; did you mean --version?\nhint: svc --version"),
        ("--db", "options are written after the command: --db\nhint: svc --help"),
        ("--db x.db", "options are written after the command: --db\nhint: svc --help"),
        ("--db x.db ws list", "options are written after the command: --db\nhint: svc --help"),
        ("--version ws", "--version stands alone\nhint: svc --version"),
        ("whoamI", "no such command: svc whoamI; did you mean `svc whoami`?\nhint: svc whoami --help"),
        ("wss list", "no such command: svc wss; did you mean `svc ws`?\nhint: svc ws --help"),
        ("logs demo", "no such command: svc logs; did you mean `svc ws logs`?\nhint: svc ws logs --help"),
        (
            "ws strat a",
            "no such command: svc ws strat; did you mean `svc ws start`?\nhint: svc ws start --help",
        ),
        ("ws port ad", "no such command: svc ws port ad; did you mean `svc ws port add`?\n"),
        ("ws zzz", "no such command: svc ws zzz\nhint: svc ws --help"),
        ("help wss", "no such command: svc wss; did you mean `svc ws`?"),
        (
            "ws logs demo --tial 5",
            "unknown arguments: --tial 5; did you mean --tail?\nhint: svc ws logs --help",
        ),
    ],
)
def test_what_is_no_command_is_wrong_usage(svc: Svc, line: str, said: str) -> None:
    done = svc(*line.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"svc: {said}")


@pytest.mark.parametrize(
    ("option", "line", "moved"),
    [
        ("--db", "--db x.db admin doctor --json", "svc admin --db x.db doctor --json"),
        ("--db=x.db", "--db=x.db admin doctor", "svc admin --db=x.db doctor"),
        ("--db", "--db x.db server --dev", "svc server --db x.db --dev"),
    ],
)
def test_a_database_is_named_after_the_group(svc: Svc, option: str, line: str, moved: str) -> None:
    done = svc(*line.split())
    sudo = "sudo " if os.geteuid() == 0 else ""
    assert (done.code, done.out) == (2, "")
    assert done.err == f"svc: options are written after the command: {option}\nhint: {sudo}{moved}\n"


@pytest.mark.parametrize("line", ["help {}", "--help {}", "{} --help"])
@pytest.mark.parametrize("command", ["ws", "ws start", "ws ls", "ws exec", "admin template import"])
def test_help_of_a_command(svc: Svc, line: str, command: str) -> None:
    done = svc(*line.format(command).split())
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"usage: svc {command.replace('ls', 'list')} ")


@pytest.mark.parametrize(
    "line",
    [
        "--server http://x ws list",
        "--server=http://x ws list",
        "http://x ws list",
        "ws list --url http://x",
        "ws --server http://x list",
        "ws list --token svc_pat_x",
        "ws list --password=x",
        "whoami --session-file x",
        "image list --insecure",
        "template get https://x/python",
        "api GET http://x/api",
        "env --server x",
    ],
)
def test_another_host_is_wrong_usage_in_clear_words(service: Service, svc: Svc, line: str) -> None:
    """ "No password, login step, session file or token is used by these commands"."""
    done = svc(*line.split())
    assert done.code == 2
    assert "this host only" in done.err
    assert "personal access token" in done.err
    assert service.sent == []


def test_nobody_answers(svc: Svc) -> None:
    done = svc("whoami")
    assert (done.code, done.out) == (1, "")
    assert "cannot connect to the service" in done.err
    assert "hint: " in done.err


@pytest.mark.parametrize(
    "line", ["whoami", "ws list", "ws delete demo --yes", "fs rm work/a --yes", "api GET /api/x"]
)
def test_nobody_answers_as_json(svc: Svc, line: str) -> None:
    """As every other error: the object on standard output, the sentence on standard error."""
    done = svc(*line.split(), "--json")
    error = json.loads(done.out)["error"]
    assert (done.code, error["code"], error["retryable"]) == (1, "unreachable", True)
    assert done.err.startswith(f"svc: {error['message']}\n")


@pytest.mark.parametrize(
    "line",
    [
        "fs upload https://host/x work/",
        "template import https://host/x.tar",
        "template create --file https://host/x",
        "template context demo --set a --file http://host/a",
        "template context demo --replace http://host/a.tar",
        "ws edit demo --file https://host/patch.json",
        "image build demo --secret id=a,src=https://host/x",
        "api POST /api/x --body @https://host/x",
    ],
)
def test_an_address_is_no_local_file(service: Service, svc: Svc, line: str) -> None:
    """ "a remote server URL is a usage error"."""
    done = svc(*line.split())
    assert (done.code, service.sent) == (2, [])
    assert "is an address, not a local file\nhint: curl --fail " in done.err


def test_a_file_may_be_called_like_an_address(
    service: Service, svc: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "http:").mkdir()
    (tmp_path / "http:" / "x").write_text("{}")
    service.answer("PATCH /api/workspaces/demo", {"name": "demo"})
    assert svc("ws", "edit", "demo", "--file", "http://x").code == 0


def test_ctrl_c_is_130(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    from svc.cli import whoami

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(whoami, "ask", interrupt)
    assert svc("whoami") == (130, "", "")


def run(*argv: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """The program as its own process, without site: as the installed launcher starts it."""
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.append({str(ROOT)!r}); {WRITE_DOWN}",
        *argv,
    ]
    environ = {name: os.environ[name] for name in ("SVC_SOCKET", "PATH")}
    environ["SVC_PUBLIC_HOSTS"] = (
        "svc.example,192.0.2.7,2001:db8::7"  # read by every command, as all settings
    )
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environ, timeout=30)


@pytest.mark.allow_commands(os.path.basename(sys.executable))
@pytest.mark.parametrize(
    "line",
    ["--version", "--help", "whoami", "ws list", "ws list --json", "ws start demo", "token list", "env",
     "env --all", "fs roots", "fs ls work", "fs read work/a", "__complete workspace d",
     "fs download work/a -", "__complete path work/"],
)  # fmt: skip
def test_quick_commands_load_nothing_heavy(service: Service, line: str) -> None:
    service.answer("GET /api/users/me", {"name": "alice"})
    service.answer("GET /api/workspaces?limit=200", {"items": [{"id": "ws-1"}]})
    service.answer("POST /api/workspaces/demo/start", {"id": "ws-1"})
    service.answer("GET /api/tokens?limit=200", {"items": [{"id": "tok-1"}]})
    service.answer("GET /api/fs/roots", {"items": [{"id": "work"}]})
    service.answer("GET /api/fs/work/list?limit=1000&path=", {"items": [{"name": "a"}]})
    service.answer("GET /api/fs/work/read?path=a", {"content": "YQo=", "size": 2})
    service.raw("GET /api/fs/work/download?path=a", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na\n")
    done = run(*line.split())
    assert done.returncode == 0
    assert not HEAVY & set(done.stderr.split())


@pytest.mark.allow_commands(os.path.basename(sys.executable))
def test_quick_exec_loads_nothing_heavy(service: Service) -> None:
    service.answer("POST /api/workspaces/demo/exec", {"exit_code": 0, "stdout": "YQo=", "stderr": ""})
    done = run("ws", "exec", "demo", "--timeout", "5", "--", "id")
    assert (done.returncode, done.stdout) == (0, "a\n")
    assert not HEAVY & set(done.stderr.split())


@pytest.mark.allow_commands(os.path.basename(sys.executable))
@pytest.mark.parametrize(
    "line", ["admin --help", "help admin", "admin", "admin db-paht", "admin db-path --no"]
)
def test_only_the_command_that_is_named_is_loaded(service: Service, line: str) -> None:
    loaded = {name for name in run(*line.split()).stderr.split() if name.startswith("svc.admin.")}
    own = {"svc.admin.command", "svc.admin.db_path"} if "db-path" in line else set()
    assert loaded == {"svc.admin.admin"} | own


@pytest.mark.allow_commands(os.path.basename(sys.executable))
def test_a_closed_pipe_is_quiet(service: Service) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    service.answer("GET /api/workspaces?limit=200", {"items": [{"id": "ws-1"}]})
    try:
        done = run("ws", "list", stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert "Error" not in done.stderr


@pytest.mark.allow_commands(os.path.basename(sys.executable))
def test_a_full_disk_is_told(service: Service) -> None:
    service.answer("GET /api/workspaces?limit=200", {"items": [{"id": "ws-1"}]})
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = run("ws", "list", stdout=full)
    finally:
        os.close(full)
    assert done.returncode == 1
    assert done.stderr.startswith("svc: No space left on device\n")


@pytest.mark.allow_commands(os.path.basename(sys.executable))
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_change_that_cannot_be_printed_is_not_denied(service: Service, more: list[str]) -> None:
    service.answer("POST /api/workspaces/w/start", {"id": "ws-1", "name": "w", "status": "running"})
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = run("ws", "start", "w", *more, stdout=full)
    finally:
        os.close(full)
    assert done.returncode == 1
    said = "svc: No space left on device; the service has done what was asked"
    assert done.stderr.splitlines()[0] == said


@pytest.mark.allow_commands("sh")
@pytest.mark.parametrize(
    ("closed", "code", "said"),
    [
        ("2>&-", 0, ""),
        ("<&-", 0, ""),
        (">&-", 1, "svc: standard output is closed\n"),
        ("<&- >&- 2>&-", 1, ""),
    ],
)
def test_closed_streams_matter_only_where_something_is_lost(
    service: Service, closed: str, code: int, said: str
) -> None:
    service.answer("GET /api/workspaces?limit=200", {"items": [{"id": "ws-1"}]})
    program = f"import sys; sys.path.append({str(ROOT)!r}); from svc.__main__ import start; start()"
    command = ["sh", "-c", f'exec "$0" -I -S -c "$1" ws list {closed}', sys.executable, program]
    environ = {name: os.environ[name] for name in ("SVC_SOCKET", "PATH")}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=30)
    assert (done.returncode, done.stderr) == (code, said)
    assert service.sent == ["GET /api/workspaces?limit=200"]


@pytest.mark.allow_commands(os.path.basename(sys.executable))
@pytest.mark.parametrize("before", ["", "import threading; threading.Thread(target=later).start(); "])
def test_the_process_ends_with_its_output_and_its_threads(service: Service, before: str) -> None:
    """Its memory is the kernel's to free; what a thread still has to say is said."""
    rows = [{"id": f"ws-{number}", "name": "long" * 16} for number in range(2000)]
    service.answer("GET /api/workspaces?limit=200", {"items": rows})
    program = f"""
import sys; sys.path.append({str(ROOT)!r})
def later():
    import time; time.sleep(0.2); print("later", file=sys.stderr)
{before}from svc.__main__ import start
start()
"""
    environ = {name: os.environ[name] for name in ("SVC_SOCKET", "PATH")}
    command = [sys.executable, "-I", "-S", "-c", program, "ws", "list"]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=30)
    assert (done.returncode, done.stderr) == (0, "later\n" if before else "")
    assert len(done.stdout.splitlines()) == 2000


@pytest.mark.allow_commands(os.path.basename(sys.executable))
def test_a_locale_without_the_character_is_no_reason_to_fail(service: Service) -> None:
    service.answer("GET /api/users/me", {"name": "Zoë 図"})
    program = (
        f"import sys; sys.path.append({str(ROOT)!r}); sys.stdout.reconfigure(encoding='ascii'); {WRITE_DOWN}"
    )
    command = [sys.executable, "-I", "-S", "-c", program, "whoami"]
    environ = {name: os.environ[name] for name in ("SVC_SOCKET", "PATH")}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=30)
    assert done.returncode == 0
    assert done.stdout.startswith("name\tZo\\xeb \\u56f3\n")


def test_main_takes_the_process_s_own_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["svc", "env", "--all", "--json"])
    assert main() == 0
    assert json.loads(capsys.readouterr().out)["items"]


def test_a_server_with_an_empty_path_does_not_take_the_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["server", "--db", ""]) == 2
    assert "--db: the path is empty" in capsys.readouterr().err
