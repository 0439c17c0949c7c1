"""Named ports of a workspace: 127.0.0.1:HOST_PORT of the host is forwarded to a port of the container.

"extra-app ports with a `--container-port`". The ports are rows; the workspace's shim
listens on them while the workspace runs, and reaches programs that listen only on
the container's loopback too. With the access `owner` it accepts the owner, the
owner's subordinate ids and root, with `host` every user of the host. Records:

    {name, container_port, host_port, access, kind, user, url, connect, ssh, label, app_local_url,
     state (open, closed), connections, refused, listens}

A port without a number of its own inside has the host's there too, so that the address
that a program prints is right on both sides. `connect` is what a person on this host opens or
runs (svc.domain.workspaces.port_kinds); after `ssh` it works on another computer too. `listens` says
whether a program of the container listens inside; None where that is not known.
"""

from __future__ import annotations

import contextlib
import socket
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from svc.actions.table import WORKSPACE_PORT_ADD, WORKSPACE_PORT_REMOVE
from svc.apps import addresses
from svc.apps.addresses import App
from svc.db.connect import database, write
from svc.domain import configuration, pages, untrusted
from svc.domain.audit import audit
from svc.domain.principal import Caller
from svc.domain.templates import parts
from svc.domain.workspaces import calls, idle, port_kinds, states
from svc.domain.workspaces.states import Workspace
from svc.errors import (
    Conflict,
    EngineFailed,
    NameTaken,
    NotFound,
    PortUnavailable,
    SvcError,
    ValidationFailed,
    WorkspaceNotRunning,
)
from svc.host.ids import now
from svc.limits import PORT_KINDS, PORTS_PER_WORKSPACE, PORTS_SHARE
from svc.log import log
from svc_helper.wire.limits import ACCESS_HOST, ACCESS_OWNER

LOOPBACK = "127.0.0.1"
PORT_MAX = 65535
ENDED = (WorkspaceNotRunning, NotFound)  # replies of an agent whose container has ended
TRIES = 3  # to open a port: another program may take it between the probe and the opening
OPEN_MAX = 4 * PORTS_PER_WORKSPACE  # rows of one reply of an agent


Key = tuple[int, int, str]  # host port, container port, access


class Traffic(NamedTuple):
    """What the agent tells of an open port."""

    connections: int = 0  # now
    refused: int = 0  # connections of others, since it was opened
    listens: bool | None = None  # a program of the container, inside


NONE = Traffic()


class Port(NamedTuple):
    """One row."""

    name: str
    container_port: int
    host_port: int
    access: str
    kind: str = PORT_KINDS[0]
    user: str | None = None  # the login inside, of a kind that has one
    follows: bool = False  # the host's number, from each start on

    @property
    def key(self) -> Key:
        """The port as the shim knows it."""
        return self.host_port, self.container_port, self.access

    @property
    def definition(self) -> dict[str, Any]:
        """As a template has it."""
        number = None if self.follows else self.container_port
        return {
            "container_port": number,
            "access": self.access,
            "kind": self.kind,
            "user": self.user,
        }

    def defined(self, definition: dict[str, Any]) -> Port:
        """The port with another definition, on the same host port."""
        number = definition["container_port"]
        return self._replace(**definition)._replace(
            container_port=self.host_port if number is None else number, follows=number is None
        )

    def record(self, workspace: Workspace, traffic: Traffic | None) -> dict[str, Any]:
        """The port of this workspace as the API has it; open when its traffic is known."""
        forwarded = f"{self.host_port}:{LOOPBACK}:{self.host_port}"
        facts = self._asdict()
        del facts["follows"]
        return {
            **facts,
            "url": port_kinds.url(self.kind, self.host_port, self.user),
            "connect": port_kinds.connect(self.kind, self.host_port, self.user),
            "ssh": f"ssh -N -L {forwarded} {workspace.owner}@{configuration.current.ssh_host}",
            **self._app(App(self.name, workspace.id)),
            "state": "closed" if traffic is None else "open",
            **(traffic or NONE)._asdict(),
        }

    def _app(self, app: App) -> dict[str, str | None]:
        """Where a browser has it: {label, app_local_url}, null for a kind that no browser opens."""
        label = (app.label or None) if self.kind in port_kinds.OF_APPS else None
        origin = local_origin(app) if label else None
        return {"label": label, "app_local_url": origin and f"{origin}/"}


def local_origin(app: App) -> str | None:
    """An app's address for browsers of this host; None where apps are off, or its name is too long."""
    number = configuration.current.apps_local_port
    return addresses.origin(app, addresses.LOCAL, "http", number) if number else None


# --- rows -----------------------------------------------------------------------------


def combine(of_template: list[dict[str, Any]], requested: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ports of a new workspace, its template's first.

    Raises ValidationFailed for a name that the template has, or too many.
    """
    names = {port["name"] for port in of_template}
    wrong = [
        {"field": f"ports.{number}.name", "code": "taken", "message": f"the template has a port {name}"}
        for number, name in enumerate(port["name"] for port in requested)
        if name in names
    ]
    if len(of_template) + len(requested) > PORTS_PER_WORKSPACE:
        message = f"at most {PORTS_PER_WORKSPACE} ports, the template's included"
        wrong.append({"field": "ports", "code": "too_many", "message": message})
    if wrong:
        raise ValidationFailed(f"{wrong[0]['field']}: {wrong[0]['message']}", fields=wrong)
    return [parts.full_port(port) for port in (*of_template, *requested)]


def adopt(workspace_id: str, ports: list[dict[str, Any]]) -> None:
    """Insert the ports of a new workspace, as combine() gives them, in the caller's write().

    Raises PortUnavailable.
    """
    for port in ports:
        _insert(workspace_id, parts.full_port(port))


def change(workspace_id: str, removed: list[str], changed: list[Port], added: list[dict[str, Any]]) -> None:
    """Change the ports of a workspace that does not run, in the caller's write(); host ports stay.

    Raises Conflict for too many, PortUnavailable.
    """
    for name in removed:
        _delete(workspace_id, name)
    for port in changed:
        _update(workspace_id, port)
    adopt(workspace_id, added)
    count = len(rows_of(workspace_id))
    if count > PORTS_PER_WORKSPACE:
        raise Conflict(f"it would have {count} ports; a workspace may have {PORTS_PER_WORKSPACE}")


def rows_of(workspace_id: str) -> list[Port]:
    """A workspace's ports, by name."""
    columns = ", ".join(Port._fields)
    rows = database.execute_sql(
        f"SELECT {columns} FROM ports WHERE workspace_id = ? ORDER BY name", (workspace_id,)
    )
    return [Port(*row)._replace(follows=bool(row[-1])) for row in rows]


def _find(workspace_id: str, name: str) -> Port | None:
    return next((row for row in rows_of(workspace_id) if row.name == name), None)


def _insert(workspace_id: str, port: dict[str, Any]) -> Port:
    definition = {key: port[key] for key in parts.PORT_DEFAULTS}
    _require_share(workspace_id)
    host_port = _free_port(f"{workspace_id}/{port['name']}")
    row = Port(port["name"], host_port, host_port, ACCESS_OWNER).defined(definition)
    database.execute_sql(
        f"INSERT INTO ports (workspace_id, {', '.join(Port._fields)}, created_at)"
        f" VALUES (?, {', '.join('?' * len(Port._fields))}, ?)",
        (workspace_id, *row, now()),
    )
    return row


def _require_share(workspace_id: str) -> None:
    """Raise Conflict when the owner has as many host ports as one user may have; as _free_port."""
    first, last = configuration.current.port_range
    count = last - first + 1
    share = max(count // PORTS_SHARE, min(PORTS_PER_WORKSPACE, count // 2), 1)
    rows = database.execute_sql(
        "SELECT w.name, count(*) FROM ports p JOIN workspaces w ON w.id = p.workspace_id WHERE w.owner_id ="
        " (SELECT owner_id FROM workspaces WHERE id = ?) GROUP BY w.id ORDER BY 2 DESC",
        (workspace_id,),
    ).fetchall()
    if sum(row[1] for row in rows) >= share:
        raise Conflict(
            f"you have {share} host ports, the most that one user may have of {first} to {last}",
            hint=f"svc ws ports {rows[0][0]}",
            details={"limit": share},
        )


def _update(workspace_id: str, row: Port) -> None:
    """Write a row of this name; its caller holds the write lock."""
    database.execute_sql(
        f"UPDATE ports SET {', '.join(f'{name} = ?' for name in Port._fields)}"
        " WHERE workspace_id = ? AND name = ?",
        (*row, workspace_id, row.name),
    )


def _free_port(key: str, avoided: Iterable[int] = ()) -> int:
    """A host port that no row has and nothing listens on; the caller holds the write lock.

    The search begins at a place given by the key, so that the port of a removed
    workspace is not reused at once, while clients may still connect to it.
    """
    taken = {row[0] for row in database.execute_sql("SELECT host_port FROM ports")} | set(avoided)
    first, last = configuration.current.port_range
    count = last - first + 1
    start = zlib.crc32(key.encode()) % count
    for step in range(count):
        host_port = first + (start + step) % count
        if host_port not in taken and _is_free(host_port):
            return host_port
    raise PortUnavailable(
        f"none of the host ports {first} to {last} is free", hint="svc env --all  # see SVC_PORT_RANGE"
    )


def _is_free(host_port: int) -> bool:
    """Whether no socket is bound to the port, on loopback or on all addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe, contextlib.suppress(OSError):
        probe.bind((LOOPBACK, host_port))
        return True
    return False


# --- what the owner does ----------------------------------------------------------------


def listing(caller: Caller, ref: str) -> dict[str, Any]:
    """The ports of the caller's workspace: {items}; all closed if it does not run.

    Ports that its shim has lost are opened again.
    """
    workspace = states.find(caller, ref)
    if workspace.status == "running":
        try:
            return pages.whole(_synchronised(caller, workspace))
        except ENDED:
            calls.note_end(caller, workspace)
    return pages.whole([row.record(workspace, None) for row in rows_of(workspace.id)])


def _synchronised(caller: Caller, workspace: Workspace) -> list[dict[str, Any]]:
    """The records of a running workspace, after its shim was brought to what the rows have."""
    found = _ask_open(caller, workspace)  # before the rows: a port that is being added has its row already
    rows = rows_of(workspace.id)
    expected = {row.key for row in rows}
    for key in found:
        if key not in expected:
            _close(caller, workspace, key[0])
    records = []
    silent = False
    for row in rows:
        traffic = found.get(row.key)
        if traffic is None and not silent:
            try:
                row, traffic = _open(caller, workspace, row), NONE
            except ENDED:
                raise
            except SvcError as error:
                _log_closed(caller, workspace, row, error)
                silent = isinstance(error, untrusted.SILENT)
        records.append(row.record(workspace, traffic))
    return records


def add(
    caller: Caller, ref: str, name: str, container_port: int | None = None, **more: Any
) -> dict[str, Any]:
    """Add a port; it is open at once if the workspace runs, otherwise from its next start.

    `more` are further keys of a port. Raises NameTaken, Conflict for one too many,
    PortUnavailable, and what the engine raises.
    """
    workspace = states.find(caller, ref)
    port = parts.full_port({"name": name, "container_port": container_port, **more})
    detail = {"port": name} | {key: port[key] for key in ("container_port", "access", "kind")}
    with audit.audited(caller, WORKSPACE_PORT_ADD, workspace.id, **detail) as outcome:
        row = _insert_new(workspace, port)
        opened = None
        if workspace.status in ("running", "starting"):
            try:
                opened = _open(caller, workspace, row, fresh=True)
            except ENDED:
                if workspace.status == "running":
                    calls.note_end(caller, workspace)
            except SvcError:
                _delete(workspace.id, name)
                raise
        row = opened or row
        idle.touch(workspace.id)
        outcome["host_port"] = row.host_port
    return row.record(workspace, NONE if opened else None)


def _insert_new(workspace: Workspace, port: dict[str, Any]) -> Port:
    name = port["name"]
    with write():
        if workspace.status == "deleting" or states.of_id(workspace.id) is None:
            raise states.in_progress(workspace)
        names = {row.name for row in rows_of(workspace.id)}
        if name in names:
            message = f"{workspace.name} has a port {name} already"
            fields = [{"field": "name", "code": "taken", "message": message}]
            raise NameTaken(message, hint=f"svc ws ports {workspace.name}", fields=fields)
        if len(names) >= PORTS_PER_WORKSPACE:
            raise Conflict(
                f"{workspace.name} has {len(names)} ports, the most that a workspace may have",
                hint=f"svc ws ports {workspace.name}",
            )
        return _insert(workspace.id, port)


def remove(caller: Caller, ref: str, name: str) -> None:
    """Close and remove a port; its connections end. Raises NotFound."""
    workspace = states.find(caller, ref)
    row = _find(workspace.id, name)
    if row is None:
        raise NotFound(f"{workspace.name} has no port {name}", hint=f"svc ws ports {workspace.name}")
    with audit.audited(caller, WORKSPACE_PORT_REMOVE, workspace.id, port=name):
        if workspace.status in ("running", "starting"):
            _close(caller, workspace, row.host_port)
        _delete(workspace.id, name)


def _delete(workspace_id: str, name: str) -> None:
    with write():
        database.execute_sql("DELETE FROM ports WHERE workspace_id = ? AND name = ?", (workspace_id, name))


# --- the shim -------------------------------------------------------------------------


def restore(caller: Caller, workspace: Workspace) -> None:
    """After a start: open every port. Never raises: a failure is logged, and the next listing retries.

    An agent that does not reply is waited for once, not for each port.
    """
    for row in rows_of(workspace.id):
        try:
            _open(caller, workspace, row, fresh=True)
        except SvcError as error:
            _log_closed(caller, workspace, row, error)
            if isinstance(error, untrusted.SILENT):
                return


def _log_closed(caller: Caller, workspace: Workspace, row: Port, error: SvcError) -> None:
    facts = {"workspace": workspace.id, "port": row.name, "host_port": row.host_port}
    log("domain", "a port was not opened", "warning", rid=caller.rid, code=error.code, **facts)


def _open(caller: Caller, workspace: Workspace, row: Port, *, fresh: bool = False) -> Port:
    """Open a port, on another host port if its own was taken; returns the port as it is then.

    A fresh one is not served yet: one that follows the host's number has it inside from now on. In a
    run that has begun it keeps what its program was told.
    """
    avoided: set[int] = set()
    if fresh and row.follows and row.container_port != row.host_port:
        row = row._replace(container_port=row.host_port)
        with write():
            _update(workspace.id, row)
    for _ in range(TRIES):
        keys = ("host_port", "container_port", "access")
        arguments = {"id": workspace.id} | dict(zip(keys, row.key, strict=True))
        try:
            caller.ask("port.open", arguments)
        except Conflict:
            avoided.add(row.host_port)
            row = _move(workspace, row, avoided, fresh=fresh)
            continue
        if row not in rows_of(workspace.id):  # removed meanwhile
            _close(caller, workspace, row.host_port)
        return row
    raise PortUnavailable(
        f"other programs keep taking the host ports of {row.name}", hint=f"svc ws ports {workspace.name}"
    )


def _move(workspace: Workspace, row: Port, avoided: set[int], *, fresh: bool) -> Port:
    """Give a port another host port, unless another request has just done so."""
    with write():
        present = _find(workspace.id, row.name)
        if present is None or present.host_port != row.host_port:
            return present or row
        moved = row._replace(host_port=_free_port(f"{workspace.id}/{row.name}", avoided))
        if fresh and row.follows:
            moved = moved._replace(container_port=moved.host_port)
        _update(workspace.id, moved)
    facts: dict[str, Any] = {"port": row.name, "before": row.host_port, "now": moved.host_port}
    log(
        "domain",
        "a host port was taken by another program; the port was moved to another one",
        workspace=workspace.id,
        **facts,
    )
    return moved


def _close(caller: Caller, workspace: Workspace, host_port: int) -> None:
    """Close a host port; a closed one, or a workspace that has ended, is no error."""
    with contextlib.suppress(*ENDED):
        caller.ask("port.close", {"id": workspace.id, "host_port": host_port})


def _ask_open(caller: Caller, workspace: Workspace) -> dict[Key, Traffic]:
    """The traffic of each port that the shim has open."""
    reply = caller.ask("port.list", {"id": workspace.id})
    found = {}
    for row in untrusted.get_rows(reply, "ports", OPEN_MAX):
        pair = untrusted.get_count(row, "host_port"), untrusted.get_count(row, "container_port")
        if not 0 < min(pair) <= max(pair) <= PORT_MAX:
            raise EngineFailed("the engine's reply has no usable ports")
        access = untrusted.get_choice(row, "access", (ACCESS_OWNER, ACCESS_HOST))
        counts = untrusted.get_count(row, "connections"), untrusted.get_count(row, "refused")
        listens = None if row.get("listens") is None else untrusted.get_flag(row, "listens")
        found[*pair, access] = Traffic(*counts, listens)
    return found
