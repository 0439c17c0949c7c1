from __future__ import annotations

from pathlib import Path

from svc.admin.findings import Enrolled, Host, fail, lines_of, ok, read_enrolled, warn
from svc.host.owner import Owner
from svc.settings import Settings


def test_a_finding_is_its_level() -> None:
    assert [one.level for one in (ok("c", "f"), warn("c", "f", "r"), fail("c", "f", "r"))] == [
        "ok",
        "warn",
        "fail",
    ]
    assert ok("c", "f").remedy == ""


def test_the_enrolment_list_is_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "enrolled").write_text(
        "ada 4001 user\nben 4002 administrator\nb/d 4003 user\nzoe x user\n\nada 4001\n\xff 1 user\n"
    )
    assert list(read_enrolled(str(tmp_path))) == [
        Enrolled("ada", 4001),
        Enrolled("ben", 4002, administrator=True),
    ]
    assert list(read_enrolled(str(tmp_path / "none"))) == []
    assert lines_of(str(tmp_path)) == []


def test_a_host_may_be_another_directory() -> None:
    host = Host(Settings(file={}), "/db", Owner(0, 0), "/tree", "/proc/7/root")
    assert host.at("/etc/subuid") == "/tree/etc/subuid"
    assert host.seen("/dev/fuse") == "/proc/7/root/dev/fuse"
    assert Host(Settings(file={}), "/db", Owner(0, 0)).at("/etc/subuid") == "/etc/subuid"
