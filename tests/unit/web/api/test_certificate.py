"""`GET /api/certificate`: the chain of the TLS listener, for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from unit.web.conftest import PEM, UIDS

PATH = "/api/certificate"
OTHER = PEM.replace("MAA=", "MAMCAQE=")


@pytest.mark.parametrize("who", [None, "ada", "stranger", "root", "half", "gone"])
def test_everybody_has_it_on_both_listeners(listeners: Any, who: str | None) -> None:
    assert who is None or who in UIDS
    answer = listeners.ask(who, "GET", PATH)
    assert (answer.status_code, answer.text) == (200, PEM)
    assert answer.content_type == "application/x-pem-file"
    assert answer.headers["Cache-Control"] == "no-cache"


def test_who_has_it_gets_a_renewed_one_alone(listeners: Any, settings: Any) -> None:
    tag = listeners.ask(None, "GET", PATH).headers["ETag"]
    again = listeners.ask(None, "GET", PATH, headers={"If-None-Match": tag})
    assert (again.status_code, again.data) == (304, b"")
    Path(settings.state_dir, "chain.pem").write_text(OTHER)
    renewed = listeners.ask(None, "GET", PATH, headers={"If-None-Match": tag})
    assert (renewed.status_code, renewed.text) == (200, OTHER)
    assert renewed.headers["ETag"] != tag


def test_an_unreadable_file_and_plain_http_have_none(listeners: Any, settings: Any) -> None:
    Path(settings.state_dir, "chain.pem").unlink()
    refused = listeners.ask("ada", "GET", PATH).get_json()["error"]
    assert (refused["code"], "SVC_TLS_CERT" in refused["message"]) == ("not_found", True)
    assert settings.state_dir not in str(refused)
    plain = listeners.ask(None, "GET", PATH, dev=True).get_json()["error"]
    assert (plain["code"], "--dev" in plain["message"]) == ("not_found", True)


def test_it_takes_no_parameters(listeners: Any) -> None:
    assert listeners.ask(None, "GET", f"{PATH}?path=key.pem").status_code == 422
