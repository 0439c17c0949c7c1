"""Accounts of a directory service, which nothing lists: no container gets their ids.

A service of the C library's own (NSS) that answers for a block of ids and lists none,
as sssd does. It stands in place of one that nobody uses, in a mount namespace of its own.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from e2e.installation import SVC, Outcome, environment, remove_user
from ports import free_port

from svc_helper.provision import subids

STATE = Path("/var/lib/svc-hostile-directory")
USER = "tsz-subids"
SOURCE = """
#include <errno.h>
#include <grp.h>
#include <nss.h>
#include <pwd.h>
#include <string.h>

enum nss_status _nss_hesiod_getpwuid_r(uid_t id, struct passwd *entry, char *text, size_t size, int *error)
{
    if (id < FIRST || id >= END) { *error = ENOENT; return NSS_STATUS_NOTFOUND; }
    strcpy(text, "far");
    *entry = (struct passwd){text, "x", id, id, "", "/", "/bin/sh"};
    return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_hesiod_getgrgid_r(gid_t id, struct group *entry, char *text, size_t size, int *error)
{
    static char *nobody[] = {0};
    if (id < FIRST || id >= END) { *error = ENOENT; return NSS_STATUS_NOTFOUND; }
    strcpy(text, "far");
    *entry = (struct group){text, "x", id, nobody};
    return NSS_STATUS_SUCCESS;
}
"""


class Directory(NamedTuple):
    """A host with the directory service, and the ids of the service's accounts."""

    first: int
    end: int
    call: Callable[..., Outcome]  # call(*argv, stdin=""): `svc admin` as root


@pytest.fixture(params=[0])
def directory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Directory]:
    """Accounts of the directory in the range that the next user would get, or so many ids above it."""
    libraries = list(Path("/usr/lib").glob("*/libnss_hesiod.so.2"))
    if not shutil.which("cc") or not libraries:
        pytest.skip("needs a C compiler, and the C library's hesiod service to stand in for")
    module, switch = tmp_path / "module.so", tmp_path / "nsswitch.conf"
    first = subids.choose("uid", [*subids.read("uid"), *subids.real_ids("uid")]) + 700 + request.param
    bounds = [f"-DFIRST={first}", f"-DEND={first + 100}"]
    subprocess.run(
        ["cc", "-shared", "-fPIC", *bounds, "-x", "c", "-", "-o", module], input=SOURCE, text=True, check=True
    )
    switch.write_text("passwd: files hesiod\ngroup: files hesiod\nshadow: files\n")
    script = f'mount --bind {module} {libraries[0]} && mount --bind {switch} /etc/nsswitch.conf && exec "$@"'
    env = environment(free_port(), STATE, STATE / "run")

    def call(*argv: str, stdin: str = "") -> Outcome:
        command = ["unshare", "--mount", "sh", "-c", script, "sh", SVC, "admin", *argv]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=90, cwd="/", env=env, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    remove_all()
    STATE.mkdir()
    assert call("migrate").code == 0
    yield Directory(first, first + 100, call)
    remove_all()


def remove_all() -> None:
    remove_user(USER)
    shutil.rmtree(STATE, ignore_errors=True)


def ranges() -> list[tuple[int, int]]:
    """The subordinate uids of the user."""
    lines = [line.split(":") for line in Path("/etc/subuid").read_text().splitlines()]
    return [(int(first), int(first) + int(count)) for name, first, count in lines if name == USER]


def test_a_new_user_gets_no_ids_of_the_directory(directory: Directory) -> None:
    made = directory.call("create-user", USER, stdin="seven quiet herons over mud\n")
    assert made.code == 0, made.err
    (own,) = ranges()
    assert own[0] >= directory.end or own[1] <= directory.first
    assert not [item for item in overlaps(directory) if USER in item["found"]]


@pytest.mark.parametrize("directory", [20_000_000], indirect=True)  # nobody else gets such a range meanwhile
def test_a_range_with_ids_of_the_directory_is_refused_and_found(directory: Directory) -> None:
    keys = ["--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0"]
    subprocess.run(["useradd", "--create-home", *keys, USER], check=True)
    start = directory.first - 300
    subprocess.run(["usermod", "--add-subuids", f"{start}-{start + 65535}", USER], check=True)
    made = directory.call("create-user", USER, stdin="seven quiet herons over mud\n")
    assert made.code == 1
    assert f"{USER} and the account far share subordinate uids" in made.err
    assert [item for item in overlaps(directory) if USER in item["found"]]


def overlaps(directory: Directory) -> list[dict[str, str]]:
    """What the doctor finds of ranges that overlap."""
    items = directory.call("doctor", "--json").json()["items"]
    return [item for item in items if item["code"] == "subuid_overlap"]
