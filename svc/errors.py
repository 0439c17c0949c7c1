"""The error table: one class is one row (code, HTTP status, exit code, meaning).

For every layer: domain functions and the helper client raise these, the web
edge turns them into the error body, the command line into `svc: message` and
an exit code. The class docstring is what docs/errors.md says about the code.
A code is documented here, used for one thing and never reused.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's own: the quick client commands do without that import
if TYPE_CHECKING:
    from typing import Any, ClassVar


class SvcError(Exception):
    """Something went wrong that has no more precise name; the log has the details under the request id."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False
    way_out: ClassVar[str] = ""  # the hint of those that have none of their own

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
        self.hint = hint or self.way_out
        self.fields = fields or []
        self.details = details or {}
        self.retry_after_s = retry_after_s

    def body(self, request_id: str) -> dict[str, Any]:
        """The error body of every HTTP answer, whatever failed.

        Returns ``{"error": {code, message, hint, fields: [{field, code, message}],
        details, retryable, request_id}}``.
        """
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "hint": self.hint,
                "fields": self.fields,
                "details": self.details,
                "retryable": self.retryable,
                "request_id": request_id,
            }
        }


# --- 400, 422: what was sent -------------------------------------------------


class InvalidRequest(SvcError):
    """The request itself is malformed: a header, a path or a query that cannot be understood."""

    code, status = "invalid_request", 400


class InvalidJson(SvcError):
    """The body is not one well-formed JSON object in UTF-8 (duplicate keys, NaN and depth over 32 included)."""

    code, status = "invalid_json", 400


class StreamingNotSupported(SvcError):
    """The endpoint answers with a stream (events, monitor, terminal, followed logs); `svc api` sends one request and prints one answer."""

    code, status = "streaming_not_supported", 400


class ValidationFailed(SvcError):
    """A value has the wrong type, is out of range or is an unknown key; `fields` names each one."""

    code, status = "validation_failed", 422


# --- 401, 403: who asks ------------------------------------------------------


class Unauthenticated(SvcError):
    """No usable credential came with the request; the text is the same whatever was wrong with it."""

    code, status = "unauthenticated", 401


class TokenExpired(SvcError):
    """The token's secret is right but its lifetime is over."""

    code, status = "token_expired", 401


class AccountMissing(SvcError):
    """The calling Linux account has no service account."""

    code, status, exit_code = "account_missing", 403, 3


class AccountIncomplete(SvcError):
    """The service account exists but its setup is unfinished or needs clean-up."""

    code, status, exit_code = "account_incomplete", 403, 3


class AccountDisabled(SvcError):
    """The service account is disabled, or the Linux account is expired or locked out by the host's PAM rules."""

    code, status = "account_disabled", 403


class PasswordResetRequired(SvcError):
    """The password is right but shorter than an administrator's must be; `svc admin set-password` opens the login again."""

    code, status = "password_reset_required", 403


class CrossSite(SvcError):
    """A browser sent this for a page of another origin, or in a form that no page of ours uses."""

    code, status = "cross_site", 403


class PatNotAllowed(SvcError):
    """A personal access token never reaches this endpoint."""

    code, status = "pat_not_allowed", 403


class NotAllowedOnSocket(SvcError):
    """The host-local socket never takes a login, a password change or, through `svc api`, the creation of a credential."""

    code, status = "not_allowed_on_socket", 403


class SocketOnly(SvcError):
    """The endpoint answers only on the host-local socket, to the commands run on the host."""

    code, status = "socket_only", 403


class RootNotAllowed(SvcError):
    """The root account administers; it has no workspaces, images or files of its own."""

    code, status = "root_not_allowed", 403


class OwnerOnly(SvcError):
    """Only the owner of the workspace may do this, administrators included."""

    code, status = "owner_only", 403


class AdminOnly(SvcError):
    """The endpoint is for administrators (a superuser's session, or root or a superuser on the host socket)."""

    code, status = "admin_only", 403


class TemplateDisabled(SvcError):
    """The template is disabled: it waits for a review, a build or its owner."""

    code, status = "template_disabled", 403


class ReadOnly(SvcError):
    """A global template's Dockerfile is read-only (a clone has one of its own), and so is a root of files marked `:ro`."""

    code, status = "read_only", 403


class FileForbidden(SvcError):
    """The Linux user may not do this to the file, or it lies outside its file root (a link that leads out)."""

    code, status = "file_forbidden", 403


class RegistryNotAllowed(SvcError):
    """The image's registry is not on the administrator's allowlist."""

    code, status = "registry_not_allowed", 403


class LicenseRequired(SvcError):
    """The trial is over and no valid licence is installed; creating and starting are refused, all else works."""

    code, status = "license_required", 403


# --- 404, 405, 409: the state of things --------------------------------------


class NotFound(SvcError):
    """It does not exist, or it is not yours; the answer is the same."""

    code, status = "not_found", 404


class MethodNotAllowed(SvcError):
    """The path exists but not with this method."""

    code, status = "method_not_allowed", 405


class WorkspaceNotStopped(SvcError):
    """Only a stopped workspace can be changed like this."""

    code, status = "workspace_not_stopped", 409


class WorkspaceNotRunning(SvcError):
    """Only a running workspace can do this."""

    code, status = "workspace_not_running", 409


class ImageMissing(SvcError):
    """The image is not in the caller's own store; a start never pulls or builds."""

    code, status = "image_missing", 409


class BuildRequired(SvcError):
    """A template made from a Dockerfile is built once, as it is now, before it is enabled."""

    code, status = "build_required", 409


class BuildFailed(SvcError):
    """An instruction of the Dockerfile failed; the operation's log has its output."""

    code, status = "build_failed", 422


class NameTaken(SvcError):
    """The owner already has one of that name."""

    code, status = "name_taken", 409


class OperationInProgress(SvcError):
    """Another operation on the same thing is under way."""

    code, status, retryable = "operation_in_progress", 409, True


class QuotaExceeded(SvcError):
    """The quota does not allow it; `details` has {resource, limit, used, requested}."""

    code, status = "quota_exceeded", 409


class GpuUnavailable(SvcError):
    """Not enough free GPUs; `details` names the holders."""

    code, status, retryable = "gpu_unavailable", 409, True


class LimitsNotEnforceable(SvcError):
    """This host cannot apply a limit that was asked for, and is not told to go on without."""

    code, status = "limits_not_enforceable", 409


class PortUnavailable(SvcError):
    """No port of SVC_PORT_RANGE is free."""

    code, status, retryable = "port_unavailable", 409, True


class AlreadyThere(SvcError):
    """A file of that name is there already, and was not to be replaced."""

    code, status = "file_exists", 409


class Conflict(SvcError):
    """The request does not fit the present state of the thing."""

    code, status = "conflict", 409


# --- 413 ... 507: limits and the machine below --------------------------------


class TooLarge(SvcError):
    """The body or the transfer is over its limit; `details` has the numbers."""

    code, status = "too_large", 413


class RangeUnsatisfiable(SvcError):
    """The bytes asked for begin behind the file's end; Content-Range says its size."""

    code, status = "range_unsatisfiable", 416


class UnknownHost(SvcError):
    """The Host header names no address of this service (SVC_PUBLIC_HOSTS)."""

    code, status = "unknown_host", 421


class TooManyRequests(SvcError):
    """Too many tries, or too many long calls of this user at once; Retry-After says when to come back."""

    code, status, retryable = "too_many_requests", 429, True


class NotAvailable(SvcError):
    """The endpoint is known but this release does not serve it."""

    code, status = "not_available", 501


class EngineUnavailable(SvcError):
    """Podman, the user's agent or the helper could not answer; nothing is known to have been done."""

    code, status, retryable = "engine_unavailable", 503, True


class EngineFailed(SvcError):
    """Podman refused or failed; the host's log has its words under the request id."""

    code, status = "engine_failed", 502
    way_out = "sudo svc admin doctor"


class Maintenance(SvcError):
    """The service is being maintained (backup restore, upgrade)."""

    code, status, retryable = "maintenance", 503, True


class EngineTimeout(SvcError):
    """Podman took longer than the call's deadline."""

    code, status, retryable = "engine_timeout", 504, True


class StorageFull(SvcError):
    """The disk or the user's quota on it is full."""

    code, status = "storage_full", 507


# --- the host side: `svc admin`, `svc server` and the client itself ------------


class UsageError(SvcError):
    """The command line is wrong; nothing was sent or changed."""

    code, status, exit_code = "usage", 400, 2


class SettingInvalid(SvcError):
    """A setting has a value that cannot be used; the message names it."""

    code, status = "setting_invalid", 500


class DatabaseRefused(SvcError):
    """The database file cannot be used: missing, planted, of a newer release, or in use."""

    code, status = "database_refused", 500


class HostRefused(SvcError):
    """The host cannot do this (rights, missing programs, ranges); `svc admin doctor` lists what to mend."""

    code, status = "host_refused", 500


class Unreachable(SvcError):
    """The service does not answer on its socket."""

    code, status, retryable = "unreachable", 503, True


class BadAnswer(SvcError):
    """What came back over the socket cannot be read: not HTTP, not JSON, cut short or too large."""

    code, status = "bad_answer", 502


class FileRefused(SvcError):
    """A local file that a client command was given cannot be read or written."""

    code, status = "file_refused", 400


class Aborted(SvcError):
    """A confirmation was not given."""

    code, status = "aborted", 400


def table() -> list[type[SvcError]]:
    """Every row, in the order of this file (the base class first).

    Raises ValueError when two classes carry one code.
    """
    rows: list[type[SvcError]] = [SvcError, *SvcError.__subclasses__()]
    codes = [row.code for row in rows]
    twice = {code for code in codes if codes.count(code) > 1}
    if twice:
        raise ValueError(f"error codes used twice: {sorted(twice)}")
    return rows


def by_code(code: str) -> type[SvcError]:
    """The class of a code; SvcError for one that this release does not know."""
    return next((row for row in table() if row.code == code), SvcError)
