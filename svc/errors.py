"""The error table: one class is one row (code, HTTP status, exit code, meaning).

For every layer: domain functions and the helper client raise these, the web
layer converts them into the error body, the command line into `svc: message` and
an exit code. The class docstring is the text in docs/errors.md. A code has one
meaning and is never reused.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's own: saves the quick client commands that import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, ClassVar

    Form = str | Callable[[Mapping[str, str]], str]  # a command with names in braces, or made from names


class SvcError(Exception):
    """An internal error without a more precise code; the log has the details under the request id."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False
    default_hint: ClassVar[str] = ""
    next_commands: ClassVar[tuple[Form, ...]] = ()  # the first whose names are known is the hint

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        fields: list[dict[str, str]] | None = None,
        details: dict[str, Any] | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
        self.fields = fields or []
        self.details = details or {}
        self.retry_after_s = retry_after_s

    def body(self, request_id: str) -> dict[str, Any]:
        """The body of every HTTP reply that reports an error.

        Returns ``{"error": {code, message, hint, action: {label, method, path, body} | None,
        fields: [{field, code, message}], details, retryable, request_id}}``.
        """
        keys = ("code", "message", "hint", "fields", "details", "retryable")
        more = {"action": getattr(self.hint, "action", None), "request_id": request_id}
        return {"error": {key: getattr(self, key) for key in keys} | more}


# --- 400, 422: the request ---------------------------------------------------


class InvalidRequest(SvcError):
    """The request is malformed: a header, a path or a query cannot be parsed."""

    code, status = "invalid_request", 400


class InvalidJson(SvcError):
    """The body is not one well-formed JSON object in UTF-8; duplicate keys, NaN and a depth over 32 are refused too."""

    code, status = "invalid_json", 400


class StreamingNotSupported(SvcError):
    """The endpoint replies with a stream (events, monitor, terminal, followed logs); `svc api` sends one request and prints one reply."""

    code, status = "streaming_not_supported", 400


class ValidationFailed(SvcError):
    """A value has the wrong type, is out of range or is an unknown key; `fields` names each one."""

    code, status = "validation_failed", 422


def spoken(field: str) -> str:
    """A field's path for people, who count from 1: `env.0.name` is `env item 1 name`."""
    parts: list[str] = []
    for part in field.split("."):
        if part.isascii() and part.isdigit() and parts:
            parts.append(f" item {int(part[:9]) + 1} ")
        else:
            parts.append(part if not parts or parts[-1].endswith(" ") else f".{part}")
    return "".join(parts).strip()


def invalid_field(field: str, code: str, message: str, *, hint: str = "") -> ValidationFailed:
    """ValidationFailed for one field."""
    fields = [{"field": field, "code": code, "message": message}]
    return ValidationFailed(f"{spoken(field)}: {message}", hint=hint, fields=fields)


# --- 401, 403: the caller ----------------------------------------------------


class Unauthenticated(SvcError):
    """The request has no valid credential; the message is the same for every cause."""

    code, status = "unauthenticated", 401


class AppSignIn(SvcError):
    """The browser is not signed in to this app, or what it has opens the app no more."""

    code, status = "app_sign_in", 401


class TokenExpired(SvcError):
    """The token's secret is correct, but the token has expired."""

    code, status = "token_expired", 401


class AccountMissing(SvcError):
    """The calling Linux account has no service account."""

    code, status, exit_code = "account_missing", 403, 3


class AccountIncomplete(SvcError):
    """The service account exists, but its setup is unfinished or needs clean-up."""

    code, status, exit_code = "account_incomplete", 403, 3


class AccountDisabled(SvcError):
    """The service account is disabled, or the Linux account is expired or locked out by the host's PAM rules."""

    code, status = "account_disabled", 403


class PasswordResetRequired(SvcError):
    """The password is correct but too short for an administrator; set a new one with `svc admin set-password`."""

    code, status = "password_reset_required", 403


class CrossSite(SvcError):
    """A browser sent the request for a page of another origin, or in a form that no page of this service uses."""

    code, status = "cross_site", 403


class PatNotAllowed(SvcError):
    """The endpoint does not accept personal access tokens."""

    code, status = "pat_not_allowed", 403


class NotAllowedOnSocket(SvcError):
    """The host-local socket refuses logins and password changes, and through `svc api` the creation of credentials."""

    code, status = "not_allowed_on_socket", 403


class SocketOnly(SvcError):
    """The endpoint is available only on the host-local socket, to commands run on the host."""

    code, status = "socket_only", 403


class AdminCommandOnly(SvcError):
    """The change is to a file of root's: no request makes it, only `svc admin` on the host (see the hint)."""

    code, status = "admin_command_only", 403


class RootNotAllowed(SvcError):
    """The root account is for administration; it has no workspaces, images or files of its own."""

    code, status = "root_not_allowed", 403


class OwnerOnly(SvcError):
    """Only the owner of the workspace may do this; administrators may not."""

    code, status = "owner_only", 403


class AdminOnly(SvcError):
    """The endpoint is for administrators (a superuser's session, or root or a superuser on the host socket)."""

    code, status = "admin_only", 403


class TemplateDisabled(SvcError):
    """The template is disabled until a review, a build or its owner enables it."""

    code, status = "template_disabled", 403


class ReadOnly(SvcError):
    """The target is read-only: a global template's Dockerfile (clone the template to edit it) or a file root marked `:ro`."""

    code, status = "read_only", 403


class FileForbidden(SvcError):
    """The Linux user lacks permission for the file, or a link leads out of the file root."""

    code, status = "file_forbidden", 403


class RegistryNotAllowed(SvcError):
    """The image's registry is not on the administrator's allowlist."""

    code, status = "registry_not_allowed", 403


class LicenseRequired(SvcError):
    """The trial is over and no valid licence is installed; creating and starting are refused, everything else works."""

    code, status = "license_required", 403
    default_hint = "sudo svc admin license show"


# --- 404, 405, 409: the state of the object ----------------------------------


class NotFound(SvcError):
    """The object does not exist or belongs to another user; the reply is the same for both."""

    code, status = "not_found", 404


class MethodNotAllowed(SvcError):
    """The path does not support this method."""

    code, status = "method_not_allowed", 405


class WorkspaceNotStopped(SvcError):
    """The change requires a stopped workspace."""

    code, status = "workspace_not_stopped", 409


class ReplacementRequired(SvcError):
    """The upgrade or edit needs a new container, and what is installed in the present one would be lost; the request must say so."""

    code, status = "replacement_required", 409


class WorkspaceNotRunning(SvcError):
    """The request requires a running workspace."""

    code, status = "workspace_not_running", 409


class TooManyTerminals(SvcError):
    """The workspace has as many terminals, or the terminal as many viewers, as it may have."""

    code, status = "too_many_terminals", 409


class TemplateDamaged(SvcError):
    """A stored document of the template cannot be read, after a change of the database by hand; nothing is made of it."""

    code, status = "template_damaged", 409


class WorkspaceOutdated(SvcError):
    """The running workspace was started by an older release, which lacks this; a restart of it helps."""

    code, status = "workspace_outdated", 409


class ImageMissing(SvcError):
    """The image is not in the caller's own store; starting a workspace never pulls or builds."""

    code, status = "image_missing", 409


class BuildRequired(SvcError):
    """The template's Dockerfile must be built in its present version before the template is enabled."""

    code, status = "build_required", 409


class BuildFailed(SvcError):
    """An instruction of the Dockerfile failed; the operation's log has its output."""

    code, status = "build_failed", 422


class ExitedAtOnce(SvcError):
    """The workspace's command, or the launcher, ended right after its start with an exit code other than 0; `details` has the exit code and the last lines of output."""

    code, status = "exited_at_once", 422


class NameTaken(SvcError):
    """The name is already in use."""

    code, status = "name_taken", 409


class OperationInProgress(SvcError):
    """Another operation on the same object is in progress."""

    code, status, retryable = "operation_in_progress", 409, True


class QuotaExceeded(SvcError):
    """The request would exceed the quota; `details` has {resource, limit, used, requested}."""

    code, status = "quota_exceeded", 409


class LicenseLimit(SvcError):
    """The licence has a smaller number of users or GPUs; `details` has {resource, limit, used, requested}."""

    code, status = "license_limit", 409
    default_hint = "sudo svc admin license show"


class GpuUnavailable(SvcError):
    """Not enough GPUs are free; `details` names the holders."""

    code, status, retryable = "gpu_unavailable", 409, True


class LimitsNotEnforceable(SvcError):
    """This host cannot apply a requested limit, and SVC_MISSING_LIMITS does not allow running without it."""

    code, status = "limits_not_enforceable", 409


class PortUnavailable(SvcError):
    """No port of SVC_PORT_RANGE is free."""

    code, status, retryable = "port_unavailable", 409, True


class AlreadyThere(SvcError):
    """A file of this name exists, and the request does not replace files."""

    code, status = "file_exists", 409


class Conflict(SvcError):
    """The request conflicts with the present state of the object."""

    code, status = "conflict", 409


class RemovalIncomplete(SvcError):
    """Some entries of a directory could not be removed; `details` has {removed, remaining} and the first ones."""

    code, status = "removal_incomplete", 409


class PreconditionFailed(SvcError):
    """The object is no longer at the version of If-Match; `details` has its present {version} and which parts {changed}."""

    code, status = "precondition_failed", 412


# --- 413 ... 507: limits, Podman and the host ---------------------------------


class TooLarge(SvcError):
    """The body or the transfer exceeds its limit; `details` has the numbers."""

    code, status = "too_large", 413


class RangeUnsatisfiable(SvcError):
    """The requested range begins after the end of the file; Content-Range has the file's size."""

    code, status = "range_unsatisfiable", 416


class UnknownHost(SvcError):
    """The Host header is not a name or address of this service (see SVC_PUBLIC_HOSTS)."""

    code, status = "unknown_host", 421


class TooManyRequests(SvcError):
    """Too many attempts, or too many long requests of this user at once; Retry-After has the time to wait."""

    code, status, retryable = "too_many_requests", 429, True


class NotAvailable(SvcError):
    """The endpoint is reserved; this release does not implement it."""

    code, status = "not_available", 501


class EngineUnavailable(SvcError):
    """Podman, the user's agent or the helper did not reply; whether anything was done is unknown."""

    code, status, retryable = "engine_unavailable", 503, True


class EngineFailed(SvcError):
    """Podman refused or failed for a cause without a code of its own; `details.engine` has its words, for the owner."""

    code, status = "engine_failed", 502
    default_hint = "sudo svc admin doctor"


class AppNotFound(SvcError):
    """There is no app of that name, or it is another user's; the message is the same for both."""

    code, status = "app_not_found", 404


class AppNotListening(SvcError):
    """No program of the workspace takes connections at that port."""

    code, status = "app_not_listening", 502


class Maintenance(SvcError):
    """The service is in maintenance (restore, upgrade) or its database is busy."""

    code, status, retryable = "maintenance", 503, True


class EngineTimeout(SvcError):
    """Podman exceeded the timeout of the call."""

    code, status, retryable = "engine_timeout", 504, True


class StorageFull(SvcError):
    """The disk or the user's quota on it is full; with the database's disk full, stopping, deleting and logging out still work."""

    code, status = "storage_full", 507
    next_commands = ("svc image prune",)


class StorageFailed(SvcError):
    """The database's disk does not read or write; `svc admin doctor` and the kernel's log say more."""

    code, status, retryable = "storage_failed", 503, True


class DatabaseDamaged(SvcError):
    """The database failed its check: it is still read as far as possible, but nothing is written to it until it is repaired."""

    code, status = "database_damaged", 503


# --- the host side: `svc admin`, `svc server` and the client itself ------------


class UsageError(SvcError):
    """The command line is wrong; nothing was sent or changed."""

    code, status, exit_code = "usage", 400, 2
    names_url = False  # the message says what is wrong with a URL on the command line


class SettingInvalid(SvcError):
    """A setting has a value that cannot be used; the message names it."""

    code, status = "setting_invalid", 500


class DatabaseRefused(SvcError):
    """The database file cannot be used: it is missing, in an unsafe place, of a newer release, or in use."""

    code, status = "database_refused", 500


class HostRefused(SvcError):
    """The host lacks a requirement (permissions, programs, id ranges); `svc admin doctor` lists what to fix."""

    code, status = "host_refused", 500


class Unreachable(SvcError):
    """The service does not reply on its socket."""

    code, status, retryable = "unreachable", 503, True
    nothing_sent = False  # no connection: the service cannot have done anything


class BadAnswer(SvcError):
    """The reply on the socket cannot be read: not HTTP, not JSON, truncated or too large."""

    code, status = "bad_answer", 502


class FileRefused(SvcError):
    """A local file named on the command line cannot be read or written."""

    code, status = "file_refused", 400


class LicenseInvalid(SvcError):
    """The licence file cannot be used: damaged, changed after it was signed, for another host, or outside its time."""

    code, status = "license_invalid", 400


class ReleaseInvalid(SvcError):
    """A release cannot be applied: changed after it was signed, older than one that was seen, or not for this host."""

    code, status = "release_invalid", 400
    default_hint = "sudo svc admin update status"


class ReleaseUnavailable(SvcError):
    """The source of releases does not answer, or not as it should; nothing was changed."""

    code, status, retryable = "release_unavailable", 503, True
    default_hint = "sudo svc admin update check   (again, when the source is there)"


class UpdateFailed(SvcError):
    """The new release failed in its rehearsal or after its start; the version before is in place."""

    code, status = "update_failed", 500
    default_hint = "sudo svc admin update status"


class Aborted(SvcError):
    """The user did not confirm."""

    code, status = "aborted", 400


def table() -> list[type[SvcError]]:
    """Every class in the order of this file, each before those made from it (svc.engine_errors, once imported).

    Raises ValueError when two classes have the same code.
    """
    rows = list(_family(SvcError))
    codes = [row.code for row in rows]
    twice = {code for code in codes if codes.count(code) > 1}
    if twice:
        raise ValueError(f"error codes used twice: {sorted(twice)}")
    return rows


def _family(kind: type[SvcError]) -> Iterator[type[SvcError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)


def by_code(code: str) -> type[SvcError]:
    """The class of a code; SvcError for a code of another release."""
    return next((row for row in table() if row.code == code), SvcError)
