"""Doctor checks of the TLS certificate (present, usable, names and expiry) and of its key's mode."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterator
from functools import partial

from svc.admin import repair
from svc.admin.findings import Finding, Host, fail, ok, warn
from svc.admin.tls_fingerprint import read_certificate
from svc.host.owner import Owner, run_as
from svc.service_commands import start_command
from svc.tls import host_names, serving

CODE = "tls_certificate"
HOST_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.:-]*[a-z0-9])?")
STRANGER = Owner(65534, 65534)  # nobody, who has no rights but those of everybody
READ_S = 10  # the key may be on a file server that does not respond
RESTART = "sudo systemctl restart svc"


def tls_certificate(host: Host) -> Iterator[Finding]:
    """The certificate of the TLS listener."""
    certificate = serving.certificate_paths(host.settings)
    info = read_certificate(host.settings)
    ours = not host.settings.tls_cert and serving.is_replaceable(info)
    renew = RESTART if ours else f"renew {certificate.chain}, then: {RESTART}"
    if ours and not os.path.lexists(certificate.chain):
        yield warn(CODE, "there is none yet; the server creates it at its first start", start_command())
    elif info.problem:
        remedy = RESTART if ours else "set SVC_TLS_CERT and SVC_TLS_KEY to a certificate and its key"
        yield fail(CODE, info.problem, remedy)
    elif info.expires_at <= time.time():
        yield fail(CODE, f"{certificate.chain} expired on {serving.utc_date(info.expires_at)}", renew)
    elif info.expires_at - time.time() < serving.RENEW_S:
        yield warn(CODE, f"{certificate.chain} expires on {serving.utc_date(info.expires_at)}", renew)
    else:
        yield from _names(host, certificate.chain, ours, info.names)


def _names(host: Host, chain: str, ours: bool, named: tuple[str, ...]) -> Iterator[Finding]:
    """Whether the certificate covers the names that requests may use."""
    expected = (
        serving.public_names(host.settings) if ours else host_names.of_service(host.settings.public_hosts)
    )
    missing = [name for name in expected if not _covered(name, named)]
    if ours and missing:
        yield warn(CODE, f"{chain} does not name {', '.join(missing)}", RESTART)
    elif missing and (host.settings.public_hosts or len(missing) == len(expected)):
        # from a file that the service can write: no command for root to paste with anything but names
        named_alone = [name for name in named if HOST_NAME.fullmatch(name)]
        yield warn(
            CODE,
            f"{chain} is for {', '.join(named) or 'no name'}, requests may be for {', '.join(expected)}",
            f"set SVC_PUBLIC_HOSTS={','.join(named_alone) or 'NAME'} in /etc/svc/svc.env, then: {RESTART}",
        )
    else:
        yield ok(CODE, f"{chain} is for {', '.join(named)}")


def _covered(name: str, named: tuple[str, ...]) -> bool:
    """Whether a name or wildcard of the certificate covers this name; a wildcard stands for one label."""
    return name in named or f"*.{name.partition('.')[2]}" in named


def tls_key(host: Host) -> Iterator[Finding]:
    """Whether accounts that have nothing to do with it can read the administrator's key.

    The generated one is a file of the data directory, and checked there.
    """
    path = host.settings.tls_key if host.settings.is_valid("SVC_TLS_KEY") else ""
    if not path or os.geteuid() != 0 or not os.path.exists(path):
        return
    if not run_as(STRANGER, partial(os.access, path, os.R_OK), READ_S):
        yield ok("tls_key", f"other accounts cannot read {path}")
        return
    try:
        remedy = f"sudo chmod o= {shlex.quote(repair.resolved(path))}   (then renew it: others may know it)"
    except repair.UnsafeError as error:
        remedy = error.remedy
    yield fail("tls_key", f"every account of this host can read {path}", remedy)
