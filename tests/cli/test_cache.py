"""``culaunch cache``."""

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from entry_bytes import entry_of

import culaunch as cl


@pytest.fixture
def cache(tmp_path):
    cache = cl.cache.Cache(tmp_path / "cache")
    for number in range(3):
        cache.store(f"{number:064x}", cl.Image(f".version 8.0\n// {number}\n".encode()))
    return cache


@pytest.fixture
def culaunch(cache):
    environment = {**os.environ, "CULAUNCH_CACHE_DIR": cache.path}
    environment["CULAUNCH_CACHE_MAX_SIZE"] = "64M"
    environment["CULAUNCH_CACHE_BUNDLES"] = "/shipped"

    def run(*arguments, code=0):
        command = [sys.executable, "-m", "culaunch", "cache", *arguments]
        result = subprocess.run(
            command, check=False, capture_output=True, text=True, env=environment
        )
        assert result.returncode == code, result.stderr
        return result.stdout

    return run


@pytest.mark.slow
def test_path(culaunch, cache):
    assert culaunch("path") == f"{cache.path}\n"


@pytest.mark.slow
def test_info(culaunch, cache):
    lines = dict(line.split(None, 1) for line in culaunch("info").splitlines())
    assert lines["path"] == cache.path
    assert lines["usable"] == "yes"
    assert lines["entries"] == "3"
    assert lines["size"] == f"{cache.info().size} bytes of at most 64.0 MiB"
    assert lines["bundle"] == "/shipped"


@pytest.mark.slow
def test_info_says_why_a_cache_is_not_used(culaunch, cache):
    Path(cache.path).chmod(0o770)
    assert "usable     no: other users may write to it" in culaunch("info", code=1)


@pytest.mark.slow
def test_info_as_json(culaunch, cache):
    found = json.loads(culaunch("info", "--json"))
    assert found == {**dataclasses.asdict(cache.info()), "max_bytes": 64 << 20} | {
        "bundles": ["/shipped"]
    }
    Path(cache.path).chmod(0o770)
    found = json.loads(culaunch("info", "--json", code=1))
    assert found.pop("reason")
    assert found == {
        "path": cache.path, "usable": False, "entries": 0, "size": 0, "max_bytes": 64 << 20,
        "bundles": ["/shipped"], "libraries": 0, "leftovers": 0, "remote": "",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["verify", "clear"])
def test_a_directory_that_cannot_be_used_is_an_error(culaunch, cache, verb):
    Path(cache.path).chmod(0o770)
    assert culaunch(verb, code=1) == ""


@pytest.mark.slow
def test_libraries_of_load_inline_are_entries(culaunch, cache):
    folder = Path(cache.path, "inline", "m-0123")
    folder.mkdir(parents=True)
    (folder / "m-1.so").write_bytes(b"library")
    note = {"result": hashlib.sha256(b"library").hexdigest(), "reads": []}
    (folder / "m-1.note").write_bytes(entry_of("m-0123/m-1", note))
    (folder / ".tmp-1-dead").write_bytes(b"half")
    (folder / "m.cpp").write_text("its source")
    lines = dict(line.split(None, 1) for line in culaunch("info").splitlines())
    assert lines["entries"] == "4 (1 of load_inline)"
    assert lines["size"].endswith("MiB, 1 unfinished file")
    assert culaunch("verify") == "4 entries, 0 bad\n"
    (folder / "m-1.so").write_bytes(b"librarx")
    said = culaunch("verify", "--drop", code=1)
    assert said == f"bad: {folder}/m-1.so (removed)\n3 entries, 1 bad\n"
    assert not (folder / "m.cpp").exists()
    (folder.parent / "n").mkdir()
    (folder.parent / "n" / "n-1.so").write_bytes(b"without a record")
    assert culaunch("clear") == f"removed 4 entries from {cache.path}\n"
    assert list(Path(cache.path).rglob("*.so")) == list(Path(cache.path).rglob(".tmp-*")) == []


@pytest.mark.slow
def test_verify(culaunch, cache):
    assert culaunch("verify") == "3 entries, 0 bad\n"
    bad = Path(cache.path, f"{1:064x}.entry")
    bad.write_bytes(bad.read_bytes()[:-1])
    assert culaunch("verify", code=1) == f"bad: {bad}\n3 entries, 1 bad\n"
    assert culaunch("verify", "--drop", code=1) == f"bad: {bad} (removed)\n2 entries, 1 bad\n"
    assert culaunch("verify") == "2 entries, 0 bad\n"


@pytest.mark.slow
def test_clear(culaunch, cache):
    assert culaunch("clear") == f"removed 3 entries from {cache.path}\n"
    assert cache.info().entries == 0
