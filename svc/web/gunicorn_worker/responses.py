"""The responses of both listeners: gunicorn's, without the name of the server.

gunicorn has no setting for it, and a header of the app is sent beside gunicorn's own.
"""

from __future__ import annotations

from gunicorn.http import wsgi


class Response(wsgi.Response):
    """gunicorn's response without the header Server."""

    def default_headers(self) -> list[str]:
        """The status line and gunicorn's own headers, each with its line end."""
        return [line for line in super().default_headers() if not line.startswith("Server:")]


def install() -> None:
    """Make gunicorn answer with this class: once in the worker process."""
    wsgi.Response = Response
