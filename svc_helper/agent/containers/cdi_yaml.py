"""Converts a CDI specification in YAML on standard input to JSON on standard output.

Run by cdi.py for YAML files only. PyYAML is installed with svc, beside svc_helper.
"""

from __future__ import annotations

import json
import resource
import sys

_MEMORY = 512 * 1024 * 1024
_RESULT_MAX = 4 * 1024 * 1024
_SECONDS = 10


def main() -> None:
    """Convert within limits, since a few lines of YAML can expand to gigabytes; exit status 1 on errors."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_RESULT_MAX, _RESULT_MAX))
    try:
        import yaml
    except ImportError:
        import site

        site.main()  # the packages of Debian or of a virtual environment
        import yaml
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        spec = yaml.load(sys.stdin.buffer, Loader=loader)  # noqa: S506  a safe loader, in C if available
        json.dump(spec, sys.stdout, default=str)
        sys.stdout.flush()
    except (yaml.YAMLError, ValueError, OSError, RecursionError, MemoryError):
        sys.exit(1)
