"""The host's login for a private registry, where the user has none: the user's own goes first.

Root writes the file, in the form of containers-auth.json(5), and only this user may read it.
"""

from __future__ import annotations

import json
import os

from svc_helper.agent import user_files
from svc_helper.agent.home import Home
from svc_helper.wire.quick_typing import Any

_FILE_MAX = 256 * 1024


def find(home: Home, image: str) -> str:
    """The path of the host's logins if one of them is for this image; empty for none."""
    path = os.path.join(os.path.dirname(home.registries), "registry-logins", home.user)
    host = image.partition("/")[0]
    own = (f"{home.runtime}/containers/auth.json", f"{home.home}/.docker/config.json")
    if host not in read(path) or any(_is_for(host, key) for file in own for key in read(file)):
        return ""
    return path


def header(path: str, image: str) -> str:
    """The value of X-Registry-Auth for a pull with these logins; empty for no path."""
    if not path:
        return ""
    from binascii import a2b_base64, b2a_base64

    username, _, password = a2b_base64(read(path)[image.partition("/")[0]]["auth"]).decode().partition(":")
    value = json.dumps({"username": username, "password": password}).encode()
    return b2a_base64(value, newline=False).decode().replace("+", "-").replace("/", "_")


def read(path: str) -> dict[str, Any]:
    """The logins of a file by registry; none where it is missing or not valid."""
    try:
        document = json.loads(user_files.read(path, _FILE_MAX))
    except (OSError, ValueError, RecursionError):
        return {}
    found: dict[str, Any] = {}
    for key in ("auths", "credHelpers"):
        value = document.get(key) if isinstance(document, dict) else None
        found |= value if isinstance(value, dict) else {}
    return found


def _is_for(host: str, key: str) -> bool:
    """Whether a login is for the host, or for a part of it."""
    return key == host or key.startswith(f"{host}/")
