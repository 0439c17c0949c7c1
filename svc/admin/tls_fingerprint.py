"""`svc admin tls-fingerprint`: the fingerprint by which other hosts verify the TLS listener."""

from __future__ import annotations

import os
import sys
from functools import partial

from svc.admin.command import require_owner, settings_of, wrap_db_errors
from svc.cli import output
from svc.cli.arguments import Arguments, Command
from svc.errors import HostRefused

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.settings import Settings
    from svc.tls.certificates import Certificate, Found

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
    from svc.tls import serving

    settings = settings_of(args)
    certificate = serving.serving(settings)
    found = read_certificate(settings)
    if not found.fingerprint and (settings.tls_cert or os.path.lexists(certificate.chain)):
        raise HostRefused(found.fault, hint="sudo svc admin doctor")
    if not found.fingerprint:
        raise HostRefused(
            "there is no certificate yet; the server creates one at its first start", hint=start_command()
        )
    print(found.fingerprint, flush=True)
    if output.on_terminal():
        print_details(certificate, found, configured=bool(settings.tls_cert))
    return 0


def read_certificate(settings: Settings) -> Found:
    """Inspect the certificate as the database's owner, as whom the server reads it too."""
    from svc.db.location import database_path
    from svc.db.owner import owner_of, run_as
    from svc.tls import certificates, serving
    from svc.tls.certificates import Found

    database = database_path(settings)
    require_owner(database)
    untrusted = run_as(owner_of(database), partial(certificates.look, serving.serving(settings)))
    fault, fingerprint, names, ends_at, self_signed = untrusted
    return Found(str(fault), str(fingerprint), tuple(map(str, names)), float(ends_at), bool(self_signed))


def start_command() -> str:
    """The command that starts the server on this host."""
    return "sudo systemctl start svc" if os.path.isdir("/run/systemd/system") else "sudo svc server"


def print_details(certificate: Certificate, found: Found, configured: bool) -> None:
    """Print the names, expiry and file to standard error: standard output has the fingerprint alone."""
    from svc.tls.serving import day

    trusted = (
        "for --cacert" if found.self_signed else "of the administrator" if configured else "signed elsewhere"
    )
    lines = [
        f"names: {', '.join(found.names) or 'none'}",
        f"ends:  {day(found.ends_at)}",
        f"file:  {certificate.chain} ({trusted})",
    ]
    if found.fault:
        lines.append(f"warning: {found.fault}; see: sudo svc admin doctor")
    print("\n".join(map(output.visible, lines)), file=sys.stderr)


COMMAND = Command("tls-fingerprint", tls_fingerprint, examples=EXAMPLES, json=False)
