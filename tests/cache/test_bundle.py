"""Bundles of the entries that a program used: a start on a fresh machine compiles nothing."""

import os
import stat
import subprocess
import sys

import pytest

import culaunch as cl

PROGRAM = """
import sys
import culaunch as cl
for n in range(3):
    cl.compile(f"__global__ void k{n}() {{}}", arch="sm_80")
cl.link(cl.compile("__global__ void l() {}", arch="sm_80", relocatable=True), arch="sm_80")
"""


def run(*command, code=0, **environment):
    done = subprocess.run(
        [sys.executable, *command], check=False, capture_output=True, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.slow
@pytest.mark.needs("nvrtc")
def test_the_second_start_on_a_fresh_machine_compiles_nothing(tmp_path):
    shipped, first, fresh = (str(tmp_path / name) for name in ("shipped", "first", "fresh"))
    other = cl.cache.Cache(first)
    other.store("0" * 64, cl.Image(b".version 8.0\n"))  # of another program
    command = ("-m", "culaunch", "bundle", shipped, "--", sys.executable, "-c", PROGRAM)
    assert run(*command, CULAUNCH_CACHE_DIR=first).stdout == f"packed 5 entries into {shipped}\n"
    assert len(os.listdir(shipped)) == 5
    for name in os.listdir(shipped):
        mode = os.stat(os.path.join(shipped, name)).st_mode
        assert stat.S_IMODE(mode) == 0o644, "whoever runs the program may read it"
    done = run("-c", PROGRAM, CULAUNCH_CACHE_DIR=fresh, CULAUNCH_CACHE_BUNDLES=shipped)
    assert done.stderr == ""
    assert cl.cache.Cache(fresh).info().entries == 0, "what is compiled would be kept there"
    # A program that used what was shipped can be packed again.
    command = ("-m", "culaunch", "bundle", f"{shipped}2", "--", sys.executable, "-c", PROGRAM)
    run(*command, CULAUNCH_CACHE_DIR=fresh, CULAUNCH_CACHE_BUNDLES=shipped)
    assert sorted(os.listdir(shipped)) == sorted(os.listdir(f"{shipped}2"))


def test_a_record_is_what_was_used(tmp_path, image, key, monkeypatch):
    record = tmp_path / "record"
    cache = cl.cache.Cache(tmp_path / "cache")
    cache.store(key(9), image(9))
    monkeypatch.setenv("CULAUNCH_CACHE_RECORD", str(record))
    for _ in range(3):
        cache.get_or_make(key(1), lambda: image(1))
        cache.get_or_make(key(9), lambda: image(9))
    cache.lookup(key(5))
    assert record.read_text() == f"{key(1)}\n{key(9)}\n"
    assert cache.bundle(tmp_path / "out", record) == 2
    packed = cl.cache.Cache(tmp_path / "other", bundles=tmp_path / "out")
    assert packed.lookup(key(9)) == image(9)


def test_what_cannot_be_packed(tmp_path, image, key):
    cache = cl.cache.Cache(tmp_path / "cache")
    cache.store(key(1), image(1))
    record = tmp_path / "record"
    record.write_text(f"{key(1)}\n{key(2)}\n")
    with pytest.raises(ValueError, match="missing from the cache: 1 of 2"):
        cache.bundle(tmp_path / "out", record)
    record.write_text("")
    with pytest.raises(ValueError, match="is empty: the program used no cache"):
        cache.bundle(tmp_path / "out", record)
    for wrong in ("junk\n", f"{key(1)}x\n", "../../etc\n"):
        record.write_text(wrong)
        with pytest.raises(ValueError, match="is not a cache record"):
            cache.bundle(tmp_path / "out", record)
    with pytest.raises(FileNotFoundError):
        cache.bundle(tmp_path / "out", tmp_path / "none")
    record.write_text(f"{key(1)}\n")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(OSError, match="other users may write to it"):
        cache.bundle(tmp_path / "open", record)


def test_a_record_that_cannot_be_written_is_a_warning(tmp_path, image, key, monkeypatch):
    monkeypatch.setenv("CULAUNCH_CACHE_RECORD", str(tmp_path / "none" / "record"))
    cache = cl.cache.Cache(tmp_path / "cache")
    with pytest.warns(cl.CacheWarning, match="cannot record the use of the cache"):
        assert cache.get_or_make(key(1), lambda: image(1)) == image(1)


@pytest.mark.slow
def test_the_command_says_what_is_wrong(tmp_path):
    out = str(tmp_path / "out")
    assert (
        "give a program to run, or --record" in run("-m", "culaunch", "bundle", out, code=2).stderr
    )
    command = ("-m", "culaunch", "bundle", out, "--", sys.executable, "-c", "raise SystemExit(7)")
    assert "exited with code 7; nothing was packed" in run(*command, code=1).stderr
    command = ("-m", "culaunch", "bundle", out, "--", sys.executable, "-c", "pass")
    assert "the program used no cache" in run(*command, code=1).stderr
