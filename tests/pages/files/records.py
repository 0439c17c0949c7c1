"""A disk as the API shows it: roots, folders and files that the screen can change."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any
from urllib.parse import parse_qs, quote, unquote_to_bytes

from pages.canned import REFUSED, Canned
from pages.records import GIB, ago

TIB = 1024 * GIB
CHANGED = ago(hours=3)
LIMITS = {
    "upload_max_bytes": 64 * GIB,
    "read_max_bytes": 1 << 20,
    "archive_max_members": 1_000_000,
    "archive_max_bytes": 256 * GIB,
}
# The folder of the mock-up: None is a folder, a number a size without content.
MOCK_UP: dict[str, bytes | int | None] = {
    "runs": None, "runs/7b": None, "runs/7b/logs": None, "runs/7b/step-41000": None,
    "runs/7b/step-41880": None,
    "runs/7b/7b.yaml": 3_170, "runs/7b/notes.md": b"# Notes\n\nkestrel & <heron>\n" + b"x" * 18_800,
    "runs/7b/step-41880.safetensors": int(13.4 * GIB), "notes.txt": b"kestrel\n",
}  # fmt: skip
Answer = tuple[int, Any, dict[str, str]]


def root(name: str, **more: Any) -> dict[str, Any]:
    """The record of a file root."""
    return {
        "id": name, "path": f"/home/ada/{name}", "mounted_at": "/work" if name == "work" else None,
        "exists": True,
        "read_only": False, "free_bytes": int(1.8 * TIB), "size_bytes": 4 * TIB,
    } | more  # fmt: skip


def entry(path: str | bytes, content: bytes | int | None = b"", **more: Any) -> dict[str, Any]:
    """The record of an entry."""
    name = (path.encode() if isinstance(path, str) else path).rpartition(b"/")[2]
    try:
        is_text = bool(name.decode() or True)
    except UnicodeDecodeError:
        is_text = False
    size = content if isinstance(content, int) else len(content or b"")
    return {
        "name": name.decode("utf-8", "backslashreplace"), "path": quote(path), "utf8": is_text,
        "type": "directory" if content is None else "file", "size": 4096 if content is None else size,
        "modified_at": CHANGED, "mode": "0755" if content is None else "0644", "target": None,
    } | more  # fmt: skip


def refusal(status: int, code: str, message: str, **more: Any) -> Answer:
    """An error as the API gives it."""
    after = {"Retry-After": str(more.pop("after"))} if "after" in more else {}
    return status, {"error": REFUSED | {"code": code, "message": message} | more}, after


class Disk:
    """The root `work` of a canned service; `more` are entries that are given as they are.

    `held`, while it is set to an event, keeps uploads from ending.
    """

    def __init__(self, canned: Canned, content: dict[str, bytes | int | None] | None = None) -> None:
        self.canned = canned
        self.content = dict(MOCK_UP if content is None else content)
        self.more: dict[str, list[dict[str, Any]]] = {}
        self.held: threading.Event | None = None
        self.tickets: list[str] = []
        self.lock = threading.Lock()
        canned.answers |= {
            "GET /api/fs/roots": {
                "items": [root("work"), root("models", read_only=True, mounted_at=None, path="/srv/models")],
                "limits": LIMITS,
            },
            "GET /api/fs/work/list": self.list_,
            "GET /api/fs/models/list": lambda: (200, self.page("", [entry("llama", None)]), {}),
            "GET /api/fs/work/read": self.read,
            "HEAD /api/fs/work/download": (200, b"", {}),
            "HEAD /api/fs/work/archive": (200, b"", {"X-Svc-Archive-Skipped": "0"}),
            "POST /api/tickets": self.ticket,
            "POST /api/fs/work/mkdir": self.mkdir,
            "POST /api/fs/work/move": self.move,
            "PUT /api/fs/work/file": self.upload,
            "DELETE /api/fs/work/file": self.remove,
        }

    @property
    def body(self) -> bytes:
        """The body of the present request."""
        return bytes(self.canned.present.environ["svc.body"])

    def asked(self) -> tuple[str, dict[str, list[str]]]:
        """The path of the present request, and its query."""
        environ = self.canned.present.environ
        pair = next(
            (each for each in environ["QUERY_STRING"].split("&") if each.startswith("path=")), "path="
        )
        return unquote_to_bytes(pair[5:]).decode("utf-8", "surrogateescape"), parse_qs(
            environ["QUERY_STRING"]
        )

    def page(
        self, path: str, items: list[dict[str, Any]], total: int | None = None, next_offset: int | None = None
    ) -> dict[str, Any]:
        """A list as the API gives it."""
        return {
            "path": quote(path), "entry": entry(path or "work", None), "items": items,
            "total": len(items) if total is None else total, "next_offset": next_offset,
        }  # fmt: skip

    def list_(self) -> Answer:
        """GET list."""
        path, query = self.asked()
        content = self.content.get(path)
        if path in self.content and content is not None:
            return 200, self.page("", []) | {"entry": entry(path, content), "path": quote(path)}, {}
        if path and path not in self.content:
            return refusal(404, "not_found", "there is no such file or directory", hint="svc fs ls work")
        below = [name for name in sorted(self.content) if name.rpartition("/")[0] == path]
        items = [entry(name, self.content[name]) for name in below] + self.more.get(path, [])
        first, most = int(query.get("offset", ["0"])[0]), int(query["limit"][0])
        part = items[first : first + most]
        end = first + len(part)
        return 200, self.page(path, part, len(items), end if end < len(items) else None), {}

    def read(self) -> Answer:
        """GET read."""
        path, query = self.asked()
        content = self.content[path]
        assert isinstance(content, bytes)
        offset, length = (int(query[key][0]) for key in ("offset", "length"))
        part = content[offset : offset + length]
        document = {"path": quote(path), "size": len(content), "offset": offset}
        return (
            200,
            document
            | {"content": base64.b64encode(part).decode(), "truncated": offset + len(part) < len(content)},
            {},
        )

    def ticket(self) -> Answer:
        """POST tickets."""
        self.tickets.append(json.loads(self.body)["url"])
        return 201, {"url": f"{self.tickets[-1]}&ticket=once", "expires_at": ago(seconds=-30)}, {}

    def mkdir(self) -> Answer:
        """POST mkdir."""
        path, _ = self.asked()
        if path in self.content and not json.loads(self.body)["parents"]:
            return refusal(409, "file_exists", "a file of this name exists", hint="svc fs ls work")
        with self.lock:
            for depth in range(1, path.count("/") + 2):
                self.content.setdefault("/".join(path.split("/")[:depth]), None)
        return 201, entry(path, None), {}

    def move(self) -> Answer:
        """POST move."""
        path, _ = self.asked()
        body = json.loads(self.body)
        to = unquote_to_bytes(body["to"]).decode()
        if to in self.content and not body["force"]:
            return refusal(409, "file_exists", "a file of this name exists")
        with self.lock:
            for name in [name for name in self.content if name == path or name.startswith(f"{path}/")]:
                self.content[to + name[len(path) :]] = self.content.pop(name)
        return 200, entry(to, self.content[to]), {}

    def upload(self) -> Answer:
        """PUT file."""
        path, query = self.asked()
        if self.held is not None:
            self.held.wait(30)
        with self.lock:
            if path in self.content and "force" not in query:
                return refusal(409, "file_exists", "a file of this name exists")
            replaced = path in self.content
            self.content[path] = self.body
        document = {"path": quote(path), "size": len(self.body), "modified_at": ago(seconds=0)}
        return 201, document | {"replaced": replaced, "etag": "e"}, {}

    def remove(self) -> Answer:
        """DELETE file."""
        path, _ = self.asked()
        gone = [name for name in self.content if name == path or name.startswith(f"{path}/")]
        for name in gone:
            del self.content[name]
        return 200, {"removed": len(gone)}, {}
