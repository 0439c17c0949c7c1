"""Public keys of the vendor, baked in when svc is built (setup.py reads packaging/vendor/*-keys).

A checkout has none, and a build of a tree whose files name none: "this build has no licence key".
"""

from __future__ import annotations


def license_keys() -> tuple[bytes, ...]:
    """The Ed25519 public keys (32 bytes each) with which a licence may be signed."""
    try:
        from svc._build import LICENSE_KEYS  # written by setup.py when svc is built
    except ImportError:
        return ()
    return tuple(bytes.fromhex(key) for key in LICENSE_KEYS)


def release_keys() -> tuple[bytes, ...]:
    """The Ed25519 public keys (32 bytes each) with which a release may be signed."""
    try:
        from svc._build import RELEASE_KEYS
    except ImportError:
        return ()
    return tuple(bytes.fromhex(key) for key in RELEASE_KEYS)
