"""The proxy and the private authorities, as agents read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from svc.errors import HostRefused
from svc.server import outbound
from svc.settings import Settings


def settings(state: Path, **values: str) -> Settings:
    return Settings(environ={"SVC_STATE_DIR": str(state), **values}, file={})


def test_the_file_is_as_the_settings_are(tmp_path: Path) -> None:
    file = tmp_path / outbound.FILE
    outbound.write(settings(tmp_path))
    assert not file.exists()
    proxy, ca = "http://proxy.example:3128", "/etc/ssl/private-ca.pem"
    outbound.write(settings(tmp_path, SVC_HTTP_PROXY=proxy, SVC_NO_PROXY=".lan", SVC_CA_FILE=ca))
    assert json.loads(file.read_text()) == {"proxy": proxy, "no_proxy": ".lan", "ca_file": ca}
    assert file.stat().st_mode & 0o777 == 0o644
    outbound.write(settings(tmp_path))
    assert not file.exists()


def test_it_cannot_be_written(tmp_path: Path) -> None:
    outbound.write(settings(tmp_path / "absent"))
    with pytest.raises(HostRefused, match="cannot be written: No such file"):
        outbound.write(settings(tmp_path / "absent", SVC_CA_FILE="/ca.pem"))
    (tmp_path / outbound.FILE).mkdir()
    with pytest.raises(HostRefused, match="cannot be written: Is a directory"):
        outbound.write(settings(tmp_path, SVC_CA_FILE="/ca.pem"))
