"""Command lines of svc in texts for readers, and what of them the program does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from svc.__main__ import COMMANDS, declaration
from svc.commandline.arguments import Command, CommandGroup, Deferred

FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4,}(\S.*)$", re.MULTILINE)
INLINE = re.compile(r"`([^`]+)`")
BEGIN = re.compile(r"(?<![\w./-])(?<!-[ogu] )svc (?=[a-z-])")  # not `install -o svc`, `journalctl -u svc`
END = re.compile(r"\s--\s|\s--$|\s#|[|&>;)`\n]| {3,}|\.\.\.")  # of a command line
COMMAND = re.compile(r"[a-z][a-z-]*")
OPTION = re.compile(r"--[a-z][a-z-]*")


def command_lines(text: str) -> Iterator[str]:
    """Each `svc ...` in the code of a Markdown text: in blocks, indented or inline."""
    rest = FENCED.sub("", text)
    inline = [" ".join(code.split()) for code in INLINE.findall(INDENTED.sub("", rest))]
    for code in (*FENCED.findall(text), *INDENTED.findall(rest), *inline):
        for found in BEGIN.finditer(code):
            yield END.split(code[found.start() :], maxsplit=1)[0].strip()


def faults(line: str) -> list[str]:
    """What of a command line does not exist: a command or options."""
    words = line.split()[1:]
    if not words or words[0] in ("help", "--version", "--help"):
        return []
    if words[0] not in COMMANDS:
        return [words[0]]
    declared: Command | CommandGroup | Deferred | None = declaration(words.pop(0))
    known = {"--help"}
    while isinstance(declared, CommandGroup):
        known |= {argument.name for argument in declared.options}
        at = next((place for place, word in enumerate(words) if COMMAND.fullmatch(word)), None)
        if at is None:
            break  # only the group is named
        found = declared.find(words[at])
        if found is None:
            return [words[at]]
        declared = found.load() if isinstance(found, Deferred) else found
        del words[at]
    if isinstance(declared, Command):
        known |= {argument.name for argument in declared.arguments}
    return [option for option in OPTION.findall(" ".join(words)) if option not in known]
