"""Entries that are signed: minisign's format, and what is refused."""

import base64
from pathlib import Path

import pytest

import culaunch as cl
from culaunch._cache.remote.minisign import PublicKey, SecretKey, SignatureError, verify_any

pytestmark = pytest.mark.needs("cryptography", "fsspec")

# Made by minisign itself, of the bytes "test" (the documentation of minisign-verify).
MINISIGN_KEY = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
MINISIGN_SIGNATURE = (
    b"untrusted comment: signature from minisign secret key\n"
    b"RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8"
    b"KLzZwo=\n"
    b"trusted comment: timestamp:1556193335\tfile:test\n"
    b"y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==\n"
)


def test_a_signature_that_minisign_made():
    key = PublicKey.read(MINISIGN_KEY)
    key.verify(b"test", MINISIGN_SIGNATURE)
    with pytest.raises(SignatureError, match="does not match its bytes"):
        key.verify(b"Test", MINISIGN_SIGNATURE)
    with pytest.raises(SignatureError, match="does not match its bytes"):
        key.verify(b"test", MINISIGN_SIGNATURE.replace(b"file:test", b"file:text"))


def test_every_flipped_bit_is_noticed(key_pair):
    path, public = key_pair()
    signature = SecretKey.open(path).sign(b"data", "file:name")
    key = PublicKey.read(public)
    key.verify(b"data", signature)
    start = signature.index(b"\n") + 1  # the first comment is nobody's
    for index in range(start, len(signature) - 1):
        for bit in (1, 32):
            wrong = bytearray(signature)
            wrong[index] ^= bit
            with pytest.raises(SignatureError):
                key.verify(b"data", bytes(wrong))


def test_what_is_no_signature(key_pair):
    key = PublicKey.read(key_pair()[1])
    old = base64.b64encode(b"Ed" + key.number + bytes(64))
    for wrong in (
        b"", b"\n\n\n", b"a\nb\ntrusted comment: \nc\n", bytes(5000), MINISIGN_SIGNATURE[:150],
        b"untrusted comment: \n" + old + b"\ntrusted comment: x\n" + old + b"\n",
    ):  # fmt: skip
        with pytest.raises(SignatureError):
            key.verify(b"data", wrong)
        with pytest.raises(SignatureError):
            verify_any((key,), b"data", wrong)


def test_signed_entries_are_taken_and_no_others(shared, machine, image, key, key_pair):
    secret, public = key_pair("ours")
    _, other_public = key_pair("theirs")
    first = machine(shared, keys=public, signing_key=secret)
    first.get_or_make(key(1), lambda: image(1))
    assert first.remote.flush()
    believes = machine(shared, keys=[other_public, public])
    assert believes.get_or_make(key(1), lambda: image(9)) == image(1)
    stranger = machine(shared, keys=other_public)
    with pytest.warns(cl.CacheWarning, match="signed by a key that is not trusted here; compiling"):
        assert stranger.get_or_make(key(1), lambda: image(9)) == image(9)
    careless = machine(shared)
    assert careless.get_or_make(key(1), lambda: image(9)) == image(1)


def test_what_is_not_signed_is_not_taken(shared, machine, image, key, key_pair, never):
    _, public = key_pair()
    careless = machine(shared)
    careless.get_or_make(key(1), lambda: image(1))
    assert careless.remote.flush()
    careful = machine(shared, keys=public)
    with pytest.warns(cl.CacheWarning, match="is not signed; compiling again"):
        assert careful.get_or_make(key(1), lambda: image(2)) == image(2)
    # It writes nothing that it would not accept itself.
    assert not careful._server.is_written
    with pytest.raises(PermissionError, match="read-only"):
        careful.push()


def test_a_signature_of_another_entry(shared, machine, image, key, key_pair):
    secret, public = key_pair()
    first = machine(shared, keys=public, signing_key=secret)
    for number in (1, 2):
        first.get_or_make(key(number), lambda number=number: image(number))
    assert first.remote.flush()
    folder = Path(shared.removeprefix("file://")) / "00"
    for suffix in (".entry", ".entry.minisig"):
        (folder / f"{key(2)}{suffix}").replace(folder / f"{key(1)}{suffix}")
    second = machine(shared, keys=public)
    with pytest.warns(cl.CacheWarning, match="does not match its SHA-256; compiling again"):
        assert second.get_or_make(key(1), lambda: image(1)) == image(1)


def test_keys_that_are_none(key_pair, tmp_path):
    path, public = key_pair()
    with pytest.raises(ValueError, match=r"has a password; make one without: minisign -G -W"):
        SecretKey.open(key_pair("locked", encryption=b"Sc")[0])
    text = Path(path).read_text()
    for wrong in (text[:60], "", "a\nb\n", text.replace("RWQAAEIy", "RWRAAEIy")):
        (tmp_path / "wrong").write_text(wrong)
        with pytest.raises(ValueError, match=r"not a minisign secret key|damaged|has a password"):
            SecretKey.open(str(tmp_path / "wrong"))
    damaged = bytearray(base64.b64decode(text.splitlines()[1]))
    damaged[80] ^= 1
    (tmp_path / "wrong").write_text("c\n" + base64.b64encode(damaged).decode())
    with pytest.raises(ValueError, match="is damaged"):
        SecretKey.open(str(tmp_path / "wrong"))
    (tmp_path / "minisign.pub").write_text(f"untrusted comment: x\n{public}\n")
    assert PublicKey.read(str(tmp_path / "minisign.pub")) == PublicKey.read(public)
