"""Signatures in the format of minisign: Ed25519 over BLAKE2b-512, in files of text.

Only the safe form is accepted: prehashed signatures with a signed trusted comment. Ed25519 itself
is the package ``cryptography``'s.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import struct
from dataclasses import dataclass
from typing import Any

from culaunch._base.optional import optional

SUFFIX = ".minisig"
_PUBLIC_KEY = struct.Struct("<2s8s32s")
# The algorithm, the key's encryption, the checksum, a salt and two limits of the encryption. Then
# the key's number, the seed with the public key, and the checksum.
_SECRET_KEY = struct.Struct("<2s2s2s32sQQ8s64s32s")
_SIGNATURE = struct.Struct("<2s8s64s")


class SignatureError(Exception):
    """A signature that is missing, malformed, from another key, or for other bytes."""


@dataclass(frozen=True)
class PublicKey:
    """A public key, which checks signatures."""

    number: bytes
    """Which key it is, 8 bytes."""
    point: bytes

    @classmethod
    def read(cls, given: str) -> PublicKey:
        """Read a key in minisign's format, or the path of its file (``minisign.pub``).

        Raises
        ------
        ValueError
            If it is neither.
        OSError
            If it is the path of no file that can be read.
        """
        line = given if _is_key(given) else _second_line(given)
        try:
            algorithm, number, point = _PUBLIC_KEY.unpack(base64.b64decode(line, validate=True))
        except (binascii.Error, ValueError, struct.error):
            algorithm = b""
        if algorithm != b"Ed":
            raise ValueError(f"{given!r} is neither a minisign public key nor a file with one")
        return cls(number, point)

    def verify(self, data: bytes, signature: bytes) -> None:
        """Raise SignatureError unless a file is a signature of these bytes by this key."""
        head, sealed, comment = _taken_apart(signature)
        if head[1] != self.number:
            raise SignatureError("is signed by another key")
        ed25519 = _ed25519()
        key = ed25519.Ed25519PublicKey.from_public_bytes(self.point)
        try:
            # Two signatures: one of the bytes, one of the first signature together with the
            # comment. Therefore neither can be combined with another.
            key.verify(head[2], hashlib.blake2b(data).digest())
            key.verify(sealed, head[2] + comment)
        except optional("cryptography.exceptions", *_WHY).InvalidSignature:
            raise SignatureError("has a signature that does not match its bytes") from None


@dataclass(frozen=True, repr=False)
class SecretKey:
    """A secret key, which makes signatures."""

    number: bytes
    seed: bytes

    @classmethod
    def open(cls, path: str) -> SecretKey:
        """Read a key file of minisign without a password (``minisign -G -W``).

        Raises
        ------
        ValueError
            If it is not a key file, or is damaged or encrypted.
        OSError
            If reading fails.
        """
        try:
            fields = _SECRET_KEY.unpack(base64.b64decode(_second_line(path), validate=True))
        except (binascii.Error, struct.error):
            raise ValueError(f"{path!r} is not a minisign secret key") from None
        algorithm, encryption, _, _, _, _, number, seed, checksum = fields
        if algorithm != b"Ed":
            raise ValueError(f"{path!r} is not a minisign secret key")
        if encryption != b"\0\0":
            raise ValueError(
                f"the secret key {path!r} has a password; make one without: minisign -G -W"
            )
        found = hashlib.blake2b(algorithm + number + seed, digest_size=32).digest()
        # Compare in constant time, as for all secrets.
        if not hmac.compare_digest(found, checksum):
            raise ValueError(f"the secret key {path!r} is damaged")
        return cls(number, seed[:32])

    def sign(self, data: bytes, comment: str) -> bytes:
        """Return the signature file for some bytes. The comment is signed, too."""
        key = _ed25519().Ed25519PrivateKey.from_private_bytes(self.seed)
        signature = key.sign(hashlib.blake2b(data).digest())
        trusted = comment.encode()
        sealed = key.sign(signature + trusted)
        head = _SIGNATURE.pack(b"ED", self.number, signature)
        return b"".join(
            [
                b"untrusted comment: signature of a culaunch cache entry\n",
                base64.b64encode(head),
                b"\ntrusted comment: " + trusted + b"\n",
                base64.b64encode(sealed),
                b"\n",
            ]
        )


def verify_any(keys: tuple[PublicKey, ...], data: bytes, signature: bytes) -> None:
    """Raise SignatureError unless one of the keys signed these bytes."""
    head, _, _ = _taken_apart(signature)
    for key in keys:
        if key.number == head[1]:
            return key.verify(data, signature)
    raise SignatureError("is signed by a key that is not trusted here")


def _taken_apart(signature: bytes) -> tuple[tuple[bytes, bytes, bytes], bytes, bytes]:
    lines = signature.split(b"\n")
    if len(signature) > 4096 or len(lines) < 4 or not lines[2].startswith(b"trusted comment: "):
        raise SignatureError("does not have a minisign signature")
    try:
        head = _SIGNATURE.unpack(base64.b64decode(lines[1], validate=True))
        sealed = base64.b64decode(lines[3], validate=True)
    except (binascii.Error, struct.error):
        raise SignatureError("does not have a minisign signature") from None
    # "Ed" signs the bytes themselves, and "ED" their digest. minisign has written the latter since
    # version 0.8.
    if head[0] != b"ED":
        raise SignatureError("has a signature in the old form, which is not accepted")
    return head, sealed, lines[2].removeprefix(b"trusted comment: ")


def _is_key(text: str) -> bool:
    # 42 bytes that begin with "Ed".
    return len(text) == 56 and text.startswith("RW")


def _second_line(path: str) -> str:
    with open(os.fsdecode(path), encoding="ascii", errors="replace") as file:
        lines = file.read(4096).splitlines()
    return lines[1] if len(lines) > 1 else ""


_WHY = ("a cache with signatures", "cryptography")


def _ed25519() -> Any:
    return optional("cryptography.hazmat.primitives.asymmetric.ed25519", *_WHY)
