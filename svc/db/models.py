"""One Peewee model per table of schema/migrations; tests compare each column with the schema.

The SQL files are the truth and make the tables; models only read and write
rows. Lists of records are built in SQL by the domain modules, not from these.
"""

from __future__ import annotations

import peewee

from svc.db.connect import database


class Row(peewee.Model):
    """What every model shares: the database of this process."""

    class Meta:
        database = database


class Fact(Row):
    """What this installation knows of itself, such as the trial's start."""

    name = peewee.TextField(primary_key=True)
    value = peewee.TextField()

    class Meta:
        table_name = "facts"


class Quota(Row):
    """A named policy of what a user may have; null is unlimited."""

    name = peewee.TextField(primary_key=True)
    max_workspaces = peewee.IntegerField(null=True)
    max_running = peewee.IntegerField(null=True)
    max_gpus = peewee.IntegerField(null=True)
    max_cpu = peewee.IntegerField(null=True)
    max_memory_bytes = peewee.IntegerField(null=True)
    max_image_bytes = peewee.IntegerField(null=True)

    class Meta:
        table_name = "quotas"


class User(Row):
    """A service account: one Linux account, a superuser flag, the service password."""

    id = peewee.AutoField()
    name = peewee.TextField(unique=True)
    uid = peewee.IntegerField(unique=True, null=True)
    display_name = peewee.TextField(default="")
    superuser = peewee.BooleanField(default=False)
    disabled = peewee.BooleanField(default=False)
    provisioning = peewee.TextField(default="incomplete")
    provisioning_note = peewee.TextField(default="")
    password_hash = peewee.TextField(null=True)
    password_length = peewee.IntegerField(null=True)
    password_closed = peewee.BooleanField(default=False)
    failed_logins = peewee.IntegerField(default=0)
    created_at = peewee.TextField()
    updated_at = peewee.TextField()
    quota = peewee.ForeignKeyField(Quota, column_name="quota", null=True)
    quota_id: str | None  # the policy's name, as the row has it

    class Meta:
        table_name = "users"


class Template(Row):
    """What does not change with a revision: name, owner (null is global), status."""

    id = peewee.TextField(primary_key=True)
    owner = peewee.ForeignKeyField(User, null=True, backref="templates")
    name = peewee.TextField()
    status = peewee.TextField()
    revision = peewee.IntegerField()
    managed = peewee.BooleanField(default=False)
    cloned_from = peewee.TextField(null=True)
    created_at = peewee.TextField()
    updated_at = peewee.TextField()
    reviewed_revision = peewee.IntegerField(null=True)

    class Meta:
        table_name = "templates"


class TemplateRevision(Row):
    """A template as it was at one revision; workspaces keep theirs."""

    template = peewee.ForeignKeyField(Template, on_delete="CASCADE", backref="revisions")
    revision = peewee.IntegerField()
    source_type = peewee.TextField()
    image_ref = peewee.TextField()
    spec_json = peewee.TextField()
    created_at = peewee.TextField()
    dockerfile = peewee.TextField(null=True)
    context = peewee.TextField(null=True)
    local_only = peewee.BooleanField(default=False)
    written_by = peewee.IntegerField(null=True)
    sealed_json = peewee.TextField(default="{}")
    bundle_digest = peewee.TextField(null=True)
    images_json = peewee.TextField(default="[]")
    findings_json = peewee.TextField(default="[]")

    class Meta:
        table_name = "template_revisions"
        primary_key = peewee.CompositeKey("template", "revision")


class File(Row):
    """The content of files of build contexts, each once."""

    sha256 = peewee.TextField(primary_key=True)
    size = peewee.IntegerField()
    content = peewee.BlobField()

    class Meta:
        table_name = "files"


class ContextFile(Row):
    """One file of a build context; a context is named by the digest of its own listing."""

    context = peewee.TextField()
    path = peewee.TextField()
    sha256 = peewee.ForeignKeyField(File, column_name="sha256")
    executable = peewee.BooleanField()

    class Meta:
        table_name = "context_files"
        primary_key = peewee.CompositeKey("context", "path")


class Workspace(Row):
    """A workspace; Podman is the truth for running and stopped, this row follows."""

    id = peewee.TextField(primary_key=True)
    owner = peewee.ForeignKeyField(User, backref="workspaces")
    name = peewee.TextField()
    display_name = peewee.TextField(default="")
    template_id = peewee.TextField()
    template_revision = peewee.IntegerField()
    image_ref = peewee.TextField()
    image_digest = peewee.TextField(null=True)
    container_id = peewee.TextField(null=True)
    status = peewee.TextField()
    status_reason = peewee.TextField(null=True)
    status_since = peewee.TextField()
    health = peewee.TextField(default="unknown")
    exit_code = peewee.IntegerField(null=True)
    cpu_limit = peewee.IntegerField(null=True)
    memory_bytes = peewee.IntegerField(null=True)
    shm_bytes = peewee.IntegerField(null=True)
    pids_limit = peewee.IntegerField(null=True)
    gpu_count = peewee.IntegerField(default=0)
    gpu_mode = peewee.TextField(default="exclusive")
    env_json = peewee.TextField(default="{}")
    restart_on_boot = peewee.BooleanField(default=False)
    stale = peewee.BooleanField(default=False)
    created_at = peewee.TextField()
    updated_at = peewee.TextField()
    started_at = peewee.TextField(null=True)
    stopped_at = peewee.TextField(null=True)
    limits_missing_json = peewee.TextField(default="[]")
    idle_since = peewee.TextField(null=True)
    keep_until = peewee.TextField(null=True)

    class Meta:
        table_name = "workspaces"


class GpuLease(Row):
    """A workspace's hold of one GPU, from its start to its confirmed stop."""

    gpu = peewee.TextField()
    workspace = peewee.ForeignKeyField(Workspace, on_delete="CASCADE", backref="gpus")
    mode = peewee.TextField()
    taken_at = peewee.TextField()

    class Meta:
        table_name = "gpu_leases"
        primary_key = peewee.CompositeKey("gpu", "workspace")


class Port(Row):
    """A named port of a workspace, reached at 127.0.0.1:host_port."""

    workspace = peewee.ForeignKeyField(Workspace, on_delete="CASCADE", backref="ports")
    name = peewee.TextField()
    container_port = peewee.IntegerField()
    host_port = peewee.IntegerField(unique=True)
    created_at = peewee.TextField()

    class Meta:
        table_name = "ports"
        primary_key = peewee.CompositeKey("workspace", "name")


class Image(Row):
    """One user's image, as last seen in that user's own store."""

    owner = peewee.ForeignKeyField(User, backref="images")
    image_ref = peewee.TextField()
    status = peewee.TextField()
    digest = peewee.TextField(null=True)
    size_bytes = peewee.IntegerField(null=True)
    error = peewee.TextField(null=True)
    updated_at = peewee.TextField()

    class Meta:
        table_name = "images"
        primary_key = peewee.CompositeKey("owner", "image_ref")


class Operation(Row):
    """Long work that the worker does: a pull, a build, a setup."""

    id = peewee.TextField(primary_key=True)
    owner = peewee.ForeignKeyField(User, backref="operations")
    kind = peewee.TextField()
    subject_type = peewee.TextField()
    subject_id = peewee.TextField()
    status = peewee.TextField()
    phase = peewee.TextField(default="")
    progress_json = peewee.TextField(default="{}")
    error_json = peewee.TextField(null=True)
    request_json = peewee.TextField(default="{}")
    result_json = peewee.TextField(null=True)
    cancel_requested = peewee.BooleanField(default=False)
    request_id = peewee.TextField(default="")
    created_at = peewee.TextField()
    updated_at = peewee.TextField()
    finished_at = peewee.TextField(null=True)

    class Meta:
        table_name = "operations"


class OperationLine(Row):
    """One line of an operation's log."""

    operation = peewee.ForeignKeyField(Operation, on_delete="CASCADE", backref="lines")
    line = peewee.IntegerField()
    at = peewee.TextField()
    text = peewee.TextField()

    class Meta:
        table_name = "operation_log"
        primary_key = peewee.CompositeKey("operation", "line")


class Audit(Row):
    """Who did what to what, how it ended; rows are only ever added."""

    id = peewee.AutoField()
    at = peewee.TextField()
    user_id = peewee.IntegerField(null=True)
    user_name = peewee.TextField()
    via = peewee.TextField()
    address = peewee.TextField(default="")
    action = peewee.TextField()
    target = peewee.TextField(default="")
    outcome = peewee.TextField()
    request_id = peewee.TextField()
    detail_json = peewee.TextField(default="{}")
    hash = peewee.TextField(default="")

    class Meta:
        table_name = "audit"


class Session(Row):
    """A browser's login: digests of its two secrets, and when it was last used."""

    id = peewee.TextField(primary_key=True)
    user = peewee.ForeignKeyField(User, backref="sessions")
    cookie_hash = peewee.TextField(unique=True)
    header_hash = peewee.TextField()
    address = peewee.TextField()
    created_at = peewee.TextField()
    last_used_at = peewee.TextField()

    class Meta:
        table_name = "sessions"


class Token(Row):
    """A personal access token: the digest of its secret, its lifetime, its last use."""

    id = peewee.TextField(primary_key=True)
    user = peewee.ForeignKeyField(User, backref="tokens")
    name = peewee.TextField()
    prefix = peewee.TextField()
    secret_hash = peewee.TextField(unique=True)
    created_at = peewee.TextField()
    expires_at = peewee.TextField()
    last_used_at = peewee.TextField(null=True)
    last_used_from = peewee.TextField(null=True)
    ended_at = peewee.TextField(null=True)
    end_reason = peewee.TextField(null=True)

    class Meta:
        table_name = "tokens"


class LoginFailure(Row):
    """A try to log in that was not a success, once for each subject it counts against."""

    subject = peewee.TextField()
    at = peewee.TextField()

    class Meta:
        table_name = "login_failures"
        primary_key = False


MODELS = (
    Fact, User, Template, TemplateRevision, Workspace, Image, Operation, OperationLine, Audit,
    Session, Token, LoginFailure, File, ContextFile, Quota, GpuLease, Port,
)  # fmt: skip
