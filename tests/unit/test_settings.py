"""The table of settings: who wins, what is refused and under which name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.errors import SettingInvalid
from svc.settings import ENV_FILE, TABLE, Settings, read_env_file


def resolve(**supplied: dict[str, str]) -> Settings:
    return Settings(
        flags=supplied.get("flags"),
        environ=supplied.get("environ", {}),
        file=supplied.get("file", {}),
    )


@pytest.fixture
def env(tmp_path: Path) -> Path:
    path = tmp_path / "svc.env"
    path.write_text("SVC_PORT=1111\n")
    path.chmod(0o644)
    return path


def test_first_match_wins() -> None:
    everything = {
        "flags": {"SVC_PORT": "1"},
        "environ": {"SVC_PORT": "2"},
        "file": {"SVC_PORT": "3"},
    }
    for source, port in (("flag", 1), ("environment", 2), (ENV_FILE, 3), ("default", 24680)):
        resolved = resolve(**everything).resolved["SVC_PORT"]
        assert (resolved.value, resolved.source, resolved.text) == (port, source, str(port))
        everything.pop(next(iter(everything)), None) if everything else None


def test_an_empty_value_is_no_value() -> None:
    assert resolve(environ={"SVC_PORT": ""}, file={"SVC_PORT": "3"}).port == 3
    assert Settings(flags={"SVC_DB": None}, environ={}, file={}).db == "svc.db"


def test_every_default_is_valid_and_explained() -> None:
    settings = resolve()
    for setting in TABLE:
        assert setting.name.startswith("SVC_")
        assert setting.help.endswith(".")
        assert settings.resolved[setting.name].source == "default"
    assert settings.file_roots == {"work": "%h/work"}
    assert settings.port_range == (20000, 24000)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SVC_PORT", "0"),
        ("SVC_PORT", "65536"),
        ("SVC_PORT", "http"),
        ("SVC_PORT", " 80"),
        ("SVC_PORT", "-1"),
        ("SVC_PORT", "٨٠"),
        ("SVC_PORT", "9" * 5000),
        ("SVC_WEB_THREADS", "3"),
        ("SVC_PORT_RANGE", "3000"),
        ("SVC_PORT_RANGE", "3000-2000"),
        ("SVC_GPU_PROVIDER", "nvlm"),
        ("SVC_GPU_PROVIDER", "gpus.json"),
        ("SVC_LOG_LEVEL", "loud"),
        ("SVC_SOCKET", "svc.sock"),
        ("SVC_STATE_DIR", "./state"),
        ("SVC_FILE_ROOTS", "data=/srv"),
        ("SVC_FILE_ROOTS", "work=relative"),
        ("SVC_FILE_ROOTS", "work=%h/../other"),
        ("SVC_FILE_ROOTS", "work"),
        ("SVC_FILE_ROOTS", "work=%h/work:ro"),
        ("SVC_FILE_ROOTS", "work=%h/work,data=/srv:rw"),
        ("SVC_FILE_ROOTS", "work=%h/work,data=/srv:ro:ro"),
        ("SVC_FILE_ROOTS", "work=%h/work,data=/srv/../etc:ro"),
        ("SVC_FILE_ROOTS", "work=%h/work,data=:ro"),
        ("SVC_UPLOAD_MAX", "0"),
        ("SVC_UPLOAD_MAX", "-1"),
        ("SVC_UPLOAD_MAX", "g"),
        ("SVC_UPLOAD_MAX", "1.5g"),
        ("SVC_UPLOAD_MAX", "64 g"),
        ("SVC_UPLOAD_MAX", "64p"),
        ("SVC_UPLOAD_MAX", "1025t"),
        ("SVC_UPLOAD_MAX", "٨g"),
        ("SVC_UPLOAD_MAX", "9" * 5000),
    ],
)
@pytest.mark.parametrize("source", ["environ", "file"])
def test_a_bad_value_is_refused_by_its_name_and_source(name: str, value: str, source: str) -> None:
    with pytest.raises(SettingInvalid) as refused:
        resolve(**{source: {name: value}})
    assert refused.value.message.startswith(f"{name} from {ENV_FILE if source == 'file' else 'environment'} ")


def test_a_bad_value_that_is_not_in_force_does_no_harm() -> None:
    assert resolve(environ={"SVC_PORT": "80"}, file={"SVC_PORT": "http"}).port == 80


def test_unknown_names_are_warned_about(capsys: pytest.CaptureFixture[str]) -> None:
    settings = resolve(environ={"SVC_PROT": "80", "PATH": "/bin"}, file={"SVC_DBB": "x", "OTHER": "y"})
    settings.warn_unknown()
    assert capsys.readouterr().err == (
        "svc: warning: unknown setting SVC_DBB\nsvc: warning: unknown setting SVC_PROT\n"
    )


def test_the_secret_lies_beside_the_database_unless_it_is_named() -> None:
    assert resolve(environ={"SVC_DB": "/srv/svc/svc.db"}).secret_file == "/srv/svc/secret.key"
    assert resolve(environ={"SVC_JWT_SECRET_FILE": "/k"}).secret_file == "/k"
    with pytest.raises(AttributeError):
        _ = resolve().no_such_setting


def test_read_only_roots_keep_their_mark() -> None:
    """For the helper, which tells the agents apart what to open and what to change nothing in."""
    supplied = "work=%h/work, models=/srv/models:ro,data=/srv/data/%u"
    roots = {"work": "%h/work", "models": "/srv/models:ro", "data": "/srv/data/%u"}
    assert resolve(environ={"SVC_FILE_ROOTS": supplied}).file_roots == roots


@pytest.mark.parametrize(
    ("text", "count"), [("1", 1), ("64g", 64 << 30), ("5M", 5 << 20), ("7k", 7168), ("1024t", 2**50)]
)
def test_the_largest_upload(text: str, count: int) -> None:
    assert resolve(environ={"SVC_UPLOAD_MAX": text}).upload_max == count


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# SVC_PORT=1\n; SVC_PORT=2\n\n  \nno equals sign\n", {}),
        ("SVC_PORT=1\r\nSVC_HOST=::1\r\n", {"SVC_PORT": "1", "SVC_HOST": "::1"}),
        ("SVC_PORT=1\nSVC_PORT=2\n", {"SVC_PORT": "2"}),
        (
            " SVC_HOST = 'a b' \nSVC_DB=\"/x\"\nSVC_SOCKET='/y\"\n",
            {"SVC_HOST": "a b", "SVC_DB": "/x", "SVC_SOCKET": "'/y\""},
        ),
        ("export SVC_PORT=1", {"SVC_PORT": "1"}),
        ("\ufeffSVC_PORT=1\n", {"SVC_PORT": "1"}),
        ("SVC_DB=/a=b#c\n", {"SVC_DB": "/a=b#c"}),
        ("SVC_DB=$(touch /tmp/x)$HOME`id`\n", {"SVC_DB": "$(touch /tmp/x)$HOME`id`"}),
        ("SVC_HOST=\u2028\n", {"SVC_HOST": ""}),
    ],
)
def test_the_file_is_read_literally(env: Path, text: str, values: dict[str, str]) -> None:
    env.write_text(text, newline="")
    assert read_env_file(str(env)) == values


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"SVC_PORT=1\0\n", "NUL"),
        (b"SVC_PORT=\xff\xfe\n", "UTF-8"),
        (b"#" * (64 * 1024 + 1), "not a regular file"),
    ],
)
def test_what_is_no_environment_file_is_refused(env: Path, content: bytes, reason: str) -> None:
    env.write_bytes(content)
    with pytest.raises(SettingInvalid, match=reason):
        read_env_file(str(env))


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_is_refused(env: Path, mode: int) -> None:
    env.chmod(mode)
    with pytest.raises(SettingInvalid, match="writable by users") as refused:
        read_env_file(str(env))
    assert f"chmod 0644 {env}" in refused.value.hint


def test_a_file_of_another_user_is_refused(env: Path, needs_root: None) -> None:
    os.chown(env, 65534, 65534)
    with pytest.raises(SettingInvalid, match="writable by users"):
        read_env_file(str(env))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, make: object) -> None:
    path = str(tmp_path / "svc.env")
    make(path)  # type: ignore[operator]
    with pytest.raises(SettingInvalid):
        read_env_file(path)


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    assert read_env_file(str(tmp_path / "none")) == {}
    assert read_env_file("/etc/passwd/none") == {}
