"""A page or a static file in memory, and its answer: compressed for whom takes it, 304 for whom has it."""

from __future__ import annotations

import gzip
import hashlib
from typing import NamedTuple

from flask import Response, request


class Content(NamedTuple):
    """The bytes of one page or file, plain and compressed; `tag` changes with them."""

    body: bytes
    compressed: bytes
    media_type: str
    tag: str


def of(body: bytes, media_type: str) -> Content:
    """Content with its tag, compressed: the same bytes always give the same."""
    return Content(body, gzip.compress(body, 9, mtime=0), media_type, hashlib.sha256(body).hexdigest()[:20])


def answer(content: Content, headers: dict[str, str]) -> Response:
    """The answer to a GET or HEAD of this content; 304 when the client has it already.

    Only what is the same for everybody is compressed: an answer that mixes a secret with a client's own
    words would tell the secret by its length.
    """
    is_compressed = request.accept_encodings["gzip"] > 0
    body = content.compressed if is_compressed else content.body
    response = Response(body, 200, headers, content_type=content.media_type)
    response.set_etag(f"{content.tag}-gzip" if is_compressed else content.tag)
    response.headers["Vary"] = "Accept-Encoding"
    if is_compressed:
        response.headers["Content-Encoding"] = "gzip"
    response.make_conditional(request.environ)
    return response
