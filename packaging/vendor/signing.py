"""What the vendor's tools have in common: key pairs, the form of signatures, passphrases."""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PASSPHRASE = "SVC_VENDOR_PASSPHRASE"
RAW = serialization.Encoding.Raw, serialization.PublicFormat.Raw


def canonical(value: dict[str, Any]) -> bytes:
    """The bytes that are signed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def key_id(public: Ed25519PublicKey) -> str:
    """The name of a public key in signed files."""
    return hashlib.sha256(public.public_bytes(*RAW)).hexdigest()[:16]


def passphrase() -> bytes | None:
    """That of the private key, from the environment; None without one."""
    return os.environ.get(PASSPHRASE, "").encode() or None


def keygen(args: argparse.Namespace) -> None:
    """Write a new private key; print the public key, a line for the file of public keys."""
    private = Ed25519PrivateKey.generate()
    secret = passphrase()
    encryption = serialization.BestAvailableEncryption(secret) if secret else serialization.NoEncryption()
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    with open(os.open(args.key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(pem)
    public = private.public_key()
    print(f"{base64.b64encode(public.public_bytes(*RAW)).decode()}  # {key_id(public)}")


def add_keygen(commands: Any) -> None:
    """Declare the command keygen."""
    each = commands.add_parser("keygen", help="make a key pair", description=keygen.__doc__)
    each.add_argument("key", type=Path, metavar="PRIVATE", help="the new file of the private key")
    each.set_defaults(command=keygen)


def private_key(path: Path) -> Ed25519PrivateKey:
    """The private key of a file; ValueError for a wrong passphrase."""
    private = serialization.load_pem_private_key(path.read_bytes(), passphrase())
    if not isinstance(private, Ed25519PrivateKey):
        raise SystemExit(f"{path}: this is no Ed25519 key")
    return private


def public_keys(path: Path) -> dict[str, Ed25519PublicKey]:
    """The public keys of a file, by name."""
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    keys = [Ed25519PublicKey.from_public_bytes(base64.b64decode(line)) for line in lines if line]
    return {key_id(key): key for key in keys}
