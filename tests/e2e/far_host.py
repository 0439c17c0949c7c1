"""Another host: a network namespace of its own at the far end of a cable, with its own /etc/hosts.

A process holds the namespaces, so that nothing of it is left when that process
is gone: no file, no name in /run/netns, no interface. There everybody is
`nobody`, and knows of the service its name, its port and its certificate.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from e2e.installation import PREFIX
from waiting import until

NEAR, FAR = "198.18.77.1", "198.18.77.2"  # of the block for tests between networks
NAME = socket.gethostname().lower()
HOLD = "mount --bind {hosts} /etc/hosts && ip link set lo up && echo held && exec sleep infinity"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--")


class Answer(NamedTuple):
    """What came back: the status (0: no answer at all), the headers and the body."""

    status: int
    headers: dict[str, str]
    text: str

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.text)

    @property
    def code(self) -> str:
        """The error's code, if it is an error of the API's."""
        try:
            return str(self.json()["error"]["code"])
        except (ValueError, KeyError, TypeError):
            return ""


# Reads a request in each line of standard input and writes each answer as one. Nothing secret is an
# argument or in its environment. Each `jar` is a requests.Session of its own.
CLIENT = """
import base64, json, sys, requests
base, ca = sys.argv[1:]
jars = {}
for line in sys.stdin:
    want = json.loads(line)
    jar = jars.get(want["jar"])
    if jar is None:
        jar = jars[want["jar"]] = requests.Session()
        jar.trust_env, jar.verify = False, ca
    for name, value in want["cookies"].items():
        jar.cookies.set(name, value, secure=True)
    try:
        url = want["path"] if ":" in want["path"] else base + want["path"]
        data = want["data"] and base64.b64decode(want["data"])
        answer = jar.request(want["method"], url, headers=want["headers"], json=want["body"], data=data,
                             timeout=100, allow_redirects=False)
        said = [answer.status_code, dict(answer.headers), answer.text]
    except requests.exceptions.RequestException as error:
        said = [0, {}, repr(error)]
    print(json.dumps([*said, jar.cookies.get_dict()]), flush=True)
"""


class Client:
    """Python's requests over there, with the certificate as the only one that it trusts."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.cookies: dict[str, dict[str, str]] = {}  # jar -> what it holds

    def ask(
        self, method: str, path: str, body: Any = None, *, jar: str = "", token: str = "",
        cookies: dict[str, str] | None = None, headers: dict[str, str] | None = None, data: bytes = b"",
    ) -> Answer:  # fmt: skip
        """One request, its body JSON or `data`; a token goes as the bearer's, a jar keeps its cookies."""
        sent = dict(headers or {}) | ({"Authorization": f"Bearer {token}"} if token else {})
        want = {"method": method, "path": path, "body": body, "jar": jar, "headers": sent}
        want["data"] = base64.b64encode(data).decode()
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(want | {"cookies": cookies or {}}) + "\n")
        self.process.stdin.flush()
        status, got, text, self.cookies[jar] = json.loads(self.process.stdout.readline())
        return Answer(status, got, text)


class FarHost:
    """The other host, as long as its process lives."""

    def __init__(self, pid: int, port: int, ca: str) -> None:
        self.pid, self.port, self.ca = pid, port, ca
        self.base = f"https://{NAME}:{port}"

    def argv(self, *command: str) -> list[str]:
        """The command line that runs a command over there, as nobody."""
        return ["nsenter", f"--target={self.pid}", "--net", "--mount", "--", *NOBODY, *command]

    def run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command over there."""
        return subprocess.run(
            self.argv(*command), input=stdin, capture_output=True, text=True, timeout=60, cwd="/", check=False
        )

    def curl(self, path: str, token: str, *options: str) -> Answer:
        """What `curl --cacert` gets; the token goes in by standard input, which no other process sees."""
        printed = "\n%{http_code}"
        command = (
            "curl",
            "-sS",
            "--max-time",
            "30",
            "--cacert",
            self.ca,
            "-H",
            "@-",
            "-w",
            printed,
            *options,
        )
        done = self.run(*command, self.base + path, stdin=f"Authorization: Bearer {token}\n")
        assert done.returncode == 0, done.stderr
        text, _, status = done.stdout.rpartition("\n")
        return Answer(int(status), {}, text)

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A Python process over there that calls with requests."""
        command = self.argv(str(PREFIX / "bin/python3"), "-I", "-c", CLIENT, self.base, self.ca)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        with process:
            try:
                yield Client(process)
            finally:
                process.kill()


@contextmanager
def far_host(port: int, certificate: Path) -> Iterator[FarHost]:
    """Another host, which knows this one by its name; gone afterwards, whatever happened."""
    folder = Path(tempfile.mkdtemp(prefix="tse-far-"))
    folder.chmod(0o755)
    hosts, ca = folder / "hosts", folder / "svc.pem"
    hosts.write_text(f"{NEAR} {NAME}\n127.0.0.1 localhost\n")
    shutil.copyfile(certificate, ca)
    ca.chmod(0o644)
    command = ["unshare", "--net", "--mount", "sh", "-c", HOLD.format(hosts=hosts)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        _plug_in(holder.pid)
        yield FarHost(holder.pid, port, str(ca))
    finally:
        holder.kill()
        holder.communicate()
        until(lambda: not os.path.exists("/sys/class/net/tse-near") or not _unplug(), 30)
        shutil.rmtree(folder)


def _plug_in(pid: int) -> None:
    """A cable from here to there, with an address at each end."""
    for arguments in (
        f"link add tse-near type veth peer name tse-far netns {pid}",
        f"address add {NEAR}/30 dev tse-near",
        "link set tse-near up",
    ):
        subprocess.run(["ip", *arguments.split()], check=True)
    for arguments in (f"address add {FAR}/30 dev tse-far", "link set tse-far up"):
        subprocess.run(["nsenter", f"--target={pid}", "--net", "ip", *arguments.split()], check=True)


def _unplug() -> bool:
    subprocess.run(["ip", "link", "delete", "tse-near"], capture_output=True, check=False)
    return os.path.exists("/sys/class/net/tse-near")
