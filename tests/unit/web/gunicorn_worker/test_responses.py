"""What gunicorn adds to the responses of both listeners."""

from __future__ import annotations

from typing import Any

from unit.web.gunicorn_worker.test_listeners import served, socket_folder  # noqa: F401  (fixtures)


def test_no_answer_names_the_server(served: Any) -> None:  # noqa: F811  (fixture)
    for listener in (served("unix"), served("tls")):
        garbage = listener.send("GARBAGE\r\n\r\n")
        for answer in (listener.ask("GET", "/api/health"), listener.ask("GET", "/nope"), garbage):
            assert "server:" not in answer.head.lower()
            assert "gunicorn" not in answer.head.lower()
