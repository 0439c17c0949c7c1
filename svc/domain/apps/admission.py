"""Who may come in to an app: judged for each connection to its program, where the credentials are."""

from __future__ import annotations

from typing import NamedTuple

from svc.actions.access import APPS, ONE_APP
from svc.actions.commands import command
from svc.actions.table import APP_OPEN, WORKSPACE_START
from svc.apps.addresses import App
from svc.apps.pair import Described
from svc.domain.accounts import account_status, tokens, users
from svc.domain.accounts.users import Account
from svc.domain.apps import links, visits
from svc.domain.apps.visits import Where
from svc.domain.audit import audit
from svc.domain.principal import Caller
from svc.domain.workspaces import port_kinds, ports, states
from svc.domain.workspaces.ports import Port
from svc.domain.workspaces.states import Workspace
from svc.errors import AppNotFound, AppSignIn, PatNotAllowed, WorkspaceNotRunning
from svc.helper.helper import Helper


class Admission(NamedTuple):
    """A visitor who may come in, and where to: the owner's program."""

    user: str
    visit: str  # the id of the app session, or of the token
    owner: str
    workspace_id: str
    container_port: int


def by_cookie(
    untrusted: str, where: Where, helper: Helper, rid: str, *, background: bool = False
) -> Admission:
    """Admit the visitor who has this cookie there; in the `background` that is no use of it.

    Raises AppSignIn, AppNotFound (no such app, or not the visitor's), WorkspaceNotRunning, and what
    account_status.require raises.
    """
    visit = visits.find(untrusted, where, background=background)
    user = users.find_by_id(visit.user_id) if visit else None
    if visit is None or user is None:
        raise _sign_in(where)
    return _admit(user, visit.id, where, helper, rid)


def _admit(user: Account, visit: str, where: Where, helper: Helper, rid: str) -> Admission:
    account_status.require(user, helper, rid)
    workspace, port = _app(App(where.port, where.workspace_id), user)
    if workspace.status != "running":
        hint = command(WORKSPACE_START, ref=workspace.name)
        raise WorkspaceNotRunning(f"the workspace {workspace.name} does not run", hint=hint)
    return Admission(user.name, visit, workspace.owner, workspace.id, port.container_port)


def by_token(untrusted: str, where: Where, address: str, helper: Helper, rid: str) -> Admission | None:
    """Admit the program that has this token; None for a secret that is none.

    Raises PatNotAllowed for a token without the scope, TokenExpired, and as by_cookie().
    """
    found = tokens.user_of(untrusted, address)
    user = users.find_by_id(found[1]) if found else None
    if found is None or user is None:
        return None
    scopes = tokens.scopes_of(found[0])
    if not scopes & {APPS, f"{ONE_APP}{where.workspace_id}/{where.port}"}:
        hint = "svc token create --name NAME --scope apps"
        raise PatNotAllowed("this token does not open the app", hint=hint)
    return _admit(user, found[0], where, helper, rid)


def describe(untrusted: str, where: Where) -> Described:
    """Whom a link signs in; raises AppSignIn for one that opens nothing any more."""
    found = links.describe(untrusted, App(where.port, where.workspace_id))
    if found is None:
        raise _used_up(where)
    return found


def enter(untrusted: str, where: Where, poster: str, address: str, helper: Helper, rid: str) -> str:
    """Use a link up, which a page of the app's own address has posted; the cookie's value.

    Raises AppSignIn, AppNotFound, and what account_status.require raises.
    """
    app = App(where.port, where.workspace_id)
    holder = links.redeem(untrusted, app) if poster == where.origin else None
    user = users.find_by_id(holder.user_id) if holder else None
    if holder is None or user is None:
        raise _used_up(where)
    account_status.require(user, helper, rid)
    _app(app, user)
    caller = Caller(
        holder.kind, user.id, user.name, user.uid, user.superuser, rid, address, helper,
        credential=holder.credential,
    )  # fmt: skip
    with audit.audited(caller, APP_OPEN, where.workspace_id, port=where.port):
        return visits.begin(holder, where, address)[1]


def _app(app: App, user: Account) -> tuple[Workspace, Port]:
    """The workspace and the port, if the user may see them; AppNotFound is the same for all else."""
    workspace = states.of_id(app.workspace)
    rows = ports.rows_of(app.workspace) if workspace and workspace.owner_id == user.id else []
    port = next((row for row in rows if row.name == app.port and row.kind in port_kinds.OF_APPS), None)
    if workspace is None or port is None:
        raise AppNotFound("there is no such app, or it is not yours")
    return workspace, port


def _sign_in(where: Where) -> AppSignIn:
    return AppSignIn("sign in first", hint=f"svc ws open {where.workspace_id} {where.port} --link")


def _used_up(where: Where) -> AppSignIn:
    hint = f"svc ws open {where.workspace_id} {where.port} --link"
    return AppSignIn("the link was used before, or its five minutes are over", hint=hint)
