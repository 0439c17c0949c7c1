"""What the files screen can look like."""

from __future__ import annotations

from collections.abc import Callable

from pages.canned import Canned
from pages.files.records import LIMITS, Disk, entry, refusal, root
from pages.states import State

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe\n'\"; rm -rf \u05d0"
SEVEN_B = "/files/work?path=runs/7b"
_DROP = (
    "const t = new DataTransfer(); for (const n of ['a.txt', 'corpus-03.parquet', 'n'.repeat(200)])"
    " t.items.add(new File(['kestrel'], n));"
    "document.body.dispatchEvent(new DragEvent('%s', { dataTransfer: t, bubbles: true, cancelable: true }));"
)
_MENU = "document.querySelector('tbody summary').click()"


def _mock_up(canned: Canned) -> None:
    disk = Disk(canned)
    disk.more["runs/7b"] = [
        entry("runs/7b/latest", 10, type="symlink", target="step-41880", mode="0777"),
        entry(b"runs/7b/caf\xe9.txt", 212),
        entry("runs/7b/socket", 0, type="other"),
    ]


def _hostile(canned: Canned) -> None:
    Disk(canned).content |= {HOSTILE: b"kestrel", "n" * 200: None, f"runs/{'o' * 120}": None}


def _answer(answer: object) -> Callable[[Canned], None]:
    def prepare(canned: Canned) -> None:
        Disk(canned)
        canned.answers["GET /api/fs/work/list"] = answer

    return prepare


def _upload(answer: object) -> Callable[[Canned], None]:
    def prepare(canned: Canned) -> None:
        _mock_up(canned)
        canned.answers["PUT /api/fs/work/file"] = answer

    return prepare


def _no_roots(canned: Canned) -> None:
    Disk(canned)
    canned.answers["GET /api/fs/roots"] = refusal(
        403, "root_not_allowed", "the root account has no files here"
    )


def _full(canned: Canned) -> None:
    _upload(refusal(507, "storage_full", "there is no space left on the disk for this user"))(canned)
    canned.answers["GET /api/fs/roots"] = {"items": [root("work", free_bytes=0)], "limits": LIMITS}


STATES: dict[str, State] = {
    "folder": State(SEVEN_B, "tr[data-id='runs/7b/latest']", _mock_up),
    "chosen": State(
        SEVEN_B,
        "tr[data-id='runs/7b/latest']",
        _mock_up,
        "document.querySelector('[data-key=all]').click()",
    ),
    "menu": State(SEVEN_B, "tr[data-id='runs/7b/latest']", _mock_up, _MENU),
    "hostile": State("/files/work", "tbody tr", _hostile),
    "empty": State("/files/work?path=runs/7b/logs", ".empty", _mock_up),
    "read-only": State("/files/models", "[data-do=upload][aria-disabled=true]", _mock_up),
    "text": State("/files/work?path=notes.txt", ".preview:not([aria-busy])", _mock_up),
    "gone": State("/files/work?path=nothing", ".notice", _mock_up),
    "refused": State(
        SEVEN_B,
        ".notice",
        _answer(refusal(403, "file_forbidden", "permission denied", hint="svc fs ls work/runs")),
    ),
    "unavailable": State(
        SEVEN_B,
        "[data-countdown]",
        _answer(refusal(503, "unavailable", "the agent is starting", retryable=True, after=60)),
    ),
    "no-permission": State("/files", ".notice", _no_roots),
    "new-folder": State(
        SEVEN_B,
        "tbody tr",
        _mock_up,
        "document.querySelector('[data-do=folder]').click()",
    ),
    "remove": State(
        SEVEN_B,
        "tbody tr",
        _mock_up,
        f"{_MENU}; document.querySelector('[data-act=remove]').click()",
    ),
    "drop": State(SEVEN_B, "tbody tr", _mock_up, _DROP % "dragover"),
    "uploaded": State(SEVEN_B, "tbody tr", _mock_up, _DROP % "drop"),
    "asking": State(
        SEVEN_B,
        "tbody tr",
        _upload(refusal(409, "file_exists", "a file of this name exists")),
        _DROP % "drop",
    ),
    "failed": State(
        SEVEN_B,
        "tbody tr",
        _upload(refusal(403, "file_forbidden", f"permission denied {'x' * 200}")),
        _DROP % "drop",
    ),
    "waited-for": State(
        SEVEN_B,
        "tbody tr",
        _upload(refusal(429, "too_many_requests", "you already have 8 long calls in progress", after=300)),
        _DROP % "drop",
    ),
    "full": State(SEVEN_B, "tbody tr", _full, _DROP % "drop"),
}
