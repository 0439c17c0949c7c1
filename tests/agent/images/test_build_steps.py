"""What Podman's build says, without Podman."""

from __future__ import annotations

import json

import pytest

from svc_helper.agent.images.build_steps import Steps, classify, failure, readable
from svc_helper.wire import protocol


def test_steps_of_one_stage() -> None:
    steps = Steps()
    steps.take(b"STEP 1/3: FROM x\nSTEP 2/3: RUN make\nou")
    (report,) = steps.reports()
    assert report == {
        "current": 1,
        "total": 3,
        "unit": "steps",
        "text": "RUN make",
        "lines": ["STEP 1/3: FROM x", "STEP 2/3: RUN make"],
    }
    steps.take(b"tput\n")
    steps.end()
    assert steps.reports()[0]["lines"] == ["output"]
    assert (steps.step, steps.current) == ("step 2 of 3 (RUN make)", 2)


def test_stages_never_go_back() -> None:
    steps = Steps()
    parts = []
    for stage, count in ((1, 4), (2, 2), (3, 9)):
        for step in range(1, count + 1):
            steps.take(f"[{stage}/3] STEP {step}/{count}: RUN {stage}.{step}\n".encode())
            parts.append(steps.current / steps.total)
    assert parts == sorted(parts) and parts[-1] == 1
    assert steps.step == "step 9 of 9 of stage 3 (RUN 3.9)"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\r\n", "plain"),
        (b"10%\r20%\r30%", "30%"),
        (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07end", "red end"),
        (b"a\tb\x00c\x07d", "a b c d"),
        (b"\xff\xfe", "��"),
        ("ü \u202e\u2028".encode(), "ü"),
        (b"x" * 9000, "x" * 500),
        (b"\x1b[" * 5000, ""),
        (b"", ""),
    ],
)
def test_lines_are_safe_to_show(raw: bytes, text: str) -> None:
    assert readable(raw).strip() == text if b"\x1b[" * 2 not in raw else len(readable(raw)) <= 500


def test_reports_fit_a_message() -> None:
    steps = Steps()
    steps.take(('"' * 499 + "\\\n").encode() * 60 + ("\U0001f600" * 600 + "\n").encode() * 60)
    reports = steps.reports()
    assert sum(len(report["lines"]) for report in reports) == 120
    for report in reports:
        assert len(protocol.encode({"progress": report})) < protocol.MESSAGE_MAX
        assert len(report["lines"]) <= 50
        assert protocol.decode(json.dumps({"progress": report}, ensure_ascii=False).encode())


def test_too_many_lines_are_counted() -> None:
    steps = Steps()
    steps.take(b"".join(b"line %d\n" % number for number in range(1000)))
    lines = [line for report in steps.reports() for line in report["lines"]]
    assert (len(lines), lines[0], lines[1], lines[-1]) == (
        400,
        "(601 lines are left out)",
        "line 601",
        "line 999",
    )
    steps.take(b"more\n")
    assert steps.reports()[0]["lines"] == ["more"]


def test_a_line_without_end_is_cut() -> None:
    steps = Steps()
    for _ in range(40):
        steps.take(b"x" * 10_000)
    assert len(steps._rest) < 80_000 and len(steps.reports()[0]["lines"]) > 3


@pytest.mark.parametrize(
    ("output", "code", "message"),
    [
        (
            'STEP 1/2: FROM x\nSTEP 2/2: RUN exit 7\nError: building at STEP "RUN exit 7": while running'
            " runtime: exit status 7\n",
            "build",
            "step 2 of 2 (RUN exit 7) failed: exit 7",
        ),
        (
            'STEP 1/2: FROM x\nError: building at STEP "COPY a": write /x: no space left on device\n',
            "storage_full",
            "there is no space left for the build",
        ),
        (
            "STEP 1/2: FROM x\nno space left on device\n",
            "build",
            "step 1 of 2 (FROM x) failed; the log has why",
        ),
        ("", "build", "the build could not begin; the log has why"),
        ("Error: no FROM statement found\n", "build", "the build could not begin; the log has why"),
    ],
)
def test_the_reason_of_a_failure(output: str, code: str, message: str) -> None:
    steps = Steps()
    steps.take(output.encode())
    assert classify(steps) == (code, message)
    assert failure(steps).engine == steps.error


def test_a_full_disk_is_told_from_words_of_the_command() -> None:
    """Podman's last line has the command in it, more than once, and the reason at its end."""
    command = "x" * 900
    committing = f"Error: committing for step {{Args:[{command}] Message:{command}}}: write /layer: "
    full, said = Steps(), Steps()
    full.take(f"STEP 2/2: RUN x\n{committing}no space left on device\n".encode())
    assert classify(full)[0] == "storage_full"
    said.take(
        b'STEP 2/2: RUN x\nError: building at STEP "RUN echo no space left on device; false":'
        b" while running runtime: exit status 1\n"
    )
    assert classify(said) == ("build", "step 2 of 2 (RUN x) failed: exit 1")
