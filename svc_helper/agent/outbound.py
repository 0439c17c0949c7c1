"""The proxy and the private authorities of pulls and builds, as the server's settings have them.

Root writes the file beside the registry policy. The variables are those that Podman, skopeo and
the programs of a build understand; containers of workspaces do not get them.
"""

from __future__ import annotations

from svc_helper.agent import user_files
from svc_helper.wire import quick_json

FILE = "outbound.json"
_FILE_MAX = 64 * 1024


def variables(directory: str) -> dict[str, str]:
    """The environment variables for Podman; none where nothing is set."""
    try:
        found = quick_json.loads(user_files.read(f"{directory}/{FILE}", _FILE_MAX).decode())
    except (OSError, ValueError):
        return {}
    proxy, no_proxy, ca_file = (str(found.get(name) or "") for name in ("proxy", "no_proxy", "ca_file"))
    values = {}
    if proxy:
        values = {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": no_proxy}
        values |= {name.upper(): value for name, value in values.items()}
    if ca_file:  # instead of the host's bundle; the host's directory of certificates counts too
        values["SSL_CERT_FILE"] = ca_file
    return values
