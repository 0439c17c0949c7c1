"""The shells as somebody sits before them: a line is typed, TAB is pressed, and the line is read back."""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

TAB, SHOW, KILL = "\t", "\x07", "\x15"  # Ctrl-G, which both shells are told to bind, and Ctrl-U
READY = "shell-is-ready"
# What each is told first. SHOW writes the line as it stands into a file of the home directory.
SETTING_UP = {
    "bash": (
        "PS1='> '; . /usr/share/bash-completion/bash_completion; "
        "bind 'set bell-style none'; "
        """bind -x '"\\C-g": printf %s "$READLINE_LINE" >line.new; mv line.new line'"""
    ),
    "zsh": (
        "PS1='> '; {fpath}autoload -Uz compinit; compinit -u -D; setopt nobeep; "
        "show() { print -rn -- $BUFFER >line.new; mv line.new line }; zle -N show; bindkey '^G' show"
    ),
}
COMMANDS = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


class Interactive:
    """One interactive bash or zsh of a user, on a terminal of its own, in the user's home."""

    def __init__(self, name: str, user: str, env: Mapping[str, str], scripts: Path | None) -> None:
        """Completion is what lies in `scripts`, or what is installed on this host."""
        account = pwd.getpwnam(user)
        self.line = Path(account.pw_dir, "line")
        self.pid, self.terminal = os.forkpty()
        if self.pid == 0:
            try:
                os.initgroups(user, account.pw_gid)
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
                os.chdir(account.pw_dir)
                own = {"HOME": account.pw_dir, "TERM": "dumb", "HISTFILE": ""}
                if scripts:
                    own["XDG_DATA_DIRS"] = str(scripts)
                os.execvpe(COMMANDS[name][0], COMMANDS[name], {**env, **own})
            finally:
                os._exit(127)
        self.screen = ""
        setting_up = SETTING_UP[name].replace("{fpath}", f"fpath=({scripts} $fpath); " if scripts else "")
        # In two parts, or the echo of what is typed would be taken for the output.
        self.type(f"{setting_up}; echo shell-''is-ready\r")
        self.until(READY)

    def type(self, text: str) -> None:
        """Type this."""
        os.write(self.terminal, text.encode())

    def until(self, text: str, seconds: float = 20) -> str:
        """What appears on the screen until that text is there; AssertionError when it never is."""
        deadline = time.monotonic() + seconds
        self.screen = ""
        while text not in self.screen:
            assert time.monotonic() < deadline, f"no {text!r} in {self.screen!r}"
            if select.select([self.terminal], [], [], 0.05)[0]:
                self.screen += os.read(self.terminal, 65536).decode(errors="replace")
        return self.screen

    def completed(self, typed: str) -> str:
        """The line after TAB; it stays, for whoever wants to run it."""
        self.type(typed + TAB + SHOW)
        deadline = time.monotonic() + 20
        while not self.line.exists():
            assert time.monotonic() < deadline, self.screen
            if select.select([self.terminal], [], [], 0.02)[0]:
                self.screen += os.read(self.terminal, 65536).decode(errors="replace")
        found = self.line.read_text()
        self.line.unlink()
        return found

    def forget(self) -> None:
        """Take the line away."""
        self.type(KILL)

    def close(self) -> None:
        """End the shell."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def fish_offers(user: str, env: Mapping[str, str], scripts: Path | None, typed: str) -> list[str]:
    """What fish offers for the last word of a line, with these scripts or what is installed."""
    account = pwd.getpwnam(user)
    command = ["fish", "-c", "complete -C $argv[1]", typed]
    if scripts:
        asked = "source $argv[2]/svc.fish; complete -C $argv[1]"
        command = ["fish", "--no-config", "-c", asked, typed, str(scripts)]
    done = subprocess.run(
        command,
        env={**env, "HOME": account.pw_dir},
        cwd=account.pw_dir,
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=os.getgrouplist(user, account.pw_gid),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


def install(scripts: Path) -> None:
    """Put bash's script where bash-completion looks for the completion of `svc`."""
    place = scripts / "bash-completion" / "completions"
    place.mkdir(parents=True)
    shutil.copy(scripts / "svc.bash", place / "svc")
