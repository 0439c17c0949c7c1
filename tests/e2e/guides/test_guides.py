"""docs/first-workspace.md and docs/automation.md: what they tell their readers to type is typed here."""

from __future__ import annotations

import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e import served, slurm
from e2e.fake_gpus import installed
from e2e.guides import far_browser
from e2e.installation import IMAGE, PREFIX, ROOT, Outcome, Service, command, run
from e2e.pages import Block, blocks, play
from e2e.registries import REPOSITORY, Shelf
from e2e.surroundings import make_accounts, must, new_template
from waiting import until

USER, PASSWORD = "tse-quin", "two swifts under one slate"
JUPYTER = b'#!/bin/sh\necho "jupyter $*"\nexec python3 /app/server.py\n'  # in its place: no image has it here
JOB = "echo 42 >/work/report.txt\necho counted\n"


@pytest.fixture(scope="module")
def home(service: Service, registry: str) -> Path:
    """The home of a user with an account and the template `python`."""
    make_accounts(service.env, {USER: PASSWORD})
    new_template(USER, service.env, "python", {"type": "registry", "image_ref": f"{registry}/{IMAGE}"})
    return Path(pwd.getpwnam(USER).pw_dir)


@pytest.fixture
def gpus(service: Service, home: Path) -> Iterator[None]:
    """The host has GPUs."""
    with installed(service, [USER]):
        yield


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """A file of the user's."""
    far_browser.write(USER, path, text, mode)


def succeeds(block: Block, text: str, env: dict[str, str]) -> Outcome:
    """The outcome of a block, which has to succeed."""
    outcome = play(USER, text, env)
    assert outcome.code == 0, f"{block.heading}\n{text}\n{outcome.out}{outcome.err}"
    return outcome


def page(name: str, kind: str = "") -> list[Block]:
    """The blocks of a page, of one language if it is named."""
    return [block for block in blocks(ROOT / "docs" / name) if kind in ("", block.kind)]


# --- docs/first-workspace.md ------------------------------------------------------------------


@pytest.mark.usefixtures("gpus")
def test_the_first_workspace(service: Service, home: Path, registry: str, shelf: Shelf) -> None:
    """Every command of the page, in its order, ssh too."""
    image = f"{registry}/{REPOSITORY}:{served.put(shelf, 'jupyter', {'bin/jupyter': JUPYTER})}"
    said: dict[str, str] = {}
    for block in page("first-workspace.md"):
        if block.kind == "json":
            write(home / "jupyter.json", block.text.replace("registry.example/jupyter:4", image))
        elif "ssh -N" in block.text:
            at = must(run(USER, "ws", "ports", "notes", env=service.env)).out.split("\t")[2]
            with far_browser.through_ssh(block.text, USER, at) as here:
                until(lambda: served.answers(here), 30, 0.1)
        else:
            outcome = succeeds(block, block.text, service.env)
            said[block.heading] = outcome.out + outcome.err
    assert "made inside" in said["Create, start, use"]
    assert (home / "sorted.csv").read_text() == "a,1\nb,2\n"
    assert (home / "everything.tar.gz").stat().st_size > 0
    assert "jupyter lab --ip=127.0.0.1 --port=8888" in said["Jupyter in ten minutes"]
    assert "exit code 1" in said["When something fails"]
    assert (home / "laptop-token").read_text().startswith("svc_pat_")
    assert (home / "laptop-token").stat().st_mode & 0o077 == 0
    assert must(run(USER, "ws", "list", env=service.env)).out == ""


# --- docs/automation.md -------------------------------------------------------------------------


@pytest.fixture
def lab(service: Service, home: Path) -> Iterator[str]:
    """A running workspace `lab`, and a job."""
    write(home / "job.sh", JOB)
    must(run(USER, "ws", "setup", "--template", "python", "--name", "lab", env=service.env))
    must(run(USER, "ws", "start", "lab", env=service.env))
    must(run(USER, "fs", "upload", "job.sh", "work/", env=service.env))
    yield "lab"
    must(run(USER, "ws", "delete", "lab", "--yes", env=service.env))


def script(heading: str, kind: str, number: int = 0) -> str:
    """A program of docs/automation.md."""
    return [block.text for block in page("automation.md", kind) if block.heading == heading][number]


def test_one_command(service: Service, home: Path) -> None:
    said = play(USER, script("One command", "bash"), service.env)
    assert (said.code, said.out) == (0, "a\nb\n"), said
    assert (home / "work/count.txt").read_text() == "counted\n"
    assert must(run(USER, "ws", "list", env=service.env)).out == ""


def test_the_nightly_job_in_bash_and_cron(service: Service, home: Path) -> None:
    """As cron starts it: sh, a bare environment, no terminal; silent when all is well."""
    write(home / "nightly.sh", script("Bash", "bash"), 0o755)
    write(home / "job.sh", JOB)
    path, line = script("cron", "cron").splitlines()
    settings = {name: value for name, value in service.env.items() if name.startswith("SVC_")}
    env = settings | {
        "PATH": f"{PREFIX}/bin:{path.removeprefix('PATH=')}",
        "SHELL": "/bin/sh",
        "LOGNAME": USER,
    }
    program = line.split(maxsplit=5)[5]
    said = command(USER, "/bin/sh", "-c", program, env=env)
    assert said == Outcome(0, "", ""), said
    assert (home / "report.txt").read_text() == "42\n"
    assert "counted" in (home / "nightly.log").read_text()
    write(home / "job.sh", "echo broken; exit 5\n")
    said = command(USER, "/bin/sh", "-c", program, env=env)
    assert said.out.startswith("nightly.sh: exit code 5\n")
    assert "broken\n" in said.out
    assert must(run(USER, "ws", "list", env=service.env)).out == ""


def test_the_line_of_the_crontab_by_cron_itself(service: Service, home: Path) -> None:
    """Debian's cron, which begins what is to run at its own start at once: nobody waits until 3:17."""
    if shutil.which("cron") is None:
        pytest.skip("Debian's cron is not installed")
    write(home / "nightly.sh", script("Bash", "bash"), 0o755)
    write(home / "job.sh", JOB)
    (home / "report.txt").unlink(missing_ok=True)
    path, line = script("cron", "cron").splitlines()
    own = [f'{name}="{value}"' for name, value in service.env.items() if name.startswith("SVC_")]
    own.append(path.replace("PATH=", f"PATH={PREFIX}/bin:"))
    table = "\n".join([*own, f"@reboot {line.split(maxsplit=5)[5]}", line, ""])
    subprocess.run(["crontab", "-u", USER, "-"], input=table, text=True, check=True)
    Path("/run/crond.reboot").unlink(missing_ok=True)
    cron = subprocess.Popen(["cron", "-f"], stdin=subprocess.DEVNULL)
    try:
        until(lambda: cron.poll() is not None or (home / "report.txt").exists(), 60, 0.2)
        if cron.returncode is not None:
            pytest.skip("a cron runs on this host already")
        until(lambda: not must(run(USER, "ws", "list", env=service.env)).out, 30, 0.2)
    finally:
        cron.terminate()
        cron.wait(10)
        subprocess.run(["crontab", "-u", USER, "-r"], check=True)
    assert (home / "report.txt").read_text() == "42\n"


def test_a_job_of_slurm(service: Service, home: Path) -> None:
    """Its exit code is the command's, and what is cancelled leaves nothing."""
    if why := slurm.missing():
        pytest.skip(why)
    write(home / "job.sbatch", script("Slurm", "bash"))
    write(home / "job.sh", "echo counted\nexit 7\n")
    must(run(USER, "fs", "upload", "job.sh", "work/", "--force", env=service.env))
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        slurm.cluster(Path(folder)) as settings,
    ):
        env = service.env | settings
        assert play(USER, script("Slurm", "sh"), env).code == 7
        assert (home / "slurm-1.out").read_text() == "counted\n"
        write(home / "work/job.sh", "echo begun\nsleep 600\n")
        number = must(play(USER, "sbatch --parsable job.sbatch", env)).out.strip()
        output = home / f"slurm-{number}.out"
        until(lambda: output.exists() and "begun" in output.read_text(), 60, 0.2)
        must(play(USER, f"scancel {number}", env))
        until(lambda: not must(run(USER, "ws", "list", env=service.env)).out, 30, 0.2)


def test_a_long_job_in_bash(service: Service, home: Path, lab: str) -> None:
    text = script("Bash", "bash", 1)
    assert play(USER, text, service.env).code == 0
    assert (home / "work/job.log").read_text() == "counted\n"
    write(home / "work/job.sh", "sleep 1; exit 7\n")
    assert play(USER, text, service.env).code == 7
    write(home / "work/job.sh", "sleep 60\n")
    stopping = f"(sleep 2; svc ws stop {lab} >/dev/null) & {text}"
    assert play(USER, stopping, service.env).code == 1


def test_the_python_program(service: Service, home: Path) -> None:
    """With a workspace and without."""
    write(home / "lab.py", script("Python", "python"), 0o755)
    for _ in range(2):
        said = play(USER, "./lab.py", service.env)
        assert said.code == 0, said
        lines = said.out.splitlines()
        assert lines[0] == "lab running"
        assert lines[1].startswith("0 PID")
    must(run(USER, "ws", "delete", "lab", "--yes", env=service.env))
    said = play(USER, """sed -i 's/python",/nothing",/' lab.py; ./lab.py""", service.env)
    assert said.code == 1
    assert "'code': 'not_found'" in said.err


def test_a_runner_elsewhere(service: Service, home: Path, lab: str) -> None:
    """The commands of the section, with this host by its name and the certificate that they fetch."""
    at = f"localhost:{service.env['SVC_PORT']}"
    heading = "A CI runner elsewhere"
    write(home / "ci.py", script(heading, "python").replace("HOST:24680", at), 0o755)
    said = [
        succeeds(block, block.text.replace("HOST:24680", at), service.env).out
        for block in page("automation.md", "sh")
        if block.heading == heading
    ]
    assert '"workspaces"' in said[1]
    assert said[2] == "tested\n"
    secret = (home / "ci-token").read_text().strip()
    assert secret.startswith("svc_pat_") and secret not in "".join(said)
    refused = play(USER, "./ci.py lab true", service.env)
    assert (refused.code, "unauthenticated" in refused.err) == (1, True)


def test_a_job_from_elsewhere(service: Service, home: Path) -> None:
    """Input up, run, result down, over HTTPS with a token that may do it."""
    write(home / "svc.pem", must(run(USER, "env", "--certificate", env=service.env)).out)
    at = f"localhost:{service.env['SVC_PORT']}"
    heading = "A job: input up, run, result down"
    write(home / "cijob.py", script(heading, "python").replace("HOST:24680", at), 0o755)
    first, second = [block for block in page("automation.md", "sh") if block.heading == heading]
    succeeds(first, first.text, service.env)
    steps = second.text.splitlines()
    assert succeeds(second, "\n".join(steps[:-1]), service.env).out == "copied\n"
    assert (home / "result.csv").read_text() == "1,2,3\n"
    failing = play(USER, "./cijob.py input.csv none.csv sh -c 'echo no; sleep 1; exit 6'", service.env)
    assert (failing.code, failing.out) == (6, "no\n")
    assert must(run(USER, "ws", "list", env=service.env)).out == ""
    succeeds(second, steps[-1], service.env)


def test_every_block_of_the_pages_is_run() -> None:
    """A new language or heading is not overlooked."""
    kinds = {(block.heading, block.kind) for block in page("automation.md")}
    assert kinds == {
        ("Bash", "bash"), ("cron", "cron"), ("Python", "python"),
        ("A CI runner elsewhere", "sh"), ("A CI runner elsewhere", "python"),
        ("A job: input up, run, result down", "sh"), ("A job: input up, run, result down", "python"),
        # test_user_guides.py
        ("Create one", "sh"), ("Use it elsewhere", "sh"), ("Use it elsewhere", "python"),
        ("With the scope `files`", "sh"), ("End it", "sh"),
        ("One command", "bash"), ("Slurm", "bash"), ("Slurm", "sh"),
    }  # fmt: skip
    assert {block.kind for block in page("first-workspace.md")} == {"sh", "json"}
