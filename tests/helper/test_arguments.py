"""Every verb of the table refuses what its argument specification does not say, and every wrong user."""

from __future__ import annotations

import time
from typing import Any

import pytest
from helper.stage import Stage, call

from svc_helper.wire import arguments
from svc_helper.wire.protocol import NO_USER, VERBS, ProtocolError, Verb, check_call

# A correct value of each argument, for all verbs that have it.
GOOD: dict[str, Any] = {
    "id": "ws-0abc9xyz",
    "administrator": False,
    "registries": [{"host": "127.0.0.1:5000", "path_prefix": "team/", "insecure": True}],
    "image": "127.0.0.1:5000/team/base:1.0",
    "name": "my-workspace",
    "command": ["sh", "-c", "echo $HOME; exit 0"],
    "env": {"EDITOR": "vi"},
    "resources": {"cpu_limit": 1500, "memory_bytes": 2**30, "shm_bytes": None, "pids_limit": 512},
    "run_as": {"uid": 1000, "gid": 1000},
    "network": {"name": "lab", "alias": "tools"},
    "devices": ["nvidia.com/gpu=0"],
    "launchers": [{"name": "jupyter", "port": 8888}, {"name": "train", "port": None}],
    "file": "/work/.config/a file",
    "pattern": "token={token}",
    "launcher": "jupyter",
    "sample_ms": 250,
    "seconds": 600,
    "watch_ms": 1000,
    "host_port": 20001,
    "access": "owner",
    "container_port": 8888,
    "mounts": [{"root": "data", "path": "/srv/data sets", "read_only": True}],
    "images": ["127.0.0.1:5000/team/base:1.0", "localhost/svc/tpl-4k2:0123456789abcdef"],
    "image_refs": ["127.0.0.1:5000/team/base:1.0"],
    "uid": 2001,
    "host": "registry.example:5000",
    "username": "robot$pull",
    "password": "a ladder: in the orchard",
    "bases": ["127.0.0.1:5000/team/base:1.0"],
    "triggers": False,
    "copy": True,
    "build_args": {"VERSION": "3.12"},
    "secrets": {"operation": "op-4k2m9x7p", "ids": ["pip.conf"]},
    "operation": "op-4k2m9x7p",
    "sizes": [{"id": "pip.conf", "size": 100}],
    "ids": ["0123456789abcdef" * 4],
    "container_id": "0123456789abcdef" * 4,
    "grace_s": 10,
    "tail": 100,
    "most": 2**20,
    "skip": 7,
    "start": {"number": 3, "offset": 45},
    "times": True,
    "ends_agent": True,
    "timeout_s": 300,
    "root": "work",
    "path": "-a/.b/%FF%0A%2525/..c",
    "to": "x" * 255,
    "offset": 0,
    "limit": 10_000,
    "size": 2**50,
    "replace": False,
    "parents": False,
    "recursive": False,
    "volumes": False,
    "members_max": 1,
    "terminal": "t-4k2m9x",
    "cols": 80,
    "rows": 1000,
    "attach": True,
}
ANY: list[Any] = [
    True,
    -1,
    0.5,
    2**64,
    "",
    "\0",
    "-x",
    "../..",
    "/etc/passwd",
    "x\0y",
    "a" * 70_000,
    [],
    {},
    [[]],
    {"x": 1},
]
IDS = [
    "WS-0abc9xyz",
    "ws-0abc9xy",
    "ws-0abc9xyz0",
    "ws-0abc9xy\n",
    "ws-0abc9xyz\n",
    "ws-../../x",
    "ws-0abc9xyé",
    7,
    None,
]
IMAGES = [
    "-v/:/x", "--privileged", "docker-archive:/etc/shadow", "dir:/", "dir:/x", "containers-storage:x/y",
    "docker://quay.io/x", "quay.io/x:", "quay.io/x@sha256:00", "quay.io/../x", "quay.io//x", "QUAY.io/x",
    "busybox", "quay.io/x y",
    "quay.io/x\n", "quay.io/x:-1", "quay.io:123456/x", "/x", "a/" + "b" * 260, None,
]  # fmt: skip
CONTAINER_PATHS = [
    "", "/", "x", "x/y", "//x", "/x/", "/x//y", "/.", "/..", "/../x", "/x/../y", "/x/./y", "/x/..", "/x\n",
    "/\x7f", "/x\0", "/\ud800", "/" + "x" * 255, None, 7,
]  # fmt: skip
FILE_PATHS = [
    "/", "/x", "x/", "x//y", "//", ".", "..", "./x", "../x", "x/.", "x/..", "x/../y", "x/./y",
    "%", "%2", "%zz", "%2f", "%2F", "x%2Fy", "%2e%2e", "%2E%2E", "%2E", "%61", "%ff", "%00", "x%00/y", "x%00",
    "x y", "x\n", "\n", "x+y", "x?y", "x\\y", "é", "\ud800", "\u202e", "x" * 256, "y/" + "%FF" * 256,
    "/".join(["x" * 255] * 17), "x/" * 2100 + "x", None, 7, b"x", ["x"],
]  # fmt: skip
HOSTILE: dict[str, list[Any]] = {
    "id": IDS,
    "administrator": [0, 1, "true", None],
    "registries": [
        None,
        [{"host": "a", "path_prefix": ""}],
        [{"host": 'a"\ninsecure=true', "path_prefix": "", "insecure": False}],
        [{"host": "a", "path_prefix": "a" * 200 + "!", "insecure": False}],
        [{"host": "a", "path_prefix": "../", "insecure": 1}],
        [{"host": "-a", "path_prefix": "", "insecure": False}],
        [{"host": "a", "path_prefix": "", "insecure": False, "mirror": "b"}],
        [{"host": "a", "path_prefix": "", "insecure": False}] * 65,
    ],
    "image": IMAGES,
    "container_id": [
        "",
        "svc-ws-0abc9xyz",
        "0123456789abcdef",
        "0" * 65,
        "G" * 64,
        "../" + "0" * 61,
        "0" * 63 + "\n",
        7,
        None,
    ],
    "name": ["x" * 65, 5, None],
    "command": [["sh"] * 257, ["a\0b"], ["x" * 50_000], [1], "sh -c id"],
    "env": [
        {"1A": "x"},
        {"A=B": "x"},
        {"A": "x\0"},
        {"A": 1},
        {"A": "x" * 4097},
        {"": ""},
        [["A", "b"]],
        None,
    ],
    "resources": [
        {"cpu_limit": 0},
        {"cpu_limit": True},
        {"memory_bytes": -1},
        {"memory_bytes": 2**51},
        {"pids_limit": 1.5},
        {"devices": []},
        None,
    ],
    "network": [
        {"name": "lab"},
        {"name": "lab", "alias": "../x"},
        {"name": "--opt", "alias": "tools"},
        {"name": "Lab", "alias": "tools"},
        {"name": "lab", "alias": "tools", "driver": "host"},
        "host",
    ],
    "run_as": [{"uid": -1, "gid": 0}, {"uid": 65536, "gid": 0}, {"uid": 0}, {"uid": "0", "gid": 0}, "root"],
    "devices": [
        ["/dev/sda"],
        ["nvidia.com/gpu=../x"],
        ["vendor.com/class=x"],
        ["nvidia.com/gpu=0"] * 65,
        None,
    ],
    "mounts": [
        *([{"root": "work", "path": path, "read_only": True}] for path in CONTAINER_PATHS),
        *(
            [{"root": root, "path": "/x", "read_only": True}]
            for root in ("", "-x", "/", "..", "a/b", "1", None)
        ),
        [{"root": "work", "path": "/x", "read_only": 1}],
        [{"root": "work", "path": "/x"}],
        [{"root": "work", "path": "/x", "read_only": True, "source": "/"}],
        [{"root": "work", "path": "/x", "read_only": True}] * 9,
        ["/:/x"],
        None,
    ],
    "images": [*([image] for image in IMAGES), [], ["quay.io/x"] * 102, "quay.io/x"],
    "build_args": [
        {"1A": "x"},
        {"A=B": "x"},
        {"--volume": "/:/x"},
        {"A": "x\0"},
        {"A": "\ud800"},
        {"A": 1},
        {"A": "x" * 4097},
        {f"A{number}": "" for number in range(65)},
        ["A=1"],
        "A=1",
    ],
    "bases": [*([image] for image in IMAGES), ["quay.io/x"] * 102, "quay.io/x", None],
    "image_refs": [*([image] for image in IMAGES), ["quay.io/x"] * 201, "quay.io/x", None],
    "host": ["", "a/b", "-x", "A.b", "https://a.b", "a.b:port", "x" * 256, None, 7],
    "username": ["x" * 256, "a\0b", "\ud800", None, 7],
    "password": ["x" * 4097, "a\0b", "\ud800", None, 7],
    "uid": [0, -1, 2**32 - 1, True, "2001", None],
    "triggers": [0, 1, "true", None],
    "copy": [0, 1, "true", None],
    "ids": [
        ["a" * 63],
        ["a" * 65],
        ["A" * 64],
        ["sha256:" + "a" * 64],
        ["--force"],
        ["a" * 64] * 201,
        [],
        None,
    ],
    "operation": [
        "",
        "op-",
        "op-4k2m9x7",
        "op-4k2m9x7pp",
        "op-../../..",
        "ws-4k2m9x7p",
        "op-4k2m9x7p\n",
        None,
        7,
    ],
    "secrets": [
        [{"id": "a", "size": 1}],
        {"operation": "op-4k2m9x7p", "ids": []},
        {"operation": "op-4k2m9x7p", "ids": ["a"] * 17},
        {"operation": "../x", "ids": ["a"]},
        {"operation": "op-4k2m9x7p", "ids": ["a,src=/etc/shadow"]},
        {"operation": "op-4k2m9x7p"},
    ],
    "sizes": [
        [{"id": "a"}],
        [{"id": "", "size": 1}],
        [{"id": "..", "size": 1}],
        [{"id": "a/b", "size": 1}],
        [{"id": "a,src=/etc/shadow", "size": 1}],
        [{"id": "-a", "size": 1}],
        [{"id": "a" * 64, "size": 1}],
        [{"id": "a\n", "size": 1}],
        [{"id": "a", "size": -1}],
        [{"id": "a", "size": 2**18 + 1}],
        [{"id": "a", "size": True}],
        [{"id": "a", "size": 1, "path": "/"}],
        [{"id": "a", "size": 1}] * 17,
        {"a": 1},
        "a",
        None,
    ],
    "seconds": [0, 601, True, "1", None],
    "grace_s": [-1, 61, True, "1", None],
    "launcher": ["", "-x", "A", "a/b", "../x", "a" * 64, 1],
    "launchers": [[], [{}], [{"name": "A"}], [{"name": "a", "port": 0}], [{"name": "a"}] * 65, {}, None],
    "file": ["", "a", "/", "/..", "/a/../b", "//a", "/a/", "/a\n", "/a\0", "/" + "a" * 255, 7],
    "pattern": ["x" * 201, "a\0b", "\ud800", 7, ["x"]],
    "sample_ms": [-1, 5001, True, "1", 0.5, None],
    "watch_ms": [-1, 5001, True, "1", 0.5, None],
    "host_port": [0, 65536, -1, True, "80", None],
    "access": ["", "Owner", "owner ", "all", True, 0, ["owner"], {"owner": 1}],
    "container_port": [0, 65536, -1, True, "80", None],
    "tail": [-1, 10**12 + 1, True, "1", 0.5],
    "most": [0, 2**20 + 1, True, "1", 0.5],
    "skip": [-1, 2**50 + 1, True, "1", None],
    "start": [
        [3, 45],
        "3.45",
        {"number": 3},
        {"number": -1, "offset": 0},
        {"number": 3, "offset": 2**50 + 1},
        {"number": None, "offset": 0},
        {"number": 3, "offset": 45, "skip": 0},
    ],
    "times": [0, 1, "true"],
    "ends_agent": [0, 1, "true"],
    "timeout_s": [0, 601, True, "1", None],
    "root": ["/", "..", "a/b", "1", "a-b", "a b", "a\n", "x" * 65, None, 7],
    "path": FILE_PATHS,
    "to": FILE_PATHS,
    "offset": [10**9 + 1, True, "1", 0.0, None],
    "limit": [0, 10_001, True, "1", None],
    "size": [2**50 + 1, True, "1", 1.0],
    "replace": [0, 1, "true", None],
    "parents": [0, 1, "true", None],
    "recursive": [0, 1, "true", None],
    "volumes": [0, 1, "true", None],
    "members_max": [0, 10**9 + 1, True, "1", None],
    "terminal": ["", "t-", "t-4k2m9", "t-4k2m9xx", "t-../../", "x-4k2m9x", "T-4k2m9x", "t-4k2m9x\n", None, 7],
    "cols": [0, -1, 1001, True, "80", 1.5, None],
    "rows": [0, -1, 1001, True, "24", 1.5, None],
    "attach": [0, 1, "true", None],
}
RIGHT: list[Any] = [
    ("image.prune", "ids", []),
    ("ctr.create", "command", None),
    ("ctr.create", "run_as", None),
    ("ctr.create", "network", None),
    ("ctr.prepare", "command", None),
    ("ctr.prepare", "run_as", None),
    ("ctr.prepare", "network", None),
    ("ctr.start", "env", None),
    ("ctr.start", "resources", None),
    ("ctr.start", "devices", None),
    ("ctr.start", "network", None),
    ("ctr.follow", "launcher", None),
    ("ctr.follow", "tail", None),
    ("ctr.follow", "start", None),
    ("ctr.logs", "times", None),
    ("ctr.list", "ends_agent", None),
    ("ctr.list", "ends_agent", False),
    ("ctr.logs", "launcher", None),
    ("ctr.logs", "tail", None),
    ("ctr.logs", "tail", 0),
    ("ctr.logs", "most", None),
    ("ctr.logs", "start", None),
    ("launcher.token", "file", None),
    ("launcher.token", "pattern", None),
    ("ctr.exec", "command", None),
    ("ctr.pipe", "command", None),
    ("image.build", "build_args", None),
    ("image.build", "secrets", None),
    ("terminal.open", "command", None),
    ("fs.write", "size", None),
    ("account.ensure", "administrator", True),
    ("account.mark", "administrator", True),
]
ACCEPTED_ANY: dict[str, list[Any]] = {  # of ANY: what the argument may well be
    "name": ["", "-x", "../..", "/etc/passwd"],
    "env": [{}],
    "devices": [[]],
    "mounts": [[]],
    "bases": [[]],
    "build_args": [{}, None, {"A": "--volume=/:/x"}],
    "image_refs": [[]],
    "username": ["", "-x", "../..", "/etc/passwd"],
    "password": ["", "-x", "../..", "/etc/passwd"],
    "file": ["/etc/passwd"],
    "pattern": ["", "-x", "../..", "/etc/passwd"],
    "triggers": [True],
    "sizes": [[]],
    "copy": [True],
    "path": ["", "-x"],
    "to": ["", "-x"],
    "times": [True],
    "ends_agent": [True],
    "replace": [True],
    "parents": [True],
    "recursive": [True],
    "volumes": [True],
    "attach": [True],
    "registries": [[]],
    "resources": [{}],
}
CHECKS = [name for name, value in vars(arguments).items() if getattr(value, "__name__", "") == "check"]
CHECKS.append("file_path")
PAIR_OF = {
    name: next(pair for pair in ("worker", "tls", "admin", "unix") if pair in verb.pairs)
    for name, verb in VERBS.items()
}
CASES = [
    (verb.name, argument, value)
    for verb in VERBS.values()
    for argument in verb.args
    for value in [
        *HOSTILE[argument],
        *(value for value in ANY if value not in ACCEPTED_ANY.get(argument, [])),
    ]
]
USERS: list[Any] = [
    "root",
    "nobody",
    "svc",
    "daemon",
    "-x",
    ".",
    "..",
    ".x",
    "@",
    "@x",
    "a/b",
    "../a",
    "a%b",
    "%u",
    "a b",
    "a:1001",
    "\u00e4",
    "a\u202eb",
    "a" * 257,
    "0",
    "1000",
    "1" * 256,
    "tsh-ada\n",
    "\ntsh-ada",
    "",
    0,
    1000,
    True,
    ["tsh-ada"],
]


def good_call(verb: Verb, **changed: Any) -> dict[str, Any]:
    """A correct call of the verb, with some arguments changed."""
    args = {name: GOOD[name] for name in verb.args}
    return call(verb.name, None if verb.name in NO_USER else "tsh-ada", {**args, **changed})


@pytest.mark.parametrize("name", VERBS)
def test_the_correct_call_passes(name: str) -> None:
    verb = VERBS[name]
    assert check_call(good_call(verb), PAIR_OF[name]).verb is verb
    for pair in {"unix", "tls", "worker", "admin"} - verb.pairs:
        with pytest.raises(ProtocolError):
            check_call(good_call(verb), pair)


@pytest.mark.parametrize(("name", "argument"), sorted({case[:2] for case in CASES}))
def test_hostile_arguments(name: str, argument: str) -> None:
    verb = VERBS[name]
    for value in [case[2] for case in CASES if case[:2] == (name, argument)]:
        if (name, argument, value) in RIGHT:
            continue
        with pytest.raises(ProtocolError):
            check_call(good_call(verb, **{argument: value}), PAIR_OF[name])
            pytest.fail(f"{name} takes {argument}={value!r:.60}")


@pytest.mark.parametrize("name", VERBS)
def test_arguments_missing_and_unknown(name: str) -> None:
    verb = VERBS[name]
    message = good_call(verb)
    for left_out in message["args"]:
        args = {key: value for key, value in message["args"].items() if key != left_out}
        if (verb.name, left_out, None) not in RIGHT:
            with pytest.raises(ProtocolError):
                check_call({**message, "args": args}, PAIR_OF[name])
    for wrong in ({**message["args"], "argv": ["sh"]}, None, [], "", 0):
        with pytest.raises(ProtocolError):
            check_call({**message, "args": wrong}, PAIR_OF[name])


@pytest.mark.parametrize("name", sorted(set(VERBS) - NO_USER))
def test_hostile_users(shared: Stage, name: str) -> None:
    """Rows of the threat list: root, nobody, svc, -x, 257 characters, a uid as text, to each verb."""
    for user in USERS:
        answer = shared.ask(PAIR_OF[name], {**good_call(VERBS[name]), "user": user})
        assert answer is not None
        named = type(user) is str and user in ("root", "nobody", "svc", "daemon")
        assert (answer["ok"], answer["code"]) == (False, "refused" if named else "protocol"), user


@pytest.mark.parametrize("name", [
    "a@b", "a.b", "first.last@example.org", "First", "1abc", "7@example.org", "_x", "a-", "a.", "a" * 33,
    "a" * 256,
])  # fmt: skip
def test_names_of_a_directory_service_pass(name: str) -> None:
    assert arguments.user_name(name) == name


@pytest.mark.parametrize("check", CHECKS)
def test_no_pattern_takes_long(check: str) -> None:
    """A pattern that backtracks without end would let one message stop root's only thread."""
    function = getattr(arguments, check)
    parts = ("a", "a/", "a.", "a-", "-", "_", "a__", ".", "/", "a:", "1", "ab/")
    for text in [part * (250 // len(part)) + end for part in parts for end in ("", "!", "/", "\n", "/!")]:
        for value in (text, {"host": "a/" + text, "path_prefix": text, "insecure": True}):
            started = time.process_time()
            try:
                function(value)
            except ProtocolError:
                pass
            assert time.process_time() - started < 0.05, (check, text[:20])


@pytest.mark.parametrize(
    "path", [b"", bytes(range(1, 47)) + bytes(range(48, 256)), b"a/b", b"...", b"%2e%2e"]
)
def test_a_path_of_any_bytes_has_one_form(path: bytes) -> None:
    encoded = arguments.path_text(path)
    assert arguments.path_bytes(arguments.file_path(encoded)) == path
    assert encoded.isascii()
    assert encoded.isprintable()


def test_this_test_knows_every_argument() -> None:
    assert {argument for verb in VERBS.values() for argument in verb.args} == set(GOOD) == set(HOSTILE)
