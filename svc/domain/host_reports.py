"""Reports about what only root can read: snapshots, recovery sets, releases, the doctor's findings.

`svc admin` writes each as a file of root's that the app may read (svc/admin/reporting.py); nothing
here opens the directories themselves. A file is believed only in the exact form below.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from svc.domain import configuration, pages
from svc.domain.pages import Page
from svc.host.ids import now
from svc.host.root_file import checked
from svc.log import log
from svc_helper.wire.strict_json import Malformed, load_object

FORMAT = 1
DIRECTORY = "reports"  # in SVC_STATE_DIR
FILE_MODE, FOLDER_MODE = 0o640, 0o2750  # of root and the app's group, which files inherit from the folder
FILE_MAX = 1024 * 1024
DEPTH_MAX = 6
ITEMS_MAX = 1000
TEXT_MAX = 4096
OLD_S = 26 * 3600  # a nightly run and its delay

TEXT, NUMBER, FLAG = (str,), (int,), (bool,)
TEXT_OR_NONE, NUMBER_OR_NONE = (str, type(None)), (int, type(None))
Form = Mapping[str, tuple[type, ...]]


class Kind(NamedTuple):
    """One report: its file's name, the command that renews it, and the form of an item."""

    name: str
    command: str
    item: Form


BACKUPS = Kind(
    "backups",
    "sudo svc admin report",
    {
        "name": TEXT, "created_at": TEXT, "size_bytes": NUMBER, "schema": NUMBER_OR_NONE, "commit": TEXT,
        "refused": TEXT_OR_NONE, "host_files": FLAG,
    },
)  # fmt: skip
RECOVERY_SETS = Kind(
    "recovery_sets",
    "sudo svc admin rollback list",
    {
        "id": TEXT, "kind": TEXT, "created_at": TEXT, "why": TEXT, "version": TEXT, "commit": TEXT,
        "next_version": TEXT, "schema": NUMBER_OR_NONE, "size_bytes": NUMBER, "applicable": FLAG,
        "problem": TEXT, "remedy": TEXT,
    },
)  # fmt: skip
UPDATES = Kind(
    "updates",
    "sudo svc admin update status",
    {
        "installed_version": TEXT, "installed_commit": TEXT, "installed_by": TEXT, "source": TEXT,
        "release_keys": NUMBER, "checked_at": TEXT_OR_NONE, "problem": TEXT, "available": TEXT, "notes": TEXT,
        "applied_at": TEXT_OR_NONE, "outcome": TEXT, "reason": TEXT,
    },
)  # fmt: skip
HOST = Kind("host", "sudo svc admin doctor", {"code": TEXT, "level": TEXT, "found": TEXT, "remedy": TEXT})
KINDS = (BACKUPS, RECOVERY_SETS, UPDATES, HOST)


class Report(NamedTuple):
    """A report; without a usable file it has no time and no items."""

    kind: Kind
    written_at: str | None
    items: list[dict[str, Any]]

    @property
    def about(self) -> dict[str, Any]:
        """{written_at, age_s, old, command}: how old the report is, and the command that renews it."""
        age_s = None if self.written_at is None else max(0, _seconds(now()) - _seconds(self.written_at))
        return {
            "written_at": self.written_at, "age_s": age_s, "old": age_s is None or age_s > OLD_S,
            "command": self.kind.command,
        }  # fmt: skip


def path_of(state_dir: str, kind: Kind) -> str:
    """The file of a report."""
    return os.path.join(state_dir, DIRECTORY, f"{kind.name}.json")


def read(kind: Kind) -> Report:
    """The report that was written last."""
    path = path_of(configuration.current.state_dir, kind)
    try:
        document = load_object(_content(path), depth_max=DEPTH_MAX)
        return Report(kind, *_checked(kind, document))
    except FileNotFoundError:
        pass
    except (OSError, Malformed, ValueError) as error:
        log("domain", f"the report {path} is not used: {error}", "warning")
    return Report(kind, None, [])


def page_of(kind: Kind, page: Page) -> dict[str, Any]:
    """One page of a report's items in the order of the report, or by one of their fields; with `report`."""
    found = read(kind)
    text = page.q.lower()
    items = [
        item
        for item in found.items
        if not text or any(text in value.lower() for value in item.values() if isinstance(value, str))
    ]
    if page.sort:
        key = pages.order_by(page, {name: name for name in kind.item}, "", "").partition(" ")[0]
        items.sort(key=lambda item: (item[key] is not None, item[key]), reverse=page.sort.startswith("-"))
    return pages.cut(page, items) | {"report": found.about}


def _content(path: str) -> bytes:
    """The bytes of a file that only root (or the user of `--dev`) can have written."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (0, os.geteuid()):
            raise ValueError("it is no file of root's")
        if status.st_mode & 0o022:
            raise ValueError("others may write it")
        content = file.read(FILE_MAX + 1)
    if len(content) > FILE_MAX:
        raise ValueError(f"it has more than {FILE_MAX} bytes")
    return content


def _checked(kind: Kind, untrusted: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The time and the items; raises ValueError for any other form."""
    if set(untrusted) != {"format", "report", "written_at", "items"}:
        raise ValueError("its keys are not those of a report")
    if untrusted["format"] != FORMAT or untrusted["report"] != kind.name:
        raise ValueError("it is of another release, or another report")
    at, items = untrusted["written_at"], untrusted["items"]
    if not isinstance(at, str) or checked(at) is None:
        raise ValueError("it has no time")
    if not isinstance(items, list) or len(items) > ITEMS_MAX:
        raise ValueError("it has no list of items, or too long a one")
    if not all(is_item(kind, item) for item in items):
        raise ValueError("an item has another form")
    return at, items


def is_item(kind: Kind, untrusted: Any) -> bool:
    """Whether a value is an item of this report."""
    if not isinstance(untrusted, dict) or set(untrusted) != set(kind.item):
        return False
    fits = all(type(value) in kind.item[name] for name, value in untrusted.items())
    return fits and all(len(value) <= TEXT_MAX for value in untrusted.values() if isinstance(value, str))


def _seconds(at: str) -> int:
    return int(datetime.fromisoformat(at).astimezone(UTC).timestamp())
