"""Doctor check of the TLS certificate: present, usable, names and expiry."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from svc.admin.findings import Finding, Host, fail, ok, warn
from svc.admin.tls_fingerprint import look, start_command
from svc.tls import host_names, serving

RESTART = "sudo systemctl restart svc"


def tls_certificate(host: Host) -> Iterator[Finding]:
    """The certificate of the TLS listener."""
    certificate = serving.serving(host.settings)
    found = look(host.settings)
    ours = not host.settings.tls_cert and serving.is_ours(found)
    renew = RESTART if ours else f"renew {certificate.chain}, then: {RESTART}"
    if ours and not os.path.lexists(certificate.chain):
        yield warn("tls_certificate", "there is none yet; the server's first start makes it", start_command())
    elif found.fault:
        mended = RESTART if ours else "set SVC_TLS_CERT and SVC_TLS_KEY to a certificate and its key"
        yield fail("tls_certificate", found.fault, mended)
    elif found.ends_at <= time.time():
        yield fail("tls_certificate", f"{certificate.chain} ended on {serving.day(found.ends_at)}", renew)
    elif found.ends_at - time.time() < serving.RENEW_S:
        yield warn("tls_certificate", f"{certificate.chain} ends on {serving.day(found.ends_at)}", renew)
    else:
        yield from _names(host, certificate.chain, ours, found.names)


def _names(host: Host, chain: str, ours: bool, named: tuple[str, ...]) -> Iterator[Finding]:
    """Whether it is for the names that requests may give; a name for which it is not is no use to anybody."""
    wanted = (
        serving.public_names(host.settings) if ours else host_names.of_service(host.settings.public_hosts)
    )
    missing = [name for name in wanted if not _covered(name, named)]
    if ours and missing:
        yield warn("tls_certificate", f"{chain} does not name {', '.join(missing)}", RESTART)
    elif missing and (host.settings.public_hosts or len(missing) == len(wanted)):
        named_alone = [name for name in named if "*" not in name]
        yield warn(
            "tls_certificate",
            f"{chain} is for {', '.join(named) or 'no name'}, requests may be for {', '.join(wanted)}",
            f"set SVC_PUBLIC_HOSTS={','.join(named_alone) or 'NAME'} in /etc/svc/svc.env, then: {RESTART}",
        )
    else:
        yield ok("tls_certificate", f"{chain} is for {', '.join(named)}")


def _covered(name: str, named: tuple[str, ...]) -> bool:
    """By itself or by a wildcard, which stands for one label."""
    return name in named or f"*.{name.partition('.')[2]}" in named
