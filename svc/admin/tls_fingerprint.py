"""`svc admin tls-fingerprint`: the fingerprint by which other hosts verify the TLS listener."""

from __future__ import annotations

import os
import sys
from functools import partial

from svc.admin.command import require_owner, settings_of, wrap_db_errors
from svc.commandline import output
from svc.commandline.arguments import Arguments, Command
from svc.db.location import database_path
from svc.errors import HostRefused
from svc.host.owner import owner_of, run_as, service_owner, tls_owner
from svc.service_commands import start_command
from svc.settings import Settings
from svc.tls import certificates, serving
from svc.tls.certificates import Certificate, CertificateInfo

EXAMPLES = """\
sudo svc admin tls-fingerprint
sudo svc admin tls-fingerprint | tr -d :"""


@wrap_db_errors
def tls_fingerprint(args: Arguments) -> int:
    """Print the SHA-256 fingerprint of the serving TLS certificate.

    In the form of `openssl x509 -fingerprint -sha256` and of browsers, alone on
    standard output. On a terminal also the names that the certificate is for,
    when it expires and where its file is. Works whether or not the server runs.
    """
    settings = settings_of(args, ("SVC_DB", "SVC_TLS_CERT", "SVC_TLS_KEY"))
    certificate = serving.certificate_paths(settings)
    info = read_certificate(settings)
    if not info.fingerprint and (settings.tls_cert or os.path.lexists(certificate.chain)):
        raise HostRefused(info.problem, hint="sudo svc admin doctor")
    if not info.fingerprint:
        raise HostRefused(
            "there is no certificate yet; the server creates one at its first start", hint=start_command()
        )
    print(info.fingerprint, flush=True)
    if output.on_terminal():
        print_details(certificate, info, configured=bool(settings.tls_cert))
    return 0


def read_certificate(settings: Settings) -> CertificateInfo:
    """Inspect the certificate as the account that serves with it: by root; else as the caller."""
    database = database_path(settings)
    require_owner(database)
    reader = owner_of(database)
    if os.geteuid() == 0 and reader == service_owner():
        reader = tls_owner() or reader
    untrusted = run_as(reader, partial(certificates.inspect, serving.certificate_paths(settings)))
    problem, fingerprint, names, expires_at, self_signed = untrusted
    return CertificateInfo(
        str(problem), str(fingerprint), tuple(map(str, names)), float(expires_at), bool(self_signed)
    )


def print_details(certificate: Certificate, info: CertificateInfo, configured: bool) -> None:
    """Print the names, expiry and file to standard error: standard output has the fingerprint alone."""
    trusted = (
        "for --cacert" if info.self_signed else "of the administrator" if configured else "signed elsewhere"
    )
    lines = [
        f"names: {', '.join(info.names) or 'none'}",
        f"ends:  {serving.utc_date(info.expires_at)}",
        f"file:  {certificate.chain} ({trusted})",
    ]
    if info.problem:
        lines.append(f"warning: {info.problem}; see: sudo svc admin doctor")
    print("\n".join(map(output.visible, lines)), file=sys.stderr)


COMMANDS = (Command("tls-fingerprint", tls_fingerprint, examples=EXAMPLES, json=False),)
