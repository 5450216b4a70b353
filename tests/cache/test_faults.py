"""Problems of shared disks: no room, no locks, other users and versions, no answer."""

import errno
import os
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from full_disks import no_file_larger_than
from runs import in_threads

import culaunch as cl
from culaunch._base.trusted import TrustedDirectory
from culaunch._cache import kind, library, lock, note, store

HEAD = """
import sys, warnings
import culaunch as cl
def image(n):
    return cl.Image(b".version 8.0\\n// " + bytes(str(n) * 3000, "ascii"))
"""


def run(program, *arguments, **environment):
    # -B: with a limit on files, bytecode of what is imported then would be cut short, too, and all
    # processes after it fail to import that.
    return subprocess.run(
        [sys.executable, "-B", "-c", HEAD + program, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
    )


def leftovers(folder):
    return [name for _, _, names in os.walk(folder) for name in names if "tmp-" in name]


@pytest.mark.needs("fsspec")
def test_no_room_here_and_none_on_the_shared_disk(tmp_path):
    """A limit on the size of files fails each write midway, as a full disk or a quota does."""
    said = run(
        """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
cache = cl.cache.Cache(sys.argv[1], remote="file://" + sys.argv[2])
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for n in range(5):
        assert cache.get_or_make(f"{n:064x}", lambda: image(n)) == image(n)
        assert cache.remote.flush()
for one in said:
    print(one.category.__name__, one.message)
""",
        tmp_path / "own",
        tmp_path / "shared",
    )
    lines = sorted(said.stdout.splitlines())
    assert len(lines) == 2, "one warning for each disk, and not one for each image"
    assert "an image was compiled but not cached: File too large" in lines[0]
    assert "File too large" in lines[1]
    assert "this process no longer uses it" in lines[1]
    assert leftovers(tmp_path) == []


def test_a_bundle_names_what_the_disk_had_no_room_for(tmp_path, image, key, monkeypatch):
    record = tmp_path / "record"
    cache = cl.cache.Cache(tmp_path / "cache", remote=False)
    monkeypatch.setenv("CULAUNCH_CACHE_RECORD", str(record))
    cache.get_or_make(key(1), lambda: image(1))
    with no_file_larger_than(20), pytest.raises(OSError, match="File too large") as caught:
        cache.bundle(tmp_path / "bundle", record)
    assert caught.value.filename == str(tmp_path / "bundle" / f"{key(1)}.entry")
    assert os.listdir(tmp_path / "bundle") == []
    assert cache.bundle(tmp_path / "bundle", record) == 1


def test_a_record_has_whole_lines_on_a_full_disk(tmp_path, image, key, monkeypatch):
    """The start of a line would spoil the one after it, and the whole record."""
    record = tmp_path / "record"
    cache = cl.cache.Cache(tmp_path / "cache", remote=False)
    for number in range(5):
        cache.store(key(number), image(number))
    monkeypatch.setenv("CULAUNCH_CACHE_RECORD", str(record))
    cache.lookup(key(0))
    with (
        no_file_larger_than(100),
        pytest.warns(cl.CacheWarning, match="the use of the cache in .*: No space left") as said,
    ):
        assert [cache.lookup(key(number)) for number in (1, 2)] == [image(1), image(2)]
    assert len(said) == 1
    cache.lookup(key(3))
    cache.lookup(key(1))
    assert record.read_text().splitlines() == [key(0), key(3), key(1)]


def test_a_pull_says_that_there_is_no_room(machine, shared, image, key, tmp_path):
    first = machine(shared)
    for number in range(3):
        first.store(key(number), image(number))
    assert first.remote.flush()
    second = machine(shared)
    with no_file_larger_than(20), pytest.raises(OSError, match="File too large") as caught:
        second.pull()
    assert caught.value.filename.startswith(second.path)
    assert leftovers(tmp_path) == []
    assert second.pull() == 3


def test_a_push_says_that_there_is_no_room(machine, shared, image, key, tmp_path):
    cache = machine(shared)
    other = cl.cache.Cache(cache.path, remote=False)
    other.store(key(1), image(1))
    with (
        no_file_larger_than(20),
        pytest.warns(cl.CacheWarning, match="no longer uses it"),
        pytest.raises(OSError, match=r"after 0 entries .*File too large") as caught,
    ):
        cache.push()
    assert caught.value.errno == errno.EFBIG
    assert leftovers(tmp_path) == []


def test_a_library_without_room_for_its_note_leaves_nothing(tmp_path):
    os.mkdir(tmp_path / "folder", 0o700)
    with TrustedDirectory.open(str(tmp_path / "folder")) as folder:
        much = note.Note("0" * 64, {"much": "x" * 100})
        with no_file_larger_than(20), pytest.raises(OSError, match=r"File too large.*k\.note"):
            library.LIBRARIES.publish(folder, "k", b"library", much)
        assert list(folder.files()) == []
        library.LIBRARIES.publish(folder, "k", b"library", much)


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EINVAL, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(error, tmp_path, image, key, monkeypatch):
    """Both compile then, and both are right; nobody waits."""

    def refuse(*_):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(lock, "_set", refuse)
    cache = cl.cache.Cache(tmp_path, remote=False)
    both = threading.Barrier(2, timeout=20)
    found = []

    def make():
        both.wait()  # they meet here: neither holds the other up
        return image(1)

    assert in_threads(lambda _: found.append(cache.get_or_make(key(1), make)), 2) == []
    assert found == [image(1)] * 2
    assert cache.verify() == []
    assert cache.lookup(key(1)) == image(1)


@pytest.mark.parametrize("drop", [False, True])
def test_an_entry_removed_during_the_verification_is_not_damaged(
    tmp_path, monkeypatch, image, key, drop
):
    cache = cl.cache.Cache(tmp_path, remote=False)
    assert cache.store(key(1), image(1)) is True
    listed = store.cache_contents

    def list_and_remove(path):
        contents = listed(path)
        assert cache.clear() == 1
        return contents

    monkeypatch.setattr(store, "cache_contents", list_and_remove)
    assert cache.verify(drop=drop) == []


@pytest.mark.parametrize("mode", [0o755, 0o775, 0o2775, 0o1777, 0o700])
def test_a_shared_folder_is_used_by_whoever_may_use_it(mode, shared, machine, image, key):
    """The folder decides the modes, not the umask of the first writer."""
    folder = shared.removeprefix("file://")
    os.mkdir(folder)
    os.chmod(folder, mode)
    before = os.umask(0o077)
    try:
        first = machine(shared)
        first.get_or_make(key(1), lambda: image(1))
        assert first.remote.flush()
    finally:
        os.umask(before)
    (inside,) = os.listdir(folder)
    (name,) = os.listdir(os.path.join(folder, inside))
    status = os.stat(os.path.join(folder, inside, name))
    assert stat.S_IMODE(status.st_mode) == mode & 0o666
    assert stat.S_IMODE(os.stat(os.path.join(folder, inside)).st_mode) == mode


@pytest.mark.needs("fsspec", "root")
def test_two_users_of_a_shared_folder(machine, image, key, never):
    # Not in pytest's own directory, into which no other user may look.
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        folder, other = os.path.join(place, "shared"), os.path.join(place, "other")
        os.mkdir(folder)
        os.chmod(folder, 0o1777)
        os.mkdir(other)
        os.chown(other, 12345, 12345)
        shared, one, two = f"file://{folder}", f"ab{key(1)[2:]}", f"ab{key(2)[2:]}"
        first = machine(shared)
        first.get_or_make(one, lambda: image(1))
        assert first.remote.flush()
        os.seteuid(12345)
        try:
            second = cl.cache.Cache(os.path.join(other, "cache"), remote=shared)
            assert second.get_or_make(one, never) == image(1)
            second.get_or_make(two, lambda: image(2))
            assert second.remote.flush()
            assert not second._server.is_stopped
        finally:
            os.seteuid(0)
        assert machine(shared).get_or_make(two, never) == image(2)


def test_two_versions_on_one_remote(shared, machine, image, key, never):
    """Entries of another version's format are compiled again; all others still hit."""
    first = machine(shared)
    for number in (1, 2):
        first.get_or_make(key(number), lambda: image(1))
    assert first.remote.flush()
    folder = shared.removeprefix("file://")
    path = os.path.join(folder, "00", f"{key(1)}.entry")
    with open(path, "r+b") as file:
        file.seek(8)
        file.write(struct.pack("<I", 2))
    second = machine(shared)
    with pytest.warns(cl.CacheWarning, match="is not a cache entry of this version; compiling"):
        assert second.get_or_make(key(1), lambda: image(9)) == image(9)
    assert second.get_or_make(key(2), never) == image(1)
    assert second.remote.flush()
    # Files and folders of formats to come are no entries.
    os.mkdir(os.path.join(folder, "v9"))
    for name in (f"{key(3)}.entry2", f"{key(3)}", "index.json"):
        with open(os.path.join(folder, "00", name), "w") as file:
            file.write("{}")
    assert machine(shared).pull() == 1 + 1


@pytest.mark.needs("fsspec")
def test_a_process_ends_although_the_server_hangs(tmp_path):
    start = time.monotonic()
    said = run(
        """
import time
sys.path.insert(0, sys.argv[2])
import servers
servers.register()
servers.GATE["sleep"] = 1000.0
cache = cl.cache.Cache(sys.argv[1], remote=cl.cache.RemoteCache("bad://slow", timeout=0.3))
print(len(cache.get_or_make("0" * 64, lambda: image(1)).data))
""",
        tmp_path,
        os.path.dirname(__file__),
    )
    assert said.stdout == "3016\n"
    assert "no answer in 0.3 s" in said.stderr
    assert time.monotonic() - start < 50, "and not 1000 s"


def test_a_home_that_cannot_be_written_to(tmp_path):
    said = run(
        """
cache = cl.cache.Cache()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert cache.get_or_make("0" * 64, lambda: image(1)) == image(1)
    assert cache.get_or_make("0" * 64, lambda: image(2)) == image(2)
(one,) = said
print(one.message)
""",
        HOME="/proc/1/none",
        CULAUNCH_CACHE_DIR="",
        XDG_CACHE_HOME="",
    )
    assert "it is not used" in said.stdout


def test_an_entry_that_was_replaced_since_it_was_read_is_not_dropped(tmp_path, image, key):
    cache = cl.cache.Cache(tmp_path, remote=False)
    name = f"{key(1)}.entry"
    cache.store(key(1), image(1))
    with TrustedDirectory.open(cache.path) as directory:
        _, status = directory.read(name)
        cache.store(key(1), image(1))  # another process, between the read and the removal
        kind.drop_file(directory, name, status)
        assert cache.lookup(key(1)) == image(1)
        _, status = directory.read(name)
        kind.drop_file(directory, name, status)
    assert cache.lookup(key(1)) is None
