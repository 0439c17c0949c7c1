"""What a Dockerfile may not do (hostile row 34, the holes of buildah 1.28), and what a reviewer is told."""

from __future__ import annotations

import pytest

from svc.domain.templates.dockerfile_review import Found, findings, images, refusals, require
from svc.domain.templates.dockerfiles import parse
from svc.errors import RegistryNotAllowed, ValidationFailed
from svc.limits import REFUSALS_MAX

BASE = "FROM r.example/base:1\n"


def allows(image: str) -> bool:
    return image.partition("/")[0] in ("r.example", "localhost:5000", "dir:5", "oci:1")


def found_in(text: str, own: bool = False) -> list[str]:
    return [one["code"] for one in refusals(parse(text.encode()), own=own, allows=allows)]


GOOD = {
    "stages": """\
ARG REGISTRY=r.example
ARG GO_VERSION="1.21"

FROM --platform=$BUILDPLATFORM ${REGISTRY}/library/golang:${GO_VERSION} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -o /out/app ./cmd/app

FROM scratch
COPY --from=build --chown=65532:65532 /out/app /app
COPY --from=0 /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=r.example/tools@sha256:{digest} /bin/tini /tini
USER 65532
ENTRYPOINT ["/app"]
""".replace("{digest}", "a" * 64),
    "cuda": """\
# Copyright: somebody
from r.example/nvidia/cuda:12.2.0-devel-ubuntu22.04 as base
ENV NV_CUDNN_VERSION 8.9.6.50
ENV NVIDIA_VISIBLE_DEVICES=all \\
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
LABEL com.nvidia.cudnn.version="${NV_CUDNN_VERSION}"
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

run apt-get update && apt-get install -y --no-install-recommends \\
    # the interpreter
    python3 \\

    libcudnn8=${NV_CUDNN_VERSION}-1+cuda12.2 \\
    && apt-mark hold libcudnn8 && \\
    rm -rf /var/lib/apt/lists/*
FROM base
ARG NB_USER="jovyan"
HEALTHCHECK --interval=30s --timeout=3s CMD curl -f http://localhost:8888/ || exit 1
COPY --chown=${NB_USER}:users [abc]*.py "/a b/"
ADD rootfs-${ARCH}.tar.gz /
VOLUME ["/data"]
EXPOSE 8888/tcp
STOPSIGNAL SIGINT
USER ${NB_USER}
CMD ["jupyter", "lab"]
""",
    "dos": "FROM localhost:5000/a\r\n\r\nRUN a \\\r\n  && b\r\nUSER me\r\n",
    "a command after all": BASE + "RUN x\\\r\n\r\nRUN --mount=x y",
    "trigger": BASE + "ONBUILD COPY . /app\nONBUILD RUN make",
}


@pytest.mark.parametrize("name", GOOD)
def test_ordinary_files_pass(name: str) -> None:
    dockerfile = parse(GOOD[name].encode())
    assert refusals(dockerfile, own=False, allows=allows) == []
    require(dockerfile, own=False, allows=allows)


OFF = "registry_not_allowed"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("# syntax=evil.example/frontend\n" + BASE, "syntax"),
        ("\ufeff \n# note\n  #\tSyNtAx = x\n" + BASE, "syntax"),
        (BASE + "RUN --mount=type=bind,source=/,target=/host cat /host/etc/shadow", "mount"),
        (BASE + "RUN --mount=type=cache,target=/root/.cache pip install x", "mount"),
        (BASE + "RU\\\nN --mount=type=bind,source=/ x", "mount"),
        (BASE + "RUN \\\n# comment\n\t--mo\\\nunt=type=tmpfs,target=/x y", "mount"),
        ("#escape=`\n" + BASE + "RUN `\n--mount=type=bind,source=/ x", "mount"),
        (BASE + "\t rUn\t--mount=type=secret,id=x y", "mount"),
        (BASE + "ONBUILD run --mount=type=bind,source=/ y", "mount"),
        (BASE + "RUN --network=host x", "flag"),
        (BASE + "RUN --security=insecure x", "flag"),
        (BASE + "COPY --link a b", "parse"),
        (BASE + "ADD --checksum=sha256:x a b", "flag"),
        (BASE + "COPY --mount=x a b", "flag"),
        ("FROM --mount=x r.example/a", "flag"),
        ("ARG --from=x A=1\n" + BASE, "flag"),
        ("FROM evil.example/a:1", OFF),
        ("FROM r.example.evil/a:1", OFF),
        ("ARG I=evil.example/a\nFROM $I", OFF),
        ("ARG I\nFROM $I", "image_undetermined"),
        ("ARG I\nFROM ${I:?}", "image_undetermined"),
        ("FROM ${I:-evil.example/a}", OFF),
        ("FROM debian:12", "image_ref"),
        ("FROM library/debian", "image_ref"),
        ("FROM R.example/a", "image_ref"),
        ("FROM \"r.example/a\"", "image_ref"),
        ("FROM r.example/a@sha256:abc", "image_ref"),
        ("FROM r.example/\u0430", None),  # the last letter is Cyrillic
        ("FROM 0", "image_ref"),
        ("FROM docker-archive:/etc/shadow", "image_ref"),
        ("FROM dir:/", "image_ref"),
        ("FROM dir:5/etc", "image_ref"),
        ("FROM oci:1/x:2", "image_ref"),
        ("FROM containers-storage:r.example/a", "image_ref"),
        ("FROM docker://r.example/a", "image_ref"),
        (BASE + "COPY --from=evil.example/a /x /y", OFF),
        (BASE + "COPY --from=$A /x /y", "variable"),
        (BASE + "COPY --from=r.example/a --from=evil.example/a /x /y", OFF),
        (BASE + "COPY --from=0 /x /y", "image_ref"),
        (BASE + "COPY --from=later /x /y\nFROM r.example/b AS later", "image_ref"),
        ("FROM r.example/a AS Build\nFROM scratch\nCOPY --from=build /x /y", "stage_name"),
        ("FROM r.example/a AS b\nFROM scratch\nCOPY --from=00 /x /y", "image_ref"),
        ("FROM r.example/a AS b\nFROM scratch\nONBUILD COPY --from=b /x /y", "image_ref"),
        (BASE + "ADD http://127.0.0.1:631/ /x", "add_url"),
        (BASE + "ADD a HTTPS://x/ /x", "add_url"),
        (BASE + 'ADD ["ht\\u0074p://x/", "/x"] more', "add_url"),
        (BASE + "ADD ht'tp'://x/ /x", "add_url"),
        (BASE + "ADD ${U}/x /x", "add_url"),
        (BASE + "ADD ht${U} /x", "add_url"),
        (BASE + "ONBUILD ADD http://x/ /x", "add_url"),
        (BASE + "ADD git@x.example:a.git /x", "add_git"),
    ],
    ids=lambda value: str(value)[:40].encode("unicode_escape").decode(),
)  # fmt: skip
def test_hostile_files_do_not(text: str, code: str | None) -> None:
    if code == "parse":
        with pytest.raises(ValidationFailed):
            parse(text.encode())
    elif code is not None:
        assert found_in(text) == [code]
        error = RegistryNotAllowed if code == OFF else ValidationFailed
        with pytest.raises(error) as caught:
            require(parse(text.encode()), own=False, allows=allows)
        assert caught.value.fields[0]["field"] == "source.dockerfile"
        assert caught.value.fields[0]["message"].startswith("line ")
    else:
        with pytest.raises((ValidationFailed, RegistryNotAllowed)):
            require(parse(text.encode()), own=False, allows=allows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("FROM r.example/a AS BuildStage\nFROM scratch\nCOPY --from=buildstage /x /y",
         "line 3: buildstage: the stage is named BuildStage; Podman compares letter by letter"),
        (BASE + "COPY --from=$STAGE /x /y",
         "line 2: $STAGE: a variable is not taken here; write the name itself"),
        ("ARG IMG\nFROM ${IMG:?}",
         "line 2: ${IMG:?}: only ${NAME}, ${NAME:-default} and ${NAME:+other} are taken"),
        ("ARG IMG=r.example/a\nFROM ${IMG%:*}",
         "line 2: ${IMG%:*}: only ${NAME}, ${NAME:-default} and ${NAME:+other} are taken"),
        ("ARG IMG\nFROM $IMG",
         "line 2: $IMG: the file does not determine which image this is;"
         " give the ARG a default above the FROM"),
    ],
)  # fmt: skip
def test_a_name_that_is_no_image_says_what_to_write(text: str, message: str) -> None:
    (found,) = refusals(parse(text.encode()), own=False, allows=allows)
    assert found["message"] == message
    with pytest.raises(ValidationFailed, match="line") as caught:
        require(parse(text.encode()), own=True, allows=allows)
    assert "administrator" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("COPY --link a b", "line 2: COPY takes no --link"),
        ("COPY --parents a b", "line 2: COPY takes no --parents"),
        ("ADD --keep-git-dir a b", "line 2: ADD takes no --keep-git-dir"),
        ("COPY --from a b", "line 2: --from: a flag is --name=value in plain characters"),
    ],
)
def test_a_flag_without_a_value(text: str, message: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        parse((BASE + text).encode())
    assert caught.value.fields[0]["message"] == message


def test_ones_own_file_may_mount_and_download() -> None:
    text = BASE + "RUN --mount=type=cache,target=/c x\nADD https://x.example/y /y\nADD $U /x\n"
    assert found_in(text) == ["mount", "add_url", "add_url"]
    assert found_in(text, own=True) == []
    mount = "RUN --mount=type=bind,from={},target=/x y\n"
    assert found_in(BASE + mount.format("evil.example/a"), own=True) == [OFF]
    assert found_in(BASE + mount.format("$A"), own=True) == ["mount", "variable"]
    assert found_in("FROM r.example/a AS b\nFROM scratch\n" + mount.format("b"), own=True) == []
    assert found_in("# syntax=x\n" + BASE, own=True) == ["syntax"]


def test_a_later_comment_is_no_directive() -> None:
    assert found_in(BASE + "# syntax=x\n") == []


def test_the_refusals_are_bounded_and_the_worst_decides() -> None:
    assert len(found_in(BASE + "RUN --mount=x y\n" * 500)) == REFUSALS_MAX
    with pytest.raises(ValidationFailed, match="line 2: RUN --mount") as caught:
        require(parse(b"FROM evil.example/a\nRUN --mount=x y"), own=False, allows=allows)
    assert [field["code"] for field in caught.value.fields] == [OFF, "mount"]
    with pytest.raises(RegistryNotAllowed, match=r"evil\.example is not on the registry allowlist"):
        require(parse(b"FROM evil.example/a\n"), own=True, allows=allows)


def result(text: str) -> dict[str, str]:
    every: list[Found] = findings(parse(text.encode()))
    return {one["code"]: one["message"] for one in every}


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("RUN x", True),
        ("USER 1000:0", False),
        ("USER me\nUSER root", True),
        ("USER 00", True),
        ("USER 'root':me", True),
        ("ENV U=root\nUSER $U", True),
        ("USER me\nFROM r.example/b", True),
        ("ONBUILD USER me", True),
    ],
)
def test_root_at_the_end_is_told(text: str, root: bool) -> None:
    assert ("root_user" in result(BASE + text)) is root


def test_a_user_comes_from_the_stage_before() -> None:
    assert "root_user" not in result("FROM r.example/a AS b\nUSER me\nFROM b\nRUN x\n")


def test_a_reviewer_is_told_of_ports_secrets_and_images_that_change() -> None:
    text = (
        "ARG GITHUB_TOKEN\nFROM r.example/a AS b\nEXPOSE 1\n"
        'ENV DB_PASSWORD=x PATH=/a MONKEY=1\nENV api_key old\nENV NOTE="my SECRET=x"\n'
        f"FROM r.example/c@sha256:{'a' * 64}\nEXPOSE 80 443/tcp\nARG PASS NAME\nUSER me\n"
    )
    assert result(text) == {
        "ports": "opens the ports 80, 443/tcp",
        "secret_env": "has names that look like secrets: GITHUB_TOKEN, DB_PASSWORD, api_key, PASS",
        "image_not_pinned": "without a digest, so they may change: r.example/a",
    }
    many = result(BASE + "EXPOSE " + " ".join(map(str, range(1000))))
    assert many["ports"].endswith(" 19 and 980 more")


def test_the_image_of_nothing_needs_no_registry() -> None:
    assert findings(parse(b"FROM scratch\nUSER 1\n")) == []


def test_the_images_that_a_build_takes_from_registries() -> None:
    text = """\
ARG TAG=1
FROM r.example/a:$TAG AS one
COPY --from=r.example/tool:1 /a /b
RUN --mount=type=bind,from=r.example/b:1,source=/,target=/x true
ONBUILD COPY --from=r.example/later:1 /a /b
FROM scratch AS two
COPY --from=one /a /a
COPY --from=0 /a /a
COPY --from=$TAG /a /a
FROM one
FROM ubuntu
FROM dir:5/x
FROM r.example/a:1
"""
    assert images(parse(text.encode())) == [
        "r.example/a:1",
        "r.example/tool:1",
        "r.example/b:1",
        "r.example/later:1",
    ]
