"""The TLS listener's certificate: the administrator's, else one that is made for the host's own names.

`SVC_TLS_CERT` and `SVC_TLS_KEY` name the administrator's, which is only ever
read. Without them a self-signed one for the host's own names (or
SVC_PUBLIC_HOSTS) is kept in tls/ beside the database, and made anew at a start
of the server before it ends. Imports nothing of the web's own weight: the
supervisor's forked process and `svc admin` look at certificates too.
"""

from __future__ import annotations

import os
import stat
import time

from svc.errors import HostRefused, SettingInvalid
from svc.log import log
from svc.settings import Settings
from svc.tls import certificates, host_names
from svc.tls.certificates import Certificate, Found

RENEW_S = 30 * 24 * 3600  # one that ends sooner is told of; a self-made one is made anew


def serving(settings: Settings) -> Certificate:
    """Where the certificate is that the listener serves with; opens nothing.

    Raises SettingInvalid when only one of the two settings is given.
    """
    given = Certificate(settings.tls_cert, settings.tls_key)
    if all(given):
        return given
    if any(given):
        missing = "SVC_TLS_KEY" if given.chain else "SVC_TLS_CERT"
        raise SettingInvalid(f"{missing} is not set, and the other of the two is", hint="svc env --all")
    directory = os.path.join(os.path.dirname(os.path.abspath(settings.db)), "tls")
    return Certificate(os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem"))


def public_names(settings: Settings) -> list[str]:
    """The names and addresses that clients may call this host by: those of the certificate."""
    own = host_names.of_service(settings.public_hosts)
    return own if settings.public_hosts else list(dict.fromkeys([*own, "localhost", "127.0.0.1", "::1"]))


def ensure_certificate(settings: Settings) -> None:
    """See to it that there is a certificate to serve with; each one made is told in the log.

    Raises SettingInvalid when the administrator's cannot be served with or has
    ended, HostRefused when one cannot be made. For a start of the server, as
    the service's own account.
    """
    certificate = serving(settings)
    found = certificates.look(certificate)
    if settings.tls_cert or not is_ours(found):
        _require(certificate, found)
        return
    names = public_names(settings)
    reason = why_anew(certificate, found, names)
    if not reason:
        return
    try:
        fingerprint = certificates.make(certificate, names)
    except OSError as error:
        raise HostRefused(
            f"no certificate can be made in {os.path.dirname(certificate.chain)}: {error.strerror}",
            hint="sudo svc admin doctor",
        ) from None
    log("server", f"made a certificate: {reason}", sha256=fingerprint, names=names, file=certificate.chain)


def is_ours(found: Found) -> bool:
    """Whether what lies in tls/ may be replaced: nothing usable, or signed by nobody else."""
    return found.self_signed or not found.fingerprint


def why_anew(certificate: Certificate, found: Found, names: list[str]) -> str:
    """Why a self-made certificate does not do any longer; empty when it does."""
    if not os.path.lexists(certificate.chain):
        return "there was none"
    if found.fault:
        return found.fault
    if stat.S_IMODE(os.stat(certificate.key).st_mode) & 0o077:
        return f"others could read {certificate.key}"
    if found.ends_at - time.time() < RENEW_S:
        return f"the last one ends on {day(found.ends_at)}"
    missing = [name for name in names if name not in found.names]
    return f"the last one did not name {', '.join(missing)}" if missing else ""


def day(at: float) -> str:
    """The day of a time, in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def _require(certificate: Certificate, found: Found) -> None:
    if found.fault:
        raise SettingInvalid(f"SVC_TLS_CERT and SVC_TLS_KEY: {found.fault}", hint="sudo svc admin doctor")
    if found.ends_at <= time.time():
        raise SettingInvalid(
            f"SVC_TLS_CERT: {certificate.chain} ended on {day(found.ends_at)}",
            hint=f"openssl x509 -in {certificate.chain} -noout -subject -enddate",
        )
