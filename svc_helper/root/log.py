"""The helper's own log: one JSON line on standard error, in the shape of svc.log.

ASCII only, so no control character that somebody sent reaches a terminal. No
secret passes through the helper, so none can be written here.
"""

from __future__ import annotations

import json
import os
import time


def log(message: str, level: str = "info", **facts: object) -> None:
    """Write {at, level, process, message, ...facts}; a log that nobody reads stops no call."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"at": at, "level": level, "process": "helper", "message": message, **facts})
    try:
        os.write(2, line.encode() + b"\n")
    except OSError:
        pass
