"""Lines as of podman, docker, kubectl, curl and git: the hint is the line that does that here."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_service import Service, Svc

NEW = "ws create --template a --name b"


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (f"{NEW} --gpus 1", f"{NEW} --gpu-count 1"), (f"{NEW} --gpus=1", f"{NEW} --gpu-count 1"),
        (f"{NEW} -p 8080:80", f"{NEW} --port port-80=80"),
        (f"{NEW} --port 8080:80", f"{NEW} --port port-80=80"),
        (f"{NEW} -v a:b", NEW), ("ws create hello", "ws create --template TEMPLATE --name hello"),
        ("ws create python hello --cpus 2", "ws create --template python --name hello --cpus 2"),
        ("ws setup hello", "ws setup --template TEMPLATE --name hello"),
        ("ws recommend python", "ws recommend --template python"),
        ("ws extend demo 12", "ws extend demo --hours 12"),
        ("template clone a b", "template clone a --name b"),
        ("template export a b.tar", "template export a --out b.tar"),
        ("ws shell first -- bash", "ws shell first --command bash"),
        ("ws shell first bash -l", "ws shell first --command 'bash -l'"),
        ("ws port add other web 8080", "ws port add other web --container-port 8080"),
        ("ws port add other web 8080:80", "ws port add other web --container-port 80"),
        ("ws port add other 8080:80", "ws port add other port-80 --container-port 80"),
        ("ws port add other 8080", "ws port add other port-8080 --container-port 8080"),
        ("ws port add other web=8080", "ws port add other web --container-port 8080"),
        ("ws port add other login=22/ssh@ada",
         "ws port add other login --container-port 22 --kind ssh --user ada"),
        ("fs ls /work", "fs ls work"), ("fs rm /work/x --yes", "fs rm work/x --yes"),
        ("fs mv /work/a /work/b/", "fs mv work/a work/b/"), ("fs read /home/demo/work/x", "fs read work/x"),
        ("fs ls /etc", "fs roots"), ("fs read notes.txt", "fs roots"),
        ("api /api/health", "api GET /api/health"), ("api -X GET /api/health", "api GET /api/health"),
        ("api -X PUT /api/x -d {}", "api PUT /api/x --body '{}'"),
        ("api /api/x -d {}", "api POST /api/x --body '{}'"),
        ("api POST /api/x -H a:b --data {}", "api POST /api/x --body '{}'"),
        ("ws exec -e A=1 -e B=2 x -- ls", "ws exec x -- env A=1 B=2 ls"),
        ("ws exec -w /work/a x -- ls -l", """ws exec x -- sh -c 'cd "$0" && exec "$@"' /work/a ls -l"""),
        ("ws exec -u root x -- ls -l", "ws exec x -- ls -l"), ("ws exec x ls -l", "ws exec x -- ls -l"),
        ("ws exec --timeout 5 x ls", "ws exec --timeout 5 x -- ls"),
        ("ws exec -d x -- sleep 5", "ws shell x --command 'sleep 5'"),
        ("ws run python -- ls", "ws run --template python -- ls"),
        ("ws run --rm python ls -l", "ws run --template python --rm -- ls -l"),
        ("ws run --rm --template python ls -l", "ws run --rm --template python -- ls -l"),
        ("ws run -v a:b --template x -- ls", "ws run --template x -- ls"),
        ("ws run -p 8080:80 --template x -- ls", "ws run --port port-80=80 --template x -- ls"),
        ("ws run -d --rm --template x --name y -- ls -l",
         "ws setup --template x --name y --command 'ls -l' && svc ws start y"),
        ("ws list --format json", "ws list --json"), ("ws list --format {{.Names}}", "ws list --json"),
        ("ws list -a", "ws list"), ("ws list --no-trunc", "ws list"),
        ("delete ws first", "ws delete first"), ("delete pod first", "ws delete first"),
        ("get pods", "ws list"),
        ("describe ws first", "ws get first"), ("rm first", "ws delete first"), ("rm work/x", "fs rm work/x"),
        ("rm -rf work/x", "fs rm -rf work/x"),
    ],
)  # fmt: skip
def test_the_line_that_was_meant(
    service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch, typed: str, hint: str
) -> None:
    monkeypatch.setenv("HOME", "/home/demo")
    done = svc(*typed.split())
    assert (done.code, done.out, service.sent) == (2, "", [])
    assert done.err.endswith(f"\nhint: svc {hint}\n")


@pytest.mark.parametrize("typed", ["ws list --watch", "ws list -w"])
def test_a_list_again_and_again(service: Service, svc: Svc, typed: str) -> None:
    assert svc(*typed.split()).err.endswith("\nhint: watch svc ws list\n")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (f"{NEW} --gpus 1", "; did you mean --gpu-count?"), ("rm first", "svc fs rm` removes a file"),
        ("ws exec -u root x -- ls", "; commands run as the user"),
        ("ws run -v a:b -- ls", "; mounts are of the"),
        ("ws list -a", "in every state"), ("ws create hello", "; `svc template list` has the templates"),
    ],
)  # fmt: skip
def test_what_does_that_here_is_said(service: Service, svc: Svc, typed: str, said: str) -> None:
    message, _ = svc(*typed.split()).err.split("\nhint: ")
    assert said in message


def test_a_file_whose_name_begins_with_a_dash(
    service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert svc("fs", "upload", "-dash", "work/").err.endswith("hint: svc fs upload --help\n")
    (tmp_path / "-dash").touch()
    assert svc("fs", "upload", "-dash", "work/").err.endswith("hint: svc fs upload ./-dash work/\n")


@pytest.mark.parametrize(
    "typed", ["ws list --all --live", "ws create", "ws extend demo x", "ws list --bogus"]
)
def test_where_nothing_is_known_the_help_is_named(service: Service, svc: Svc, typed: str) -> None:
    group, command = typed.split()[:2]
    assert svc(*typed.split()).err.endswith(f"\nhint: svc {group} {command} --help\n")


def test_commands_of_root_have_sudo(svc: Svc) -> None:
    done = svc("admin", "rollback", "keep", "before")
    assert done.err.endswith("\nhint: sudo svc admin rollback keep --why before\n")
