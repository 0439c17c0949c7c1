"""A CDI specification in YAML on the standard input, as JSON on the standard output.

Run by cdi.py for such a file only. PyYAML is the one package that svc does not
bring for the agent alone; where svc is installed it lies beside svc_helper.
"""

from __future__ import annotations

import json
import resource
import sys

_MEMORY = 512 * 1024 * 1024
_RESULT_MAX = 4 * 1024 * 1024
_SECONDS = 10


def main() -> None:
    """Bounded, since a few lines of YAML can stand for gigabytes; its end is the exit status."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_RESULT_MAX, _RESULT_MAX))
    try:
        import yaml
    except ImportError:
        import site

        site.main()  # Debian's own packages, or those of a virtual environment
        import yaml
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        spec = yaml.load(sys.stdin.buffer, Loader=loader)  # noqa: S506  a safe one, by C where there is one
        json.dump(spec, sys.stdout, default=str)
        sys.stdout.flush()
    except (yaml.YAMLError, ValueError, OSError, RecursionError, MemoryError):
        sys.exit(1)
