"""Changes over the socket of svc while somebody restarts it; what was acknowledged must be there afterwards.

usage: load.py FOLDER: FOLDER/acknowledged counts the changes; ends, with the sum, once FOLDER/end is there.
"""

import http.client
import json
import socket
import sys
import threading
import time
from pathlib import Path

SOCKET = "/run/svc/svc.sock"
WRITERS = 4
AGAIN_S = 90  # for an answer after one that did not come
FOLDER = Path(sys.argv[1])
counts = {"acknowledged": 0, "no answer": 0, "refused": 0}
faults: list[str] = []
lock = threading.Lock()


class Connection(http.client.HTTPConnection):
    """HTTP over the socket."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(SOCKET)


def ask(method: str, path: str, body: object = None) -> tuple[int, dict]:
    """Status and document of an answer; status 0 where there is none."""
    connection = Connection("localhost")
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"} if content else {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    except (OSError, http.client.HTTPException):
        return 0, {}
    finally:
        connection.close()


def insist(method: str, path: str, body: object = None) -> tuple[int, dict]:
    """An answer that is none of a service that stops, starts or has too much to do."""
    deadline = time.monotonic() + AGAIN_S
    while True:
        status, document = ask(method, path, body)
        if status not in (0, 429, 503) or time.monotonic() > deadline:
            return status, document
        time.sleep(0.1)


def note(what: str) -> None:
    """Count it, where the one who restarts looks."""
    with lock:
        counts[what] += 1
        if what == "acknowledged":
            (FOLDER / "acknowledged.new").write_text(str(counts[what]))
            (FOLDER / "acknowledged.new").rename(FOLDER / "acknowledged")


def compare(path: str, allowed: set[str]) -> str:
    """What is there now, which must be the last that was acknowledged or one that had no answer since."""
    status, document = insist("GET", path)
    found = str(document.get("description"))
    if status != 200 or found not in allowed:
        faults.append(f"{path}: {status} {found!r}, not one of {sorted(allowed)}")
    return found


IMAGE = insist("GET", "/api/templates/hello")[1]["source"]["image_ref"]


def write(number: int) -> None:
    """Change one thing again and again."""
    path, text = f"/api/templates/load-{number}", "0"
    body = {"name": f"load-{number}", "description": text, "source": {"type": "registry", "image_ref": IMAGE}}
    status, document = insist("POST", "/api/templates", body)
    if status not in (201, 409):  # 409: the first try had no answer
        faults.append(f"{path}: not created, {status} {document}")
        return
    turn = 0
    while not (FOLDER / "end").exists() and not faults:
        turn += 1
        status, document = ask("PATCH", path, {"description": str(turn)})
        if status == 200:
            note("acknowledged")
            text = str(turn)
        elif status == 0:
            note("no answer")
            text = compare(path, {text, str(turn)})
        elif status in (429, 503):
            note("refused")
            time.sleep(0.05)
        else:
            faults.append(f"{path}: {status} {document}")
    compare(path, {text})


threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(counts)
sys.exit("\n".join(faults) or None)
