"""The command line that runs one of our modules in an isolated Python interpreter of its own."""

from __future__ import annotations

import os
import sys

SITE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def command(module: str, *arguments: str) -> list[str]:
    """The argument vector that calls `module`'s main().

    `-I` ignores the caller's environment and user site; `-S` skips site and its
    start-up cost, so the directory that holds our packages is added by hand.
    """
    code = f"import sys; sys.path.insert(0, {SITE!r}); from {module} import main; sys.exit(main())"
    return [sys.executable, "-I", "-S", "-c", code, *arguments]
