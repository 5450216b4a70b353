"""The digest of Triton's own files is computed once for all processes, and never used for other
files."""

import functools
import os
from types import SimpleNamespace

import pytest

from culaunch._triton.upstream import compiler_digest


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """An installation of Triton whose digest counts how often it was worked out."""
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path / "cache"))
    package = tmp_path / "triton"
    for part in ("compiler", "backends/nvidia", "language", "runtime", "_C"):
        (package / part).mkdir(parents=True)
        (package / part / "a.py").write_text("1")
    (package / "_C" / "libtriton.so").write_bytes(b"code")
    holders = {}

    def module(name=""):
        if not name:
            return SimpleNamespace(__file__=str(package / "__init__.py"), __version__="3.6.0")
        if name not in holders:
            raise ImportError(name)
        return holders[name]

    def process(**more):
        """Begin a new process, as far as Triton and the digest know."""

        @functools.lru_cache
        def triton_key():
            made.counted += 1
            return (package / "_C" / "libtriton.so").read_text()

        compiler_digest._digest.cache_clear()
        holders.clear()
        holders["runtime.cache"] = SimpleNamespace(triton_key=triton_key, **more)
        return holders["runtime.cache"]

    monkeypatch.setattr(compiler_digest, "triton_module", module)
    made = SimpleNamespace(package=package, process=process, counted=0)
    yield made
    compiler_digest._digest.cache_clear()


def said(cache):
    original = cache.triton_key
    with compiler_digest.known_compiler():
        value = cache.triton_key()
        with compiler_digest.known_compiler():
            assert cache.triton_key() == value
    assert cache.triton_key is original  # nothing is left behind
    return value


def test_it_is_worked_out_once(fake):
    assert said(fake.process()) == "code"
    assert fake.counted == 1
    for _ in range(3):
        assert said(fake.process()) == "code"
    assert fake.counted == 1


@pytest.mark.parametrize("file", ["_C/libtriton.so", "backends/nvidia/a.py", "language/new.py"])
def test_other_files_are_another_compiler(fake, file):
    said(fake.process())
    place = fake.package / file
    before = place.stat() if place.exists() else None
    place.write_bytes(b"edoc")  # as long as before
    if before is not None:
        os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert said(fake.process()) == ("edoc" if file.startswith("_C") else "code")
    assert fake.counted == 2


def test_a_damaged_note_and_no_cache_cost_the_work_alone(fake, monkeypatch, tmp_path):
    said(fake.process())
    (note,) = (tmp_path / "cache").glob("*.note")
    note.write_bytes(b"junk")
    assert said(fake.process()) == "code"
    assert fake.counted == 2
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", "/proc/none")
    assert said(fake.process()) == "code"
    assert fake.counted == 3


def test_a_function_of_another_kind_is_left_alone(fake):
    cache = fake.process()
    cache.triton_key = lambda: "own"
    assert said(cache) == "own"
    cache = fake.process()
    cache.triton_key()  # it is known in this process already
    assert said(cache) == "code"


@pytest.mark.needs("triton")
def test_tritons_own_function_is_found():
    """The digest of the installed version."""
    compiler_digest._digest.cache_clear()
    holders = [one for one in compiler_digest._modules() if hasattr(one, "triton_key")]
    assert holders
    assert hasattr(holders[0].triton_key, "cache_info")
    assert len(compiler_digest._state_of_files()) == 64
