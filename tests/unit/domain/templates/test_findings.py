"""What a review is told: by the machine, before a person looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured
from unit.domain.templates.enabling import enable
from unit.serving import make_workspace

from svc.domain.gpus import hardware
from svc.domain.principal import Caller
from svc.domain.templates import (
    dockerfiles,
    templates,
)
from svc.domain.templates import (
    findings as template_findings,
)
from svc.domain.templates import (
    rows as template_rows,
)
from svc.domain.templates.findings import Content
from svc.domain.templates.rows import EMPTY_SPEC, Source
from svc.limits import FINDINGS_MAX, LAUNCHERS_MAX

PINNED = f"registry.example/team/base@sha256:{'0' * 64}"
H100 = {
    "uuid": "GPU-1", "model": "NVIDIA H100", "vram_bytes": 80 * 2**30, "compute_capability": "9.0",
    "mig": False,
}  # fmt: skip
PORT = {"name": "web", "container_port": 8888}
LAUNCHER = {"name": "lab", "title": "", "command": ["x"], "port": None, "autostart": False}
VALUE = "the value itself"
RUN_AS = {"uid": 1, "gid": 1}


def content(dockerfile: str | None = None, *, sealed: dict[str, str] | None = None, **spec: Any) -> Content:
    """A revision of a pinned image, or of a Dockerfile."""
    source = Source("registry", PINNED) if dockerfile is None else Source("dockerfile", None, dockerfile)
    return Content(source, EMPTY_SPEC | spec, sealed or {})


def found(one: Content, *earlier: tuple[str, Content]) -> dict[str, str]:
    """The static findings' messages by code."""
    text = one.source.dockerfile
    parsed = None if text is None else dockerfiles.parse(text.encode())
    findings = template_findings.static(one, parsed, earlier)
    assert all(set(finding) == {"code", "message", "file", "line", "diff"} for finding in findings)
    assert len({finding["code"] for finding in findings}) == len(findings)
    return {finding["code"]: finding["message"] for finding in findings}


def diff(before: Content, after: Content) -> str:
    """What is shown of the change; the finding is there."""
    [finding] = [
        one for one in template_findings.static(after, None, [("revision 1", before)]) if one["diff"]
    ]
    assert finding["code"] == "changed"
    return str(finding["diff"])


def test_a_finding_names_its_file_and_line() -> None:
    text = (
        "FROM debian AS base\nENV API_KEY=x\nFROM base\nRUN --mount=type=cache true\nEXPOSE 80\nUSER root\n"
    )
    findings = template_findings.static(content(text), dockerfiles.parse(text.encode()))
    assert all(one["file"] == "Dockerfile" for one in findings)
    assert {one["code"]: one["line"] for one in findings} == {
        "root_user": 6, "ports": 5, "secret_env": 2, "image_not_pinned": 1, "refused": 4,
    }  # fmt: skip
    text = f"FROM {PINNED}\n\nRUN true\n"
    [finding] = template_findings.static(content(text), dockerfiles.parse(text.encode()))
    assert (finding["code"], finding["line"]) == ("root_user", 1)
    [finding] = template_findings.static(content(run_as={"uid": 0, "gid": 0}), None)
    assert (finding["code"], finding["file"], finding["line"]) == ("root_user", None, None)


# --- of a revision ------------------------------------------------------------------------------


def test_there_may_be_nothing_to_find() -> None:
    assert found(content()) == {}
    assert found(content(f"FROM {PINNED}\nUSER 1000\n", run_as=RUN_AS)) == {}


def test_a_user_who_cannot_open_the_files() -> None:
    message = "Dockerfile: runs as jovyan:users, who cannot open /work without run_as; its build says which"
    assert found(content(f"FROM {PINNED}\nUSER jovyan:users\n"))["image_user"] == message
    for user in ("root", "0:0", "$WHO"):
        assert "image_user" not in found(content(f"FROM {PINNED}\nUSER {user}\n"))


def test_what_a_dockerfile_does() -> None:
    text = "FROM registry.example/debian:12\nEXPOSE 80\nENV API_TOKEN=x\nUSER root\n"
    assert found(content(text)) == {
        "root_user": "Dockerfile: runs as root",
        "ports": "Dockerfile: opens the ports 80",
        "secret_env": "Dockerfile: has names that look like secrets: API_TOKEN",
        "image_not_pinned": "Dockerfile: without a digest, so they may change: registry.example/debian:12",
    }


@pytest.mark.parametrize(
    ("line", "who"),
    [
        ("RUN --mount=type=bind,source=/,target=/x id", "only its author can build this"),
        ("RUN --network=host id", "nobody can build this"),
        ("COPY --from=$WHERE /x /x", "nobody can build this"),
    ],
)
def test_what_a_build_would_refuse(line: str, who: str) -> None:
    message = found(content(f"FROM {PINNED}\nUSER 1\n{line}\n"))["refused"]
    assert message.startswith("Dockerfile: line 3: ")
    assert message.endswith(who)


def test_an_off_list_registry_is_not_kept_with_the_revision(policy: Any) -> None:
    policy()
    assert found(content(f"FROM {PINNED}\nUSER 1\n", run_as=RUN_AS)) == {}


def test_what_the_document_says() -> None:
    env = [
        {"name": "API_KEY", "value": "x"}, {"name": "HOME_URL", "value": "https://me:pw@example.org/"},
        {"name": "PLAIN", "value": "x"}, {"name": "DB_PASSWORD", "secret": True},
        {"name": "B", "secret": True},
    ]  # fmt: skip
    launcher = LAUNCHER | {"env": [{"name": "CONFIG", "value": "-----BEGIN RSA PRIVATE KEY-----\nMII"}]}
    spec = {
        "env": env, "launchers": [launcher], "ports": [PORT, PORT | {"name": "all", "access": "host"}],
        "run_as": {"uid": 0, "gid": 0}, "defaults": {"env": [{"name": "GITHUB_TOKEN", "value": ""}]},
    }  # fmt: skip
    one = content(sealed={"B": "v1.x"}, **spec)
    one = one._replace(source=Source("registry", "registry.example/a:1", bundle_digest="sha256:ab"))
    assert found(one) == {
        "root_user": "run_as is root",
        "ports": "maps the ports web (8888), all (8888, open to every user of the host)",
        "secret_env": (
            "everybody who sees the template can read what look like secrets:"
            " API_KEY (env), HOME_URL (env), GITHUB_TOKEN (defaults.env), CONFIG (the launcher lab)"
        ),
        "secret_unset": "secret variables without a value, which no workspace gets: DB_PASSWORD",
        "image_not_pinned": "registry.example/a:1 has no digest, so it may change",
        "bundle_digest": "came in the bundle sha256:ab",
    }


def test_findings_are_bounded() -> None:
    lines = "".join(f"RUN --network=n{number} id\n" for number in range(1500))
    launchers = [
        LAUNCHER | {"name": f"l{n}", "env": [{"name": "KEY", "value": ""}]} for n in range(LAUNCHERS_MAX)
    ]
    one = content(f"FROM {PINNED}\n{lines}", launchers=launchers)
    created = template_findings.static(one, dockerfiles.parse((one.source.dockerfile or "").encode()))
    assert len(created) <= FINDINGS_MAX
    assert sum(len(finding["message"]) for finding in created) < 20_000


# --- what changed -------------------------------------------------------------------------------


def test_the_difference_to_the_revision_before() -> None:
    before = content(description="old", ports=[{"name": "web", "container_port": 80}])
    after = content(description="new", ports=[{"name": "web", "container_port": 81}])
    assert found(after, ("revision 3", before))["changed"] == "changed since revision 3: description, ports"
    lines = diff(before, after).split("\n")
    assert lines[:2] == ["--- template.json", "+++ template.json"]
    assert [line for line in lines[2:] if line[0] in "+-"] == [
        '-  "description": "old",', '+  "description": "new",', '-      "container_port": 80,',
        '+      "container_port": 81,',
    ]  # fmt: skip
    assert "changed" not in found(after, ("revision 3", after))


def test_a_dockerfile_is_compared_line_by_line() -> None:
    texts = (f"FROM {PINNED}\nUSER 1\nRUN {argument}\n" for argument in ("one", "two"))
    before, after = (content(text, run_as=RUN_AS) for text in texts)
    assert found(after, ("revision 1", before))["changed"] == "changed since revision 1: Dockerfile"
    parsed = dockerfiles.parse((after.source.dockerfile or "").encode())
    [finding] = template_findings.static(after, parsed, [("revision 1", before)])
    assert finding["diff"].split("\n")[-4:] == [" USER 1", "-RUN one", "+RUN two", " "]


@pytest.mark.parametrize(
    ("before", "after", "printed"),
    [
        ({"sealed": {"KEY": "v1.a"}}, {"sealed": {"KEY": "v1.b"}}, ["(set)", "(changed)"]),
        ({"sealed": {}}, {"sealed": {"KEY": "v1.b"}}, ["(not set)", "(set)"]),
        ({"sealed": {"KEY": "v1.a"}}, {"sealed": {}}, ["(set)", "(not set)"]),
        ({"env": [{"name": "KEY", "value": VALUE}]}, {"sealed": {"KEY": "v1.b"}}, ["(not shown)", "(set)"]),
        ({"sealed": {"KEY": "v1.b"}}, {"env": [{"name": "KEY", "value": VALUE}]}, ["(set)", "(not shown)"]),
    ],
)
def test_a_secret_is_never_shown(before: Any, after: Any, printed: list[str]) -> None:
    secret = {"env": [{"name": "KEY", "secret": True}]}
    text = diff(content(**secret | before), content(**secret | after))
    assert VALUE not in text
    assert "v1." not in text
    values = [line for line in text.split("\n") if '"value"' in line]
    assert [line.partition('"value": ')[2].strip('"') for line in values if line[0] in "+-"] == printed


def test_an_edit_is_compared_with_the_last_review_too(boss: Caller) -> None:
    """Two small edits are not looked at as one small one."""
    body = {"name": "py", "scope": "global", "source": {"image_ref": PINNED}}
    created = templates.create(boss, body | {"description": "one"})["id"]
    with_env = {"env": [{"name": "KEY", "value": VALUE, "secret": True}]}

    def changes() -> list[str]:
        record = templates.get(boss, created)
        assert VALUE not in json.dumps(record)
        return [one["message"] for one in record["findings"] if one["code"] == "changed"]

    assert changes() == []
    enable(boss, created)
    templates.edit(boss, created, {"source": {"image_ref": PINNED.replace("0", "1")}} | with_env)
    assert changes() == ["changed since revision 1: source, env"]
    templates.edit(boss, created, {"description": "two"})
    assert changes() == [
        "changed since revision 2: description",
        "changed since revision 1, the last that was enabled: source, description, env",
    ]


def test_lines_of_a_draft_are_for_administrators(ada: Caller, boss: Caller) -> None:
    """Whoever has a workspace of a revision may read it, and so its difference."""
    body = {"name": "py", "scope": "global", "source": {"image_ref": PINNED}}
    created = templates.create(boss, body)["id"]
    enable(boss, created)
    for text in ("a draft", "final"):
        templates.edit(boss, created, {"description": text})

    def changes(caller: Caller) -> list[tuple[str, bool]]:
        findings = templates.get(caller, created)["findings"]
        return [
            (one["message"], "a draft" in (one["diff"] or "")) for one in findings if one["code"] == "changed"
        ]

    assert changes(boss)[0] == ("changed since revision 2: description", True)
    assert changes(ada)[0] == ("changed since revision 2: description", False)
    assert [message for message, _ in changes(ada)] == [message for message, _ in changes(boss)]
    assert "a draft" not in json.dumps(templates.get(ada, created))
    make_workspace(ada.user_id, created, template_revision=2)
    assert changes(ada)[0] == ("changed since revision 2: description", True)


# --- of this host -------------------------------------------------------------------------------


@pytest.fixture
def gpus(tmp_path: Path) -> Any:
    """Describe this host's GPUs: ``gpus(H100, max_cuda="12.4")``."""

    def describe(*fakes: dict[str, Any], max_cuda: str | None = "12.4") -> None:
        file = tmp_path / "gpus.json"
        file.write_text(json.dumps({"driver": None, "max_cuda": max_cuda, "gpus": fakes}))
        configured(gpu_provider=str(file))

    yield describe
    configured(gpu_provider=hardware.NONE)


@pytest.fixture
def live(ada: Caller) -> Callable[..., dict[str, str]]:
    """The live findings' messages of a template of ada's, by code."""

    def created(source: Any = None, **spec: Any) -> dict[str, str]:
        body = {"name": f"t{len(templates_created)}", "source": source or {"image_ref": PINNED}} | spec
        templates_created.append(templates.create(ada, body)["id"])
        template = template_rows.find(ada, templates_created[-1])
        return {one["code"]: one["message"] for one in template_findings.live(template)}

    templates_created: list[str] = []
    return created


def test_a_template_that_fits(live: Any, gpus: Any) -> None:
    assert live() == {}
    gpus(H100, H100 | {"uuid": "GPU-2"})
    needs = {"min_cuda": "12.4", "min_vram_bytes": 80 * 2**30, "min_compute_capability": "9.0"}
    assert live(gpu=needs, defaults={"gpu_count": 2}) == {}


def test_more_than_a_host_without_gpus_has(live: Any) -> None:
    assert live(defaults={"gpu_count": 0}, gpu={"allow_shared": True}) == {}
    assert live(defaults={"gpu_count": 2}) == {"gpu_beyond_host": "needs 2 GPUs; this host has none"}
    assert live(gpu={"min_cuda": "11.8"}) == {
        "cuda_beyond_host": "needs CUDA 11.8; this host has no GPU driver"
    }


def test_more_than_the_gpus_there_are(live: Any, gpus: Any) -> None:
    gpus(H100, H100 | {"uuid": "GPU-2", "vram_bytes": None, "compute_capability": None})
    has = "NVIDIA H100 (80.0 GiB, 9.0), NVIDIA H100"
    message = live(gpu={"min_vram_bytes": 96 * 2**30}, defaults={"gpu_count": 2})["gpu_beyond_host"]
    assert message.startswith(f"needs 2 GPUs with 96.0 GiB of memory; this host has 1 like that, of 2: {has}")
    message = live(gpu={"min_compute_capability": "10.0"}, defaults={"gpu_count": 2})["gpu_beyond_host"]
    assert message.startswith("needs 2 GPUs with compute capability 10.0; this host has 1 like that, of 2: ")
    gpus(H100)
    one = "NVIDIA H100 (80.0 GiB, 9.0)"
    assert live(gpu={"min_vram_bytes": 2**40}, defaults={"gpu_count": 1}) == {
        "gpu_beyond_host": f"needs 1 GPU with 1.0 TiB of memory; this host has none like that, of 1: {one}"
    }
    assert live(defaults={"gpu_count": 4}) == {"gpu_beyond_host": f"needs 4 GPUs; this host has 1: {one}"}
    assert live(gpu={"min_cuda": "12.10"}) == {
        "cuda_beyond_host": "needs CUDA 12.10; this host's driver supports up to 12.4"
    }


@pytest.mark.parametrize(
    ("image", "cuda"),
    [
        ("registry.example/nvidia/cuda:13.0.1-base", "13.0"),
        ("registry.example/pytorch:2.4.0-cuda12.8-cudnn9", "12.8"),
        ("registry.example/nvidia/cuda:12.4.1-base", None),
        ("registry.example/nvidia/cuda:latest", None),
    ],
)
def test_the_cuda_that_an_image_is_made_for(image: str, cuda: str | None, live: Any, gpus: Any) -> None:
    gpus(H100)
    message = f"{image} is made for CUDA {cuda}; this host's driver supports up to 12.4"
    expected = {"cuda_beyond_host": message} if cuda else {}
    assert live({"image_ref": image}) == expected
    assert live({"type": "dockerfile", "dockerfile": f"FROM {image}\n"}) == expected


def test_each_registry_that_is_not_allowed(live: Any, policy: Any, ada: Caller) -> None:
    copies = "COPY --from=a.example/y:2 /x /x\nCOPY --from=b.example/z:3 /x /x\n"
    text = f"FROM a.example/x:1\nFROM {PINNED}\n{copies}"
    template_id = templates.create(
        ada, {"name": "off", "source": {"type": "dockerfile", "dockerfile": text}}
    )["id"]
    findings = template_findings.live(template_rows.find(ada, template_id))
    assert [one["message"] for one in findings] == [
        f"{host} is not on the registry allowlist" for host in ("a.example", "b.example")
    ]
    policy({"host": "a.example"}, {"host": "b.example"}, {"host": "registry.example"})
    assert template_findings.live(template_rows.find(ada, template_id)) == []
