"""Logging in: counted, hashed once, one answer for all that is wrong; and a password changed by its owner."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import bcrypt
import pytest
from unit.configuring import SECRET
from unit.serving import FarEnd, caller_of, make_user

from svc.db.connect import database
from svc.domain.accounts import account_status, hashing, logins, passwords, sessions, throttle, tokens, users
from svc.domain.accounts.logins import Login
from svc.domain.accounts.users import Account
from svc.domain.principal import Caller
from svc.errors import (
    AccountDisabled,
    AccountIncomplete,
    Conflict,
    PasswordResetRequired,
    SvcError,
    TooManyRequests,
    Unauthenticated,
    ValidationFailed,
)
from svc.limits import LOGIN_FAILURES_IN_A_ROW, LOGIN_FAILURES_MAX, NEW_PASSWORDS_MAX

PASSWORD = "tall Lamp, 7 rivers"
NEW = "another Kettle of 3 tins"
HERE = "192.0.2.1"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes that take no time, and nobody asked about yet."""
    monkeypatch.setattr(passwords, "COST", 4)
    account_status.forget()


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What each password was compared with."""
    compared: list[str | None] = []
    real = passwords.verify

    def verify(password: str, stored: str | None, secret: bytes) -> bool:
        compared.append(stored)
        return real(password, stored, secret)

    monkeypatch.setattr(passwords, "verify", verify)
    return compared


def known(name: str = "ada", uid: int = 2001, password: str = PASSWORD, **options: Any) -> Account:
    """An account with a password."""
    user: Account = make_user(name, uid, **options)
    users.set_password(user, passwords.hash_password(password, SECRET), len(password))
    return user


def log_in(far: FarEnd, name: str = "ada", password: str = PASSWORD, address: str = HERE) -> Login:
    return logins.log_in(name, password, address=address, helper=far.helper, rid="req-1")


def refused(kind: type[SvcError], far: FarEnd, *arguments: str, **options: str) -> SvcError:
    with pytest.raises(kind) as caught:
        log_in(far, *arguments, **options)
    return caught.value


def audited() -> list[Any]:
    return database.execute_sql("SELECT action, target, outcome FROM audit ORDER BY id").fetchall()


def everything() -> str:
    """All that the database has, as text."""
    names = [row[0] for row in database.execute_sql("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return str([database.execute_sql(f"SELECT * FROM {name}").fetchall() for name in names])


def failures() -> int:
    return int(database.execute_sql("SELECT count(*) FROM login_failures").fetchone()[0])


def test_the_right_password(far: FarEnd) -> None:
    user = known()
    login = log_in(far)
    assert sessions.user_of(*login.secrets) == (login.session["id"], user.id)
    assert (login.session["address"], login.user.name) == (HERE, "ada")
    assert audited() == [("auth.login", "ada", "ok")]
    row = database.execute_sql(
        "SELECT user_id, user_name, address, request_id, detail_json FROM audit"
    ).fetchone()
    assert row[:4] == (user.id, "ada", HERE, "req-1")
    assert json.loads(row[4]) == {"session": login.session["id"]}
    assert failures() == 0


def test_one_answer_for_all_that_is_wrong(far: FarEnd, hashed: list[str | None]) -> None:
    """ "same body and status" (T2): wrong name, wrong password, none set, closed; one hash each."""
    known()
    make_user("bob", 2002)
    known("carl", 2003)
    database.execute_sql("UPDATE users SET failed_logins = 100 WHERE name = 'carl'")
    wrong = [("ada", "wrong"), ("eve", PASSWORD), ("bob", PASSWORD), ("carl", PASSWORD), ("ADA", PASSWORD)]
    errors = [
        refused(Unauthenticated, far, name, argument, address=f"192.0.2.{number}")
        for number, (name, argument) in enumerate(wrong)
    ]
    assert len({json.dumps(error.body("req-1")) for error in errors}) == 1
    assert hashed == [users.get("ada").password_hash, None, None, None, None]
    assert audited() == [
        ("auth.login", name if name in ("ada", "bob", "carl") else "(unknown)", "unauthenticated")
        for name, _ in wrong
    ]


def test_a_name_that_nobody_has_is_written_nowhere(far: FarEnd) -> None:
    """It may be a password that went into the wrong field."""
    before = everything()
    for name in (NEW, f"ada {PASSWORD}", "Q" * 1000):
        refused(Unauthenticated, far, name, "x", address=f"192.0.2.{len(name) % 250}")
    after = everything()
    assert before != after
    assert NEW not in after
    assert PASSWORD not in after
    assert "QQQQ" not in after  # no digest and no id has a Q, so chance writes none


def test_no_password_is_written_anywhere(far: FarEnd) -> None:
    known()
    login = log_in(far)
    refused(Unauthenticated, far, "ada", NEW)
    for secret in (PASSWORD, NEW, *login.secrets, login.secrets.cookie.partition(".")[0]):
        assert secret not in everything()
    assert login.secrets.header not in repr(login)


def test_the_throttle_comes_before_the_hash(far: FarEnd, hashed: list[str | None]) -> None:
    """ "counted before hashing": the sixth try costs nothing, right or wrong, and is not audited."""
    known()
    for _ in range(LOGIN_FAILURES_MAX):
        refused(Unauthenticated, far, "ada", "wrong")
    rows = audited()
    for password in ("wrong", PASSWORD):
        assert (refused(TooManyRequests, far, "ada", password).retry_after_s or 0) > 0
    assert len(hashed) == len(rows) == LOGIN_FAILURES_MAX
    assert audited() == rows


def test_a_success_forgives(far: FarEnd) -> None:
    known()
    for _ in range(3):
        for _ in range(LOGIN_FAILURES_MAX - 1):
            refused(Unauthenticated, far, "ada", "wrong", address="192.0.2.9")
        database.execute_sql(
            "DELETE FROM login_failures WHERE subject = ?", (throttle.subject("client", "192.0.2.9"),)
        )
        log_in(far)
    assert users.get("ada").failed_logins == 0


def test_a_try_that_found_no_hash_to_be_had_is_no_failure(
    far: FarEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    known()

    def busy(*_: Any) -> bool:
        raise TooManyRequests("too many", retry_after_s=5)

    with monkeypatch.context() as patch:
        patch.setattr(hashing, "verify", busy)
        for _ in range(LOGIN_FAILURES_MAX + 1):
            assert refused(TooManyRequests, far).retry_after_s == 5
    assert (failures(), users.get("ada").failed_logins, audited()) == (0, 0, [])
    log_in(far)


def test_a_hundred_in_a_row_close_the_password(far: FarEnd) -> None:
    """ "100 consecutive failures on an account: password login off until an admin or the host clears it"."""
    user = known()
    database.execute_sql("UPDATE users SET failed_logins = ?", (LOGIN_FAILURES_IN_A_ROW - 1,))
    log_in(far)  # the hundredth try, and right
    database.execute_sql("UPDATE users SET failed_logins = ?", (LOGIN_FAILURES_IN_A_ROW,))
    error = refused(Unauthenticated, far, address="192.0.2.70")
    assert error.message == refused(Unauthenticated, far, "ada", "wrong", address="192.0.2.70").message
    assert users.get("ada").failed_logins > LOGIN_FAILURES_IN_A_ROW
    throttle.forget_user("ada")  # as their own call on the host socket does
    log_in(far)
    database.execute_sql("UPDATE users SET failed_logins = ?", (LOGIN_FAILURES_IN_A_ROW,))
    users.set_password(user, passwords.hash_password(NEW, SECRET), len(NEW))
    log_in(far, "ada", NEW)


@pytest.mark.parametrize(
    ("change", "host", "kind"),
    [
        ({"disabled": True}, {"good_for_ms": 5000}, AccountDisabled),
        ({"provisioning": "incomplete"}, {"good_for_ms": 5000}, AccountIncomplete),
        ({"password_closed": True}, {"good_for_ms": 5000}, PasswordResetRequired),
        ({}, "account", AccountDisabled),  # the Linux account is expired
    ],
    ids=["disabled", "incomplete", "closed", "expired"],
)
def test_what_is_told_for_a_right_password_only(
    far: FarEnd, change: dict[str, Any], host: Any, kind: type[SvcError]
) -> None:
    user = known()
    users.update(user, **change)
    far.answers["account.check"] = host
    refused(Unauthenticated, far, "ada", "wrong")
    refused(kind, far)
    assert [outcome for *_, outcome in audited()] == ["unauthenticated", kind.code]
    assert database.execute_sql("SELECT count(*) FROM sessions").fetchone() == (0,)
    assert users.get("ada").failed_logins == 0


def test_a_short_password_of_a_new_superuser_hears_the_way_out(far: FarEnd) -> None:
    user = known(password="8 lamps!")
    users.update(user, superuser=True, password_closed=True)
    assert refused(PasswordResetRequired, far, "ada", "8 lamps!").hint == "sudo svc admin set-password ada"


def old_hash(password: str) -> str:
    """As releases before the schemes made them."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


def test_an_old_hash_is_made_anew(far: FarEnd) -> None:
    """ "Old untagged rows verify as they were made and are rehashed on login"."""
    user = known()
    users.update(user, password_hash=old_hash(PASSWORD), password_length=None)
    kept = sessions.begin(user.id, HERE)[1]
    refused(Unauthenticated, far, "ada", "wrong")
    assert users.get("ada").password_hash.startswith("$2b$")
    log_in(far)
    fresh = users.get("ada")
    assert fresh.password_hash.startswith(passwords.SCHEME)
    assert fresh.password_length == len(PASSWORD)
    assert sessions.user_of(*kept)  # it is the same password
    log_in(far)
    assert users.get("ada").password_hash == fresh.password_hash


def test_an_old_hash_waits_when_too_many_do(far: FarEnd, monkeypatch: pytest.MonkeyPatch) -> None:
    user = known()
    users.update(user, password_hash=old_hash(PASSWORD))

    def busy(*_: str) -> str:
        raise TooManyRequests("too many")

    monkeypatch.setattr(hashing, "hash_password", busy)
    log_in(far)
    assert users.get("ada").password_hash.startswith("$2b$")


def test_a_password_that_changes_meanwhile_opens_nothing(
    far: FarEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the hash and the session: `svc admin set-password`, an administrator's disabling."""
    user = known()

    def meanwhile(change: dict[str, Any]) -> Any:
        def verify(_name: str, _password: str, _stored: str | None) -> bool:
            users.update(user, **change)
            return True

        return verify

    for change in ({"password_hash": "v1$x"}, {"disabled": True}, {"password_closed": True}):
        with monkeypatch.context() as patch:
            patch.setattr(hashing, "verify", meanwhile(change))
            with pytest.raises((Conflict, AccountDisabled)):
                log_in(far)
        users.update(user, disabled=False, password_closed=False)
    assert database.execute_sql("SELECT count(*) FROM sessions").fetchone() == (0,)
    assert all(outcome in ("conflict", "account_disabled") for *_, outcome in audited())


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_every_form_of_a_password_logs_in(far: FarEnd, form: Any) -> None:
    """ "NFC vs NFD vs NFKC forms of the same password: all log in" (row 22)."""
    password = "Ångström ﬁeld, zwölf Öfen"
    known(password=unicodedata.normalize("NFKC", password))
    log_in(far, "ada", unicodedata.normalize(form, password))
    log_in(far, "ada", password)


@pytest.mark.parametrize(
    "password",
    ["", "\0", f"{PASSWORD}\0", f"{PASSWORD} ", PASSWORD.upper(), "\U0001f511" * 64, "ﬁ" * 33, "\ufdfa" * 8,
     "x" * 1024, "x" * 100_000],
    ids=["empty", "nul", "trailing-nul", "trailing-space", "case", "emoji", "65-after-nfkc", "u-fdfa",
         "1-kib", "100-kib"],
)  # fmt: skip
def test_strange_passwords_are_wrong_ones(far: FarEnd, password: str) -> None:
    """ "NUL, 64 emoji, 65 chars after NFKC, U+FDFA x 8" (row 20): the same 401."""
    known()
    assert refused(Unauthenticated, far, "ada", password).message == logins.WRONG


# --- ending it, and changing the password ---------------------------------------------------


@pytest.fixture
def ada(far: FarEnd) -> Caller:
    """In a session of hers."""
    user = known()
    login = log_in(far)
    database.execute_sql("UPDATE sessions SET address = 'login'")
    return caller_of(user, far, kind="session", credential=login.session["id"], address=HERE)


def test_logging_out(ada: Caller) -> None:
    other, _ = sessions.begin(ada.user_id, HERE)
    logins.log_out(ada)
    assert database.execute_sql("SELECT id FROM sessions").fetchall() == [(other,)]
    assert audited()[-1] == ("auth.logout", "ada", "ok")


def test_a_new_password_ends_sessions_and_tokens(ada: Caller, far: FarEnd) -> None:
    """ "A password change or reset ends all sessions and tokens", this session too."""
    secret = tokens.create(caller_of(users.get("ada"), far), "laptop")["secret"]
    bobs = sessions.begin(known("bob", 2002).id, HERE)[1]
    logins.change_password(ada, PASSWORD, NEW)
    left = database.execute_sql("SELECT user_id FROM sessions").fetchall()
    assert left == [(users.get("bob").id,)]
    assert sessions.user_of(*bobs)
    assert tokens.user_of(secret, HERE) is None
    assert audited()[-1] == ("auth.password", "ada", "ok")
    refused(Unauthenticated, far)
    log_in(far, "ada", NEW)
    assert users.get("ada").password_length == len(NEW)


def fields(error: ValidationFailed) -> list[str]:
    return [field["field"] for field in error.fields]


def test_the_present_password_is_needed(ada: Caller, far: FarEnd) -> None:
    """And guessed at no more often than at a login; logins are counted apart."""
    for _ in range(LOGIN_FAILURES_MAX):
        with pytest.raises(ValidationFailed) as caught:
            logins.change_password(ada, "wrong", NEW)
        assert fields(caught.value) == ["current_password"]
        assert audited()[-1] == ("auth.password", "ada", "validation_failed")
    with pytest.raises(TooManyRequests):
        logins.change_password(ada, PASSWORD, NEW)
    assert users.get("ada").failed_logins == 0
    log_in(far, address="192.0.2.2")
    with pytest.raises(TooManyRequests):  # which no login gives back
        logins.change_password(ada, PASSWORD, NEW)
    assert PASSWORD not in everything()
    assert NEW not in everything()


@pytest.mark.parametrize("new", ["short 1", "ada-ada-ada!", "x" * 65, "P@ssw0rd", "12345678", f"{NEW}\0"])
def test_a_new_password_is_checked(ada: Caller, new: str) -> None:
    before = users.get("ada").password_hash
    with pytest.raises(ValidationFailed) as caught:
        logins.change_password(ada, PASSWORD, new)
    assert set(fields(caught.value)) == {"password"}
    assert new not in json.dumps(caught.value.body("req-1"))
    assert users.get("ada").password_hash == before
    assert failures() == 1, "a judged one, and no wrong one"


def test_new_passwords_are_not_judged_without_end(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """To judge one takes a third of a second of the listener: the throttle comes first, also to the hash."""
    for _ in range(NEW_PASSWORDS_MAX):
        with pytest.raises(ValidationFailed):
            logins.change_password(ada, PASSWORD, "12345678")
    monkeypatch.setattr(passwords, "check", None)
    monkeypatch.setattr(hashing, "verify", None)
    with pytest.raises(TooManyRequests):
        logins.change_password(ada, PASSWORD, NEW)
    monkeypatch.undo()
    user = users.get("ada")
    users.set_password(user, str(user.password_hash), len(PASSWORD))
    logins.change_password(ada, PASSWORD, NEW)


def test_a_guess_at_the_present_password_does_not_have_a_new_one_judged(
    ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "check", None)
    with pytest.raises(ValidationFailed) as caught:
        logins.change_password(ada, "wrong", "12345678")
    assert fields(caught.value) == ["current_password"]


def test_a_superusers_must_be_longer(ada: Caller) -> None:
    """ "root and superuser accounts 12 to 64": by the flag of now, not of the session."""
    users.update(users.get("ada"), superuser=True)
    with pytest.raises(ValidationFailed):
        logins.change_password(ada, PASSWORD, "3 kettles")
    logins.change_password(ada, PASSWORD, NEW)


def test_failures_of_strangers_keep_nobody_from_a_new_password(ada: Caller, far: FarEnd) -> None:
    """Neither five of them nor the hundred that lock the login."""
    for number in range(LOGIN_FAILURES_MAX):
        refused(Unauthenticated, far, "ada", "wrong", address=f"192.0.2.{number + 50}")
    refused(TooManyRequests, far, address="192.0.2.77")
    database.execute_sql("UPDATE users SET failed_logins = ?", (LOGIN_FAILURES_IN_A_ROW,))
    logins.change_password(ada, PASSWORD, NEW)


def test_a_right_present_password_is_no_failure(ada: Caller, far: FarEnd) -> None:
    """Nor does one account use up another's count, or a password from the host leave it full."""
    for _ in range(LOGIN_FAILURES_MAX - 1):
        with pytest.raises(ValidationFailed):
            logins.change_password(ada, "wrong", NEW)
    logins.change_password(ada, PASSWORD, NEW)
    assert failures() == 0
    for _ in range(LOGIN_FAILURES_MAX):
        with pytest.raises(ValidationFailed):
            logins.change_password(ada, PASSWORD, "five calm brown kettles")
    bob = caller_of(known("bob", 2002), far, kind="session", address=HERE)
    logins.change_password(bob, PASSWORD, NEW)
    with pytest.raises(TooManyRequests):
        logins.change_password(ada, NEW, PASSWORD)
    user = users.get("ada")
    users.set_password(user, str(user.password_hash), len(NEW))
    logins.change_password(ada, NEW, PASSWORD)


def test_two_changes_at_once(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    real = hashing.hash_password

    def slow(name: str, normalised: str) -> str:
        users.update(users.get("ada"), password_hash="v1$other")
        return real(name, normalised)

    monkeypatch.setattr(hashing, "hash_password", slow)
    with pytest.raises(Conflict):
        logins.change_password(ada, PASSWORD, NEW)
    assert users.get("ada").password_hash == "v1$other"


def test_a_hundred_failures_of_others_close_no_place_of_the_users_own(far: FarEnd) -> None:
    user = known()
    log_in(far)
    database.execute_sql("UPDATE users SET failed_logins = ?", (LOGIN_FAILURES_IN_A_ROW,))
    refused(Unauthenticated, far, address="192.0.2.77")
    log_in(far)
    users.set_password(user, passwords.hash_password(NEW, SECRET), len(NEW))
    database.execute_sql("UPDATE users SET failed_logins = ?", (LOGIN_FAILURES_IN_A_ROW,))
    refused(Unauthenticated, far, "ada", NEW)
