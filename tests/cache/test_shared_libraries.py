"""Libraries of load_inline behind a remote cache, and shipped: code, which has to be signed."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

import culaunch as cl
from culaunch._cache import entry, libraries, note
from culaunch._cache.remote import minisign, shared_libraries

signed = pytest.mark.needs("cryptography", "fsspec")
KEY = hashlib.sha256(b"the sources").hexdigest()


class Reads:
    """The inputs of a build: one number, which stands for the headers of this machine."""

    headers = 1

    def __init__(self, number):
        self.number = number

    @property
    def state(self):
        return hashlib.sha256(str(self.number).encode()).hexdigest()

    def is_current(self):
        return self.number == Reads.headers

    def as_json(self):
        return self.number


@pytest.fixture(autouse=True)
def _headers():
    Reads.headers = 1


@pytest.fixture
def on(tmp_path, monkeypatch):
    """Use a machine: build a library there, or find it; say what was compiled."""

    def use(machine, url=None, keys="", signing_key="", content=b"ELF", bundles=""):
        monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path / machine))
        monkeypatch.setenv("CULAUNCH_CACHE_REMOTE", url or "")
        monkeypatch.setenv("CULAUNCH_CACHE_REMOTE_KEYS", keys)
        monkeypatch.setenv("CULAUNCH_CACHE_REMOTE_SIGNING_KEY", signing_key)
        monkeypatch.setenv("CULAUNCH_CACHE_BUNDLES", str(bundles))
        compiled = []

        def build(place):
            path = os.path.join(place, "lib.so")
            with open(path, "wb") as file:
                file.write(content)
            compiled.append(content)
            return path, Reads(Reads.headers)

        here = libraries.Libraries.at(None, "lib", KEY, Reads)
        found = here.find() or here.build(build)
        if here.server is not None:
            assert here.server.flush(20)
        with open(found.path, "rb") as file:
            assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) in (0o600, 0o644)
            return file.read(), len(compiled)

    return use


def files(shared):
    folder = shared.removeprefix("file://")
    return {name: os.path.join(at, name) for at, _, names in os.walk(folder) for name in names}


@signed
def test_what_is_signed_is_built_once(on, shared, key_pair):
    secret, public = key_pair()
    assert on("one", shared, public, secret) == (b"ELF", 1)
    name = f"{shared_libraries.digits_of(f'lib-{KEY[:32]}')}.library"
    assert sorted(files(shared)) == [name, f"{name}.minisig"]
    assert on("two", shared, public, content=b"other") == (b"ELF", 0)
    assert on("two", content=b"other") == (b"ELF", 0), "and is kept on that machine"


@signed
def test_without_keys_nothing_is_asked_and_nothing_written(on, shared, key_pair):
    secret, public = key_pair()
    assert on("one", shared) == (b"ELF", 1)
    assert files(shared) == {}, "no digest is enough for code"
    assert on("one-more", shared, public) == (b"ELF", 1)
    assert files(shared) == {}, "whoever has no secret key cannot sign"
    assert on("two", shared, public, secret) == (b"ELF", 1)
    assert on("three", shared, content=b"other") == (b"other", 1), "it is there, and not believed"


@signed
def test_what_is_not_signed_by_a_trusted_key_is_not_taken(on, shared, key_pair):
    _, public = key_pair("ours")
    other_secret, other_public = key_pair("theirs")
    on("one", shared, other_public, other_secret)
    with pytest.warns(cl.CacheWarning, match="signed by a key that is not trusted here"):
        assert on("two", shared, public, content=b"mine") == (b"mine", 1)
    (signature,) = (path for name, path in files(shared).items() if name.endswith(".minisig"))
    os.unlink(signature)
    with pytest.warns(cl.CacheWarning, match="is not signed; compiling again"):
        assert on("three", shared, other_public, content=b"mine") == (b"mine", 1)


@signed
@pytest.mark.parametrize("change", ["a byte", "an image", "another library", "its end"])
def test_what_was_changed_or_exchanged_is_not_taken(change, on, shared, key_pair, image):
    secret, public = key_pair()
    on("one", shared, public, secret)
    there = files(shared)
    (path,) = (path for name, path in there.items() if name.endswith(".library"))
    data = Path(path).read_bytes()
    digits = os.path.basename(path).removesuffix(".library")
    key = minisign.SecretKey.open(secret)
    if change == "a byte":
        wrong, match = data[:-1] + b"X", "does not match its bytes"
    elif change == "its end":
        wrong, match = data[:-1], "does not match its bytes"
    elif change == "an image":  # of the same digits, and signed
        wrong, match = entry.pack_entry(digits, {}, b"ELF"), "does not match its SHA-256"
    else:  # that was signed in its own right
        other = shared_libraries.SharedLibrary(
            f"lib-{'0' * 32}", f"lib-{'0' * 16}", b"bad", note_of(b"bad")
        )
        wrong, match = other.packed(), "does not match its SHA-256"
    Path(path).write_bytes(wrong)
    if match != "does not match its bytes":
        Path(f"{path}.minisig").write_bytes(key.sign(wrong, "file:x"))
    with pytest.warns(cl.CacheWarning, match=match):
        assert on("two", shared, public, content=b"mine") == (b"mine", 1)


def note_of(content, reads=1):
    return note.Note(hashlib.sha256(content).hexdigest(), reads)


@signed
def test_other_headers_are_another_library(on, shared, key_pair):
    secret, public = key_pair()
    on("one", shared, public, secret)
    Reads.headers = 2
    assert on("two", shared, public, secret, content=b"newer") == (b"newer", 1)
    assert on("three", shared, public, content=b"mine") == (b"newer", 0), "the last one is there"
    Reads.headers = 1
    assert on("four", shared, public, content=b"mine") == (b"mine", 1)


def test_another_platform_and_entries_that_mean_nothing(monkeypatch):
    folder, stem = f"lib-{'1' * 32}", f"lib-{'2' * 16}"
    one = shared_libraries.SharedLibrary(folder, stem, b"ELF", note_of(b"ELF"))
    digits = shared_libraries.digits_of(folder)
    assert shared_libraries.SharedLibrary.unpack(digits, one.packed()) == one
    monkeypatch.setattr(shared_libraries, "platform", lambda: "linux other")
    assert shared_libraries.digits_of(folder) != digits
    monkeypatch.undo()
    good = {
        "platform": shared_libraries.platform(), "folder": folder, "stem": stem, "reads": 1,
        "result": hashlib.sha256(b"ELF").hexdigest(),
    }  # fmt: skip

    def unpacked(data=b"ELF", **changed):
        metadata = {name: one for name, one in {**good, **changed}.items() if one != "none"}
        return shared_libraries.SharedLibrary.unpack(
            digits, entry.pack_entry(f"library {digits}", metadata, data)
        )

    assert unpacked() == one
    assert unpacked(platform="linux other") is None
    wrong = [{"folder": f"../{folder}"}, {"stem": "../../x"}, {"folder": 3}, {"result": "none"}]
    wrong += [{"stem": f"{stem}/x"}, {"folder": f"lib-{'3' * 32}"}, {"result": "0" * 64}]
    for changed in wrong:
        with pytest.raises(entry.BadEntryError):
            unpacked(**changed)
    with pytest.raises(entry.BadEntryError, match="its name and its note"):
        unpacked(b"other")


@signed
def test_push_and_pull(on, shared, key_pair, tmp_path):
    secret, public = key_pair()
    assert on("one") == (b"ELF", 1)
    one, two = cl.cache.Cache(tmp_path / "one", remote=False), tmp_path / "two"
    assert one.path == str(tmp_path / "one")
    unsigned = cl.cache.Cache(one.path, remote=cl.cache.RemoteCache(shared))
    assert unsigned.push() == 0
    signing = cl.cache.Cache(
        one.path, remote=cl.cache.RemoteCache(shared, signing_key=secret, keys=public)
    )
    assert signing.push() == 1
    assert signing.push() == 0
    assert cl.cache.Cache(two, remote=cl.cache.RemoteCache(shared)).pull() == 0
    believing = cl.cache.Cache(two, remote=cl.cache.RemoteCache(shared, keys=public))
    assert believing.pull() == 1
    assert believing.pull() == 0
    assert believing.info().libraries == 1
    assert believing.verify() == []
    assert on("two", content=b"other") == (b"ELF", 0)


def test_a_bundle_has_libraries(on, tmp_path, monkeypatch):
    record = tmp_path / "record"
    monkeypatch.setenv("CULAUNCH_CACHE_RECORD", str(record))
    assert on("one") == (b"ELF", 1)
    assert record.read_text().startswith(f"inline/lib-{KEY[:32]}/lib-")
    shipped = tmp_path / "shipped"
    assert cl.cache.Cache(tmp_path / "one").bundle(shipped, record) == 1
    for at, _, names in os.walk(shipped):
        for name in names:
            assert stat.S_IMODE(os.stat(os.path.join(at, name)).st_mode) == 0o644
    assert on("fresh", bundles=shipped, content=b"other") == (b"ELF", 0)
    assert not (tmp_path / "fresh" / "inline").exists()
    # A program that used a shipped entry can pack it again.
    assert (
        cl.cache.Cache(tmp_path / "fresh", bundles=shipped).bundle(tmp_path / "again", record) == 1
    )
    Reads.headers = 2
    assert on("fresh", bundles=shipped, content=b"newer") == (b"newer", 1)
    (library,) = (tmp_path / "again").rglob("*.so")
    library.write_bytes(b"changed")
    Reads.headers = 1
    assert on("other", bundles=tmp_path / "again", content=b"mine") == (b"mine", 1)


COMPILER = """#!/bin/sh
echo "$@" >> '{log}'
case "$STOP $*" in yes*" -c "*) exit 1;; esac
exec g++ "$@"
"""
PROGRAM = """
import culaunch as cl
module = cl.cpp.load_inline(
    "seven", "int seven() { return 7; }", functions="seven", flags=["-O0"]
)
assert module.seven() == 7
"""


@pytest.mark.slow
@pytest.mark.needs("cryptography", "fsspec", "tvm_ffi", "g++")
def test_load_inline_on_two_machines(run_after_torch, tmp_path, shared, key_pair):
    secret, public = key_pair()
    compiler, log = tmp_path / "compiler", tmp_path / "log"
    compiler.write_text(COMPILER.format(log=log))
    compiler.chmod(0o755)

    def compiles(machine, *, code=0, **more):
        """Run the program on a machine; tell whether its compiler was asked for an object."""
        log.write_text("")
        environment = {
            **os.environ,
            "CXX": str(compiler),
            "CULAUNCH_CACHE_DIR": str(tmp_path / machine),
            "CULAUNCH_CACHE_REMOTE": shared,
            "CULAUNCH_CACHE_REMOTE_TIMEOUT": "30",
            **more,
        }
        done = run_after_torch(["-c", PROGRAM], env=environment)
        assert done.returncode == code, done.stderr
        assert code or done.stderr == ""
        return " -c " in log.read_text()

    keys = {"CULAUNCH_CACHE_REMOTE_KEYS": public}
    assert compiles("one", CULAUNCH_CACHE_REMOTE_SIGNING_KEY=secret, **keys)
    assert not compiles("two", **keys)
    assert compiles("three", code=1, STOP="yes")
    assert not compiles("four", CULAUNCH_CACHE_RECORD=str(tmp_path / "record"), **keys)
    four = cl.cache.Cache(tmp_path / "four")
    assert four.bundle(tmp_path / "shipped", tmp_path / "record") == 1
    shipped = {"CULAUNCH_CACHE_BUNDLES": str(tmp_path / "shipped"), "CULAUNCH_CACHE_REMOTE": ""}
    assert not compiles("five", **shipped)
