from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from svc.admin import own_files
from svc.admin.backup import host_files
from svc.errors import SvcError
from svc.host.owner import Owner
from svc.settings import Settings

ME = Owner(os.geteuid(), os.getegid())


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A host with all of its files."""
    state, data = tmp_path / "state", tmp_path / "data"
    (data / "tls").mkdir(parents=True)
    state.mkdir()
    for name in ("registries.json", "registries.conf", "enrolled", "trial", "audit-head"):
        (state / name).write_text(name)
    (state / "registry-logins.json").write_text("the password")
    for name in ("tls/cert.pem", "tls/key.pem", "secret.key"):
        (data / name).write_text(f"content of {name}")
    return Settings(
        environ={
            "SVC_DB": str(data / "svc.db"),
            "SVC_STATE_DIR": str(state),
            "SVC_LICENSE_PATH": str(tmp_path / "none"),
        },
        file={},
    )


def contents(small: host_files.HostFiles) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(small.archive)) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive.getmembers()}  # type: ignore[union-attr]


def test_secrets_are_in_it_only_when_asked_for(settings: Settings) -> None:
    small = host_files.collect(settings, ME, with_secrets=False)
    assert b"content of secret.key" not in small.archive
    assert b"content of tls/key.pem" not in small.archive
    assert b"the password" not in small.archive
    assert small.left_out["secret.key"] == small.left_out["tls/key.pem"] == host_files.ASK
    assert {"enrolled", "registries.json", "tls/cert.pem"} <= set(small.holds)
    small = host_files.collect(settings, ME, with_secrets=True)
    assert contents(small)["secret.key"] == b"content of secret.key"
    assert {"secret.key", "tls/key.pem", "registry-logins.json"} <= set(small.holds)


def test_all_files_of_root_are_looked_for(settings: Settings) -> None:
    small = host_files.collect(settings, ME, with_secrets=True)
    assert {*own_files.ROOT_FILES, f"{own_files.LOGINS}.json"} <= {*small.holds, *small.left_out}


def test_the_manifest_says_where_each_belongs(settings: Settings) -> None:
    small = host_files.collect(settings, ME, with_secrets=False)
    manifest = json.loads(contents(small)["manifest.json"])
    paths = {file["name"]: file["path"] for file in manifest["files"]}
    assert paths["enrolled"] == os.path.join(settings.state_dir, "enrolled")
    assert set(paths) == set(small.holds)
    assert {file["name"] for file in manifest["left_out"]} == set(small.left_out)


def test_what_cannot_be_had_is_named_with_its_reason(settings: Settings) -> None:
    data, state = Path(settings.db).parent, Path(settings.state_dir)
    (data / "tls/cert.pem").unlink()
    (state / "enrolled").unlink()
    (state / "enrolled").symlink_to("/etc/passwd")
    (state / "trial").unlink()
    os.mkfifo(state / "trial")
    (data / "secret.key").unlink()
    (data / "secret.key").symlink_to("/etc/shadow")
    left_out = host_files.collect(settings, ME, with_secrets=True).left_out
    assert left_out["tls/cert.pem"] == left_out["license.json"] == host_files.ABSENT
    assert "cannot be read" in left_out["enrolled"]
    assert "not a regular file" in left_out["trial"]
    assert "cannot be read" in left_out["secret.key"]


def test_the_administrators_own_certificate_is_left_where_it_is(settings: Settings, tmp_path: Path) -> None:
    environ = {"SVC_DB": settings.db, "SVC_TLS_CERT": str(tmp_path / "c"), "SVC_TLS_KEY": str(tmp_path / "k")}
    left_out = host_files.collect(Settings(environ=environ, file={}), ME, with_secrets=True).left_out
    assert "SVC_TLS_CERT" in left_out["tls/cert.pem"]
    assert "SVC_TLS_CERT" in left_out["tls/key.pem"]


def test_the_services_files_are_read_by_its_account(
    settings: Settings, tmp_path: Path, needs_root: None
) -> None:
    """A link there leads root to any file; the account itself reaches what it may read."""
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_mode & 0o001 == 0:
            part.chmod(0o711)
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "key").write_text("root's")
    data = Path(settings.db).parent
    (data / "tls").rename(data / "before")
    (data / "tls").symlink_to(private)
    (private / "cert.pem").write_text("root's")
    small = host_files.collect(settings, Owner(65534, 65534), with_secrets=True)
    assert "tls/cert.pem" in small.left_out
    assert b"root's" not in small.archive


@pytest.mark.parametrize("untrusted", [None, [], [{}], [{"content": "?"}], ["x"], {"a": 1}])
def test_another_answer_is_refused(untrusted: object) -> None:
    with pytest.raises(SvcError, match="no usable result"):
        list(host_files._decoded(untrusted, 1))
