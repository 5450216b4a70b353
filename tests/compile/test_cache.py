"""The cache: what it keeps, what it refuses, and that it never fails a compile."""

import os
import stat
import threading
import time
from pathlib import Path

import pytest
from runs import in_threads, run_to_the_end

import culaunch as cl


def entries(cache):
    return sorted(name for name in os.listdir(cache.path) if name.endswith(".entry"))


def test_keeps_everything_an_image_has(cache, key):
    image = cl.Image(
        b".version 8.0\n",
        names={"scale<float>": "_Z5scaleIfEvPT_"},
        signatures={"plain": ("float*", None)},
        log="kernel.cu(1): warning: é",
    )
    assert cache.get_or_make(key(1), lambda: image) is image
    found = cache.lookup(key(1))
    assert found == image
    assert found.names == image.names
    assert found.signatures == image.signatures
    assert found.log == image.log


def test_makes_a_key_once(cache, fake, key):
    made = []
    for _ in range(3):
        cache.get_or_make(key(1), lambda: made.append(1) or fake())
    assert made == [1]


def test_keeps_nothing_when_making_fails(cache, key):
    def fail():
        raise cl.CompileError("no")

    with pytest.raises(cl.CompileError):
        cache.get_or_make(key(1), fail)
    assert entries(cache) == []


def test_directory_is_private(cache, fake, key):
    cache.store(key(1), fake())
    assert stat.S_IMODE(os.stat(cache.path).st_mode) == 0o700
    path = os.path.join(cache.path, f"{key(1)}.entry")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_one_file_for_each_entry(cache, fake, key):
    for number in range(5):
        cache.get_or_make(key(number), lambda number=number: fake(number))
    assert sorted(os.listdir(cache.path)) == [".lock", *(f"{key(n)}.entry" for n in range(5))]


def test_bad_entry_is_dropped_and_made_again(cache, fake, key):
    cache.store(key(1), fake(1))
    path = os.path.join(cache.path, f"{key(1)}.entry")
    with open(path, "r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"xxx")
    with pytest.warns(cl.CacheWarning, match=r"does not match its SHA-256; compiling again"):
        found = cache.get_or_make(key(1), lambda: fake(2))
    assert found == fake(2)
    assert cache.lookup(key(1)) == fake(2)


def test_entry_under_another_name_is_bad(cache, fake, key):
    cache.store(key(1), fake())
    os.rename(f"{cache.path}/{key(1)}.entry", f"{cache.path}/{key(2)}.entry")
    with pytest.warns(cl.CacheWarning, match="does not match"):
        assert cache.lookup(key(2)) is None
    assert entries(cache) == []


def test_verify_names_and_drops_bad_entries(cache, fake, key):
    for number in range(3):
        cache.store(key(number), fake(number))
    bad = f"{cache.path}/{key(1)}.entry"
    os.truncate(bad, 40)
    assert cache.verify() == [bad]
    assert len(entries(cache)) == 3
    assert cache.verify(drop=True) == [bad]
    assert cache.verify() == []
    assert len(entries(cache)) == 2


def test_least_recently_used_go_first(tmp_path, fake, key):
    size = 1000
    cache = cl.cache.Cache(tmp_path / "cache", max_bytes=10 * size)
    for number in range(9):
        cache.store(key(number), fake(number, size - 300))
        os.utime(f"{cache.path}/{key(number)}.entry", (0, 1000 + number))
    assert cache.lookup(key(0)) is not None  # which makes it the one used last
    for number in range(9, 14):
        cache.store(key(number), fake(number, size - 300))
    kept = {name[:-6] for name in entries(cache)}
    assert key(0) in kept
    assert key(13) in kept
    assert key(1) not in kept
    assert cache.info().size <= cache.max_bytes


def test_bundle_is_read_and_never_written(tmp_path, fake, key):
    shipped = cl.cache.Cache(tmp_path / "shipped")
    shipped.store(key(1), fake(1))
    before = os.listdir(shipped.path)
    cache = cl.cache.Cache(tmp_path / "cache", bundles=[shipped.path])
    assert cache.get_or_make(key(1), pytest.fail) == fake(1)
    assert cache.get_or_make(key(2), lambda: fake(2)) == fake(2)
    assert os.listdir(shipped.path) == before
    assert entries(cache) == [f"{key(2)}.entry"]


def test_bad_entry_of_a_bundle_is_left_alone(tmp_path, fake, key):
    shipped = cl.cache.Cache(tmp_path / "shipped")
    shipped.store(key(1), fake(1))
    path = f"{shipped.path}/{key(1)}.entry"
    os.truncate(path, 60)
    cache = cl.cache.Cache(tmp_path / "cache", bundles=[shipped.path])
    with pytest.warns(cl.CacheWarning, match="compiling again"):
        assert cache.get_or_make(key(1), lambda: fake(2)) == fake(2)
    assert os.path.getsize(path) == 60


def test_threads_make_a_key_once(cache, fake, key):
    made, found = [], []

    def make():
        made.append(1)
        time.sleep(0.05)
        return fake(7)

    assert in_threads(lambda _: found.append(cache.get_or_make(key(1), make)), 8) == []
    assert made == [1]
    assert found == [fake(7)] * 8


def test_a_holder_that_hangs_is_waited_for_and_then_ignored(tmp_path, fake, key):
    cache = cl.cache.Cache(tmp_path / "cache", lock_timeout=0.1)
    release = threading.Event()
    holding = threading.Event()

    def hang():
        holding.set()
        release.wait(120)
        return fake(1)

    thread = threading.Thread(target=lambda: cache.get_or_make(key(1), hang))
    thread.start()
    try:
        assert holding.wait(60)
        start = time.monotonic()
        assert cache.get_or_make(key(1), lambda: fake(2)) == fake(2)
        assert 0.1 <= time.monotonic() - start < 60
    finally:
        release.set()
        thread.join()


def test_works_without_locks(cache, fake, key):
    # As on a file system without locks: the lock file cannot be used.
    os.makedirs(os.path.join(cache.path, ".lock"), mode=0o700)
    os.chmod(cache.path, 0o700)
    assert cache.get_or_make(key(1), lambda: fake(1)) == fake(1)
    assert cache.lookup(key(1)) == fake(1)


def test_info_and_clear(cache, fake, key):
    assert cache.info().entries == 0
    for number in range(3):
        cache.store(key(number), fake(number))
    info = cache.info()
    assert (info.path, info.usable, info.reason, info.entries) == (cache.path, True, "", 3)
    assert info.size == sum(os.path.getsize(f"{cache.path}/{name}") for name in entries(cache))
    assert cache.clear() == 3
    assert entries(cache) == []


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"CULAUNCH_CACHE_DIR": "/a/b"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/culaunch"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/culaunch"),
        ({"HOME": "/h"}, "/h/.cache/culaunch"),
    ],
)
def test_default_directory(monkeypatch, variables, expected):
    for name in ("CULAUNCH_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cl.cache.Cache().path == expected


def test_environment_sets_the_cap_and_the_bundles(monkeypatch, tmp_path):
    monkeypatch.setenv("CULAUNCH_CACHE_MAX_SIZE", "512M")
    monkeypatch.setenv("CULAUNCH_CACHE_BUNDLES", f"{tmp_path}/a:{tmp_path}/b")
    cache = cl.cache.Cache(tmp_path / "cache")
    assert cache.max_bytes == 512 << 20
    assert cache.bundles == (f"{tmp_path}/a", f"{tmp_path}/b")


@pytest.mark.parametrize("size", ["lots", "1.5G", "²G", "0", "9" * 5000, "-1M"])
def test_a_size_that_is_none_fails_no_compile_and_is_told_once(monkeypatch, tmp_path, size):
    monkeypatch.setenv("CULAUNCH_CACHE_MAX_SIZE", size + " ")
    with pytest.warns(cl.CacheWarning, match="CULAUNCH_CACHE_MAX_SIZE must be a size such as 512M"):
        assert cl.cache.Cache(tmp_path / "cache").max_bytes == 2 << 30
    assert cl.cache.Cache(tmp_path / "cache").max_bytes == 2 << 30


@pytest.mark.parametrize(
    ("error", "argument", "value"),
    [
        (TypeError, "path", 3),
        (TypeError, "path", b"x"),
        (ValueError, "path", ""),
        (ValueError, "path", "a\0b"),
        (ValueError, "max_bytes", -1),
        (TypeError, "max_bytes", "512M"),
        (TypeError, "max_bytes", True),
        (TypeError, "max_bytes", 1e9),
        (TypeError, "bundles", 3),
        (TypeError, "bundles", b"abc"),
        (TypeError, "bundles", [3]),
        (TypeError, "lock_timeout", "a"),
        (TypeError, "lock_timeout", None),
        (ValueError, "lock_timeout", -1),
        (ValueError, "lock_timeout", float("nan")),
    ],
)
def test_an_argument_that_is_no_such_thing_is_named(tmp_path, error, argument, value):
    with pytest.raises(error, match=f"^{argument} must"):
        cl.cache.Cache(**{"path": tmp_path, argument: value})


@pytest.mark.parametrize("form", [str, Path])
def test_one_bundle_is_one_directory(tmp_path, form):
    assert cl.cache.Cache(tmp_path, bundles=form("/dir")).bundles == ("/dir",)


@pytest.mark.parametrize(
    ("error", "bad"),
    [
        (ValueError, "../evil"),
        (ValueError, "zz"),
        (ValueError, "A" * 64),
        (ValueError, "0" * 64 + "\n"),
        (TypeError, 3),
        (TypeError, b"0" * 64),
    ],
)
def test_a_key_that_is_none_never_becomes_a_path(tmp_path, fake, error, bad):
    cache = cl.cache.Cache(tmp_path / "cache")
    outside = tmp_path / "evil.entry"
    outside.write_bytes(b"")
    for call in (
        lambda: cache.store(bad, fake()),
        lambda: cache.lookup(bad),
        lambda: cache.get_or_make(bad, fake),
    ):
        with pytest.raises(error, match=r"^key must be"):
            call()
    assert outside.read_bytes() == b""


def test_what_is_no_image_is_not_kept(cache, key):
    with pytest.raises(TypeError, match=r"image must be a culaunch\.Image \(got bytes\)"):
        cache.store(key(1), b"x")
    with pytest.raises(TypeError, match=r"make\(\) must return a culaunch\.Image \(got NoneType\)"):
        cache.get_or_make(key(1), lambda: None)
    assert cache.info().entries == 0


@pytest.mark.parametrize(
    "metadata",
    [
        "{}",
        "[]",
        "3",
        "null",
        "not JSON",
        "[" * 100_000,
        '{"names": [], "signatures": {}, "log": ""}',
        '{"names": {"k": 3}, "signatures": {}, "log": ""}',
        '{"names": {}, "signatures": {"k": "int"}, "log": ""}',
        '{"names": {}, "signatures": {"k": [3]}, "log": ""}',
        '{"names": {}, "signatures": {}, "log": null}',
    ],
)
def test_a_right_digest_over_wrong_metadata_is_a_bad_entry(cache, fake, key, monkeypatch, metadata):
    with monkeypatch.context() as patch:
        patch.setattr("json.dumps", lambda *_, **__: metadata)
        cache.store(key(1), fake())
    assert cache.verify() == [f"{cache.path}/{key(1)}.entry"]
    with pytest.warns(cl.CacheWarning, match="invalid metadata"):
        assert cache.lookup(key(1)) is None
    assert cache.info().entries == 0


def test_use_decides_what_is_removed_even_within_a_minute(tmp_path, fake, key):
    cache = cl.cache.Cache(tmp_path / "cache", max_bytes=3000)
    now = time.time()
    for number in range(3):
        cache.store(key(number), fake(number, 600))
        used = now - 30 + number
        os.utime(f"{cache.path}/{key(number)}.entry", (used, used))
    assert cache.lookup(key(0)) is not None
    cache.store(key(3), fake(3, 600))
    assert [cache.lookup(key(n)) is not None for n in range(4)] == [True, False, True, True]


@pytest.fixture
def note(tmp_path):
    """Return what one cache noted of a compilation, for another cache."""
    first = cl.cache.Cache(tmp_path / "first")
    cl.compile("#include <cuda_fp16.h>\n__global__ void k() {}", arch="sm_80", cache=first)
    (path,) = Path(first.path).glob("*.note")
    return first.read_note(path.stem)


@pytest.mark.needs("nvrtc")
def test_a_note_is_verified_like_any_entry(cache, key, note):
    cache.keep_note(key(1), note)
    assert cache.read_note(key(1)) == note
    assert cache.info().entries == 0, "it only saves work"
    path = Path(cache.path, f"{key(1)}.note")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(note.result.encode(), note.result[::-1].encode()))
    assert cache.verify() == [str(path)]
    assert cache.read_note(key(1)) is None  # and no warning: nothing is lost but the work
    assert not path.exists()
    Path(cache.path, f"{key(2)}.note").write_bytes(whole)
    assert cache.read_note(key(2)) is None, "it was another key's"


@pytest.mark.needs("nvrtc")
@pytest.mark.parametrize("metadata", ["[]", "{}", '{"result": 3, "reads": []}', "3"])
def test_a_right_digest_over_no_note_is_none(cache, key, note, monkeypatch, metadata):
    with monkeypatch.context() as patch:
        patch.setattr("json.dumps", lambda *_, **__: metadata)
        cache.keep_note(key(1), note)
    assert cache.read_note(key(1)) is None


def test_what_an_older_version_left_is_not_read_and_is_cleared(cache, fake, key):
    cache.store(key(1), fake(1))
    (old := Path(cache.path, f"{key(1)}.note")).write_text('["digest", [[], [], []]]')
    folder = Path(cache.path, "inline", "m-0123")
    folder.mkdir(parents=True, mode=0o700)
    for name in ("m-1.so", "m-1.json", "m.cpp"):
        (folder / name).write_text("{}")
    assert cache.info().entries == 2
    assert sorted(cache.verify()) == sorted([str(old), str(folder / "m-1.so")])
    assert cache.read_note(key(1)) is None
    assert cache.clear() == 2
    assert not folder.exists()


def test_what_is_said_of_a_cache_is_said_once(tmp_path, fake, key):
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache").chmod(0o770)
    cache = cl.cache.Cache(tmp_path / "cache")
    with pytest.warns(cl.CacheWarning, match="other users may write to it"):
        cache.get_or_make(key(0), fake)
    # Any warning from here on would be an error.
    cache.get_or_make(key(1), fake)
    assert not cache.store(key(2), fake())


def test_a_directory_outside_of_the_cache_goes_with_the_process(tmp_path):
    """If the cache cannot have one: not with a child of the process, and not at all later."""
    (tmp_path / "cache").write_text("no directory")
    code = """
    import os, warnings
    import culaunch as cl
    warnings.simplefilter("ignore")
    found = cl.cache.Cache(os.environ["TMPDIR"] + "/cache").private_directory("headers")
    child = os.fork()
    if child == 0:
        raise SystemExit
    os.waitpid(child, 0)
    assert os.path.dirname(found) == os.environ["TMPDIR"] and os.path.isdir(found)
    print("done")
    """
    run_to_the_end(code, TMPDIR=str(tmp_path))
    assert [*tmp_path.iterdir()] == [tmp_path / "cache"]
