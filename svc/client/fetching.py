"""Fetch a file over the host-local socket: the counterpart of svc.client.sending.

No HTTP library is used: its import takes longer than the download of a small file.
"""

from __future__ import annotations

from svc.client import transport
from svc.errors import BadAnswer, Unreachable
from svc.limits import ANSWER_WAIT_S

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterator


class Fetched:
    """An answer whose body is a file that is not read yet; a context manager. `size` is None if unknown."""

    __slots__ = ("_again", "_opened", "fields", "size")

    def __init__(self, path: str, most: int | None, *, again: str = "") -> None:
        """GET a file of at most `most` bytes (None: any size, also in chunks); raises the answer's error.

        `again` is the command to run when the connection breaks.
        """
        self._again = again
        self._opened = transport.Download(path, ANSWER_WAIT_S, again)
        self.fields = self._opened.fields
        try:
            self.size = self._announced(most)
        except BadAnswer:
            self._opened.close()
            raise

    def _announced(self, most: int | None) -> int | None:
        if most is None and self.fields.get("transfer-encoding", "").lower() == "chunked":
            return None
        length = self.fields.get("content-length", "")
        if not length.isascii() or not length.isdigit() or len(length) > 18:
            raise BadAnswer("the service's answer has an invalid length")
        if most is not None and int(length) > most:
            raise BadAnswer(f"the service's answer is larger than {most} bytes")
        return int(length)

    def __enter__(self) -> Fetched:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def parts(self) -> Iterator[bytes]:
        """Yield `size` bytes, or all up to the last chunk; raises BadAnswer if fewer come, or Unreachable."""
        try:
            yield from self._opened.parts(self.size)
        except (BadAnswer, Unreachable) as error:
            error.hint = self._again or error.hint
            raise
        if not self._opened.complete:
            hint = self._again or transport.remedy()
            raise BadAnswer("the service's answer was cut short", hint=hint)
