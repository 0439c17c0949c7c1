"""The addresses of apps: which port of a workspace has one, and what it is."""

from __future__ import annotations

from svc.apps import addresses
from svc.apps.addresses import App
from svc.domain import configuration
from svc.domain.principal import Caller
from svc.domain.workspaces import port_kinds, ports, states
from svc.domain.workspaces.ports import Port
from svc.domain.workspaces.states import Workspace
from svc.errors import Conflict, NotAvailable, NotFound


def find(workspace: Workspace, name: str) -> Port:
    """The workspace's port of this name; raises NotFound, and Conflict for one that no browser opens."""
    hint = f"svc ws ports {workspace.name}"
    row = next((row for row in ports.rows_of(workspace.id) if row.name == name), None)
    if row is None:
        raise NotFound(f"{workspace.name} has no port {name}", hint=hint)
    if row.kind not in port_kinds.OF_APPS:
        raise Conflict(f"the port {name} is of the kind {row.kind}, which no browser opens", hint=hint)
    return row


def named(caller: Caller, text: str) -> str:
    """WORKSPACE/PORT of an app of the caller's own, with the workspace's id; raises as find()."""
    ref, _, name = text.partition("/")
    workspace = states.find_own(caller, ref)
    return f"{workspace.id}/{find(workspace, name).name}"


def local_origin(workspace: Workspace, port: Port) -> str:
    """The app's address on this host; raises NotAvailable where apps are off, Conflict for a long name."""
    if not configuration.current.apps_local_port:
        raise NotAvailable(
            "apps in the browser are off on this host: SVC_APPS_LOCAL_PORT is 0", hint="svc env"
        )
    found = ports.local_origin(App(port.name, workspace.id))
    if found is None:
        raise Conflict(
            f"a port whose name has more than {addresses.NAME_MAX} characters has no address of its own",
            hint=f"svc ws port add {workspace.name} NAME --container-port {port.container_port}",
        )
    return found
