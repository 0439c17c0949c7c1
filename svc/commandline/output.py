"""The output of commands: formatted for people on a terminal, for programs in a pipe.

On a terminal a table has a heading, aligned columns, relative times and a
little colour (none with NO_COLOR). In a pipe each record is one line of values
separated by tabs: no heading, no colour, sizes in bytes, times in RFC 3339.
Control characters in data from the socket are escaped.
"""

from __future__ import annotations

import os
import sys

from svc.errors import Aborted, spoken

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TextIO

    from svc.commandline.arguments import Arguments
    from svc.errors import SvcError

    Show = Callable[[Any, bool], str]
    Column = tuple[str, str, Show]  # heading, path in the record, formatter

GAP = "  "
COLUMN_MIN = 12  # columns are cut to this width at most
UNCUT = (
    "id",
    "image_id",
    "name",
    "type",
    "model",
)  # fields that a command takes, or whose end tells them apart
LABEL_MIN = 18
REPEATED = ("recursive", "json", "yes")  # options that a hint keeps
ACRONYMS = {part.upper(): part for part in ("ID", "CPUs", "GPU", "GPUs", "PIDs", "SHM", "CUDA", "URL")}
COLOURS = {
    "running": 32, "ready": 32, "enabled": 32, "succeeded": 32, "active": 32,
    "creating": 33, "starting": 33, "stopping": 33, "deleting": 33,
    "pulling": 33, "building": 33, "queued": 33, "failed": 31, "expired": 31,
}  # fmt: skip


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def visible(text: str) -> str:
    """The text with control and direction characters, which a terminal would obey, escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # an undecodable byte (surrogateescape)
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


def shell_quote(text: str) -> str:
    """One argument quoted for a shell, in printable characters only."""
    if not text.isprintable():
        letters = (
            chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\x{byte:02x}"
            for byte in os.fsencode(text)
        )
        return f"$'{''.join(letters)}'"
    if text and all(char.isalnum() or char in "/.,_-+:@%=" for char in text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


# --- formatters: one value, for people (human) or for programs --------------------------


def plain(value: Any, human: bool, depth: int = 3) -> str:
    """Any value; an absent one is a dash for people and empty for programs."""
    if value is None or value == "" or value == [] or value == {}:
        return "-" if human else ""
    if isinstance(value, bool):
        return ("yes" if value else "no") if human else str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | dict) and depth == 0:
        return "..."
    if isinstance(value, list):
        return ", ".join(plain(item, human, depth - 1) for item in value)
    if isinstance(value, dict):
        pairs = [(value["name"], value["value"])] if set(value) == {"name", "value"} else value.items()
        return ", ".join(f"{key}={plain(item, human, depth - 1)}" for key, item in pairs)
    return str(value)


def size(value: Any, human: bool) -> str:
    """A number of bytes; for people as 1.4 GiB."""
    if not human or isinstance(value, bool) or not isinstance(value, int | float):
        return plain(value, human)
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{_tenths(amount)} {unit}"
        amount /= 1024
    return f"{_tenths(amount)} TiB"


def _tenths(amount: float) -> str:
    """With one decimal, the half rounded up as the pages round it: 1.25 is 1.3."""
    return f"{int(amount * 10 + 0.5) / 10:.1f}"


def when(value: Any, human: bool) -> str:
    """A time; for people as "5 min ago" or "in 3 d", or the day when more than a month away.

    What is to come is rounded up, so that "in 7 d" is within seven days, and "in 8 d" is not.
    """
    if not human or not isinstance(value, str):
        return plain(value, human)
    from datetime import UTC, datetime
    from math import floor

    try:
        age = floor((datetime.now(UTC) - datetime.fromisoformat(value)).total_seconds())
    except (ValueError, TypeError):  # TypeError: without a time zone
        return value
    if -5 < age < 5:
        return "now"
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h"), (30 * 86400, 86400, "d")):
        count = age // unit if age > 0 else -(age // unit)
        if count < limit // unit:
            return f"{count} {name} ago" if age > 0 else f"in {count} {name}"
    return value[:10]


def url(value: Any, human: bool) -> str:
    """An address, which no table cuts."""
    return plain(value, human)


def state(value: Any, human: bool) -> str:
    """The name of a state; tables and records print it in colour."""
    return plain(value, human)


# --- records ------------------------------------------------------------------------------


def pick(record: Any, path: str) -> Any:
    """The value at a dotted path of a record; None if absent."""
    for key in path.split("."):
        if not isinstance(record, dict):
            return None
        record = record.get(key)
    return record


def text(record: Any, path: str) -> str:
    """The value at a dotted path as text; empty if absent."""
    return plain(pick(record, path), False)


def table(columns: Iterable[Column], records: Iterable[Any], empty: str, spare: Iterable[str] = ()) -> None:
    """Print one line per record; on a terminal `empty` when there are none.

    The columns with the headings `spare` are left out, in that order, of a table that the terminal is
    too narrow for.
    """
    columns = list(columns)
    human = on_terminal()
    rows = [[visible(show(pick(record, path), human)) for _, path, show in columns] for record in records]
    if not human:
        sys.stdout.write("".join("\t".join(row) + "\n" for row in rows))
    elif not rows:
        print(empty)
    else:
        rows = [[heading for heading, _, _ in columns], *rows]
        for heading in spare:
            if _excess(_widths(rows)) > 0:
                at = rows[0].index(heading)
                rows = [[*row[:at], *row[at + 1 :]] for row in rows]
                del columns[at]
        _align(rows, columns)


def listing(
    args: Arguments, columns: Iterable[Column], records: Iterable[Any], empty: str, spare: Iterable[str] = ()
) -> None:
    """Print a list as a table; with --quiet only what other commands take: ids, else names."""
    columns = list(columns)
    if not vars(args).get("quiet"):
        table(columns, records, empty, spare)
        return
    paths = [path for heading, path, _ in columns if heading == "ID"] + [columns[0][1]]
    paths += [path for heading, path, _ in columns if heading == "IMAGE"]
    for record in records:
        if key := next(filter(None, (text(record, path) for path in paths)), ""):
            print(visible(key))


def details(columns: Iterable[Column], record: Any) -> None:
    """Print one record, one line per value: `Name: value`, in a pipe `name<tab>value`."""
    human = on_terminal()
    columns = list(columns)
    width = max([LABEL_MIN, *(len(heading) + 2 for heading, _, _ in columns)])
    for heading, path, show in columns:
        value = visible(show(pick(record, path), human))
        label = _label(heading) + ":" if human else heading.lower().replace(" ", "_")
        coloured = _coloured(value) if show is state else value
        print(f"{label:<{width}}{coloured}" if human else f"{label}\t{value}")


def _label(heading: str) -> str:
    """A heading as a label: `GPU MODE` is `GPU mode`."""
    label = " ".join(ACRONYMS.get(part, part.lower()) for part in heading.split(" "))
    return label[:1].upper() + label[1:]


def _widths(rows: list[list[str]]) -> list[int]:
    return [max(map(_width, column)) for column in zip(*rows, strict=True)]


def _excess(widths: list[int]) -> int:
    """By how many screen columns a table is too wide for the terminal."""
    return sum(widths) + len(GAP) * (len(widths) - 1) - terminal_columns(sys.stdout)


def _align(rows: list[list[str]], columns: list[Column]) -> None:
    """Print rows as a table, with the widest columns cut to fit; an address, id or name is never cut."""
    shows = [show for _, _, show in columns]
    widths = _widths(rows)
    over = _excess(widths)
    cut = [
        number
        for number, (_, path, show) in enumerate(columns)
        if show is not url and path.rpartition(".")[2] not in UNCUT
    ]
    while over > 0 and any(widths[number] > COLUMN_MIN for number in cut):
        widths[max(cut, key=widths.__getitem__)] -= 1
        over -= 1
    for row in rows:
        cells = [_fitted(cell, width) for cell, width in zip(row, widths, strict=True)]
        coloured = [
            _coloured(cell) if show is state else cell for cell, show in zip(cells, shows, strict=True)
        ]
        print(GAP.join(coloured).rstrip())


def terminal_columns(stream: TextIO) -> int:
    """The width of the terminal; 80 if unknown."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def dumb() -> bool:
    """Whether the terminal has no escape sequences."""
    return os.environ.get("TERM", "dumb") == "dumb"


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def _fitted(cell: str, width: int) -> str:
    """The cell cut and padded to a width in screen columns."""
    if _width(cell) > width:
        while _width(cell) > width - 1:
            cell = cell[:-1]
        cell += "…"
    return cell + " " * (width - _width(cell))


def _coloured(cell: str) -> str:
    colour = COLOURS.get(cell.strip().partition(" ")[0])
    if colour is None or os.environ.get("NO_COLOR") or dumb():
        return cell
    return f"\x1b[{colour}m{cell}\x1b[0m"


# --- raw data, container output, messages ----------------------------------------------------


def raw(body: bytes) -> None:
    """Print a response body unchanged; on a terminal with JSON escapes for unprintable characters."""
    if not on_terminal():
        write_bytes(body)
        return
    from json import dumps

    text = body.decode("utf-8", "backslashreplace").rstrip("\n")
    escaped = "".join(char if char.isprintable() or char in "\n\t" else dumps(char)[1:-1] for char in text)
    if escaped:
        print(escaped)


def write_bytes(content: bytes) -> None:
    """Write bytes to standard output, after the text printed so far."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def items_json(records: list[Any]) -> None:
    """Print records as the API prints a list."""
    json_object({"items": records, "total": len(records)})


def json_object(value: dict[str, Any]) -> None:
    """Print an object of the command's own, in the form of the API's answers."""
    from svc_helper.wire.quick_json import dumps

    raw(dumps(value, is_compact=True).encode() + b"\n")


def captured(text: str) -> None:
    """Print text of others; on a terminal its colours stay, other control characters are escaped."""
    printer = Captured()
    printer.write(text)
    printer.end()


def document(text: str) -> None:
    """Print a file's text on a terminal: lines and tabs stay, other control characters are escaped."""
    lines = text.replace("\r\n", "\n").split("\n")
    escaped = "\n".join("\t".join(visible(cell) for cell in line.split("\t")) for line in lines)
    sys.stdout.write(escaped + ("" if not text or escaped.endswith("\n") else "\n"))


class Captured:
    """Prints a container's output piece by piece: its bytes to a pipe or a file.

    On a terminal its colours stay, and other control characters are escaped.
    """

    def __init__(self) -> None:
        self.printed = False
        self.held = ""  # an incomplete colour sequence, completed by the next piece
        self.last = "\n"
        self._decode: Callable[[bytes], str] | None = None  # keeps an incomplete character

    def write_bytes(self, content: bytes) -> None:
        """Print one more piece of raw output."""
        if on_terminal():
            if self._decode is None:
                from codecs import getincrementaldecoder

                self._decode = getincrementaldecoder("utf-8")("replace").decode
            self.write(self._decode(content))
        elif content:
            self.printed = True
            write_bytes(content)

    def write(self, text: str) -> None:
        """Print one more piece of text."""
        if on_terminal():
            text = self._escaped(text)
        if text:
            self.printed, self.last = True, text[-1]
            sys.stdout.write(text)

    def remark(self, message: str) -> None:
        """Print a remark to standard error, on a terminal on a line of its own."""
        if on_terminal():
            self.end()
        note(message)

    def _escaped(self, text: str) -> str:
        from re import search, split

        text, self.held = self.held + text, ""
        incomplete = search(r"\x1b(\[[0-9;]{0,32})?\Z", text)
        if incomplete:
            text, self.held = text[: incomplete.start()], incomplete[0]
        parts = split(r"(\x1b\[[0-9;]*m|[\r\n\t])", text)  # every second one is a harmless sequence
        return "".join(part if index % 2 else visible(part) for index, part in enumerate(parts))

    def end(self) -> None:
        """End the last line."""
        if self.held:
            text, self.held = visible(self.held), ""
            self.last = text[-1]
            sys.stdout.write(text)
        if self.last != "\n":
            sys.stdout.write("\n")
            self.last = "\n"


def outcome(sentence: str, columns: Iterable[Column], record: Any) -> None:
    """Print the outcome of a command: a sentence for people, the record's line for programs."""
    if on_terminal():
        print(visible(sentence))
    else:
        table(columns, [record], "")


def plural(number: int, noun: str) -> str:
    """`1 token`, `2 tokens`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def note(message: str) -> None:
    """Print a remark to standard error."""
    sys.stdout.flush()
    remark(f"svc: {visible(message)}")


def remark(text: str) -> None:
    """Write lines to standard error; that nobody reads them changes nothing else."""
    draw(text + "\n")


def draw(text: str) -> None:
    """Write to standard error what may be lost."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Redirect a stream to /dev/null, with what it still holds."""
    try:
        number = stream.fileno()
    except OSError:
        return  # a stream in memory
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)


def error(error: SvcError) -> int:
    """Print `svc: message`, the fields and the hint to standard error; returns the exit code."""
    lines = [f"svc: {visible(error.message)}"]
    for field in error.fields:
        if field["message"].rstrip(".") not in error.message:  # which names a single one already
            message = field["message"].rstrip(".")  # as that of a single one
            lines.append(f"  {visible(spoken(field['field']))}: {visible(message)}")
    lines += [f"  {visible(line)}" for line in error.details.get("output", ())]
    if engine := error.details.get("engine"):
        lines.append(f"engine: {visible(engine)}")
    if error.hint:
        lines.append(f"hint: {visible(error.hint)}")
    sys.stdout.flush()
    remark("\n".join(lines))
    return error.exit_code


def again(args: Arguments, *command: str) -> str:
    """The command line with the options that were typed, for a hint that repeats it."""
    typed = vars(args)
    owner = ["--owner", typed["owner"]] if typed.get("owner") else []
    flags = [f"--{name}" for name in REPEATED if typed.get(name)]
    return " ".join(map(shell_quote, [*command, *owner, *flags]))


def confirm(question: str, confirmed: bool, command: str, facts: Callable[[], Iterable[str]] = tuple) -> None:
    """Ask before a loss of data: "ask only on a terminal and otherwise need `--yes`".

    `facts`, looked up only where somebody is asked, are lines above the question. "Aborting a
    confirmation exits with code 1": raises Aborted, for Ctrl-C and Ctrl-D too.
    """
    if confirmed:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Aborted(f"{question} Without a terminal this needs --yes", hint=f"{command} --yes")
    try:
        for line in facts():
            sys.stderr.write(visible(line) + "\n")
        reply = _answer(visible(question) + " [y/N] ")
    except KeyboardInterrupt:
        reply = ""
    if not reply:  # Ctrl-C or Ctrl-D: the cursor is still behind the question
        sys.stderr.write("\n")
    if reply.strip().lower() not in ("y", "yes"):
        raise Aborted("not confirmed; nothing was done")


def _answer(question: str) -> str:
    """The line typed at a question; empty for Ctrl-D, raises KeyboardInterrupt for Ctrl-C.

    A Ctrl-C between the question and read(2) would be noticed only after a line: select() sees it.
    """
    import select
    import signal

    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    try:
        sys.stderr.write(question)
        sys.stderr.flush()
        select.select([0, wake], [], [])
        return sys.stdin.readline()
    finally:
        signal.set_wakeup_fd(before)
        os.close(wake)
        os.close(woken)
