"""A compile is right whatever happens to the cache on a shared machine."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import pytest

import culaunch as cl

HERE = Path(__file__).parent


def run(program, *arguments, timeout=300):
    command = [sys.executable, "-W", "error", str(HERE / program), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout)


@pytest.mark.slow
def test_eight_processes_race_for_fifty_keys(tmp_path):
    start, log = tmp_path / "start", tmp_path / "log"
    command = [sys.executable, "-W", "error", str(HERE / "racer.py")]
    command += [str(tmp_path / "cache"), str(log), str(start), "50"]
    racers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    start.touch()
    for racer in racers:
        _, errors = racer.communicate(timeout=300)
        assert racer.returncode == 0, errors
    assert sorted(map(int, log.read_text().split())) == list(range(50))
    assert cl.cache.Cache(tmp_path / "cache").verify() == []


@pytest.mark.slow
def test_a_writer_killed_at_200_moments_leaves_no_bad_entry(tmp_path):
    found = json.loads(run("killed_writer.py", tmp_path / "cache", 200).stdout)
    assert found["wrong"] == []
    assert found["seen"] > 200


@pytest.mark.slow
def test_every_single_bit_flip_is_detected(cache, fake, key):
    cache.store(key(1), fake())
    path = f"{cache.path}/{key(1)}.entry"
    entry = Path(path).read_bytes()
    for bit in range(len(entry) * 8):
        flipped = bytearray(entry)
        flipped[bit // 8] ^= 1 << bit % 8
        Path(path).write_bytes(flipped)
        with pytest.warns(cl.CacheWarning):
            assert cache.lookup(key(1)) is None, f"bit {bit} of {len(entry) * 8}"


def test_every_truncation_is_detected(cache, fake, key):
    cache.store(key(1), fake())
    path = f"{cache.path}/{key(1)}.entry"
    entry = Path(path).read_bytes()
    for size in range(len(entry)):
        Path(path).write_bytes(entry[:size])
        with pytest.warns(cl.CacheWarning):
            assert cache.lookup(key(1)) is None, size


@pytest.mark.slow
@pytest.mark.parametrize("state", ["full", "ro"])
def test_a_full_or_read_only_disk(tmp_path, state):
    # In a mount namespace of its own: nothing is left behind, and root is not needed.
    program = f"""
        import subprocess, sys, warnings
        import culaunch as cl
        def make(n):
            return cl.Image(b".version 8.0\\n//" + b"x" * 30000)
        root = {str(tmp_path)!r}
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", root], check=True)
        cache = cl.cache.Cache(root + "/cache", lock_timeout=1)
        if {state!r} == "ro":
            cache.store("f" * 64, make(0))
            subprocess.run(["mount", "-o", "remount,ro", root], check=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in range(6):
                assert cache.get_or_make(f"{{n:064x}}", lambda: make(n)) == make(n)
        assert cache.verify() == []
        print([str(w.message) for w in caught])
    """
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            ["unshare", "--map-root-user", "--mount", "true"], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("needs unshare")
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-c"]
    result = subprocess.run(
        [*command, textwrap.dedent(program)], check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    text = {"full": "No space left on device", "ro": "Read-only file system"}[state]
    assert text in result.stdout
    assert result.stdout.count("not cached") == 1, "one warning, not one for each compile"


def test_a_directory_that_cannot_be_written(tmp_path, fake, key):
    directory = tmp_path / "cache"
    directory.mkdir(mode=0o500)
    cache = cl.cache.Cache(directory)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert cache.get_or_make(key(1), lambda: fake(1)) == fake(1)
    if os.geteuid() != 0:  # root may write there all the same
        assert "not cached" in str(caught[0].message)


def test_a_directory_of_another_user(tmp_path, fake, key, root):
    directory = tmp_path / "cache"
    directory.mkdir()
    os.chown(directory, 12345, 12345)
    cache = cl.cache.Cache(directory)
    with pytest.warns(cl.CacheWarning, match="it belongs to user 12345, not 0"):
        assert cache.get_or_make(key(1), lambda: fake(1)) == fake(1)
    assert os.listdir(directory) == []
    assert cache.info().usable is False


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_may_write_to(tmp_path, fake, key, mode):
    directory = tmp_path / "cache"
    directory.mkdir()
    directory.chmod(mode)
    with pytest.warns(cl.CacheWarning, match=rf"mode {mode:04o}\): run chmod go-w"):
        assert cl.cache.Cache(directory).get_or_make(key(1), lambda: fake(1)) == fake(1)
    assert os.listdir(directory) == []


def test_a_symbolic_link_of_another_user(tmp_path, fake, key, root):
    (tmp_path / "mine").mkdir(mode=0o700)
    link = tmp_path / "cache"
    link.symlink_to(tmp_path / "mine")
    os.lchown(link, 12345, 12345)
    with pytest.warns(cl.CacheWarning, match="symbolic link that belongs to user 12345"):
        assert cl.cache.Cache(link).get_or_make(key(1), lambda: fake(1)) == fake(1)
    assert os.listdir(tmp_path / "mine") == []


def test_a_symbolic_link_of_ones_own(tmp_path, fake, key):
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    cache = cl.cache.Cache(tmp_path / "cache")
    cache.get_or_make(key(1), lambda: fake(1))
    assert cache.lookup(key(1)) == fake(1)


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("nowhere/at/all")])
def test_something_else_in_place_of_the_directory(tmp_path, fake, key, make):
    make(tmp_path / "cache")
    with pytest.warns(cl.CacheWarning, match="not used"):
        assert cl.cache.Cache(tmp_path / "cache").get_or_make(key(1), lambda: fake(1)) == fake(1)


def test_a_directory_that_another_user_puts_in_its_place_is_noticed(tmp_path, fake, key, root):
    # If a directory above is writable by others, one can be moved away while a program runs.
    cache = cl.cache.Cache(tmp_path / "cache")
    cache.store(key(1), fake(1))
    os.rename(cache.path, tmp_path / "away")
    theirs = cl.cache.Cache(tmp_path / "theirs")
    theirs.store(key(1), fake(666))
    os.chown(theirs.path, 12345, 12345)
    os.rename(theirs.path, cache.path)
    with pytest.warns(cl.CacheWarning, match="belongs to user 12345"):
        assert cache.get_or_make(key(1), lambda: fake(1)) == fake(1)


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_bundle_that_others_may_write_to_is_not_read(tmp_path, fake, key, mode):
    shipped = cl.cache.Cache(tmp_path / "shipped")
    shipped.store(key(1), fake(666))
    Path(shipped.path).chmod(mode)
    cache = cl.cache.Cache(tmp_path / "cache", bundles=[shipped.path])
    with pytest.warns(cl.CacheWarning, match="the bundle .* other users may write to it"):
        assert cache.lookup(key(1)) is None
    Path(shipped.path).chmod(0o555)
    assert cache.lookup(key(1)) == fake(666)


def test_a_bundle_of_another_user_is_not_read(tmp_path, fake, key, root):
    shipped = cl.cache.Cache(tmp_path / "shipped")
    shipped.store(key(1), fake(666))
    cache = cl.cache.Cache(tmp_path / "cache", bundles=[shipped.path])
    os.chown(shipped.path, 12345, 12345)
    with pytest.warns(cl.CacheWarning, match="bundle .* belongs to user 12345"):
        assert cache.get_or_make(key(1), lambda: fake(1)) == fake(1)


def test_the_directories_above_the_cache_are_private_whatever_the_umask(tmp_path, fake, key):
    before = os.umask(0)
    try:
        cl.cache.Cache(tmp_path / "home" / ".cache" / "culaunch").store(key(1), fake())
    finally:
        os.umask(before)
    for path in ("home", "home/.cache", "home/.cache/culaunch"):
        assert (tmp_path / path).stat().st_mode & 0o777 == 0o700


def test_a_child_that_was_forked_meanwhile_does_not_hold_the_lock(tmp_path, key):
    # It has the descriptor: the lock is released by name, not by closing.
    program = f"""
        import os, time
        import culaunch as cl
        cache, children = cl.cache.Cache({str(tmp_path)!r}, lock_timeout=600.0), []

        def make():
            children.append(os.fork())
            if children[-1] == 0:
                time.sleep(600)
                os._exit(0)
            return cl.Image(b".version 8.0")

        try:
            for _ in range(2):
                cache.get_or_make({key(1)!r}, make)
                cache.clear()
            print(len(children))
        finally:
            for child in children:
                os.kill(child, 9)
                os.waitpid(child, 0)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    assert done.stdout == "2\n"


def test_the_cap_covers_libraries_of_load_inline_and_leftovers(tmp_path, fake, key):
    cache = cl.cache.Cache(tmp_path / "cache", max_bytes=3000)
    folder = Path(cache.path, "inline", "m-1")
    cache.store(key(0), fake())
    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o700)
    (folder / "m-1.so").write_bytes(b"x" * 5000)
    (folder / "m-1.json").write_text("{}")
    os.utime(folder / "m-1.so", (1, 1))
    cache = cl.cache.Cache(cache.path, max_bytes=3000)
    cache.store(key(1), fake(1))
    assert not folder.exists()
    assert cache.lookup(key(0)) is not None
    (Path(cache.path) / ".tmp-1-alive").write_bytes(b"x" * 2900)
    cl.cache.Cache(cache.path, max_bytes=3000).store(key(2), fake(2))
    assert cache.info().leftovers == 1
    assert cache.info().entries < 3, "what is being written counts"


def test_sources_of_libraries_count_and_go_with_the_last_one(tmp_path, fake, key):
    cache = cl.cache.Cache(tmp_path / "cache", max_bytes=3000)
    cache.store(key(0), fake())
    folder = Path(cache.path, "inline", "m-1")
    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o700)
    (folder / "m.cpp").write_bytes(b"x" * 2500)
    for number in (1, 2):
        (folder / f"m-{number}.so").write_bytes(b"x" * 100)
        os.utime(folder / f"m-{number}.so", (number, number))
    before = cache.info().size
    assert before > 2700
    cache = cl.cache.Cache(cache.path, max_bytes=3000)
    cache.store(key(1), fake(1))
    assert not folder.exists()
    assert cache.info().size < 1000


def test_sources_whose_writer_died_before_the_library_go(tmp_path, fake, key):
    cache = cl.cache.Cache(tmp_path / "cache")
    cache.store(key(0), fake())
    for name, age in (("old-1", 7200), ("new-1", 0)):
        folder = Path(cache.path, "inline", name)
        folder.mkdir(parents=True, mode=0o700)
        folder.parent.chmod(0o700)
        (folder / "m.cpp").write_text("x")
        os.utime(folder / "m.cpp", (time.time() - age,) * 2)
    cl.cache.Cache(cache.path).store(key(1), fake(1))
    assert os.listdir(f"{cache.path}/inline") == ["new-1"], "somebody may be at work there"


def test_two_processes_with_different_caps(tmp_path, fake, key, monkeypatch):
    """The smaller one removes what the other keeps, and both go on."""
    monkeypatch.setattr("culaunch._cache.store._RECOUNT_SECONDS", 0.0)
    path = tmp_path / "cache"
    large, small = cl.cache.Cache(path, max_bytes=1 << 20), cl.cache.Cache(path, max_bytes=4000)
    for number in range(40):
        large.store(key(number), fake(number, 500))
        if number % 10 == 9:
            small.store(key(100 + number), fake(number, 500))
            assert small.info().size <= 4000
            assert small.lookup(key(100 + number)) == fake(number, 500)
    assert large.verify() == []


def test_an_entry_that_is_a_link_is_not_followed(cache, fake, key, tmp_path):
    cache.store(key(1), fake(1))
    os.rename(f"{cache.path}/{key(1)}.entry", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", f"{cache.path}/{key(1)}.entry")
    assert cache.lookup(key(1)) is None


def test_the_directory_is_removed_while_it_is_used(cache, fake, key):
    cache.store(key(1), fake(1))
    shutil.rmtree(cache.path)
    assert cache.get_or_make(key(2), lambda: fake(2)) == fake(2)
    assert cache.lookup(key(2)) == fake(2)


@pytest.mark.parametrize("years", [-40, 40])
def test_a_clock_that_is_wrong(tmp_path, fake, key, years):
    # Entries and another process's temporary file seem to come from the past or the future.
    cache = cl.cache.Cache(tmp_path / "cache", max_bytes=3000)
    then = time.time() + years * 365 * 86400
    for number in range(2):
        cache.store(key(number), fake(number, 800))
        os.utime(f"{cache.path}/{key(number)}.entry", (then, then))
    assert cache.lookup(key(0)) == fake(0, 800)
    age = abs(os.stat(f"{cache.path}/{key(0)}.entry").st_mtime - time.time())
    assert age < 60, "using an entry sets its time"
    for number in range(2, 8):
        cache.store(key(number), fake(number, 800))
        assert cache.lookup(key(number)) == fake(number, 800), "what was just made is kept"
    assert cache.info().size <= 3000


def test_temporaries_of_dead_writers_are_removed(tmp_path, fake, key):
    cache = cl.cache.Cache(tmp_path / "cache", max_bytes=1000)
    cache.store(key(1), fake(1))
    stale, live = (Path(cache.path, f".tmp-{name}") for name in ("1-dead", "2-alive"))
    for path in (stale, live):
        path.write_bytes(b"half an ent")
    os.utime(stale, (1, 1))
    for number in range(2, 9):
        cache.store(key(number), fake(number))
    assert not stale.exists()
    assert live.exists()


def test_a_name_of_300_characters(scale, cache):
    name = "n" * 297 + ".cu"
    for _ in range(2):
        image = cl.compile(scale, arch="sm_80", names=["scale<int>"], name=name, cache=cache)
        assert image.names["scale<int>"].startswith("_Z5scale")
    assert cache.info().entries == 1
