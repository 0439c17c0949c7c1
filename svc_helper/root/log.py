"""The helper's log: one JSON line on standard error, with the keys of svc.log.

ASCII only, so that no untrusted control character reaches a terminal. No secret
passes through the helper.
"""

from __future__ import annotations

import json
import os
import time


def log(message: str, level: str = "info", **facts: object) -> None:
    """Write {at, level, process, message, ...facts}; a broken log does not stop a call."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"at": at, "level": level, "process": "helper", "message": message, **facts})
    try:
        os.write(2, line.encode() + b"\n")
    except OSError:
        pass
