"""The registry policy: replaced whole or not at all, and Podman's configuration says the same."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from helper.stage import Stage

from svc import errors
from svc_helper.provision import registries

REGISTRIES = [
    {"host": "127.0.0.1:5000", "path_prefix": "", "insecure": True},
    {"host": "quay.io", "path_prefix": "team/", "insecure": False},
    {"host": "127.0.0.1:5000", "path_prefix": "other", "insecure": True},
]


def test_the_registry_policy_is_replaced_whole(stage: Stage) -> None:
    admin = stage.client("admin")
    for policy in (REGISTRIES, REGISTRIES[1:2], []):
        assert admin.call("registries.write", None, {"registries": policy}, rid="r") == {"registries": policy}
        assert json.loads((stage.directory / "registries.json").read_text()) == {"registries": policy}
        for name in ("registries.json", "registries.conf"):
            status = os.stat(stage.directory / name)
            assert (status.st_uid, status.st_mode & 0o777) == (0, 0o644)


def test_the_configuration_is_toml_that_says_the_same() -> None:
    import tomllib

    assert tomllib.loads(registries.configuration(REGISTRIES)) == {
        "unqualified-search-registries": [],
        "registry": [{"location": "127.0.0.1:5000", "insecure": True}],
    }


def test_a_list_that_cannot_be_written_leaves_no_host_insecure(tmp_path: Path) -> None:
    """Podman would talk in plain text to a host that is not on the list."""
    (tmp_path / "registries.json").mkdir()  # which no rename replaces by a file
    for before in (registries.configuration([]), "# of an earlier list\n"):
        with pytest.raises(OSError, match=r"registries\.json"):
            registries.write(str(tmp_path), REGISTRIES)
        assert (tmp_path / "registries.conf").read_text() == before
        (tmp_path / "registries.conf").write_text("# of an earlier list\n")


def test_a_full_disk_leaves_the_old_policy(uid: dict[str, int]) -> None:
    """The state directory on a file system of one page: the answer is storage_full, the file is as it was."""
    script = 'mount -t tmpfs -o size=8k none "$0" && cp "$0.was" "$0/registries.json" && exec "$@"'
    stage = Stage.__new__(Stage)
    directory = Path("/run/tsh-full")
    directory.mkdir(exist_ok=True)
    Path("/run/tsh-full.was").write_text('{"registries": []}\n')
    Stage.__init__(
        stage, pairs=("admin",), inside=("unshare", "--mount", "sh", "-c", script, str(directory)),
        state_dir=str(directory),
    )  # fmt: skip
    try:
        many = [{"host": f"{'h' * 200}{n}", "path_prefix": "p" * 200, "insecure": True} for n in range(64)]
        with pytest.raises(errors.StorageFull):
            stage.client("admin").call("registries.write", None, {"registries": many}, rid="r")
        seen = f"/proc/{stage.process.pid}/root{directory}"
        assert os.listdir(seen) == ["registries.json"]
        assert Path(seen, "registries.json").read_text() == '{"registries": []}\n'
    finally:
        stage.close()
        directory.rmdir()
        Path("/run/tsh-full.was").unlink()
