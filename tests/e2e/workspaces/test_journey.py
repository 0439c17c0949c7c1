"""One user's whole way: template, image, workspace, command, files, log, end."""

from __future__ import annotations

import base64
import json
import pwd
from pathlib import Path

from e2e.installation import IMAGE, Call
from e2e.surroundings import must
from waiting import until


def test_whoami_names_the_linux_account(alice: Call) -> None:
    me = alice("whoami", "--json").json()
    assert me["name"] == "tse-alice"
    assert me["uid"] == pwd.getpwnam("tse-alice").pw_uid
    assert me["via"] == "socket"
    assert me["superuser"] is False


def test_the_whole_way(alice: Call, registry: str, record) -> None:
    spec = {"name": "way", "source": {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}}
    assert alice("template", "create", "--file", "-", stdin=json.dumps(spec)).code == 0

    created = alice("ws", "create", "--template", "way", "--name", "lab", "--json")
    assert created.code == 0, created.err
    assert created.json()["status"] == "stopped"

    pulled = alice("image", "pull", "way", "--wait")
    assert pulled.code == 0, pulled.err
    assert alice("image", "status", "way", "--json").json()["status"] == "ready"

    started = alice("ws", "start", "lab", "--json")
    assert started.code == 0, started.err
    assert started.json()["status"] == "running"
    assert alice("ws", "start", "lab").code == 0  # "Start of a running one succeeds"

    inside = alice("ws", "exec", "lab", "--", "id", "-u")
    assert (inside.code, inside.out) == (0, "0\n")
    assert "workspace ready" in alice("ws", "logs", "lab").out
    assert "lab" in alice("ws", "list").out

    edited = alice("ws", "edit", "lab", "--file", "-", stdin='{"display_name": "The lab"}')
    assert edited.code == 1
    assert "stopped" in edited.err

    assert alice("ws", "stop", "lab", "--json").json()["status"] == "stopped"
    assert alice("ws", "stop", "lab").code == 0
    assert alice("ws", "exec", "lab", "--", "true").code == 1
    assert alice("ws", "edit", "lab", "--file", "-", stdin='{"display_name": "The lab"}').code == 0
    assert alice("ws", "rename", "lab", "--name", "lab2").code == 0
    assert record("lab2")["display_name"] == "The lab"
    assert alice("ws", "delete", "lab2", "--yes").code == 0
    assert alice("ws", "start", "lab2").code == 1


def test_a_start_never_pulls(alice: Call, registry: str) -> None:
    spec = {"name": "absent", "source": {"type": "registry", "image_ref": f"{registry}/tests/absent:1"}}
    assert alice("template", "create", "--file", "-", stdin=json.dumps(spec)).code == 0
    assert alice("ws", "create", "--template", "absent", "--name", "absent").code == 0
    started = alice("ws", "start", "absent")
    assert started.code == 1
    assert "svc image pull" in started.err
    failed = alice("image", "pull", "absent", "--wait")
    assert failed.code == 1
    assert alice("ws", "delete", "absent", "--yes").code == 0


def test_work_is_mounted_with_the_right_owner_on_both_sides(alice: Call, workspace: str) -> None:
    said = alice("ws", "exec", workspace, "--", "sh", "-c", "echo inside > /work/made; ls -ln /work/made")
    assert said.code == 0, said.err
    assert said.out.split()[2:4] == ["0", "0"]
    created = Path(pwd.getpwnam("tse-alice").pw_dir, "work", "made")
    assert created.read_text() == "inside\n"
    assert created.owner() == "tse-alice"


def test_what_is_written_inside_survives_a_stop(alice: Call, workspace: str) -> None:
    assert alice("ws", "exec", workspace, "--", "sh", "-c", "echo kept > /etc/kept").code == 0
    assert alice("ws", "stop", workspace).code == 0
    assert alice("ws", "start", workspace).code == 0
    assert alice("ws", "exec", workspace, "--", "cat", "/etc/kept").out == "kept\n"


def test_exec_keeps_the_streams_apart_and_tells_the_code(alice: Call, workspace: str) -> None:
    said = alice("ws", "exec", workspace, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (said.code, said.out) == (1, "out\n")
    assert "err" in said.err
    assert "7" in said.err
    assert alice("ws", "exec", "--exit-status", workspace, "--", "sh", "-c", "exit 7").code == 7


def test_exec_output_is_cut_at_its_limit(alice: Call, workspace: str) -> None:
    said = alice("ws", "exec", workspace, "--json", "--", "sh", "-c", "yes | head -c 1000000")
    assert said.code == 0, said.err
    answer = said.json()
    assert answer["truncated"] is True
    assert len(base64.b64decode(answer["stdout"])) + len(base64.b64decode(answer["stderr"])) == 256 * 1024


def test_nothing_runs_on_after_a_timeout(alice: Call, workspace: str) -> None:
    script = "(setsid sleep 4711 &) ; sleep 4711"
    said = alice("ws", "exec", workspace, "--timeout", "1", "--", "sh", "-c", script)
    assert said.code == 1
    assert "1 s" in said.err or "time" in said.err

    def left() -> str:
        return alice("ws", "exec", workspace, "--", "sh", "-c", "ps | grep 4711 | grep -v grep; true").out

    until(lambda: not left(), 30)


def test_rows_are_tab_separated_in_a_pipe(alice: Call, workspace: str) -> None:
    rows = [line.split("\t") for line in alice("ws", "list").out.splitlines()]
    assert any(workspace in row for row in rows)
    assert len({len(row) for row in rows}) == 1


def test_exec_takes_what_the_kernel_takes(alice: Call, workspace: str) -> None:
    """ "Runs one non-interactive command": also one with the names of 4,000 files."""
    names = [f"file-{number:05}.txt" for number in range(4000)]
    said = must(alice("ws", "exec", workspace, "--", "sh", "-c", "echo $# $1", "sh", *names))
    assert (said.out, said.err) == ("4000 file-00000.txt\n", "")
    assert len(must(alice("ws", "exec", workspace, "--", "echo", "x" * 131_071)).out) == 131_072
    body = json.dumps({"command": ["true", *["y" * 100_000] * 20, "z" * 96_930]})
    said = alice("api", "POST", f"/api/workspaces/{workspace}/exec", "--body", "@-", stdin=body)
    answer = must(said).json()  # with the workspace's variables more than the kernel takes
    assert (answer["exit_code"], base64.b64decode(answer["stderr"])) == (
        126,
        b"true: Argument list too long\n",
    )
    body = json.dumps({"command": ["true", "y" * 131_072]})
    said = alice("api", "POST", f"/api/workspaces/{workspace}/exec", "--body", "@-", stdin=body)
    assert said.err == (
        "svc: command item 2: A word of 131072 bytes; Linux passes at most 131071 in one:"
        " upload it as a file below /work\n"
    )
    said = alice("ws", "exec", workspace, "--", "cat", "caf\udce9.txt")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(
        "svc: word 2 of the command is not UTF-8, which Podman cannot pass: caf\\xe9.txt"
    )


def test_exec_says_that_standard_input_is_not_passed_on(alice: Call, workspace: str) -> None:
    said = must(alice("ws", "exec", workspace, "--", "wc", "-c", stdin="data"))
    assert said.out == "0\n"
    assert said.err.startswith("svc: standard input is not passed on: the command's own is empty\nhint: ")
    assert must(alice("ws", "exec", workspace, "--", "wc", "-c")).err == ""
