"""Helpers of the tests of remote caches: images that cost nothing, keys, machines."""

import os
import sys
from pathlib import Path

import pytest

import culaunch as cl

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def image():
    """Make an image without a compiler: PTX with a number in it."""
    return lambda number=0: cl.Image(
        f".version 8.0\n// {number}\n".encode(), names={"k": f"k{number}"}
    )


@pytest.fixture
def key():
    return lambda number: f"{number:064x}"


@pytest.fixture
def never():
    """A function that a cache must not call."""

    def make():
        raise AssertionError("it was compiled")

    return make


@pytest.fixture
def machine(tmp_path):
    """Make the caches of several machines behind which there is one remote cache."""
    count = 0

    def make(remote, **more):
        nonlocal count
        count += 1
        if isinstance(remote, str):
            remote = cl.cache.RemoteCache(remote, **more)
        return cl.cache.Cache(tmp_path / f"machine{count}", remote=remote)

    return make


@pytest.fixture
def shared(tmp_path):
    """The URL of a directory that all machines see."""
    pytest.importorskip("fsspec")
    return f"file://{tmp_path}/shared"


@pytest.fixture
def bad():
    """File systems that misbehave."""
    pytest.importorskip("fsspec")
    import servers

    servers.register()
    servers.clear()
    yield servers
    servers.clear()


@pytest.fixture
def key_pair(tmp_path):
    """Make key pairs of minisign: the path of the secret key, and the public one as text."""
    return lambda name="key", **more: write_key_pair(tmp_path, name, **more)


def write_key_pair(folder, name, encryption=b"\0\0"):
    import base64
    import hashlib

    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    secret = ed25519.Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())
    number = hashlib.sha256(b"number" + name.encode()).digest()[:8]
    point = secret.public_key().public_bytes_raw()
    seed = secret.private_bytes_raw() + point
    checksum = hashlib.blake2b(b"Ed" + number + seed, digest_size=32).digest()
    data = b"Ed" + encryption + b"B2" + bytes(48) + number + seed + checksum
    path = folder / f"{name}.key"
    path.write_text("untrusted comment: a key\n" + base64.b64encode(data).decode() + "\n")
    os.chmod(path, 0o600)
    return str(path), base64.b64encode(b"Ed" + number + point).decode()
