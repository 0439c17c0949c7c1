"""Tables, records and values, on a terminal and in a pipe."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fake_service import Stream

from svc.commandline import output
from svc.errors import Aborted, ValidationFailed

COLUMNS = (
    ("ID", "id", output.plain),
    ("STATUS", "status", output.state),
    ("SIZE", "size", output.size),
    ("FROM", "image.ref", output.plain),
)
ROWS = [
    {"id": "a", "status": "running", "size": 1536, "image": {"ref": "r/x"}},
    {"id": "bb", "status": "stopped", "size": None, "image": None},
]


def printed(show: Callable[..., None], *values: Any, terminal: bool = False) -> str:
    """What a function prints, on a terminal or in a pipe."""
    with contextlib.redirect_stdout(Stream(terminal)) as stream:
        show(*values)
    return stream.text()


def test_bytes_that_are_no_utf8_are_shown_as_the_service_shows_them() -> None:
    assert output.visible("caf\udce9\x1b\u202e\ud800") == "caf\\xe9\\x1b\\u202e\\ud800"


def test_a_table_in_a_pipe_is_values_and_tabs() -> None:
    assert printed(output.table, COLUMNS, ROWS, "none") == "a\trunning\t1536\tr/x\nbb\tstopped\t\t\n"


def test_a_table_on_a_terminal_is_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert printed(output.table, COLUMNS, ROWS, "none", terminal=True).splitlines() == [
        "ID  STATUS   SIZE     FROM",
        "a   running  1.5 KiB  r/x",
        "bb  stopped  -        -",
    ]


def test_states_have_colours() -> None:
    called_failed = {"id": "failed", "status": "running"}
    heading, row = printed(output.table, COLUMNS, [called_failed], "none", terminal=True).splitlines()
    assert row.startswith("failed  \x1b[32mrunning\x1b[0m")
    assert "\x1b[" not in heading


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_done_without(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert "\x1b" not in printed(output.table, COLUMNS, ROWS, "none", terminal=True)


def test_an_empty_table_says_so_to_people_only() -> None:
    assert printed(output.table, COLUMNS, [], "nothing yet", terminal=True) == "nothing yet\n"
    assert printed(output.table, COLUMNS, [], "nothing yet") == ""


def test_a_table_cuts_no_id_and_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    columns = (
        ("ID", "id", output.plain),
        ("OF", "template.name", output.plain),
        ("WHY", "why", output.plain),
    )
    record = {"id": "i" * 40, "template": {"name": "n" * 40}, "why": "w" * 40}
    _, row = printed(output.table, columns, [record], "none", terminal=True).splitlines()
    assert row == f"{'i' * 40}  {'n' * 40}  {'w' * 11}…"


def test_a_table_leaves_out_what_it_can_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    columns = (("A", "a", output.plain), ("B", "b", output.plain), ("C", "c", output.plain))

    def headings(**record: str) -> list[str]:
        shown = partial(output.table, columns, [record], "none", spare=("B", "A"))
        return printed(shown, terminal=True).splitlines()[0].split()

    assert headings(a="a" * 30, b="b" * 20, c="c" * 26) == ["A", "B", "C"]
    assert headings(a="a" * 30, b="b" * 20, c="c" * 27) == ["A", "C"]
    assert headings(a="a" * 30, b="b" * 20, c="c" * 80) == ["C"]
    wide = partial(output.table, columns, [{"a": "a" * 30, "b": "b" * 20, "c": "c" * 80}], "", spare=("B",))
    assert printed(wide).split("\t")[1] == "b" * 20


def test_a_label_ends_before_its_value() -> None:
    columns = (("ID", "id", output.plain), ("DELETE WHEN STOPPED", "deletes", output.plain))
    record = {"id": "a", "deletes": False}
    assert printed(output.details, columns, record, terminal=True).splitlines() == [
        "ID:                  a",
        "Delete when stopped: no",
    ]
    assert printed(output.details, columns[:1], record, terminal=True) == "ID:               a\n"


def test_a_table_cuts_no_address(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setattr(output, "terminal_columns", lambda _stream: 40)
    address = "http://127.0.0.1:20001/a/long/path/of/it"
    columns = (("URL", "url", output.url), ("NOTE", "note", output.plain))
    output.table(columns, [{"url": address, "note": "n" * 40}], "")
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split() == [address, "n" * 11 + "…"]


def test_a_wide_table_is_cut_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "terminal_columns", lambda stream: 50)
    row = {"id": "x" * 8, "status": "y" * 30, "image": {"ref": "図" * 20}}
    lines = printed(output.table, COLUMNS, [row], "none", terminal=True).splitlines()
    assert [output._width(line) <= 50 for line in lines] == [True, True]
    assert "…" in lines[1]


def test_no_value_can_break_a_row_or_steer_a_terminal() -> None:
    row = {"id": "a\tb\n\x1b[2J\u202egpj\x9b"}
    assert printed(output.table, COLUMNS[:1], [row], "none") == "a\\tb\\n\\x1b[2J\\u202egpj\\x9b\n"


@pytest.mark.parametrize("record", [None, 5, [], "x", {"image": 5}, {"id": {"a": [[[[[1]]]]]}}])
def test_odd_records_are_shown_all_the_same(record: Any) -> None:
    assert printed(output.table, COLUMNS, [record], "none")
    assert printed(output.details, COLUMNS, record, terminal=True)


def test_details() -> None:
    assert printed(output.details, COLUMNS, ROWS[0]) == "id\ta\nstatus\trunning\nsize\t1536\nfrom\tr/x\n"
    on_terminal = printed(output.details, COLUMNS, ROWS[0], terminal=True)
    assert on_terminal.splitlines()[2] == "Size:             1.5 KiB"


@pytest.mark.parametrize(
    ("value", "human", "program"),
    [
        (None, "-", ""),
        (True, "yes", "true"),
        (False, "no", "false"),
        (0, "0", "0"),
        (4.0, "4", "4"),
        (0.5, "0.5", "0.5"),
        ([], "-", ""),
        (["a", "b"], "a, b", "a, b"),
        ({"name": "A", "value": "1"}, "A=1", "A=1"),
        ({"cpu": 1, "gpu": None}, "cpu=1, gpu=-", "cpu=1, gpu="),
    ],
)
def test_plain_values(value: object, human: str, program: str) -> None:
    assert (output.plain(value, True), output.plain(value, False)) == (human, program)


@pytest.mark.parametrize(
    ("value", "visible"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (150 * 2**20, "150 MiB"), (2**35, "32.0 GiB"),
     (1.25 * 2**30, "1.3 GiB"), (1.35 * 2**30, "1.4 GiB"),
     (2**50, "1024.0 TiB"), (None, "-"), ("x", "x"), (True, "yes")],
)  # fmt: skip
def test_sizes(value: object, visible: str) -> None:
    assert output.size(value, True) == visible


@pytest.mark.parametrize(
    ("age", "visible"),
    [
        (0, "now"),
        (-4, "now"),
        (-90, "in 2 min"),
        (-3599, "in 1 h"),
        (-6.5 * 86400, "in 7 d"),
        (-7 * 86400 - 10, "in 8 d"),
        (-8 * 86400 + 10, "in 8 d"),
        (42, "42 s ago"),
        (300, "5 min ago"),
        (7200, "2 h ago"),
        (3 * 86400, "3 d ago"),
    ],
)
def test_times(age: float, visible: str) -> None:
    at = (datetime.now(UTC) - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert output.when(at, True) == visible
    assert output.when(at, False) == at


def test_old_and_odd_times() -> None:
    assert output.when("2020-01-02T03:04:05Z", True) == "2020-01-02"
    assert output.when("9999-01-02T03:04:05Z", True) == "9999-01-02"
    assert output.when("yesterday", True) == "yesterday"
    assert output.when("2020-01-02", True) == "2020-01-02"
    assert output.when(None, True) == "-"


def test_raw_is_untouched_in_a_pipe() -> None:
    with contextlib.redirect_stdout(Stream(terminal=False)) as stream:
        output.raw(b'{"a":"\xc2\x9b\xff"}')
    assert stream.buffer.getvalue() == b'{"a":"\xc2\x9b\xff"}'  # type: ignore[attr-defined]


def test_raw_steers_no_terminal() -> None:
    visible = printed(output.raw, '{"a":"\x1b[2J\x9b\u202e ö"}'.encode(), terminal=True)
    assert visible == '{"a":"\\u001b[2J\\u009b\\u202e ö"}\n'


def test_captured_output_keeps_its_colours_and_nothing_else() -> None:
    text = "\x1b[31mred\x1b[0m\r\n\tx\x1b]0;title\x07\x1b[2J"
    visible = printed(output.captured, text, terminal=True)
    assert visible == "\x1b[31mred\x1b[0m\r\n\tx\\x1b]0;title\\x07\\x1b[2J\n"
    assert printed(output.captured, text) == text + "\n"


def confirm_with(monkeypatch: pytest.MonkeyPatch, terminal: bool, answer: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", Stream(terminal, answer))
    monkeypatch.setattr(sys, "stderr", Stream(terminal))
    output.confirm("Delete demo?", False, "svc ws delete demo")


def test_a_confirmation_is_asked_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    confirm_with(monkeypatch, True, b"y\n")
    confirm_with(monkeypatch, True, b"YES\n")
    for answer in (b"\n", b"n\n", b"", b"maybe\n"):
        with pytest.raises(Aborted, match="nothing"):
            confirm_with(monkeypatch, True, answer)
    with pytest.raises(Aborted, match="--yes") as raised:
        confirm_with(monkeypatch, False, b"y\n")
    assert raised.value.hint == "svc ws delete demo --yes"
    output.confirm("Delete demo?", True, "")


def test_an_interrupted_confirmation_is_an_aborted_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ "Aborting a confirmation exits with code 1"."""

    class Interrupted(Stream):
        def readline(self, *_: object) -> str:  # type: ignore[override]
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Interrupted(True))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with pytest.raises(Aborted, match="nothing was done"):
        output.confirm("Delete demo?", False, "svc ws delete demo")
    assert capsys.readouterr().err == "Delete demo? [y/N] \n"


# Ctrl-C within a tenth of a millisecond of the question, round after round; prints how many were not heard.
EAGER = """
import os, pty, random, select, signal, sys, time
from svc.commandline import output
from svc.errors import Aborted

unheard = 0
for _ in range(100):
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            output.confirm("Delete demo?", False, "")
        except Aborted:
            os._exit(1)
        finally:
            os._exit(9)
    while b"[y/N]" not in os.read(terminal, 4096):
        pass
    begin = time.perf_counter() + random.random() / 10_000
    while time.perf_counter() < begin:
        pass
    os.write(terminal, b"\\x03")
    ended = os.pidfd_open(pid)
    if not select.select([ended], [], [], 5)[0]:
        unheard += 1
        os.kill(pid, signal.SIGKILL)
    elif os.waitstatus_to_exitcode(os.waitpid(pid, os.WNOHANG)[1]) != 1:
        unheard += 1
    os.close(ended)
    os.close(terminal)
print(unheard)
"""


@pytest.mark.allow_commands(os.path.basename(sys.executable))
def test_an_eager_interruption_is_heard() -> None:
    """Ctrl-C before the reading has begun does not wait for a line."""
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}){EAGER}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0\n"


def test_the_width_of_a_real_terminal() -> None:
    import fcntl
    import struct
    import termios

    main, side = os.openpty()
    try:
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("4H", 24, 63, 0, 0))
        with os.fdopen(os.dup(side), "w") as stream:
            assert output.terminal_columns(stream) == 63
    finally:
        os.close(main)
        os.close(side)


def test_a_document_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.document("a\tb\r\nc\x1b[31m\rd\u202e\n")
    assert capsys.readouterr().out == "a\tb\nc\\x1b[31m\\rd\\u202e\n"
    for text, visible in (("", ""), ("a", "a\n"), ("\n", "\n"), ("a\n\n", "a\n\n")):
        output.document(text)
        assert capsys.readouterr().out == visible


@pytest.mark.parametrize(
    ("text", "argument"),
    [("work/a.txt", "work/a.txt"), ("", "''"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("~", "'~'"),
     ("é", "é"), ("a\nb'", "$'a\\x0ab\\x27'"), ("caf\udce9", "$'caf\\xe9'")],
)  # fmt: skip
def test_a_word_for_a_shell(text: str, argument: str) -> None:
    assert output.shell_quote(text) == argument


def test_an_error_says_each_thing_once(capsys: pytest.CaptureFixture[str]) -> None:
    """And counts as people do."""
    one = {"field": "env.0.name", "code": "invalid", "message": "Use letters."}
    assert output.error(ValidationFailed("env item 1 name: Use letters", fields=[one])) == 1
    assert capsys.readouterr().err == "svc: env item 1 name: Use letters\n"
    two = {"field": "name", "code": "required", "message": "Missing."}
    output.error(ValidationFailed("2 values are not valid: env item 1 name, name", fields=[one, two]))
    assert capsys.readouterr().err.splitlines()[1:] == ["  env item 1 name: Use letters", "  name: Missing"]
