"""`svc whoami`."""

from __future__ import annotations

import json

from fake_service import Service, Svc

ME = {
    "name": "alice",
    "uid": 1001,
    "display_name": "Alice",
    "superuser": False,
    "linux_account": {"name": "alice", "uid": 1001, "home": "/home/alice"},
    "via": "peer",
    "roots": ["work"],
}
GET = "GET /api/users/me"


def test_in_a_pipe(service: Service, svc: Svc) -> None:
    service.answer(GET, ME)
    done = svc("whoami")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[:3] == ["name\talice", "display_name\tAlice", "user_id\t1001"]
    assert "home\t/home/alice" in done.out


def test_on_a_terminal(service: Service, svc: Svc) -> None:
    service.answer(GET, ME)
    assert "Superuser:        no" in svc("whoami", terminal=True).out.splitlines()


def test_notices_are_printed_beside_the_record(service: Service, svc: Svc) -> None:
    """ "14 days before the end": administrators are told; standard output stays what programs read."""
    notice = {
        "code": "license_ending",
        "message": "the trial ends\x1b[2J",
        "hint": "sudo svc admin license request",
    }
    service.answer(GET, ME | {"notices": [notice]})
    done = svc("whoami")
    assert "trial" not in done.out
    assert done.err == "svc: the trial ends\\x1b[2J\nhint: sudo svc admin license request\n"


def test_json_is_the_answer_byte_for_byte(service: Service, svc: Svc) -> None:
    service.answer(GET, ME)
    assert svc("whoami", "--json").out == json.dumps(ME) + "\n"


def test_no_service_account_is_exit_code_3(service: Service, svc: Svc) -> None:
    """ "has no service account, or its setup is incomplete, the command exits with code 3"."""
    for code in ("account_missing", "account_incomplete"):
        service.replies.clear()
        service.refuse(GET, 403, code, "no account", hint="ask the administrator")
        assert svc("whoami") == (3, "", "svc: no account\nhint: ask the administrator\n")


def test_no_command_enables_an_account(svc: Svc) -> None:
    """ "There is no client-side command to enable an account": every word that could be one is unknown."""
    for line in ("enable", "whoami enable", "user enable alice", "account enable", "login", "register"):
        assert svc(*line.split()).code == 2


def test_it_takes_no_arguments(svc: Svc) -> None:
    assert svc("whoami", "alice").code == 2
