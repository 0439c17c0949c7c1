"""The log of every svc process but the helper: structured lines on standard error.

JSON, so that no user-chosen text can forge a line. No secrets, no request bodies, no
environments.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time

REDACTED = "[redacted]"

# The secret of a token or ticket, percent-encoded or not; a token's first four characters are public
# (lists have them).
_SECRET = re.compile(r"(svc(?:_|%5f)(?:pat|tkt)(?:_|%5f)[0-9a-z]{4})[0-9a-z]+", re.IGNORECASE)


def redacted(text: str) -> str:
    """The text with the secrets of tokens and tickets redacted."""
    if "svc" not in (lowered := text.lower()) or not ("pat" in lowered or "tkt" in lowered):
        return text
    return _SECRET.sub(rf"\1{REDACTED}", text)


def log(process: str, message: str, level: str = "info", **facts: object) -> None:
    """Write {at, level, process, message, ...facts} as one line."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps(
        {"at": at, "level": level, "process": process, "message": message, **facts}, default=str
    )
    with contextlib.suppress(OSError):  # nobody reads the pipe any more, or the disk below a file is full
        sys.stderr.write(redacted(line) + "\n")
        sys.stderr.flush()
