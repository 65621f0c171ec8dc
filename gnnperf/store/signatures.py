"""Whose a file is: signatures as `ssh-keygen -Y sign -n gnnperf-store -f KEY FILE` writes them, to FILE.sig.

Source: PROTOCOL.sshsig of OpenSSH.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from gnnperf.errors import InputError

NAMESPACE = "gnnperf-store"
"""What a signature is for: one for anything else, as git's, is not one for a store."""

_MAGIC, _VERSION = b"SSHSIG", 1
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_HASHES = ("sha256", "sha512")
_LONGEST = 1 << 16
_KIND = "ssh-ed25519"


def check_signature(path: Path, trusted: Path) -> str:
    """The comment of the key that signed the file; its signature is beside it, in `path` + ".sig".

    trusted: public keys of those who may, one a line, as in `~/.ssh/id_ed25519.pub`. Raises InputError where
    none of them signed what the file now holds.
    """
    keys = list(_trusted_keys(trusted))
    beside = path.with_name(f"{path.name}.sig")
    signer, namespace, algorithm, signature = _signature(beside)
    if namespace != NAMESPACE:
        _refuse(beside, f"expected a signature for {NAMESPACE}, got one for {ascii(namespace)[:60]}")
    found = next(((key, comment) for known, key, comment in keys if known == signer), None)
    if found is None:
        _refuse(path, f"expected a signature by a key of {trusted}, got one by another")
    key, comment = found
    signed = _MAGIC + _packed(namespace.encode(), b"", algorithm.encode(), _digest(path, algorithm))
    try:
        key.verify(signature, signed)
    except InvalidSignature:
        _refuse(path, f"it is not what was signed in {beside.name}")
    return comment


def _trusted_keys(path: Path) -> Iterator[tuple[bytes, Ed25519PublicKey, str]]:
    """(as in signatures, the key, its comment)."""
    lines = [line.strip() for line in _text(path).splitlines()]
    if not any(lines):
        _refuse(path, f"expected public keys, one a line, as `{_KIND} KEY COMMENT`, got none")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        _, encoded, comment = [*line.split(maxsplit=2), "", ""][:3]
        try:
            key = load_ssh_public_key(line.encode())
        except (UnsupportedAlgorithm, ValueError):
            key = None
        if not isinstance(key, Ed25519PublicKey):
            _refuse(path, f"line {number}: expected `{_KIND} KEY COMMENT`, got {line[:60]!a}")
        yield base64.b64decode(encoded), key, comment or f"line {number}"


def _signature(path: Path) -> tuple[bytes, str, str, bytes]:
    """(public key, namespace, name of the hash, signature)."""
    lines = _text(path).split()
    text = " ".join(lines)
    if not (text.startswith(_BEGIN) and text.endswith(_END)):
        _refuse(path, "expected what `ssh-keygen -Y sign` writes, got another file")
    try:
        blob = base64.b64decode("".join(text[len(_BEGIN) : -len(_END)].split()), validate=True)
        if blob[:6] != _MAGIC or struct.unpack(">I", blob[6:10]) != (_VERSION,):
            raise ValueError("not of version 1")
        key, namespace, _, algorithm, signature = _unpacked(blob[10:], 5)
        kind, raw = _unpacked(signature, 2)
        names = namespace.decode("ascii"), algorithm.decode("ascii")
    except (binascii.Error, struct.error, ValueError):
        _refuse(path, "the signature is damaged; sign the file again")
    if kind != _KIND.encode() or names[1] not in _HASHES:
        _refuse(
            path, f"expected a signature by a key of kind {_KIND}, got {ascii(kind.decode('latin1'))[:60]}"
        )
    return key, *names, raw


def _packed(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def _unpacked(blob: bytes, count: int) -> Sequence[bytes]:
    """Raises ValueError where it is not made of so many parts."""
    parts = []
    for _ in range(count):
        (length,) = struct.unpack(">I", blob[:4])
        if length > len(blob) - 4:
            raise ValueError("cut short")
        parts.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    if blob:
        raise ValueError("too long")
    return parts


def _digest(path: Path, algorithm: str) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, algorithm).digest()
    except OSError as error:
        _refuse(path, f"cannot be read: {error.strerror}")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST).decode("ascii", "replace")
    except OSError as error:
        _refuse(path, f"cannot be read: {error.strerror}; see `gnnperf store import --help`")


def _refuse(path: Path, why: str) -> NoReturn:
    raise InputError(f"{path}: {why}; nothing was imported")
