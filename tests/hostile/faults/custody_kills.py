"""kill -9 under HTTP writes, backups and restores, round after round; nothing acknowledged may be lost.

`test_custody_kills.py` runs three rounds. Many: `tests/run release -- custody_kills 200`.

Clients change templates, tokens, workspaces, accounts and quotas over the socket, and note outside of the
service what they were told (ledger.py). Beside them runs one backup after the other, of which some are
killed; each finished snapshot is checked by `svc admin backup --verify`. Then processes of svc are killed. In
each second round a snapshot is restored, and the restore is killed at a random moment and completed by
`--finish`. After each round the database passes its checks and holds what was acknowledged; after a restore
what was acknowledged before the snapshot.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from e2e.installation import SVC, Service, environment, run
from e2e.surroundings import in_database, served, template_of
from hostile.attackers.raw import Answer, ask, connect, request
from hostile.faults import kills
from hostile.faults.ledger import Key, Ledger, State, Value, differences
from ports import free_port
from waiting import until

USERS = ("tsk-ann", "tsk-ben")
STATE, RUN = Path("/var/lib/svc-custody-kills"), Path("/run/svc-custody-kills")
REGISTRY = "127.0.0.1:5"  # nobody listens there: rows only, no images
VICTIMS = ("worker", "listener", "everything", "app", "helper", "supervisor")
RESTORE_EACH = 2  # rounds
KEPT = 4  # snapshots
BACKUP_KILLED, RESTORE_KILLED = 0.3, 0.7  # shares
NOTED = 0.6  # of the kills of a restore: while the database is being replaced
REPLACING_S = 0.03
FIRST_S = 0.3  # what a command takes, until one has been timed
HELD = """
SELECT 'template', u.name, t.name, json_extract(r.spec_json, '$.description') FROM templates t
  JOIN users u ON u.id = t.owner_id
  JOIN template_revisions r ON r.template_id = t.id AND r.revision = t.revision
UNION ALL SELECT 'token', u.name, k.name, iif(k.ended_at IS NULL, 'open', 'ended') FROM tokens k
  JOIN users u ON u.id = k.user_id
UNION ALL SELECT 'workspace', u.name, w.name, w.display_name FROM workspaces w
  JOIN users u ON u.id = w.owner_id
UNION ALL SELECT 'account', 'root', name, display_name FROM users WHERE uid <> 0
UNION ALL SELECT 'quota', 'root', name, CAST(max_workspaces AS TEXT) FROM quotas WHERE name LIKE 'kill-%'
"""


class Change(NamedTuple):
    """A request, and what it makes of its key."""

    method: str
    path: str
    body: object
    good: int
    key: Key
    value: Value


class Writer(threading.Thread):
    """Changes one kind of things as one user for as long as the gate is open."""

    def __init__(self, harness: Custody, user: str, kind: str) -> None:
        super().__init__(daemon=True)
        self.harness, self.user, self.kind = harness, user, kind
        self.chance = random.Random(f"{harness.seed} {user} {kind}")
        self.gate, self.idle, self.over = threading.Event(), threading.Event(), threading.Event()
        self.held: dict[str, Value] = {}
        self.answers: Counter[str] = Counter()
        self.number = 0

    def run(self) -> None:
        while not self.over.is_set():
            if not self.gate.wait(0.1):
                self.idle.set()
                continue
            self.idle.clear()
            self.step()
        self.idle.set()

    def learn(self, state: State) -> None:
        """Take over what the database holds, while the gate is closed."""
        self.held = {name: value for (kind, owner, name), value in state.items()
                     if (kind, owner) == (self.kind, self.user) and value != "ended"}  # fmt: skip

    def step(self) -> None:
        """One change. Without an answer it ends the round: the request may still be at work."""
        self.number += 1
        change = getattr(self, f"a_{self.kind}")()
        ledger = self.harness.ledger
        ledger.begin(change.key, change.value)
        answer = self.call(change)
        self.answers[f"{answer.status} {answer.code}".strip()] += 1
        if answer.status == change.good:
            ledger.acknowledge(change.key)
            self.held[change.key[2]] = change.value
            if change.value in (None, "ended"):
                del self.held[change.key[2]]
        elif answer.status == 0:
            self.gate.clear()
        else:
            time.sleep(0.05)

    def call(self, change: Change) -> Answer:
        """One request on a connection of its own; status 0 without an answer."""
        content = b"" if change.body is None else json.dumps(change.body).encode()
        try:
            sock = connect(self.harness.service.env["SVC_SOCKET"], self.user)
        except OSError:
            return Answer(0, "", b"")
        sock.settimeout(60)
        return ask(sock, request(change.method, f"/api{change.path}", content))

    def text(self) -> str:
        """A value that no other change has."""
        return f"{self.number}-{self.chance.getrandbits(32):08x}"

    def a_template(self) -> Change:
        name, text = f"kill-{self.chance.randrange(5)}", self.text()
        key = ("template", self.user, name)
        if name not in self.held:
            source = {"type": "registry", "image_ref": f"{REGISTRY}/tests/base:1"}
            body = {"name": name, "description": text, "source": source}
            return Change("POST", "/templates", body, 201, key, text)
        if self.chance.random() < 0.2:
            return Change("DELETE", f"/templates/{name}", None, 204, key, None)
        return Change("PATCH", f"/templates/{name}", {"description": text}, 200, key, text)

    def a_token(self) -> Change:
        if len(self.held) > 8 or (self.held and self.chance.random() < 0.4):
            name = self.chance.choice(sorted(self.held))
            return Change("DELETE", f"/tokens/{name}", None, 204, ("token", self.user, name), "ended")
        name = f"kill-{self.text()}"
        return Change("POST", "/tokens", {"name": name}, 201, ("token", self.user, name), "open")

    def a_workspace(self) -> Change:
        name, text = self.chance.choice(sorted(self.held)), self.text()
        key = ("workspace", self.user, name)
        return Change("PATCH", f"/workspaces/{name}", {"display_name": text}, 200, key, text)

    def a_account(self) -> Change:
        name, text = self.chance.choice(sorted(self.held)), self.text()
        return Change("PATCH", f"/users/{name}", {"display_name": text}, 200, ("account", "root", name), text)

    def a_quota(self) -> Change:
        name, limit = f"kill-{self.chance.randrange(3)}", str(self.number + 1000)
        body = {"max_workspaces": int(limit)}
        return Change("PUT", f"/admin/quotas/{name}", body, 200, ("quota", "root", name), limit)


class Custody(kills.Harness):
    """A service, its writers, its backups and restores."""

    def __init__(self, service: Service, users: tuple[str, ...], seed: int, folder: Path) -> None:
        super().__init__(service, (), seed)
        self.users, self.seed = users, seed
        self.snapshots, self.sets = folder / "snapshots", folder / "sets"
        for path in (self.snapshots, self.sets):
            path.mkdir(mode=0o700)
        self.env = service.env | {"SVC_RECOVERY_DIR": str(self.sets)}
        self.note = Path(self.env["SVC_STATE_DIR"], "restore-under-way")
        self.ledger = Ledger(self.state())
        self.made: dict[str, tuple[float, float]] = {}  # snapshots: when they were begun and complete
        self.verified: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.took_s: dict[str, float] = {}  # by an undisturbed command, by its first words
        kinds = [(user, kind) for user in users for kind in ("template", "token", "workspace")]
        self.writers = [Writer(self, *one) for one in (*kinds, ("root", "account"), ("root", "quota"))]
        for writer in self.writers:
            writer.learn(self.state())
            writer.start()

    def close(self) -> None:
        """End the writers."""
        for writer in self.writers:
            writer.gate.clear()
            writer.over.set()
        for writer in self.writers:
            writer.join()

    def state(self) -> dict[Key, Value]:
        """What the database holds of the writers' things."""
        rows = in_database(self.service.env, HELD)
        return {(str(kind), str(owner), str(name)): str(value) for kind, owner, name, value in rows}

    # --- a round ----------------------------------------------------------------------------

    def turn(self, number: int) -> list[str]:
        """Work under a backup, a kill, in each second round a restore; what is wrong afterwards."""
        victim = VICTIMS[number % len(VICTIMS)]
        self.work(victim)
        wrong = self.check() if self.service.supervisor else []
        if number % RESTORE_EACH == RESTORE_EACH - 1 and self.made:
            with self.stopped():
                wrong += self.restored()
            wrong += self.check()
        return wrong

    def work(self, victim: str) -> None:
        """Writers and backups, and one kill under them; afterwards the service answers again."""
        over = threading.Event()
        backups = threading.Thread(target=self.back_up, args=(over,))
        self.open()
        backups.start()
        time.sleep(self.chance.uniform(*kills.BUSY_S))
        chosen = kills.VICTIMS[victim](self)
        kills.kill(chosen)
        over.set()
        if self.service.pid in {one.pid for one in chosen}:
            self.start_again()
        until(self.service.answers, 60, 0.1)
        self.pause_writers()
        backups.join()
        self.counts[f"kills of {victim}"] += 1

    def open(self) -> None:
        for writer in self.writers:
            writer.idle.clear()
            writer.gate.set()

    def pause_writers(self) -> None:
        for writer in self.writers:
            writer.gate.clear()
        for writer in self.writers:
            assert writer.idle.wait(100), writer.kind

    def check(self) -> list[str]:
        """The database's own checks, and what the clients were told; then the writers begin from there."""
        state = self.state()
        wrong = self.ledger.wrong(state)
        for pragma in ("integrity_check", "foreign_key_check"):
            found = in_database(self.service.env, f"PRAGMA {pragma}")
            if found not in ([], [["ok"]]):
                wrong.append(f"{pragma}: {found[:3]}")
        findings = {
            one["code"]: one for one in run("root", "admin", "doctor", "--json", env=self.env).json()["items"]
        }
        if findings["audit_chain"]["level"] != "ok":
            wrong.append(f"doctor: {findings['audit_chain']}")
        wrong += self.check_files()
        self.ledger.observe(state)
        for writer in self.writers:
            writer.learn(state)
        return wrong

    def check_files(self) -> list[str]:
        """What has a snapshot's name is one, and every recovery set is whole."""
        paths = [*self.snapshots.glob("svc-*.db"), *self.sets.glob("restore-*/svc.db")]
        wrong = []
        for path in paths:
            if str(path) not in self.verified:
                found = run("root", "admin", "backup", "--verify", str(path), "--json", env=self.env)
                if found.code or not found.json()["restorable"]:
                    wrong.append(f"{path}: {found.out}{found.err}")
                self.verified.add(str(path))
                self.counts["snapshots verified"] += 1
        wrong += [
            f"no manifest: {path}"
            for path in self.sets.glob("restore-*")
            if not (path / "manifest.json").exists()
        ]
        for path in sorted(self.sets.glob("restore-*"))[:-2]:
            shutil.rmtree(path)
        return wrong

    # --- backups ----------------------------------------------------------------------------

    def back_up(self, over: threading.Event) -> None:
        """One backup after the other; some are killed, and may or may not have been complete."""
        while not over.is_set():
            killed = self.chance.random() < BACKUP_KILLED
            began = time.monotonic()
            arguments = ("backup", "--dir", str(self.snapshots), "--retention", str(KEPT), "--json")
            command, out, err = self.ended(arguments, killed=killed)
            self.counts["backups killed" if command.returncode < 0 else "backups"] += 1
            if command.returncode == 0:
                self.made[json.loads(out)["path"]] = (began, time.monotonic())
            elif command.returncode > 0 and not killed:
                self.counts[f"backup refused: {err.strip()[:100]}"] += 1
        self.made = {path: times for path, times in self.made.items() if os.path.exists(path)}

    def admin(self, *argv: str) -> subprocess.Popen[str]:
        """`svc admin ARGV` of root's, begun."""
        return subprocess.Popen(
            [SVC, "admin", *argv], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd="/", start_new_session=True,
        )  # fmt: skip

    def ended(self, argv: tuple[str, ...], *, killed: bool) -> tuple[subprocess.Popen[str], str, str]:
        """Run the command to its end; with `killed` that comes at any moment of the time that it takes."""
        kind = " ".join(word for word in argv[:2] if not word.startswith("/"))
        began = time.monotonic()
        command = self.admin(*argv)
        if killed:
            if kind.startswith("restore") and self.chance.random() < NOTED:
                self.wait_for_note(command)
            else:
                time.sleep(self.chance.uniform(0, 1.1 * self.took_s.get(kind, FIRST_S)))
            self.kill_command(command)
        out, err = command.communicate(timeout=120)
        if not killed:
            self.took_s[kind] = time.monotonic() - began
        return command, out, err

    def wait_for_note(self, command: subprocess.Popen[str]) -> None:
        """Until a moment of the replacement itself, which takes some hundredths of a second."""
        while not self.note.exists() and command.poll() is None:
            time.sleep(0.0005)
        time.sleep(self.chance.uniform(0, REPLACING_S))

    def kill_command(self, command: subprocess.Popen[str]) -> None:
        """kill -9 of root's process, of the one that works for it as the owner, or of both."""
        how, pids = self.chance.randrange(3), []
        if how:
            with contextlib.suppress(OSError):
                pids += [
                    int(pid)
                    for pid in Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
                ]
        if how != 1 or not pids:
            pids.append(command.pid)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # --- restores ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Without the service, which was stopped in order or killed with all it has, under its writers."""
        self.open()
        time.sleep(self.chance.uniform(0.1, 1.0))
        if self.chance.random() < 0.5:
            kills.kill(kills.VICTIMS["everything"](self))
            self.counts["stops by kill"] += 1
        self.service.stop()
        self.pause_writers()
        yield
        self.service.start()

    def restored(self) -> list[str]:
        """Restore a snapshot, killed at a random moment or not; whole, old or new, in the end."""
        before = self.state()
        wrong = self.ledger.wrong(before)
        path = self.chance.choice(sorted(self.made))
        allowed = self.ledger.allowed(*self.made[path])
        for key, values in allowed.items():  # what ended since stays ended
            if key[0] == "token" and before.get(key) != "open" and "open" in values:
                values.add("ended")
                values.discard("open")
        self.ledger.observe(before)
        is_complete = self.run_restore("restore", path, "--yes")
        while not is_complete and self.note.exists():
            self.counts["completed by --finish"] += 1
            refused = run("root", "admin", "list-users", env=self.env)
            if refused.code != 1 or "restore --finish" not in refused.err:
                wrong.append(f"the database was used in between: {refused}")
            is_complete = self.run_restore("restore", "--finish")
        state = self.state()
        as_new, as_old = (
            differences(allowed, state),
            differences({key: {value} for key, value in before.items()}, state),
        )
        kind = "new" if not as_new else "old" if not as_old else "mixed"
        self.counts[f"restores that ended {kind}"] += 1
        if kind == "mixed" or (is_complete and kind != "new"):
            wrong.append(f"{path} is restored, {kind}: {as_new[:3]} {as_old[:3]}")
        self.ledger.observe(state)
        return wrong

    def run_restore(self, *argv: str) -> bool:
        """Run it, killed at a random moment in most cases; whether it was complete."""
        command, _, err = self.ended(argv, killed=self.chance.random() < RESTORE_KILLED)
        killed = command.returncode < 0 or "ended without a result" in err
        self.counts["restores killed" if killed else "restores"] += 1
        assert killed or command.returncode == 0, err
        return not killed


def prepare(env: dict[str, str], users: tuple[str, ...]) -> None:
    """A template of each user's, and rows of workspaces without containers."""
    for user in users:
        template_of(user, REGISTRY, env)
        for number in range(3):
            in_database(
                env,
                "INSERT INTO workspaces (id, owner_id, name, template_id, template_revision, image_ref,"
                " status, status_since, created_at, updated_at) SELECT ?, u.id, ?, t.id, 1, 'r.example/a:1',"
                " 'stopped', t.created_at, t.created_at, t.created_at"
                " FROM users u JOIN templates t ON t.owner_id = u.id WHERE u.name = ?",
                f"ws-{user[-3:]}{number:05}", f"kill-{number}", user,
            )  # fmt: skip


@contextlib.contextmanager
def harness_of(seed: int, folder: Path) -> Iterator[Custody]:
    """A service of its own with its writers."""
    env = environment(free_port(), STATE, RUN)
    with served(env, REGISTRY, folder / "log", USERS) as service:
        prepare(env, USERS)
        harness = Custody(service, USERS, seed, folder)
        try:
            yield harness
        finally:
            harness.close()


def main(count: int, seed: int) -> int:
    """Run so many rounds; 1 when anything was wrong in one."""
    wrong = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name, harness_of(seed, Path(name)) as harness:
        for number in range(count):
            found = harness.turn(number)
            wrong += bool(found)
            print(f"{number}: {VICTIMS[number % len(VICTIMS)]}: {found or 'as it must be'}", flush=True)
            if found:
                Path("/tmp/custody-kills.log").write_bytes(harness.service.log.read_bytes())
        answers = sum((writer.answers for writer in harness.writers), Counter[str]())
        print(f"{answers.total()} calls: {dict(answers.most_common())}")
        print(f"{harness.ledger.acknowledged} acknowledged writes; {dict(sorted(harness.counts.items()))}")
    print(f"{count} rounds, {wrong} wrong, {time.monotonic() - began:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 200, int(sys.argv[2]) if sys.argv[2:] else 1))
