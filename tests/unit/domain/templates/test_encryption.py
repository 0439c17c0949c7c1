"""Seals: they open where they were made, and nowhere else."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.configuring import configured

from svc.domain.templates import encryption
from svc.errors import Conflict, HostRefused

SEALED = "a value that nobody sees"


def test_what_is_sealed_opens_and_shows_nothing() -> None:
    one, two = (encryption.encrypt("tpl-00000001", "KEY", SEALED) for _ in range(2))
    assert one != two
    assert one.isascii()
    assert "value" not in one
    assert (
        encryption.decrypt("tpl-00000001", "KEY", one)
        == encryption.decrypt("tpl-00000001", "KEY", two)
        == SEALED
    )


@given(value=st.text(st.characters(exclude_categories=("Cs",))))
def test_every_text_comes_back(value: str) -> None:
    assert encryption.decrypt("tpl-1", "A", encryption.encrypt("tpl-1", "A", value)) == value


@pytest.mark.parametrize(("template", "name"), [("tpl-2", "A"), ("tpl-1", "B"), ("tpl-1\0A", ""), ("", "")])
def test_a_seal_copied_elsewhere_stays_closed(template: str, name: str) -> None:
    sealed = encryption.encrypt("tpl-1", "A", SEALED)
    with pytest.raises(Conflict) as caught:
        encryption.decrypt(template, name, sealed)
    assert f"svc template edit {template} " in caught.value.hint
    assert SEALED not in str(caught.value.body("r"))


def test_every_damage_is_seen() -> None:
    sealed = encryption.encrypt("tpl-1", "A", SEALED)
    other = {"A": "B"}
    for at in range(len(sealed) - 1):  # of the last digit two bits say nothing
        with pytest.raises(Conflict):
            encryption.decrypt("tpl-1", "A", sealed[:at] + other.get(sealed[at], "A") + sealed[at + 1 :])
        with pytest.raises(Conflict):
            encryption.decrypt("tpl-1", "A", sealed[:at])
    for text in ("", "v1.", "v1.=", "v1.é", "v2" + sealed[2:], sealed + " ", sealed + "AAAA", "\0"):
        with pytest.raises(Conflict):
            encryption.decrypt("tpl-1", "A", text)


def test_another_signing_secret_opens_nothing() -> None:
    sealed = encryption.encrypt("tpl-1", "A", SEALED)
    configured(secret=b"another secret, as after a restore without the file")
    with pytest.raises(Conflict, match="set its value again"):
        encryption.decrypt("tpl-1", "A", sealed)


def test_a_seal_that_does_not_open_holds_another_value() -> None:
    sealed = encryption.encrypt("tpl-1", "A", SEALED)
    assert encryption.matches("tpl-1", "A", sealed, SEALED)
    assert not encryption.matches("tpl-1", "A", sealed, SEALED + " ")
    assert not encryption.matches("tpl-2", "A", sealed, SEALED)


def test_dev_opens_what_an_earlier_process_sealed() -> None:
    """ "In `--dev` mode the JWT signing secret is ephemeral"; what the database holds outlives it."""
    sealed = encryption.encrypt("tpl-1", "A", SEALED)
    configured(session_secret=b"forgotten when this process ends")
    assert encryption.decrypt("tpl-1", "A", sealed) == SEALED


def test_nothing_is_sealed_without_a_secret() -> None:
    sealed = encryption.encrypt("tpl-1", "A", SEALED)
    configured(secret=b"")
    with pytest.raises(HostRefused):
        encryption.encrypt("tpl-1", "A", SEALED)
    with pytest.raises(HostRefused):
        encryption.decrypt("tpl-1", "A", sealed)


@pytest.mark.allow_commands("python", "python3")
def test_the_library_is_loaded_when_it_is_needed() -> None:
    script = "import sys, svc.domain.templates.encryption; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
