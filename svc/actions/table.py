"""The table of actions: one row for each thing that a person or the service does and the audit records.

A row is the action's name. Made from the rows: the routes of the API (svc.web.access), the audit's
budgets (svc.domain.audit.budget), the commands of hints and the buttons beside them (svc.actions.commands),
the browser's commands, labels and sentences, the page of errors, the skill's requests (svc.actions.export).
"""

from __future__ import annotations

from svc.actions.access import (
    ACCOUNTS,
    ADMINISTRATORS,
    FILE_STREAMS,
    LINK,
    LOGIN,
    MEMBERS,
    NO_TOKENS,
    ON_THE_HOST,
    OWN_FILES,
    OWNED,
    OWNER_ONLY,
    SESSION_ONLY,
    Access,
)

GET, POST, PUT, PATCH, DELETE = "GET", "POST", "PUT", "PATCH", "DELETE"


class Action(str):
    """One row: the action's name in the audit, with everything else that is said of it once."""

    did: str
    to_do: str
    method: str
    path: str
    access: Access | None
    command: str
    button: str
    label: str
    page: str
    page_note: str
    reads: bool
    makes_files: bool
    gives_back: bool
    never_refused: bool
    ends_access: bool

    def __new__(
        cls,
        name: str,
        did: str,
        to_do: str,
        method: str = "",
        path: str = "",
        access: Access | None = None,
        *,
        command: str = "",
        button: str = "",
        label: str = "",
        page: str = "",
        page_note: str = "",
        reads: bool = False,
        makes_files: bool = False,
        gives_back: bool = False,
        never_refused: bool = False,
        ends_access: bool = False,
    ) -> Action:
        """Make a row.

        `did`, `to_do`: "Stopped", "stop", of the sentences "Stopped lab" and "Tried to stop lab".
        `method`, `path`, `access`: its request below /api; none of what `svc admin` or the service does.
        `command`: what a shell user types, with the names of the path and the body in braces.
        `button`: the label beside an error whose hint is that command; none for what must be decided first.
        `label`: that of its button in the browser; the first word of `to_do`, unless another is said.
        `page`: where the browser has it; `page_note`: with what, or why not.
        `reads`: it changes nothing. `makes_files`: each makes a file. `gives_back`: it makes room or ends
        something. `never_refused`: also not after many refusals. `ends_access`: of a session or token.
        """
        row = super().__new__(cls, name)
        row.did, row.to_do = did, to_do
        row.method, row.path, row.access = method, path, access
        row.command, row.button, row.label = command, button, label or to_do.split()[0].capitalize()
        row.page, row.page_note = page, page_note
        row.reads, row.makes_files, row.gives_back = reads, makes_files, gives_back
        row.never_refused, row.ends_access = never_refused, ends_access
        return row


# fmt: off
# --- workspaces ---

WORKSPACE_CREATE = Action(
    "workspace.create", "Created", "create", POST, "/workspaces", MEMBERS,
    command="svc ws create --template {template} --name {name}", page="/new",
    page_note="the image is pulled or built where it is missing",
)
WORKSPACE_DELETE = Action(
    "workspace.delete", "Deleted", "delete", DELETE, "/workspaces/{ref}", OWNED,
    command="svc ws delete {ref}", gives_back=True, never_refused=True, page="/workspaces",
    page_note="asks first",
)
WORKSPACE_EDIT = Action(
    "workspace.edit", "Changed", "change", PATCH, "/workspaces/{ref}", MEMBERS,
    command="svc ws edit {ref} --file - <<< {patch}", button="Change {ref}",
    page="/workspaces/<name>/settings",
)
WORKSPACE_EXEC = Action(
    "workspace.exec", "Ran", "run", POST, "/workspaces/{ref}/exec", OWNER_ONLY,
    command="svc ws exec {ref} -- {program}",
    page_note="one command is for programs; a shell of `/workspaces/<name>/terminal` runs it",
)
WORKSPACE_EXTEND = Action(
    "workspace.extend", "Kept", "keep", POST, "/workspaces/{ref}/extend", MEMBERS,
    command="svc ws extend {ref} --hours {hours}", page="/workspaces", page_note="Keep 12 h",
)
WORKSPACE_IDLE = Action("workspace.idle", "was idle", "be idle")
WORKSPACE_LAUNCHER_END = Action("workspace.launcher_end", "has ended", "end")
WORKSPACE_LAUNCHER_START = Action(
    "workspace.launcher_start", "Started", "start", POST, "/workspaces/{ref}/launchers/{name}/start",
    OWNER_ONLY, command="svc ws launcher start {ref} {name}", page="/workspaces/<name>/apps",
)
WORKSPACE_LAUNCHER_STOP = Action(
    "workspace.launcher_stop", "Stopped", "stop", POST, "/workspaces/{ref}/launchers/{name}/stop",
    OWNER_ONLY, command="svc ws launcher stop {ref} {name}", page="/workspaces/<name>/apps",
)
WORKSPACE_PORT_ADD = Action(
    "workspace.port_add", "Added a port to", "add a port to", POST, "/workspaces/{ref}/ports", MEMBERS,
    command="svc ws port add {ref} {port}", page="/workspaces/<name>/apps",
)
WORKSPACE_PORT_REMOVE = Action(
    "workspace.port_remove", "Removed the port", "remove the port", DELETE, "/workspaces/{ref}/ports/{name}",
    MEMBERS, command="svc ws port remove {ref} {name}", gives_back=True, page="/workspaces/<name>/apps",
)
APP_LINK = Action(
    "app.link", "Made a link to an app of", "make a link to an app of", POST,
    "/workspaces/{ref}/ports/{name}/open", LINK, command="svc ws open {ref} {name} --link",
    page_note="made on the host, where the kernel knows you; it opens the app in a browser",
)
APP_OPEN = Action("app.open", "Signed in to an app of", "sign in to an app of")
WORKSPACE_RECONCILE = Action("workspace.reconcile", "was found", "be found")
WORKSPACE_RENAME = Action(
    "workspace.rename", "Renamed", "rename", POST, "/workspaces/{ref}/rename", MEMBERS,
    command="svc ws rename {ref} --name {name}", button="Rename it to {name}",
    page="/workspaces/<name>/settings",
)
WORKSPACE_RESTART = Action(
    "workspace.restart", "Restarted", "restart", POST, "/workspaces/{ref}/restart", MEMBERS,
    command="svc ws restart {ref}", button="Restart {ref}", page="/workspaces",
)
WORKSPACE_SETUP = Action(
    "workspace.setup", "Set up", "set up", POST, "/workspaces/setup", MEMBERS,
    command="svc ws setup --template {template} --name {name}", button="Set up {name}", page="/new",
)
WORKSPACE_START = Action(
    "workspace.start", "Started", "start", POST, "/workspaces/{ref}/start", MEMBERS,
    command="svc ws start {ref}", button="Start {ref}", page="/workspaces",
    page_note="and on each page of a workspace",
)
WORKSPACE_STOP = Action(
    "workspace.stop", "Stopped", "stop", POST, "/workspaces/{ref}/stop", OWNED, command="svc ws stop {ref}",
    button="Stop {ref}", gives_back=True, never_refused=True, page="/workspaces",
)
WORKSPACE_UPGRADE = Action(
    "workspace.upgrade", "Moved to its newest revision:", "move to its newest revision:", POST,
    "/workspaces/{ref}/upgrade", MEMBERS, command="svc ws upgrade {ref}", page="/workspaces/<name>",
)
TERMINAL_ATTACH = Action(
    "terminal.attach", "Returned to a terminal of", "return to a terminal of", reads=True,
)
TERMINAL_CLOSE = Action(
    "terminal.close", "Closed a terminal of", "close a terminal of", DELETE,
    "/workspaces/{ref}/terminals/{terminal}", OWNER_ONLY,
)
TERMINAL_OPEN = Action(
    "terminal.open", "Opened a terminal of", "open a terminal of", POST, "/workspaces/{ref}/terminals",
    OWNER_ONLY, command="svc ws shell {ref}", page="/workspaces/<name>/terminal",
    page_note="several shells, which outlive the page",
)

# --- templates and images ---

TEMPLATE_CLONE = Action(
    "template.clone", "Cloned a template as", "clone a template as", POST, "/templates/{ref}/clone",
    ACCOUNTS, command="svc template clone {ref} --name {name}", button="Clone it as {name}",
    page="/templates/<name>",
)
TEMPLATE_CREATE = Action(
    "template.create", "Created the template", "create the template", POST, "/templates", ACCOUNTS,
    command="svc template create --file {file}", page="/templates",
    page_note="`--example` only in the command, which has the files",
)
TEMPLATE_DELETE = Action(
    "template.delete", "Deleted the template", "delete the template", DELETE, "/templates/{ref}", ACCOUNTS,
    command="svc template delete {ref}", page="/templates/<name>", page_note="asks first",
)
TEMPLATE_DISABLE = Action(
    "template.disable", "Disabled the template", "disable the template", POST, "/templates/{ref}/disable",
    ACCOUNTS, command="svc template disable {ref}", button="Disable the template", page="/templates/<name>",
)
TEMPLATE_EDIT = Action(
    "template.edit", "Changed the template", "change the template", PATCH, "/templates/{ref}", ACCOUNTS,
    command="svc template edit {ref} --file {file}", page="/templates/<name>",
)
TEMPLATE_ENABLE = Action(
    "template.enable", "Enabled the template", "enable the template", POST, "/templates/{ref}/enable",
    ACCOUNTS, command="svc template enable {ref}", button="Enable the template", page="/templates/<name>",
)
TEMPLATE_IMPORT = Action(
    "template.import", "Imported the template", "import the template", POST, "/templates/import", ACCOUNTS,
    command="svc template import {file}", page="/templates",
    page_note="your own; everybody's at `/admin/templates`",
)
IMAGE_BUILD = Action(
    "image.build", "Built the image of", "build the image of", POST, "/templates/{ref}/image/build", MEMBERS,
    command="svc image build {ref} --wait", button="Build the image", page="/templates/<name>",
)
IMAGE_DELETE = Action(
    "image.delete", "Removed the image", "remove the image", DELETE, "/templates/{ref}/image", MEMBERS,
    command="svc image delete {ref}", gives_back=True, page="/images",
)
IMAGE_PRUNE = Action(
    "image.prune", "Removed unused images", "remove unused images", POST, "/images/prune", MEMBERS,
    command="svc image prune", gives_back=True, page="/images", page_note="names what goes first",
)
IMAGE_PULL = Action(
    "image.pull", "Pulled the image of", "pull the image of", POST, "/templates/{ref}/image/pull", MEMBERS,
    command="svc image pull {ref} --wait", button="Pull the image", page="/templates/<name>",
)
IMAGE_REMOVE = Action(
    "image.remove", "Removed the image", "remove the image", DELETE, "/images/{ref}", MEMBERS,
    command="svc image remove {ref}", gives_back=True, page="/images",
)
OPERATION_CANCEL = Action(
    "operation.cancel", "Cancelled", "cancel", POST, "/operations/{ref}/cancel", ACCOUNTS,
    command="svc operation cancel {ref}", page="/workspaces",
)

# --- files ---

FS_ARCHIVE = Action(
    "fs.archive", "Loaded the folder", "load the folder", GET, "/fs/{root}/archive", FILE_STREAMS,
    reads=True, command="svc fs archive {path}", page="/files",
)
FS_DOWNLOAD = Action(
    "fs.download", "Loaded", "load", GET, "/fs/{root}/download", FILE_STREAMS,
    command="svc fs download {path}", reads=True, page="/files",
)
FS_LIST = Action(
    "fs.list", "Listed", "list", GET, "/fs/{root}/list", OWN_FILES, command="svc fs ls {path}", reads=True,
    page="/files",
)
FS_MKDIR = Action(
    "fs.mkdir", "Made the folder", "make the folder", POST, "/fs/{root}/mkdir", OWN_FILES,
    command="svc fs mkdir {path}", makes_files=True, page="/files",
)
FS_MOVE = Action(
    "fs.move", "Moved", "move", POST, "/fs/{root}/move", OWN_FILES, command="svc fs mv {path} {to}",
    page="/files",
)
FS_READ = Action(
    "fs.read", "Read", "read", GET, "/fs/{root}/read", OWN_FILES, command="svc fs read {path}", reads=True,
    page="/files",
)
FS_REMOVE = Action(
    "fs.remove", "Removed", "remove", DELETE, "/fs/{root}/file", OWN_FILES, command="svc fs rm {path}",
    gives_back=True, page="/files", page_note="asks first",
)
FS_ROOTS = Action(
    "fs.roots", "Listed the file roots", "list the file roots", GET, "/fs/roots", OWN_FILES,
    command="svc fs roots", reads=True, page="/files",
)
FS_UPLOAD = Action(
    "fs.upload", "Uploaded", "upload", PUT, "/fs/{root}/file", OWN_FILES,
    command="svc fs upload {file} {path}", makes_files=True, page="/files",
)

# --- accounts ---

AUTH_LOGIN = Action("auth.login", "Signed in", "sign in", POST, "/auth/login", LOGIN)
AUTH_LOGOUT = Action(
    "auth.logout", "Signed out", "sign out", POST, "/auth/logout", SESSION_ONLY, ends_access=True,
)
AUTH_PASSWORD = Action(
    "auth.password", "Changed the password", "change the password", PUT, "/users/{name}/password",
    SESSION_ONLY, ends_access=True,
)
AUTH_SESSION_END = Action(
    "auth.session_end", "Ended", "end", DELETE, "/auth/sessions/{ref}", NO_TOKENS, ends_access=True,
)
TOKEN_CREATE = Action(
    "token.create", "Created the token", "create the token", POST, "/tokens", ON_THE_HOST,
    command="svc token create --name {name}",
    page_note="made on the host, where the kernel knows you; `/settings/tokens` writes the command",
)
TOKEN_REVOKE = Action(
    "token.revoke", "Revoked the token", "revoke the token", DELETE, "/tokens/{ref}", NO_TOKENS,
    command="svc token revoke {ref}", ends_access=True, page="/settings/tokens", page_note="asks first",
)
USER_EDIT = Action(
    "user.edit", "Changed the account", "change the account", PATCH, "/users/{name}", NO_TOKENS,
)

# --- administration in the browser and on the host socket ---

QUOTA_DELETE = Action(
    "quota.delete", "Deleted the quota", "delete the quota", DELETE, "/admin/quotas/{name}", ADMINISTRATORS,
)
QUOTA_SET = Action("quota.set", "Set the quota", "set the quota", PUT, "/admin/quotas/{name}", ADMINISTRATORS)
DISK_MEASURE = Action(
    "disk.measure", "Had the disks measured", "have the disks measured", POST, "/admin/disk/measure",
    ADMINISTRATORS, command="sudo svc admin disk --measure", page="/admin/disk",
    page_note="with the sums; a button measures for all users, for one the command is shown",
)

# --- `svc admin` ---

ADMIN_AUDIT_ARCHIVE = Action(
    "admin.audit_archive", "Archived the audit up to", "archive the audit up to",
    command="sudo svc admin audit archive --until {id} --to {file}",
    page_note="by root: it moves the oldest rows into a file",
)
ADMIN_CREATE_USER = Action(
    "admin.create_user", "Created the account", "create the account",
    command="sudo svc admin create-user {name}",
    page_note="accounts are made on the host; `/admin/users` names the command",
)
ADMIN_DELETE_USER = Action(
    "admin.delete_user", "Deleted the account", "delete the account",
    command="sudo svc admin delete-user {name}", page_note="by root, on the host",
)
ADMIN_MOVE_STORE = Action(
    "admin.move_store", "Moved the store of", "move the store of",
    command="sudo svc admin move-store {name}", page_note="by root, on the host",
)
ADMIN_EDIT_USER = Action(
    "admin.edit_user", "Changed the account", "change the account",
    command="sudo svc admin edit-user {name}", page="/admin/users",
    page_note="names, quota, disabling; who administers is root's to say",
)
ADMIN_LICENSE_INSTALL = Action(
    "admin.license_install", "Installed the licence", "install the licence",
    command="sudo svc admin license install {file}", page_note="by root: it is a file of the host",
)
ADMIN_NEW_SECRET = Action(
    "admin.new_secret", "Made new secrets of the service", "make new secrets of the service",
)
ADMIN_QUOTA_DELETE = Action(
    "admin.quota_delete", "Deleted the quota", "delete the quota",
    command="sudo svc admin quota delete {name}", page="/admin/quotas", page_note="asks first",
)
ADMIN_QUOTA_SET = Action(
    "admin.quota_set", "Set the quota", "set the quota", command="sudo svc admin quota set {name}",
    page="/admin/quotas",
)
ADMIN_REGISTRIES = Action(
    "admin.registries", "Changed which registries are allowed", "change which registries are allowed", PUT,
    "/admin/registries", ADMINISTRATORS, command="sudo svc admin registry set {file}", page_note="as above",
)
ADMIN_REGISTRIES_LOGIN = Action(
    "admin.registries.login", "Signed in to the registry", "sign in to the registry",
)
ADMIN_REGISTRIES_LOGOUT = Action(
    "admin.registries.logout", "Signed out of the registry", "sign out of the registry",
)
ADMIN_RESTORE = Action(
    "admin.restore", "Restored the backup", "restore the backup", command="sudo svc admin restore {file}",
    page_note="by root, while the service is stopped",
)
ADMIN_RETIRE_USER = Action("admin.retire_user", "Retired the account", "retire the account")
ADMIN_REVOKE_TOKENS = Action(
    "admin.revoke_tokens", "Revoked all tokens of", "revoke all tokens of",
    command="sudo svc admin revoke-tokens {name}",
    page_note="by root; one's own are revoked at `/settings/tokens`",
)
ADMIN_SET_PASSWORD = Action(
    "admin.set_password", "Set the password of", "set the password of",
    command="sudo svc admin set-password {name}",
    page_note="by root, for an account; one's own is changed at `/settings`",
)
ADMIN_TEMPLATE_IMPORT = Action(
    "admin.template_import", "Imported the template", "import the template",
    command="sudo svc admin template import {file}", page="/admin/templates",
)
ADMIN_UPDATE_APPLY = Action(
    "admin.update_apply", "Updated the service to", "update the service to",
    command="sudo svc admin update apply", page_note="by root: it restarts what the page comes from",
)

# --- the service itself ---

AUDIT_COUNT = Action("audit.count", "Listed files", "list files")
# fmt: on

TABLE = tuple(value for value in list(globals().values()) if isinstance(value, Action))
BY_NAME = {str(row): row for row in TABLE}
