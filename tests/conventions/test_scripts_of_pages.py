"""The scripts of the pages: no mark-up from text, styles by one module, requests by one."""

from __future__ import annotations

import re

from conventions.inspection import ROOT

STATIC = ROOT / "svc/web/pages/static"
SHELLS = ROOT / "svc/web/pages/shells"
LINES_MAX = 600  # as a module of Python
# What turns text into mark-up or code, or goes around the fetch module.
FORBIDDEN = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|parseFromString|createContextualFragment|srcdoc"
    r"|document\.write|eval|Function|XMLHttpRequest|EventSource|sendBeacon|cssText|createPolicy)\b"
    r"|\.style\b|setTimeout\(\s*['\"`]|javascript:"
)

# xterm.js writes <style> elements and attributes, which the policy refuses; here they become objects.
STYLES_BY_SCRIPT = "live/terminal_policy.js"


# fetch tells no progress of what is sent over HTTP/1.1; its headers and errors are those of the fetch module.
PROGRESS = "files/sending.js"


def sources() -> dict[str, str]:
    """The scripts without their comments."""
    return {
        path.relative_to(STATIC).as_posix(): re.sub(r"(?m)(^|\s)//.*$|/\*(?s:.*?)\*/", "", path.read_text())
        for path in sorted(STATIC.rglob("*.js"))
    }


def test_no_script_makes_mark_up_of_text() -> None:
    found = {name: set(FORBIDDEN.findall(text)) for name, text in sources().items() if FORBIDDEN.search(text)}
    assert found == {PROGRESS: {"XMLHttpRequest"}, STYLES_BY_SCRIPT: {"", "cssText"}}  # "": .style
    assert "from '../frame/api.js'" in sources()[PROGRESS]
    assert sources()[STYLES_BY_SCRIPT].count(".style") == 1


def test_connections_of_a_terminal_are_made_by_one_module() -> None:
    assert [name for name, text in sources().items() if "WebSocket(" in text] == ["live/terminal_link.js"]


def test_requests_are_sent_by_one_module() -> None:
    """And the question whether the service is back, which carries no credential, by the stream's."""
    assert {name for name, text in sources().items() if re.search(r"\bfetch\(", text)} == {
        "frame/api.js",
        "frame/events.js",
    }
    assert re.findall(r"\bfetch\(([^,]*),", sources()["frame/events.js"]) == ["'/api/health'"]


def test_screens_have_one_life_cycle() -> None:
    """Reading, rendering, errors and refreshing: nobody else starts the frame or follows the events."""
    holders = {name for name, text in sources().items() if re.search(r"\b(startFrame|goLive)\b", text)}
    assert holders == {"frame/frame.js", "screen/page.js"}


def test_fields_have_one_kit() -> None:
    """What is wrong with a field is said by parts/form.js, wherever the form is."""
    assert {name for name, text in sources().items() if "field-error" in text} == {"parts/form.js"}


def test_only_the_fetch_module_knows_the_secret() -> None:
    holders = {
        name
        for name, text in sources().items()
        if "X-Svc-Session" in text or "localStorage.setItem(KEY" in text
    }
    assert holders == {"frame/api.js"}


def test_scripts_are_short_and_say_what_they_are_for() -> None:
    for path in STATIC.rglob("*.js"):
        text = path.read_text()
        assert text.startswith("// "), path.name
        assert text.count("\n") <= LINES_MAX, path.name


def test_no_folder_of_scripts_is_large() -> None:
    for folder in (STATIC, *(path for path in STATIC.iterdir() if path.is_dir())):
        assert len(list(folder.iterdir())) <= 25, folder.name


def test_shells_escape_everything() -> None:
    """Autoescape is on; nothing turns it off, and no shell has code of its own."""
    for path in SHELLS.glob("*.html"):
        text = path.read_text()
        assert not re.search(r"\|\s*safe\b|autoescape|<style|\sstyle=|\son[a-z]+=", text), path.name
        assert not re.search(r"<script(?![^>]* src=)", text), path.name


def test_colours_are_in_the_tokens_alone() -> None:
    """tokens.css names each colour once, for both schemes; others are the terminal's, dark in both."""
    text = (STATIC / "app.css").read_text()
    assert len(re.findall(r"#[0-9a-fA-F]{3,8}\b", text)) <= 20
