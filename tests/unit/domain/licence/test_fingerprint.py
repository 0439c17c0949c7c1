"""The request code: what goes in, what does not, and what it gives away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from unit.licensing import CODE, Vendor

from svc.domain.licence.fingerprint import product_uuid, request_code
from svc.errors import HostRefused

MACHINE_ID = "6f2b1c0d4e5a49788f1b2c3d4e5f6a7b"
UUID = "4c4c4544-0042-3510-8051-b4c04f564433"


def host(root: Path, machine_id: str | None = MACHINE_ID, uuid: str | None = UUID) -> str:
    """A host's files; its root directory."""
    (root / "etc").mkdir(parents=True, exist_ok=True)
    (root / "sys/class/dmi/id").mkdir(parents=True, exist_ok=True)
    if machine_id is not None:
        (root / "etc/machine-id").write_text(machine_id + "\n")
    if uuid is not None:
        (root / "sys/class/dmi/id/product_uuid").write_text(uuid + "\n")
    return str(root)


def test_the_code_is_the_same_each_time_and_says_nothing(tmp_path: Path) -> None:
    code = request_code(host(tmp_path))
    assert request_code(str(tmp_path)) == code
    assert re.fullmatch(r"svc1(-[0-9a-z]{4}){8}", code)
    plain = code.replace("-", "")
    assert not any(part in plain for part in (MACHINE_ID[:8], UUID[:8], MACHINE_ID[-8:]))


def test_a_network_card_and_a_name_do_not_matter(tmp_path: Path) -> None:
    """A host keeps its licence when a card is changed, or when it is renamed."""
    code = request_code(host(tmp_path))
    (tmp_path / "etc/hostname").write_text("another-name\n")
    (tmp_path / "sys/class/net/eth9").mkdir(parents=True)
    (tmp_path / "sys/class/net/eth9/address").write_text("02:00:00:00:00:01\n")
    (tmp_path / "sys/class/dmi/id/product_name").write_text("Another\n")
    assert request_code(str(tmp_path)) == code


def test_a_copy_and_a_new_installation_have_other_codes(tmp_path: Path) -> None:
    """A copied disk on another machine, another system on the same one, and both the same again."""
    own = request_code(host(tmp_path / "own"))
    copy = request_code(host(tmp_path / "copy", uuid="4c4c4544-0042-3510-8051-b4c04f564434"))
    anew = request_code(host(tmp_path / "anew", machine_id="0" * 31 + "1"))
    bare = request_code(host(tmp_path / "bare", uuid=None))
    assert len({own, copy, anew, bare}) == 4
    assert request_code(host(tmp_path / "same")) == own
    assert request_code(host(tmp_path / "upper", uuid=UUID.upper())) == own


@pytest.mark.parametrize(
    "uuid",
    [
        None, "", "Not Settable", "00000000-0000-0000-0000-000000000000",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "03000200-0400-0500-0006-000700080009",
    ],
)  # fmt: skip
def test_without_a_uuid_of_its_own_the_machine_id_stands_alone(tmp_path: Path, uuid: str | None) -> None:
    """Containers and virtual machines without DMI, and boards whose maker wrote nothing there."""
    assert product_uuid(host(tmp_path / "vm", uuid=uuid)) == ""
    assert request_code(str(tmp_path / "vm")) == request_code(host(tmp_path / "container", uuid=None))


@pytest.mark.parametrize("machine_id", [None, "", "uninitialized", "0" * 32, "x" * 32])
def test_without_a_machine_id_there_is_none(tmp_path: Path, machine_id: str | None) -> None:
    with pytest.raises(HostRefused) as refused:
        request_code(host(tmp_path, machine_id=machine_id))
    assert refused.value.hint == "sudo systemd-machine-id-setup"


def test_the_vendor_finds_typing_errors(tmp_path: Path) -> None:
    """Each code of this program is one for the vendor's tool; a mistyped letter is not."""
    vendor = Vendor(tmp_path)
    code = request_code(host(tmp_path / "host"))
    assert code.encode() in vendor.sign(code)
    vendor.sign(f" {code.upper()} ")
    for place in (5, 20, len(code) - 1):
        wrong = code[:place] + ("1" if code[place] != "1" else "2") + code[place + 1 :]
        with pytest.raises(SystemExit):
            vendor.sign(wrong)
    vendor.sign(CODE)
