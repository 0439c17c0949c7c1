"""The table of settings: who wins, what is refused and under which name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.errors import SettingInvalid, UsageError
from svc.settings import ENV_FILE, NAMES, TABLE, EnvFile, Settings, read_env_file


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


def test_a_proxy() -> None:
    settings = resolve(
        environ={"SVC_HTTP_PROXY": "http://proxy.example:3128/", "SVC_NO_PROXY": ".lan, 10.0.0.0/8,"}
    )
    assert (settings.http_proxy, settings.no_proxy) == ("http://proxy.example:3128", ".lan,10.0.0.0/8")
    secret = resolve(environ={"SVC_HTTP_PROXY": "http://me:s3cret@proxy.example"})
    with pytest.raises(SettingInvalid) as refused:
        _ = secret.http_proxy
    assert "password" in refused.value.message and "s3cret" not in str(vars(refused.value))


@pytest.mark.parametrize("source", ["environ", "file"])
def test_a_socket_that_is_an_address_is_wrong_usage(source: str) -> None:
    """ "A remote server URL is a usage error"."""
    settings = resolve(**{source: {"SVC_SOCKET": "https://other.example"}})
    with pytest.raises(UsageError, match="this host only"):
        _ = settings.socket


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
        ("SVC_HTTP_PROXY", "proxy.example:3128"),
        ("SVC_HTTP_PROXY", "https://proxy.example"),
        ("SVC_HTTP_PROXY", "http://"),
        ("SVC_HTTP_PROXY", "http://proxy.example/path"),
        ("SVC_HTTP_PROXY", "http://proxy.example:3128?x"),
        ("SVC_HTTP_PROXY", "http://me:secret@proxy.example:3128"),
        ("SVC_HTTP_PROXY", "http://me%3Asecret%40proxy.example"),
        ("SVC_NO_PROXY", "a b"),
        ("SVC_NO_PROXY", 'a"'),
        ("SVC_CA_FILE", "ca.pem"),
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
    settings = resolve(**{source: {name: value}})
    with pytest.raises(SettingInvalid) as refused:
        getattr(settings, name.removeprefix("SVC_").lower())
    assert refused.value.message.startswith(f"{name} from {ENV_FILE if source == 'file' else 'environment'} ")


def test_a_bad_value_that_is_not_in_force_does_no_harm() -> None:
    assert resolve(environ={"SVC_PORT": "80"}, file={"SVC_PORT": "http"}).port == 80


def test_a_bad_value_stops_only_what_reads_it() -> None:
    settings = resolve(environ={"SVC_PORT": "http"}, file={"SVC_LOG_LEVEL": "loud"})
    assert settings.socket == "/run/svc/svc.sock"
    assert [settings.is_valid(name) for name in ("SVC_PORT", "SVC_LOG_LEVEL", "SVC_DB")] == [
        False, False, True
    ]  # fmt: skip
    settings.require(["SVC_DB", "SVC_SOCKET"])
    with pytest.raises(SettingInvalid, match="SVC_PORT from environment") as one:
        settings.require(["SVC_DB", "SVC_PORT"])
    assert (one.value.hint, one.value.fields) == ("unset SVC_PORT", [])
    with pytest.raises(SettingInvalid, match=r"^2 settings are not valid$") as both:
        settings.require(NAMES)
    assert [field["field"] for field in both.value.fields] == ["SVC_PORT", "SVC_LOG_LEVEL"]


def test_a_value_that_is_not_utf8_is_refused() -> None:
    settings = resolve(environ={"SVC_DB": os.fsdecode(b"/srv/\xff.db")})
    with pytest.raises(SettingInvalid, match=r"^SVC_DB from environment is not UTF-8 text$"):
        _ = settings.db


def test_unknown_names_are_reported() -> None:
    settings = resolve(environ={"SVC_PROT": "80", "PATH": "/bin"}, file={"svc_dbb": "x", "OTHER": "y"})
    assert [fault.text for fault in settings.unknown()] == [
        "SVC_PROT is no setting of svc; did you mean SVC_PORT?",
        "svc_dbb is no setting of svc; did you mean SVC_DB?",
    ]


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
        ("# SVC_PORT=1\n; SVC_PORT=2\n\n  \n", {}),
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


LINES = b"""\
# b\xf6se, in a comment
SVC_PORT=http
SVC_PROT=1
SVC_DB /srv/svc.db
SVC_LOG_LEVEL: debug
just words
SVC_HOST=\xff\xfe
\xff=1
SVC_GPU_PROVIDER=no\0ne
SVC_HOST=::1
SVC_UPLOAD_MAX=1g
"""


def test_each_bad_line_is_named_and_the_others_hold(env: Path) -> None:
    env.write_bytes(LINES)
    settings = Settings(environ={"SVC_PORT": "http"}, file=read_env_file(str(env)))
    assert [(fault.line, fault.text) for fault in settings.faults()] == [
        (line, text.format(f"line {line} of {ENV_FILE}"))
        for line, text in (
            (2, "SVC_PORT from {} must be a port number from 1 to 65535"),  # systemd hands it on
            (4, "SVC_DB on {} has no ="),
            (5, "SVC_LOG_LEVEL on {} has no ="),
            (6, "{} has no ="),
            (8, "{} is not UTF-8 text"),
            (9, "SVC_GPU_PROVIDER on {} contains a NUL character"),
        )
    ]
    assert settings.faults()[0].hint == f"sudo editor +2 {ENV_FILE}"
    assert [(fault.line, fault.subject) for fault in settings.unknown()] == [(3, "SVC_PROT")]
    assert (settings.host, settings.upload_max) == ("::1", 1 << 30)
    with pytest.raises(SettingInvalid, match=f"^SVC_DB on line 4 of {ENV_FILE} has no =$"):
        _ = settings.db
    assert Settings(environ={"SVC_DB": "/x"}, file=read_env_file(str(env))).db == "/x"


def unusable(file: EnvFile) -> str:
    """Why the whole file is not used; its settings have no value, but where clients look for the service."""
    assert file == {} and file.unusable
    settings = Settings(flags={"SVC_DB": "/x"}, environ={"SVC_PORT": "80"}, file=file)
    assert (settings.db, settings.port, settings.socket) == ("/x", 80, "/run/svc/svc.sock")
    for refused in (lambda: settings.state_dir, lambda: settings.require(NAMES)):
        with pytest.raises(SettingInvalid) as raised:
            refused()
        assert (raised.value.message, raised.value.hint) == (file.unusable.text, file.unusable.hint)
    assert settings.faults() == [file.unusable]
    return file.unusable.text


def test_the_database_keeps_its_source_when_its_path_becomes_absolute() -> None:
    settings = Settings(environ={"SVC_DB": "data/svc.db"}, file={})
    settings.anchor_database("/srv/data/svc.db")
    assert settings.db == "/srv/data/svc.db"
    assert settings.secret_file == "/srv/data/secret.key"
    assert settings.resolved["SVC_DB"].source == "environment"


def test_a_file_that_is_too_long_is_not_used(env: Path) -> None:
    env.write_bytes(b"#" * (64 * 1024 + 1))
    assert "not a regular file" in unusable(read_env_file(str(env)))


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_is_not_used(env: Path, mode: int) -> None:
    env.chmod(mode)
    file = read_env_file(str(env))
    assert unusable(file) == f"{env} is writable by users other than root"
    assert file.unusable and file.unusable.hint == "sudo svc admin doctor --repair"


def test_a_file_of_another_user_is_not_used(env: Path, needs_root: None) -> None:
    os.chown(env, 65534, 65534)
    assert "writable by users" in unusable(read_env_file(str(env)))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink(path, path)])
def test_what_is_no_file_is_not_used_and_not_waited_for(tmp_path: Path, make: object) -> None:
    path = str(tmp_path / "svc.env")
    make(path)  # type: ignore[operator]
    assert path in unusable(read_env_file(path))


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    assert read_env_file(str(tmp_path / "none")) == {}
    assert read_env_file("/etc/passwd/none") == {}
