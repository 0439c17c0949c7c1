"""As a taken-over worker: a hundred and fifty thousand calls on its pair that the helper refuses."""

import ctypes
import os
import pwd
import socket
import subprocess

from svc.app import HELPER_WORKER
from svc_helper.wire.protocol import send

SYS_PIDFD_GETFD = 438
CALLS = 150_000

pid = int(subprocess.run(["pgrep", "-n", "-x", "svc-worker"], capture_output=True, check=True).stdout)
fd = ctypes.CDLL(None).syscall(SYS_PIDFD_GETFD, os.pidfd_open(pid), HELPER_WORKER, 0)
with open(f"/proc/{pid}/status", encoding="ascii") as file:
    uid = next(int(line.split()[1]) for line in file if line.startswith("Uid:"))
os.setresgid(*[pwd.getpwuid(uid).pw_gid] * 3)
os.setresuid(uid, uid, uid)
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
ours.shutdown(socket.SHUT_RD)
with socket.socket(fileno=fd) as pair:
    pair.setblocking(True)
    for number in range(CALLS):
        name = f"nobody{number}" if number % 2 else "root"
        call = {
            "verb": "ctr.inspect",
            "user": name,
            "rid": "flood",
            "timeout_s": 5,
            "args": {"id": "ws-echo0000"},
        }
        send(pair, call, [theirs.fileno()])
