"""The Linux account, made whole from wherever an attempt was killed; what is somebody else's stays theirs."""

from __future__ import annotations

import contextlib
import ctypes
import grp
import os
import pwd
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helper.stage import Stage, edit, enrolled, ensure, remove_user, traced

from svc import errors
from svc_helper.provision import accounts, linux_account, subids
from svc_helper.root.agents import Host
from svc_helper.root.check import resolve

NEW = "tsh-new"
USERADD = ["useradd", "--no-create-home", "--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0"]
HOME = Path("/home", NEW)
ASIDE = Path(f"/home/.svc-{NEW}")
TOO_LONG = "it took too long"


@pytest.fixture
def new_user() -> Iterator[str]:
    """The name of an account that is not there yet, nor anything of it."""
    remove(NEW)
    yield NEW
    remove(NEW)


@pytest.fixture
def reaper() -> Iterator[None]:
    """Orphans of our children become ours."""
    prctl, set_child_subreaper = ctypes.CDLL(None).prctl, 36
    prctl(set_child_subreaper, 1)
    yield
    prctl(set_child_subreaper, 0)


def remove(name: str) -> None:
    """Take away an account that may be there in part only."""
    remove_user(name)
    subprocess.run(["groupdel", name], check=False, capture_output=True)
    edit("shadow", without(name))


def without(name: str) -> Callable[[str], bool]:
    """Keeps all lines but the account's."""
    return lambda line: not line.startswith(name + ":")


def lines(file: str, name: str) -> list[list[str]]:
    """The account's lines in a file of /etc, in fields."""
    text = Path("/etc", file).read_text().splitlines()
    return [line.split(":") for line in text if line.startswith(name + ":")]


def require_whole(stage: Stage, name: str) -> None:
    """Assert that nothing of the account is missing, twice or half there."""
    account = pwd.getpwnam(name)
    (shadow,) = lines("shadow", name)
    assert shadow[1] == "!"
    assert len(lines("passwd", name)) == len(lines("group", name)) == 1
    assert grp.getgrgid(account.pw_gid).gr_name == name
    for kind in ("uid", "gid"):
        (span,) = [span for span in subids.read(kind) if span.owner == name]
        assert span.end - span.first == subids.COUNT
    assert sorted(os.listdir(account.pw_dir)) == sorted([*os.listdir("/etc/skel"), ".config", "work"])
    for skeleton in Path("/etc/skel").iterdir():
        assert Path(account.pw_dir, skeleton.name).read_bytes() == skeleton.read_bytes()
    for directory, _, files in os.walk(account.pw_dir):
        assert {os.lstat(Path(directory, name)).st_uid for name in (".", *files)} == {account.pw_uid}
    containers = Path(account.pw_dir, ".config/containers")
    assert [path.name for path in containers.iterdir()] == ["storage.conf"]
    assert (containers / "storage.conf").read_text() == accounts.STORAGE
    assert os.stat(account.pw_dir).st_mode & 0o777 == 0o700
    assert not ASIDE.exists()
    assert f"{name} {account.pw_uid} user" in enrolled(stage)


def host_of(stage: Stage) -> Host:
    """The host as the stage's helper sees it, for calls without a helper."""
    return Host(str(stage.directory), {"work": "%h/work"}, False, False, [])


def started(stage: Stage, steps: int | None = None) -> int:
    """The pid of a process that takes some (all) of the steps, in a group of its own with what it runs."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            accounts.STEPS = accounts.STEPS[:steps]
            if steps is not None:  # as if killed there: the list is not written
                accounts.STEPS += (("killed", lambda making: os.kill(os.getpid(), signal.SIGKILL)),)
            accounts.ensure(host_of(stage), NEW, False)
        finally:
            os._exit(0)
    os.setpgid(pid, pid)  # whoever of the two comes first
    return pid


def kill(pid: int) -> None:
    """End the process and all that it runs, and reap them: a lock counts while its process is a zombie."""
    os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-pid, 0)


@pytest.mark.parametrize("taken", range(len(accounts.STEPS) + 1))
def test_a_kill_after_each_step(stage: Stage, new_user: str, taken: int) -> None:
    os.waitpid(started(stage, taken), 0)
    assert len(enrolled(stage)) == 3
    ensure(stage, new_user)
    require_whole(stage, new_user)


def test_a_kill_at_any_moment(stage: Stage, new_user: str, reaper: None) -> None:
    begun = time.monotonic()
    os.waitpid(started(stage), 0)
    takes = time.monotonic() - begun
    require_whole(stage, new_user)
    for part in range(12):
        remove(new_user)
        accounts.forget(host_of(stage), new_user)
        pid = started(stage)
        time.sleep(takes * part / 12)
        kill(pid)
        ensure(stage, new_user)
        require_whole(stage, new_user)


# What useradd leaves when it is killed between two of its renames (passwd, shadow, group), and what
# userdel leaves: the files in which the account is missing.
@pytest.mark.parametrize("missing", [
    ("shadow", "group", "gshadow"),
    ("group", "gshadow"),
    ("gshadow",),
    ("shadow",),
    ("passwd",),
    ("passwd", "shadow"),
    ("passwd", "group", "gshadow"),
])  # fmt: skip
def test_an_account_in_some_files_only(stage: Stage, new_user: str, missing: tuple[str, ...]) -> None:
    subprocess.run([*USERADD, new_user], check=True)
    edit("shadow", without(new_user), f"{new_user}:!:20000:0:99999:7:::")
    for file in missing:
        edit(file, without(new_user))
    ensure(stage, new_user)
    require_whole(stage, new_user)


def test_a_home_whose_path_is_not_utf_8_is_refused(stage: Stage, new_user: str) -> None:
    """No message can have it; the account is not enrolled, and the way out is said."""
    subprocess.run([*USERADD, b"--home-dir=/home/bg\xfcn", new_user], check=True)
    with pytest.raises(errors.SvcError) as refused:
        ensure(stage, new_user)
    assert refused.value.message == (
        f"home directory: the path of the home directory of {new_user} is not UTF-8;"
        f" sudo usermod --move-home --home /home/{new_user} {new_user}"
    )
    assert not [line for line in enrolled(stage) if line.startswith(new_user)]


def test_a_password_of_an_account_that_is_gone_opens_nothing(stage: Stage, new_user: str) -> None:
    edit("shadow", without(new_user), f"{new_user}:$y$j9T$x$x:20000:0:99999:7:::")
    ensure(stage, new_user)
    require_whole(stage, new_user)


def test_a_child_that_its_user_has_stopped_is_not_waited_for() -> None:
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    begun = time.monotonic()
    assert linux_account.outcome(pid, 60) == -signal.SIGKILL
    assert time.monotonic() - begun < 10


def test_an_adopted_account_keeps_its_password(stage: Stage, new_user: str) -> None:
    subprocess.run([*USERADD, "--password", "$y$j9T$x$x", new_user], check=True)
    ensure(stage, new_user)
    assert lines("shadow", new_user)[0][1] == "$y$j9T$x$x"


def test_a_group_that_the_account_left_over_is_its_own_again(stage: Stage, new_user: str) -> None:
    subprocess.run(["groupadd", "--gid", "54321", new_user], check=True)
    ensure(stage, new_user)
    require_whole(stage, new_user)
    assert pwd.getpwnam(new_user).pw_gid == 54321


@pytest.mark.parametrize(("options", "members", "why"), [
    (["--gid", "54321"], ["--append", "--groups", NEW, "tsh-ada"], "it is the group of tsh-ada"),
    (["--gid", "54321"], ["--gid", NEW, "tsh-ben"],                "it is the group of tsh-ben"),
    (["--system"],       None,                                     "it is a system group"),
])  # fmt: skip
def test_a_group_in_the_way(
    stage: Stage, new_user: str, options: list[str], members: list[str] | None, why: str
) -> None:
    before = pwd.getpwnam("tsh-ben").pw_gid
    subprocess.run(["groupadd", *options, new_user], check=True)
    if members:
        subprocess.run(["usermod", *members], check=True)
    try:
        with pytest.raises(errors.Conflict, match=rf"^Linux account: .* exists: {why}; run `groupdel"):
            ensure(stage, new_user)
    finally:
        subprocess.run(["usermod", "--gid", str(before), "tsh-ben"], check=True)
    assert not linux_account.exists(new_user)
    assert len(enrolled(stage)) == 3


def test_an_account_without_a_home_directory(stage: Stage, new_user: str) -> None:
    subprocess.run([*USERADD, new_user], check=True)
    fields = lines("passwd", new_user)[0]
    edit("passwd", without(new_user), ":".join([*fields[:5], "", fields[6]]))
    with pytest.raises(errors.HostRefused, match="no Linux account with a home directory"):
        ensure(stage, new_user)


def test_an_adopted_account_whose_home_is_missing_gets_it(stage: Stage, new_user: str) -> None:
    subprocess.run([*USERADD, new_user], check=True)
    ensure(stage, new_user)
    require_whole(stage, new_user)


def half_copied(uid: int) -> None:
    """A home directory on its way, with half a file in it."""
    ASIDE.mkdir(mode=0o700)
    (ASIDE / ".bashrc").write_text("half")
    os.chown(ASIDE / ".bashrc", uid, uid)
    os.chown(ASIDE, uid, uid)


def test_half_a_home_directory(stage: Stage, new_user: str) -> None:
    subprocess.run([*USERADD, new_user], check=True)
    half_copied(pwd.getpwnam(new_user).pw_uid)
    ensure(stage, new_user)
    require_whole(stage, new_user)


def test_half_a_home_directory_of_an_account_that_is_gone(stage: Stage, new_user: str) -> None:
    half_copied(54321)
    with pytest.raises(errors.Conflict, match="belongs to another account; remove it"):
        ensure(stage, new_user)
    assert not HOME.exists()


def test_a_link_in_place_of_the_home_on_its_way_leads_root_nowhere(stage: Stage, new_user: str) -> None:
    target = stage.directory / "roots-own"
    target.mkdir(mode=0o755)
    ASIDE.symlink_to(target)
    try:
        with pytest.raises(errors.EngineFailed, match=r"^home directory: "):
            ensure(stage, new_user)
        assert (os.stat(target).st_uid, list(target.iterdir())) == (0, [])
    finally:
        ASIDE.unlink()


@pytest.mark.parametrize("whose", ["everybody's", "ada's", "below ada's"])
def test_no_home_directory_is_made_where_others_may_write(stage: Stage, new_user: str, whose: str) -> None:
    """They could put a link in its way."""
    shared = stage.directory / "shared"
    parent = shared / "below" if whose == "below ada's" else shared
    parent.mkdir(parents=True)
    if whose == "everybody's":
        shared.chmod(0o1777)
    else:
        os.chown(shared, pwd.getpwnam("tsh-ada").pw_uid, 0)
    subprocess.run([*USERADD, "--home-dir", str(parent / NEW), new_user], check=True)
    with pytest.raises(errors.Conflict, match="create it by hand"):
        ensure(stage, new_user)
    assert list(parent.iterdir()) == []


def test_a_home_directory_behind_roots_own_link(stage: Stage, new_user: str) -> None:
    (stage.directory / "homes").mkdir()
    (stage.directory / "link").symlink_to("homes")
    home = stage.directory / "link" / NEW
    subprocess.run([*USERADD, "--home-dir", str(home), new_user], check=True)
    ensure(stage, new_user)
    require_whole(stage, new_user)


def test_a_home_directory_whose_parent_is_missing(stage: Stage, new_user: str) -> None:
    subprocess.run([*USERADD, "--home-dir", f"/run/tsh-none/{NEW}", new_user], check=True)
    with pytest.raises(errors.EngineFailed, match=r"^home directory: .*/run/tsh-none"):
        ensure(stage, new_user)


def test_a_home_of_the_name_that_is_somebody_elses(stage: Stage, new_user: str) -> None:
    """An account that was removed and made again with another uid does not get what was the first one's."""
    HOME.mkdir(mode=0o700)
    os.chown(HOME, 54321, 54321)
    with pytest.raises(errors.EngineFailed, match="ls -ld /home/tsh-new"):
        ensure(stage, new_user)
    assert (os.stat(HOME).st_uid, len(enrolled(stage))) == (54321, 3)


@pytest.mark.parametrize("link", [False, True])
def test_a_home_directory_that_somebody_else_has_set_up(
    stage: Stage, new_user: str, uid: dict[str, int], link: bool
) -> None:
    """With all that the account needs in it, and whatever else Podman reads."""
    shared = stage.directory / "shared"
    shared.mkdir()
    home = shared / NEW
    subprocess.run([*USERADD, "--home-dir", str(home), new_user], check=True)
    trap, owner = home, uid["tsh-ada"]
    if link:
        trap, owner = stage.directory / "trap", pwd.getpwnam(new_user).pw_uid
        home.symlink_to(trap)
        os.chown(home, uid["tsh-ada"], -1, follow_symlinks=False)
    (trap / "work").mkdir(parents=True)
    (trap / ".config/containers").mkdir(parents=True)
    (trap / ".config/containers/storage.conf").write_text(accounts.STORAGE)
    os.chown(trap, owner, -1)
    with pytest.raises(errors.EngineFailed, match="check its owner"):
        ensure(stage, new_user)
    assert len(enrolled(stage)) == 3


def test_a_step_that_its_user_stops_is_ended(uid: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux_account, "USER_STEP_S", 1)
    account = resolve("tsh-ada")
    assert account is not None
    begun = time.monotonic()
    assert linux_account.failure_as_user(account, lambda: os.kill(os.getpid(), signal.SIGSTOP)) == TOO_LONG
    assert time.monotonic() - begun < 10


def test_half_a_storage_setting(stage: Stage, new_user: str) -> None:
    ensure(stage, new_user)
    storage = HOME / ".config/containers/storage.conf"
    storage.rename(f"{storage}.svc")
    Path(f"{storage}.svc").write_text("[sto")
    ensure(stage, new_user)
    require_whole(stage, new_user)


@pytest.mark.parametrize("within_s", [0.2, 600])
def test_a_child_that_its_tracer_holds_is_not_waited_for(within_s: float) -> None:
    """Killed because it is late, or by its user: the tracer keeps its end from the parent."""
    pid = os.posix_spawn("/bin/sleep", ["sleep", "600"], {})
    with traced(pid) as tracer:
        lets_go = threading.Timer(30, tracer.kill)  # so that a wait, which must not be, has an end
        lets_go.start()
        if within_s == 600:
            os.kill(pid, signal.SIGKILL)
        assert linux_account.outcome(pid, within_s) == -signal.SIGKILL
        assert os.path.exists(f"/proc/{pid}")
        lets_go.cancel()
    assert os.waitpid(pid, 0)[0] == pid


def test_the_outcome_of_a_child() -> None:
    for argv, code in ((["true"], 0), (["false"], 1)):
        assert linux_account.outcome(os.posix_spawnp(argv[0], argv, {"PATH": "/bin:/usr/bin"}), 60) == code
