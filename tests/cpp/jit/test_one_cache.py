"""One cache for both languages: raced for, emptied, repaired and found by both."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from entry_bytes import entry_of, signed
from jit_requests import SOURCES, compile_here, fields_of, hexed

import culaunch as cl

CPP = Path(__file__).parents[1]
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")

pytestmark = pytest.mark.needs("nvrtc")


def test_half_of_each_language_make_each_key_once(build, gxx, tmp_path):
    program = build(gxx, "jit_racer", *WARNINGS, CPP / "jit_racer.cpp", "-ldl")
    racer = CPP.parent / "compile" / "racer.py"
    words = [str(tmp_path / name) for name in ("cache", "log", "start")]
    keys = 60
    racers = [
        subprocess.Popen(
            [*command, *words, str(keys)], stderr=subprocess.PIPE, text=True, env=os.environ
        )
        for command in ([program], [sys.executable, "-W", "error", racer])
        for _ in range(4)
    ]
    (tmp_path / "start").touch()
    for one in racers:
        _, errors = one.communicate(timeout=120)
        assert one.returncode == 0, errors
    made = (tmp_path / "log").read_text().split()
    assert sorted(map(int, made)) == list(range(keys))
    assert len(list((tmp_path / "cache").glob("*.entry"))) == keys
    assert cl.cache.Cache(tmp_path / "cache").verify() == []


def test_a_cache_that_is_too_full_is_emptied_by_both(ask, tmp_path):
    store = cl.cache.Cache(tmp_path / "small", max_bytes=40_000)
    requests = [
        {"source": f"__global__ void k{n}(int* x) {{ *x = {n}; }}", "max_bytes": store.max_bytes}
        for n in range(16)
    ]
    folder = tmp_path / "small" / "inline" / ("f-" + "0" * 64)
    folder.mkdir(parents=True, mode=0o700)
    for directory in (tmp_path / "small", folder.parent, folder):
        directory.chmod(0o700)
    for name in ("a.so", "a.note", "f.cpp"):
        (folder / name).write_bytes(b"x" * 5000)
        (folder / name).chmod(0o600)
        os.utime(folder / name, (1, 1))
    ask("compile", *requests, store=store)
    assert store.info().size <= 40_000
    assert store.info().entries > 3
    assert not folder.exists()


METADATA = {"names": {}, "signatures": {"k": ["int*"]}, "log": ""}


def flipped(key, entry):
    middle = len(entry) // 2
    return entry[:middle] + bytes([entry[middle] ^ 4]) + entry[middle + 1 :]


# Damaged contents of an entry, and the reason that both languages give.
DAMAGES = {
    "flip": (flipped, "does not match its SHA-256"),
    "cut": (lambda key, entry: entry[:-1], "has a wrong length"),
    "longer": (lambda key, entry: entry + b"x", "has a wrong length"),
    "too long for 64 bits": (
        lambda key, entry: signed(
            key, entry[:12] + struct.pack("<IQ", len(entry) - 55, 2**64 - 1) + entry[24:]
        ),
        "has a wrong length",
    ),
    "head": (lambda key, entry: entry[:55], "is truncated to 55 bytes"),
    "empty": (lambda key, entry: b"", "is truncated to 0 bytes"),
    "magic": (lambda key, entry: signed(key, b"C" + entry[1:]), "is not a cache entry of this"),
    "version": (
        lambda key, entry: signed(key, entry[:8] + b"\2" + entry[9:]),
        "is not a cache entry of this version",
    ),
    "other key": (lambda key, entry: signed(key[::-1], entry), "does not match its SHA-256"),
    "no JSON": (
        lambda key, entry: signed(key, entry.replace(b'{"names"', b'{ names"')),
        "has invalid metadata",
    ),
    **{
        f"metadata {index}": (
            lambda key, entry, wrong=wrong: entry_of(key, wrong, b"data"),
            "has invalid metadata",
        )
        for index, wrong in enumerate(
            (
                [],
                {name: METADATA[name] for name in ("names", "signatures")},
                {**METADATA, "names": []},
                {**METADATA, "names": {"k": 1}},
                {**METADATA, "signatures": {"k": "int*"}},
                {**METADATA, "signatures": {"k": [0]}},
                {**METADATA, "log": None},
            )
        )
    },
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_bad_entry_is_dropped_by_both(ask, jit_tool, cache, nvrtc, damage):
    request = {"source": "__global__ void k(int* x) { *x = 1; }", "arch": ["sm_80"]}
    (good,) = ask("compile", request)
    (entry,) = Path(cache.path).glob("*.entry")
    make, why = DAMAGES[damage]
    whole = entry.read_bytes()
    entry.write_bytes(make(entry.stem, whole))
    with pytest.warns(cl.CacheWarning, match=f"{entry.name}' {why}.*compiling again"):
        assert compile_here(request, cache).data.hex() == good
    entry.write_bytes(make(entry.stem, whole))
    lines = [f"{field} {hexed(one)}" for field, one in fields_of({**request, "cache": cache.path})]
    lines += [f"nvrtc {hexed(nvrtc)}", "compile"]
    done = subprocess.run(
        [jit_tool], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=60
    )
    assert f"/{entry.name} {why}" in done.stderr
    assert "compiling again" in done.stderr
    assert done.stdout.split()[0] == good
    assert cache.verify() == []


def test_python_and_programs_use_one_default_cache(jit_tool, nvrtc, tmp_path, monkeypatch):
    for name, value in (("CULAUNCH_CACHE_DIR", ""), ("XDG_CACHE_HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    lines = [f"{field} {hexed(one)}" for field, one in fields_of({"source": SOURCES[0]})]
    lines += ["arch " + hexed("sm_80"), f"nvrtc {hexed(nvrtc)}", "compile"]
    subprocess.run([jit_tool], input="\n".join(lines), text=True, check=True, timeout=60)
    (entry,) = (tmp_path / "culaunch").glob("*.entry")
    before = entry.stat().st_ino
    compile_here({"source": SOURCES[0]}, True)
    assert list((tmp_path / "culaunch").glob("*.entry")) == [entry]
    assert entry.stat().st_ino == before
