"""The command line that runs one of our modules in an isolated Python interpreter of its own."""

from __future__ import annotations

import os
import sys

SITE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs `module`'s main() and exits with its result.

    `-I` ignores environment and user site; `-S` skips site and its start-up cost, so the
    directory of our packages is added to the path here.
    """
    code = f"import sys; sys.path.insert(0, {SITE!r}); from {module} import main; sys.exit(main())"
    return [sys.executable, "-I", "-S", "-c", code, *arguments]
