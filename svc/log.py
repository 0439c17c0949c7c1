"""One structured line on standard error: the log of every svc process but the helper.

JSON, so that nothing a user named can forge a line; never a secret, never a
body, never an environment. journald or the starter's file keeps it.
"""

from __future__ import annotations

import json
import re
import sys
import time

REDACTED = "[redacted]"

# A token's secret, also as a URL may spell it; its first four characters are no secret (lists show them).
_SECRET = re.compile(r"(svc(?:_|%5f)pat(?:_|%5f)[0-9a-z]{4})[0-9a-z]+", re.IGNORECASE)


def redacted(text: str) -> str:
    """The text without the secret of any token in it."""
    if "svc" not in (lowered := text.lower()) or "pat" not in lowered:
        return text
    return _SECRET.sub(rf"\1{REDACTED}", text)


def log(process: str, message: str, level: str = "info", **facts: object) -> None:
    """Write {at, level, process, message, ...facts} as one line, at once."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps(
        {"at": at, "level": level, "process": process, "message": message, **facts}, default=str
    )
    sys.stderr.write(redacted(line) + "\n")
    sys.stderr.flush()
