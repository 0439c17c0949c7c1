"""What every page is asked, whatever it shows: widths, names, focus, commands, and what axe-core finds."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from pages.canned import AXE, AXE_PATH
from pages.chromium import Driver

from svc import __main__ as program
from svc.errors import UsageError

LOOK = Path(__file__).with_name("look.js").read_text()
# As a script of the page's own origin: the browser keeps what it has compiled of it.
LOAD = "const [path, done] = arguments; import(path).then(() => done(), error => done(`${error}`))"
MOST_STOPS = 120

# Widths in CSS pixels, and how many of the screen each has: a window of 1440 px at 200 % is 720 wide.
WIDTHS = ((320, 1), (390, 1), (768, 1), (1024, 1), (1440, 1), (1920, 1), (720, 2))
# Of those that axe-core leaves out by itself: WCAG 2.2, targets of 24 by 24 pixels.
RULES = {"target-size": {"enabled": True}}
OPERATORS = {"&&", "||", "|", ";", "&", "(", ")", ");", "))"}
REDIRECTIONS = {"<", "<<<", ">", ">>", "2>"}
OTHERS = ("ssh", "curl", "cd", "cat", "echo", "printf", "tar", "umask")  # what a line may have besides svc
INSTEAD = ("1", "a", "1g", "A=1", "web=1")  # of a placeholder in capitals


def ask(driver: Driver, question: str) -> Any:
    """The answer of look.js."""
    if question in ("unchanging", "moved", "unasked"):
        return driver.execute_async_script(LOOK, question)
    return driver.execute_script(LOOK, question)


def resize(driver: Driver, width: int, height: int = 900, scale: float = 1) -> None:
    """As a window of this size would be, narrower than any window can be made."""
    size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def prefer(driver: Driver, scheme: str) -> None:
    """The system's colour scheme; an empty one is the browser's own."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def restore(driver: Driver) -> None:
    """The browser's own size and scheme."""
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    prefer(driver, "")


def violations(driver: Driver, *, only: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> list[str]:
    """What axe-core finds, by all its rules, by these, or without these: the rule, an element, why."""
    if not driver.execute_script("return Boolean(window.axe)"):
        assert AXE.exists(), "axe-core is missing: tests/run pages fetches it"
        failed = driver.execute_async_script(LOAD, AXE_PATH)
        assert not failed, failed
    rules: dict[str, Any] = {rule: {"enabled": False} for rule in without}
    if not driver.execute_script("return Boolean(document.querySelector('details.menu[open]'))"):
        rules |= RULES  # an open menu lies over others until it is closed
    options: dict[str, Any] = {"resultTypes": ["violations"], "rules": rules}
    if only:
        options |= {"runOnly": list(only)}
    script = (
        "const [options, done] = arguments; axe.run(document, options).then(({violations}) =>"
        " done(violations.flatMap(({id, nodes}) => nodes.slice(0, 4).map(node =>"
        " `${id}: ${node.target.join(' ')}: ${node.failureSummary.split('\\n').slice(1).join(';')}`))),"
        " error => done([`axe: ${error}`]))"
    )
    return list(driver.execute_async_script(script, options))


def faults_of_focus(driver: Driver) -> list[str]:
    """Go through the page by Tab: each control once, seen while it has the focus."""
    if driver.execute_script("return Boolean(document.querySelector('.xterm'))"):
        return []  # every key is the shell's
    count = ask(driver, "walk")
    key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
    for _ in range(min(count + 2, MOST_STOPS)):
        for kind in ("rawKeyDown", "keyUp"):
            driver.execute_cdp_cmd("Input.dispatchKeyEvent", key | {"type": kind})
        if driver.execute_script("return Boolean(window.svcWalk.isRound)"):
            break
    found: list[str] = ask(driver, "walked")
    return [fault for fault in found if count < MOST_STOPS or not fault.startswith("Tab does not")]


_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'")  # how svc itself quotes what cannot be printed


def _plainly(found: re.Match[str]) -> str:
    pieces = re.split(r"\\x([0-9a-f]{2})", found[1])
    data = b"".join(bytes([int(piece, 16)]) if at % 2 else piece.encode() for at, piece in enumerate(pieces))
    return shlex.quote(os.fsdecode(data))


def segments(line: str) -> Iterator[list[str]]:
    """The commands of a line, without what is read or written; raises ValueError for what no shell takes."""
    words: list[str] = []
    lexer = shlex.shlex(_ANSI.sub(_plainly, line), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    parts = list(lexer)
    at = 0
    while at < len(parts):
        part = parts[at]
        if part in OPERATORS:
            yield words
            words = []
        elif part in REDIRECTIONS:
            at += 1
        else:
            words.append(part)
        at += 1
    yield words


def fault_of_command(line: str) -> str:
    """Why the real program would not take a line; words in capitals stand for what the person knows."""
    try:
        commands = [words for words in segments(line) if words]
    except ValueError as error:
        return f"no shell takes it ({error})"
    for words in commands:
        words = words[1:] if words[0] == "sudo" else words
        if words and words[0] in OTHERS:
            continue
        if not words or words[0] != "svc":
            return "it is no command of svc"
        reason = _refusal(words[1:])
        if reason:
            return reason
    return "" if commands else "it is empty"


def _refusal(argv: list[str]) -> str:
    """The program's own words on a command line; empty if some values of its placeholders are right."""
    if not argv:
        return "it names no command"
    places = [at for at, word in enumerate(argv) if word.isupper() and word.replace("-", "").isalpha()]
    reason = ""
    for values in product((None, *INSTEAD), repeat=min(len(places), 3)):
        chosen = {place: value for place, value in zip(places, values, strict=False) if value}
        try:
            words, _ = program._split_exec([chosen.get(at, word) for at, word in enumerate(argv)])
            if words[0] not in program.COMMANDS:
                return f"there is no svc {words[0]}"
            program._parse(words)
            return ""
        except UsageError as error:
            reason = reason or error.message
        except SystemExit:  # --help
            return ""
    return reason


def faults_of_commands(driver: Driver) -> list[str]:
    """Of what the page shows as commands, what is none."""
    shown = {command: where for where, command in reversed(ask(driver, "commands"))}
    found = ((command, where, fault_of_command(command)) for command, where in shown.items())
    return [f"command: {where}: {command!r}: {reason}" for command, where, reason in found if reason]


def hostile(value: Any, keys: frozenset[str], text: str) -> Any:
    """The same answer, in which every such text is another one."""
    if isinstance(value, dict):
        return {
            key: text if key in keys and isinstance(one, str) and one else hostile(one, keys, text)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(hostile(one, keys, text) for one in value)
    return value
