"""What a process without privileges does for an update: HTTPS requests, into memory or root's descriptor.

Nothing of an answer is believed: sizes and times are bounded here, and root checks the signature and
the digest of what it gets. Proxies and certificate authorities are those of the environment and the host.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401  before the account changes, as all else that a request needs
import http.client
import os
import re
import resource
import signal
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from svc.admin.backup.sqlite_descriptor import end_with
from svc.errors import ReleaseUnavailable
from svc.limits import FILE_RATE_MIN, FILE_RATE_S

AGENT = "svc-update"
ANSWER_S = 60.0  # for a whole small file, and for the head of an answer
TRIES = 5  # that brought nothing more
WAIT_S = 2.0  # between two of them
REDIRECTS_MAX = 5
RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")
FAULTS = (OSError, http.client.HTTPException, ValueError)


class SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a few redirects, to https only."""

    max_redirections = REDIRECTS_MAX

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The next request; raises ReleaseUnavailable for another scheme."""
        if not newurl.lower().startswith("https://"):
            raise ReleaseUnavailable(f"{req.full_url} leads away from https, to {newurl[:200]}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class TooSlow(OSError):
    """The time for an answer, or for a part of it, is over."""


def small(url: str, most: int, parent: int) -> dict[str, Any]:
    """The content of a file of at most `most` bytes: {"content": hexadecimal}."""
    end_with(parent)
    try:
        with within(ANSWER_S), _opened(url) as answer:
            content = answer.read(most + 1)
    except FAULTS as error:
        raise _unavailable(url, error) from None
    if len(content) > most:
        raise ReleaseUnavailable(f"{url} has more than {most} bytes")
    return {"content": content.hex()}


def whole(url: str, descriptor: int, size: int, parent: int) -> dict[str, Any]:
    """Complete a file that has been fetched in part or not at all: {"resumed": how many bytes it had}."""
    end_with(parent)
    if os.getpid() != parent:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    resumed = at = os.fstat(descriptor).st_size
    failures = 0
    while at < size:
        before = at
        try:
            _append(url, descriptor, size)
        except FAULTS as error:
            at = os.fstat(descriptor).st_size
            failures = failures + 1 if at <= before else 1
            if failures >= TRIES or _is_final(error):
                raise _unavailable(url, error) from None
            time.sleep(WAIT_S)
        at = os.fstat(descriptor).st_size
    return {"resumed": resumed}


def _append(url: str, descriptor: int, size: int) -> None:
    """Ask for what is missing and append it; a server without ranges begins again."""
    at = os.fstat(descriptor).st_size
    with within(ANSWER_S):
        answer = _opened(url, at)
    with answer:
        if at and answer.status != http.HTTPStatus.PARTIAL_CONTENT:
            os.ftruncate(descriptor, 0)
            at = 0
        _require_size(url, answer, at, size)
        while at < size:
            with within(FILE_RATE_S):
                part = answer.read(min(FILE_RATE_MIN, size - at))
            if not part:
                raise http.client.IncompleteRead(b"", size - at)
            at += os.pwrite(descriptor, part, at)


def _require_size(url: str, answer: http.client.HTTPResponse, at: int, size: int) -> None:
    """Raise ReleaseUnavailable unless the answer is the rest of a file of that size."""
    if at:
        found = RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if found and (int(found[1]), int(found[3])) == (at, size):
            return
    elif answer.headers.get("Content-Length") in (None, str(size)):
        return
    raise ReleaseUnavailable(f"{url} has another size than the {size} bytes that were signed")


def _opened(url: str, start: int = 0) -> http.client.HTTPResponse:
    context = ssl.create_default_context()
    handlers = (urllib.request.HTTPSHandler(context=context), SecureRedirects())
    opener = urllib.request.build_opener(*handlers)
    request = urllib.request.Request(url, headers={"User-Agent": AGENT})  # noqa: S310  https, by the setting
    if start:
        request.add_header("Range", f"bytes={start}-")
    answer: http.client.HTTPResponse = opener.open(request, timeout=ANSWER_S)
    return answer


def _is_final(error: Exception) -> bool:
    """Whether another try would fail as this one did."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code < http.HTTPStatus.INTERNAL_SERVER_ERROR
    reason = getattr(error, "reason", error)
    return isinstance(reason, ssl.SSLCertVerificationError | ValueError)


def _unavailable(url: str, error: Exception) -> ReleaseUnavailable:
    """The error for people; what the server wrote is not repeated."""
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return ReleaseUnavailable(f"{url}: the server answered {error.code}")
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        why = f"the server's certificate is not accepted: {reason.verify_message}"
    elif isinstance(reason, TooSlow | TimeoutError):
        why = "the server is too slow"
    elif isinstance(reason, http.client.IncompleteRead):
        why = "the connection was cut"
    else:
        why = getattr(reason, "strerror", None) or type(reason).__name__
    return ReleaseUnavailable(f"{url}: {why}")


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooSlow in the block when it takes longer, whatever it waits for."""

    def end(_number: int, _frame: object) -> None:
        raise TooSlow

    handler = signal.signal(signal.SIGALRM, end)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)
