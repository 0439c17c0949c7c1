"""The certificate of the TLS listener: the administrator's, otherwise a self-signed one.

`SVC_TLS_CERT` and `SVC_TLS_KEY` name the administrator's, which is only read.
Without them a self-signed certificate for the host's own names (or
SVC_PUBLIC_HOSTS) is kept in tls/ beside the database; a start of the server
renews it before it expires. The supervisor's forked process and `svc admin`
import this module too: keep the web's imports out of it.
"""

from __future__ import annotations

import os
import time

from svc.errors import HostRefused, SettingInvalid
from svc.host.sharing import is_private
from svc.log import log
from svc.settings import Settings
from svc.tls import certificates, host_names
from svc.tls.certificates import Certificate, CertificateInfo

RENEW_S = 30 * 24 * 3600  # before it expires: doctor warns, and a self-signed one is renewed


def certificate_paths(settings: Settings) -> Certificate:
    """The files of the certificate that the listener serves with; opens nothing.

    Raises SettingInvalid when only one of the two settings is set.
    """
    configured = Certificate(settings.tls_cert, settings.tls_key)
    if all(configured):
        return configured
    if any(configured):
        missing = "SVC_TLS_KEY" if configured.chain else "SVC_TLS_CERT"
        raise SettingInvalid(
            f"{missing} is not set; a certificate needs both SVC_TLS_CERT and SVC_TLS_KEY",
            hint="svc env --all",
        )
    directory = os.path.join(os.path.dirname(os.path.abspath(settings.db)), "tls")
    return Certificate(os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem"))


def public_names(settings: Settings) -> list[str]:
    """The names and addresses of this host for clients: those of the self-signed certificate."""
    own = host_names.of_service(settings.public_hosts)
    return own if settings.public_hosts else list(dict.fromkeys([*own, "localhost", "127.0.0.1", "::1"]))


def ensure_certificate(settings: Settings) -> None:
    """Create or renew the self-signed certificate where needed; each one is logged.

    For a start of the server, as the service's own account. Raises SettingInvalid
    when the administrator's certificate is unusable or has expired, HostRefused
    when a self-signed one cannot be created.
    """
    certificate = certificate_paths(settings)
    info = certificates.inspect(certificate)
    if settings.tls_cert or not is_replaceable(info):
        _require_usable(certificate, info)
        return
    names = public_names(settings)
    reason = renewal_reason(certificate, info, names)
    if not reason:
        return
    try:
        fingerprint = certificates.create(certificate, names)
    except OSError as error:
        directory = os.path.dirname(certificate.chain)
        raise HostRefused(
            f"cannot create a certificate in {directory}: {error.strerror}", hint="sudo svc admin doctor"
        ) from None
    log("server", f"created a certificate: {reason}", sha256=fingerprint, names=names, file=certificate.chain)


def is_replaceable(info: CertificateInfo) -> bool:
    """Whether the certificate in tls/ may be replaced: unusable, or signed by nobody else."""
    return info.self_signed or not info.fingerprint


def renewal_reason(certificate: Certificate, info: CertificateInfo, names: list[str]) -> str:
    """Why a self-signed certificate must be created anew; empty for one that need not."""
    if not os.path.lexists(certificate.chain):
        return "there was none"
    if info.problem:
        return info.problem
    if not is_private(os.stat(certificate.key)):
        return f"others could read {certificate.key}"
    if info.expires_at - time.time() < RENEW_S:
        return f"the previous one expires on {utc_date(info.expires_at)}"
    missing = [name for name in names if name not in info.names]
    return f"the previous one did not name {', '.join(missing)}" if missing else ""


def utc_date(at: float) -> str:
    """The date of a Unix time."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def _require_usable(certificate: Certificate, info: CertificateInfo) -> None:
    if info.problem:
        raise SettingInvalid(f"SVC_TLS_CERT and SVC_TLS_KEY: {info.problem}", hint="sudo svc admin doctor")
    if info.expires_at <= time.time():
        raise SettingInvalid(
            f"SVC_TLS_CERT: {certificate.chain} expired on {utc_date(info.expires_at)}",
            hint="sudo svc admin doctor",
        )
