"""The provisioning helper: the resident helper's program with the root verbs, started by `svc admin`.

It takes the same configuration and serves one socket pair, `admin`.
"""

from __future__ import annotations

from svc_helper.provision.serve import ProvisioningServer
from svc_helper.root import __main__ as helper


def main() -> int:
    """Serve the pair until `svc admin` closes it; returns the exit code 0."""
    return helper.main(ProvisioningServer)
