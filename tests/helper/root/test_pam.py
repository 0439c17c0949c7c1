"""The host's word on an account: PAM's, and the shadow file's where PAM does not look."""

from __future__ import annotations

from helper.stage import Stage, code_of

from svc_helper.root import pam


def test_the_shadow_file_counts_where_pam_does_not_look() -> None:
    assert pam.expired("tsh-old")
    assert not pam.expired("tsh-ada")
    assert not pam.expired("no-such-account")


def test_without_a_pam_service_nobody_is_served(uid: dict[str, int]) -> None:
    stage = Stage(pam_service="tsh-none")
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    assert [code_of(stage, "tsh-ada") for _ in range(3)] == ["account"] * 3
    assert len([line for line in stage.log() if "every call is refused" in line["message"]]) == 1
    stage.close()
