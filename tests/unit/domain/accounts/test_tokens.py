"""Personal access tokens: their form, their lifetime, and that the secret is nowhere."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.db.connect import database
from svc.domain.accounts import tokens, users
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import (
    AccountDisabled,
    Conflict,
    NameTaken,
    NotFound,
    StorageFull,
    TokenExpired,
    ValidationFailed,
)
from svc.host.ids import after
from svc.limits import TOKENS_PER_USER, USE_NOTED_S

START = "2030-01-01T00:00:00.000Z"
DAY = 24 * 3600
HERE = "192.0.2.9"

Clock = Callable[[float], str]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the time, in seconds after START."""
    times = [START]
    monkeypatch.setattr(tokens, "now", lambda: times[0])

    def at(seconds: float) -> str:
        times[0] = after(START, seconds)
        return times[0]

    return at


def listed(caller: Caller, **wish: Any) -> list[dict[str, Any]]:
    return list(tokens.page_of(caller, Page(**wish))["items"])


def columns_of(token_id: str, *names: str) -> Any:
    return database.execute_sql(f"SELECT {', '.join(names)} FROM tokens WHERE id = ?", (token_id,)).fetchone()


# --- the form -----------------------------------------------------------------------------


def test_a_secret_is_prefix_random_and_checksum() -> None:
    """ "the token starts with `svc_pat_`"."""
    created = {tokens._new_secret() for _ in range(200)}
    assert len(created) == 200
    for secret in created:
        assert re.fullmatch(r"svc_pat_[0-9A-Za-z]{43}[0-9A-Za-z]{6}", secret)
        assert tokens.well_formed(secret)


@pytest.mark.parametrize("number", [0, 1, 61, 62, 2**256 - 1])
def test_base62_keeps_its_length(number: int) -> None:
    digits = tokens._base62(number, 43)
    assert len(digits) == 43
    value = 0
    for digit in digits:
        value = value * 62 + tokens.BASE62.index(digit)
    assert value == number


def test_the_form_does_not_change_with_a_release() -> None:
    """Tokens of today are taken by every later version."""
    assert tokens.well_formed("svc_pat_" + "0" * 42 + "1" + "1mKXaR")
    assert tokens._base62(0xFFFFFFFF, 6) == "4gfFC3"


@given(position=st.integers(0, 56), character=st.characters())
def test_a_changed_character_is_not_well_formed(position: int, character: str) -> None:
    secret = tokens._new_secret()
    changed = secret[:position] + character + secret[position + 1 :]
    assert tokens.well_formed(changed) == (changed == secret)


@given(cut=st.integers(0, 56), more=st.text(min_size=1, max_size=8))
def test_another_length_is_not_well_formed(cut: int, more: str) -> None:
    secret = tokens._new_secret()
    assert not tokens.well_formed(secret[:cut])
    assert not tokens.well_formed(secret + more)
    assert not tokens.well_formed(more + secret)


@given(untrusted=st.text(max_size=80) | st.from_regex(r"svc_pat_[0-9A-Za-z]{49}", fullmatch=True))
def test_whatever_is_well_formed_has_its_checksum(untrusted: str) -> None:
    assert tokens.well_formed(untrusted) == (
        len(untrusted) == 57
        and untrusted.startswith("svc_pat_")
        and untrusted[-6:] == tokens._checksum(untrusted[:-6])
    )


@pytest.mark.parametrize("spoil", [str.lower, str.upper, str.swapcase, lambda text: text[::-1],
                                   lambda text: text + "\n", lambda text: " " + text,
                                   lambda text: text.replace("svc_pat_", "ghp_", 1)])  # fmt: skip
def test_a_spoilt_secret_asks_no_database(
    ada: Caller, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[str], str]
) -> None:
    secret = tokens.create(ada, "ci")["secret"]
    monkeypatch.setattr(database, "execute_sql", lambda *_: pytest.fail("the database was asked"))
    assert tokens.user_of(spoil(secret), HERE) is None


# --- creating -----------------------------------------------------------------------------


def test_a_token_has_the_scopes_that_it_was_created_with(ada: Caller) -> None:
    plain, scoped = tokens.create(ada, "plain"), tokens.create(ada, "ci", scopes=["files", "files"])
    assert (plain["scopes"], scoped["scopes"]) == ([], ["files"])
    assert {row["name"]: row["scopes"] for row in listed(ada)} == {"plain": [], "ci": ["files"]}
    assert (tokens.scopes_of(plain["id"]), tokens.scopes_of(scoped["id"])) == (frozenset(), {"files"})
    details = database.execute_sql("SELECT detail_json FROM audit WHERE action = 'token.create' ORDER BY id")
    assert ["scopes" in detail for (detail,) in details.fetchall()] == [False, True]
    for scopes in (["admin"], ["files", ""], ["Files"]):
        with pytest.raises(ValidationFailed):
            tokens.create(ada, "no", scopes=scopes)


def test_a_new_token_and_its_record(ada: Caller, clock: Clock) -> None:
    created = tokens.create(ada, "  laptop ")
    secret = created.pop("secret")
    assert created == {
        "id": created["id"], "name": "laptop", "prefix": secret[:12], "scopes": [], "status": "active",
        "expires_soon": False, "created_at": START, "expires_at": after(START, 90 * DAY),
        "last_used_at": None, "last_used_from": None,
    }  # fmt: skip
    assert re.fullmatch(r"tok-[0-9a-z]{8}", created["id"])
    assert listed(ada) == [created]
    assert tokens.user_of(secret, HERE) == (created["id"], ada.user_id)


def test_the_secret_is_nowhere(ada: Caller, db: str) -> None:
    """ "The secret is shown once and is never stored": read from the files' own bytes."""
    secret = tokens.create(ada, "laptop")["secret"]
    tokens.user_of(secret, HERE)
    assert secret not in str(tokens.page_of(ada, Page()))
    content = b"".join(Path(db + suffix).read_bytes() for suffix in ("", "-wal"))
    assert secret[:12].encode() in content  # the right files, then
    for part in (secret, secret[8:], secret[12:51], secret[51:]):
        assert part.encode() not in content


def test_creating_and_revoking_are_on_record(ada: Caller) -> None:
    created = tokens.create(ada, "laptop", 7)
    tokens.revoke(ada, "laptop")
    rows = database.execute_sql(
        "SELECT user_name, action, target, outcome, request_id, detail_json FROM audit ORDER BY id"
    ).fetchall()
    assert [row[:5] for row in rows] == [
        ("ada", "token.create", created["id"], "ok", "req-test"),
        ("ada", "token.revoke", created["id"], "ok", "req-test"),
    ]
    assert json.loads(rows[0][5]) == {"name": "laptop", "days": 7}


@pytest.mark.parametrize("days", [0, -1, 366, 1.5, 90.0, "90", True, None, 10**30])
def test_a_lifetime_is_1_to_365_days(ada: Caller, days: Any) -> None:
    """ "Lifetime: 1 to 365 days, default 90"."""
    with pytest.raises(ValidationFailed) as refused:
        tokens.create(ada, "ci", days)
    assert refused.value.fields[0]["field"] == "expires_days"
    assert listed(ada) == []


@pytest.mark.parametrize("days", [1, 365])
def test_the_shortest_and_the_longest_life(ada: Caller, clock: Clock, days: int) -> None:
    assert tokens.create(ada, "ci", days)["expires_at"] == after(START, days * DAY)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "   ",
        "x" * 65,
        "a\nb",
        "a\x1b[2J",
        "a\0",
        "a\u2028b",
        "a\ud800",
        "svc_pat_" + "a" * 49,
        "tok-4k2m9x7p",
    ],
)
def test_names_that_are_refused(ada: Caller, name: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        tokens.create(ada, name)
    assert refused.value.fields[0]["field"] == "name"


@pytest.mark.parametrize("name", ["x", "x" * 64, "Ada's laptop (old)", "日本", "tok-0000000", "a/b"])
def test_names_that_are_taken(ada: Caller, name: str) -> None:
    assert tokens.create(ada, name)["name"] == name


def test_a_name_is_unique_among_the_owner_s_active_ones(ada: Caller, bob: Caller, clock: Clock) -> None:
    tokens.create(ada, "Caf\u00e9", 1)
    with pytest.raises(NameTaken) as refused:
        tokens.create(ada, "Cafe\u0301")
    assert refused.value.hint == "svc token list"
    tokens.create(bob, "Caf\u00e9")
    clock(DAY)
    tokens.create(ada, "Caf\u00e9")
    assert sorted(token["status"] for token in listed(ada)) == ["active", "expired"]
    tokens.revoke(ada, "Cafe\u0301")
    tokens.create(ada, "Caf\u00e9")


def test_an_account_that_was_closed_meanwhile_gets_none(ada: Caller) -> None:
    """Else it would open the account as soon as that is enabled again."""
    users.update(users.get("ada"), disabled=True)
    with pytest.raises(AccountDisabled):
        tokens.create(ada, "late")
    assert listed(ada) == []


def test_the_most_there_may_be_are_active_ones(ada: Caller, bob: Caller, clock: Clock) -> None:
    for number in range(TOKENS_PER_USER):
        tokens.create(ada, f"t{number}", 1 if number == 0 else 2)
    with pytest.raises(Conflict) as refused:
        tokens.create(ada, "more")
    assert refused.value.details == {"limit": TOKENS_PER_USER}
    tokens.create(bob, "more")
    tokens.revoke(ada, "t5")
    tokens.create(ada, "t5")
    clock(DAY)
    tokens.create(ada, "more")  # in the place of t0, which has expired


# --- the list -----------------------------------------------------------------------------


@pytest.mark.parametrize(("left_s", "soon"), [(7 * DAY + 0.001, False), (7 * DAY, True), (1, True)])
def test_expires_soon_is_within_seven_days(ada: Caller, clock: Clock, left_s: float, soon: bool) -> None:
    """ "Flagged in the browser when it expires within seven days"."""
    tokens.create(ada, "ci", 30)
    clock(30 * DAY - left_s)
    [token] = listed(ada)
    assert (token["status"], token["expires_soon"]) == ("active", soon)


def test_an_expired_one_expires_no_more(ada: Caller, clock: Clock) -> None:
    tokens.create(ada, "ci", 1)
    clock(DAY)
    [token] = listed(ada)
    assert (token["status"], token["expires_soon"]) == ("expired", False)


def test_the_list_is_one_s_own_and_has_its_pages(ada: Caller, bob: Caller, clock: Clock) -> None:
    for number, name in enumerate(("b", "c", "a", "gone")):
        clock(number)
        tokens.create(ada, name, 1 if name == "b" else 2)
    tokens.create(bob, "bob's")
    tokens.revoke(ada, "gone")
    clock(DAY)
    assert [token["name"] for token in listed(ada)] == ["a", "c", "b"]  # the newest first
    assert [token["name"] for token in listed(ada, sort="name")] == ["a", "b", "c"]
    assert [token["name"] for token in listed(ada, status=("expired",))] == ["b"]
    assert [token["name"] for token in listed(ada, q="c")] == ["c"]
    page = tokens.page_of(ada, Page(limit=2, sort="name"))
    assert (page["total"], page["next_offset"]) == (3, 2)
    with pytest.raises(ValidationFailed):
        listed(ada, sort="secret_hash")


# --- revoking -----------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_revoked_token_opens_nothing(ada: Caller, by: str) -> None:
    created = tokens.create(ada, "ci")
    tokens.revoke(ada, created[by])
    assert tokens.user_of(created["secret"], HERE) is None
    assert listed(ada) == []
    with pytest.raises(NotFound):
        tokens.revoke(ada, created[by])


def test_another_s_token_is_not_found(ada: Caller, bob: Caller, boss: Caller) -> None:
    created = tokens.create(ada, "ci")
    for other, ref in itertools.product((bob, boss), (created["id"], "ci")):
        with pytest.raises(NotFound):
            tokens.revoke(other, ref)
    assert tokens.user_of(created["secret"], HERE)


def test_an_id_goes_before_a_name(ada: Caller) -> None:
    first = tokens.create(ada, "first")
    second = tokens.create(ada, "second")  # with a name that an earlier release took
    database.execute_sql("UPDATE tokens SET name = ? WHERE id = ?", (first["id"], second["id"]))
    tokens.revoke(ada, first["id"])
    assert tokens.user_of(first["secret"], HERE) is None
    assert tokens.user_of(second["secret"], HERE)


def test_an_expired_one_leaves_the_list_by_its_id(ada: Caller, clock: Clock) -> None:
    created = tokens.create(ada, "ci", 1)
    clock(DAY)
    with pytest.raises(NotFound):
        tokens.revoke(ada, "ci")
    tokens.revoke(ada, created["id"])
    assert listed(ada) == []
    assert tokens.user_of(created["secret"], HERE) is None  # no word of expiry for a revoked one


def test_a_new_password_ends_them(ada: Caller) -> None:
    """ "Revokes all of a user's API tokens. A password reset does this too"."""
    secret = tokens.create(ada, "ci")["secret"]
    users.set_password(users.get("ada"), "v1$hash", 12)
    assert tokens.user_of(secret, HERE) is None


def test_all_of_a_user_s(ada: Caller, bob: Caller) -> None:
    secrets = [tokens.create(ada, name)["secret"] for name in ("a", "b")]
    kept = tokens.create(bob, "a")["secret"]
    assert tokens.revoke_all(ada.user_id) == 2
    assert [tokens.user_of(secret, HERE) for secret in secrets] == [None, None]
    assert tokens.user_of(kept, HERE)


# --- using --------------------------------------------------------------------------------


def test_a_token_ends_at_its_moment(ada: Caller, clock: Clock) -> None:
    created = tokens.create(ada, "ci", 1)
    clock(DAY - 0.001)
    assert tokens.user_of(created["secret"], HERE)
    clock(DAY)
    with pytest.raises(TokenExpired):
        tokens.user_of(created["secret"], HERE)


@pytest.mark.parametrize("seen_by", ["a use", "the list", "another creation"])
def test_a_clock_set_back_revives_nothing(ada: Caller, clock: Clock, seen_by: str) -> None:
    created = tokens.create(ada, "ci", 1)
    ended = clock(DAY + 5)
    if seen_by == "a use":
        with pytest.raises(TokenExpired):
            tokens.user_of(created["secret"], HERE)
    elif seen_by == "the list":
        listed(ada)
    else:
        tokens.create(ada, "other")
    assert columns_of(created["id"], "ended_at", "end_reason") == (ended, "expired")
    clock(60)
    with pytest.raises(TokenExpired):
        tokens.user_of(created["secret"], HERE)
    assert [token["status"] for token in listed(ada, q="ci")] == ["expired"]


def test_a_token_of_the_future_opens_nothing(ada: Caller, clock: Clock) -> None:
    created = tokens.create(ada, "ci")
    clock(-61)
    assert tokens.user_of(created["secret"], HERE) is None
    clock(-60)
    assert tokens.user_of(created["secret"], HERE)


def test_a_well_formed_stranger_opens_nothing(ada: Caller) -> None:
    tokens.create(ada, "ci")
    assert tokens.user_of(tokens._new_secret(), HERE) is None


def test_the_use_is_noted_once_a_minute(ada: Caller, clock: Clock) -> None:
    created = tokens.create(ada, "ci")
    first = clock(10)
    tokens.user_of(created["secret"], HERE)
    clock(10 + USE_NOTED_S - 0.001)
    tokens.user_of(created["secret"], "192.0.2.10")
    [token] = listed(ada)
    assert (token["last_used_at"], token["last_used_from"]) == (first, HERE)
    later = clock(10 + USE_NOTED_S)
    tokens.user_of(created["secret"], "192.0.2.10")
    [token] = listed(ada)
    assert (token["last_used_at"], token["last_used_from"]) == (later, "192.0.2.10")
    back = clock(30)  # the clock was set back
    tokens.user_of(created["secret"], HERE)
    assert columns_of(created["id"], "last_used_at") == (back,)


def test_a_full_disk_costs_the_note_and_not_the_call(
    ada: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = tokens.create(ada, "ci", 1)

    def full() -> None:
        raise StorageFull("full")

    monkeypatch.setattr(tokens, "write", full)
    assert tokens.user_of(created["secret"], HERE) == (created["id"], ada.user_id)
    clock(DAY)
    with pytest.raises(TokenExpired):
        tokens.user_of(created["secret"], HERE)
    assert [token["status"] for token in listed(ada)] == ["expired"]


def test_a_token_for_apps(ada: Caller) -> None:
    every = tokens.create(ada, "every", scopes=["files", "apps"])
    one = tokens.create(ada, "one", app="ws-f7d3k2qa/lab")
    assert (every["scopes"], one["scopes"]) == (["apps", "files"], ["app:ws-f7d3k2qa/lab"])
    assert tokens.scopes_of(one["id"]) == {"app:ws-f7d3k2qa/lab"}
    assert {row["name"]: row["scopes"] for row in listed(ada)}["one"] == ["app:ws-f7d3k2qa/lab"]
    with pytest.raises(ValidationFailed, match="has no scopes"):
        tokens.create(ada, "both", scopes=["files"], app="ws-f7d3k2qa/lab")
