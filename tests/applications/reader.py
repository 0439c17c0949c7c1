"""A user who types what docs/examples.md says."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from e2e.installation import ROOT, Outcome, Service, run
from e2e.pages import Block, blocks, play
from e2e.surroundings import must
from waiting import until

USER = "tsx-ada"
PORT = r"\bPORT\b"  # SVC_PORT is another word


def page(name: str) -> list[Block]:
    """The blocks of a page of the documentation."""
    return blocks(ROOT / "docs" / name)


class Reader:
    """A user who types the commands of one section of the page."""

    def __init__(self, service: Service, base: str, workspace: str, ready: str) -> None:
        self.env, self.base, self.workspace, self.ready = service.env, base, workspace, ready

    @property
    def port(self) -> int:
        """The number of the workspace's port on the host."""
        (port,) = must(self.svc("ws", "ports", self.workspace, "--json")).json()["items"]
        return int(port["host_port"])

    def svc(self, *argv: str) -> Outcome:
        """A command of the user's."""
        return run(USER, *argv, env=self.env, timeout=300)

    def launcher(self) -> dict[str, Any]:
        """Its only launcher, with what is its owner's alone."""
        (launcher,) = must(self.svc("ws", "launchers", self.workspace, "--json")).json()["items"]
        return dict(launcher)

    def log(self) -> str:
        """What the launcher has written."""
        return must(self.svc("ws", "logs", self.workspace, "--launcher", self.launcher()["name"])).out

    def follow(self, heading: str) -> str:
        """Type the section's blocks; what they printed."""
        found = [block for block in page("examples.md") if block.heading == heading]
        assert found and {block.kind for block in found} == {"sh"}
        return "".join(self.type(block.text) for block in found)

    def type(self, text: str) -> str:
        """Type commands, with another base image, and a number for PORT once the application is ready."""
        text = re.sub(r"(--example \S+)", rf"\1 --base {self.base}", text)
        if re.search(PORT, text):
            self.wait()
            text = re.sub(PORT, str(self.port), text)
        outcome = play(USER, text, self.env, timeout=900)
        assert outcome.code == 0, f"{text}{outcome.out}{outcome.err}"
        return outcome.out + outcome.err

    def wait(self) -> None:
        """Until the application says that it is ready."""
        try:
            until(lambda: self.ready in self.log(), 180, 0.5)
        except AssertionError:
            raise AssertionError(self.log()) from None

    def fetch(self, path: str, content: bytes | None = None) -> Any:
        """The JSON answer of the application."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=content)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


Make = Callable[[str, str, str], Reader]  # (example, workspace, what its log says when it is ready)


@contextmanager
def closing(connection: Any) -> Iterator[Any]:
    """The connection, closed at the end with its socket."""
    try:
        yield connection
    finally:
        connection.close()
