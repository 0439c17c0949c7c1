"""One structured line on standard error: the log of every svc process but the helper.

JSON, so that nothing a user named can forge a line; never a secret, never a
body, never an environment. journald or the starter's file keeps it.
"""

from __future__ import annotations

import json
import sys
import time


def log(process: str, message: str, level: str = "info", **facts: object) -> None:
    """Write {at, level, process, message, ...facts} as one line, at once."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps(
        {"at": at, "level": level, "process": process, "message": message, **facts}, default=str
    )
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
