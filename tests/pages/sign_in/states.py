"""The sign-in screen in its states."""

from __future__ import annotations

from pages.canned import Canned
from pages.states import State

SEND = (
    "const set = (name, value) => { const field = document.querySelector(`[name=${name}]`);"
    " field.value = value; field.dispatchEvent(new Event('input', { bubbles: true })); };"
    "set('username', 'ada'); set('password', 'three kites above the weir');"
    "document.querySelector('form').requestSubmit();"
)


def _wrong(canned: Canned) -> None:
    canned.refuse("POST /api/auth/login", 401, "unauthenticated", "the name or the password is wrong")


def _too_many(canned: Canned) -> None:
    canned.refuse("POST /api/auth/login", 429, "too_many_requests", "wait", after=600, retryable=True)


def _reset(canned: Canned) -> None:
    canned.refuse(
        "POST /api/auth/login",
        403,
        "password_reset_required",
        "the password must be set anew",
        hint="sudo svc admin set-password ada",
    )


FORM = "[name=username]"
STATES = {
    "form": State("/sign-in", FORM, signed_in=False),
    "help": State(
        "/sign-in", FORM, script="document.querySelector('details.more').open = true", signed_in=False
    ),
    "on its way": State(
        "/sign-in", FORM, lambda canned: canned.hold("POST /api/auth/login"), SEND, signed_in=False
    ),
    "wrong password": State("/sign-in", FORM, _wrong, SEND, signed_in=False),
    "too many tries": State("/sign-in", FORM, _too_many, SEND, signed_in=False),
    "refused with a command": State("/sign-in", FORM, _reset, SEND, signed_in=False),
    "no answer": State(
        "/sign-in", FORM, lambda canned: canned.break_off("POST /api/auth/login"), SEND, signed_in=False
    ),
}
