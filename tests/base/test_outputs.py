"""Outputs are written as compilers write them, by whatever call."""

import contextlib
import errno
import os
import stat
import subprocess
import sys
import tempfile
import threading

import pytest
from full_disks import no_file_larger_than

import culaunch as cl
from culaunch._base.outputs import open_output, write_output, write_outputs

PTX = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"
NOBODY = 65534


def save(path):
    cl.Image(PTX).save(path)


def embed(path):
    cl.cpp.embed(PTX, path, "kernels")


def library(path):
    def doubled(n):
        return 2 * n

    with cl.testing.use_driver("emulator"):
        function = cl.function(doubled)
        function(1)
        cl.ship.save([function], path)


def write(path):
    write_output(os.fspath(path), b"content")


WRITERS = [save, embed, library, write]
every_writer = pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)


def expected(writer, tmp_path):
    writer(tmp_path / "expected")
    return (tmp_path / "expected").read_bytes()


@contextlib.contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def no_leftovers(directory):
    return not [name for name in os.listdir(directory) if name.startswith(".culaunch-")]


@every_writer
def test_a_fifo_is_written_through(tmp_path, writer):
    wanted = expected(writer, tmp_path)
    os.mkfifo(tmp_path / "fifo")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "fifo").read_bytes()))
    reader.start()
    writer(tmp_path / "fifo")
    reader.join(120)
    assert got == [wanted]
    assert stat.S_ISFIFO(os.lstat(tmp_path / "fifo").st_mode)


@every_writer
def test_a_device_stays_a_device(tmp_path, writer):
    null = tmp_path / "null"
    try:
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        null.write_bytes(b"x")
    except PermissionError:
        null = "/dev/null"  # a user who may not create a device cannot replace one either
    writer(null)
    assert stat.S_ISCHR(os.lstat(null).st_mode)


@every_writer
def test_a_symbolic_link_stays_one_and_its_target_is_written(tmp_path, writer):
    wanted = expected(writer, tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "target").write_bytes(b"old")
    (tmp_path / "second").symlink_to("folder/target")
    (tmp_path / "link").symlink_to("second")
    writer(tmp_path / "link")
    assert os.readlink(tmp_path / "link") == "second"
    assert (tmp_path / "folder" / "target").read_bytes() == wanted
    assert no_leftovers(tmp_path)
    assert no_leftovers(tmp_path / "folder")


@every_writer
def test_a_link_to_nothing_makes_its_target(tmp_path, writer):
    wanted = expected(writer, tmp_path)
    (tmp_path / "link").symlink_to("new")
    writer(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").read_bytes() == wanted


def test_links_in_a_circle_are_an_error_that_names_the_output(tmp_path):
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="link") as caught:
        write(tmp_path / "link")
    assert caught.value.errno == errno.ELOOP


@every_writer
def test_what_was_there_keeps_its_mode(tmp_path, writer):
    wanted = expected(writer, tmp_path)
    for mode in (0o600, 0o755, 0o664):
        (tmp_path / "out").write_bytes(b"old")
        os.chmod(tmp_path / "out", mode)
        with umask(0o027):
            writer(tmp_path / "out")
        assert mode_of(tmp_path / "out") == mode
        assert (tmp_path / "out").read_bytes() == wanted


@every_writer
def test_a_new_file_has_what_the_umask_leaves(tmp_path, writer):
    for mask in (0o022, 0o027, 0o077, 0o000):
        with umask(mask):
            writer(tmp_path / f"{mask:o}")
        assert mode_of(tmp_path / f"{mask:o}") == 0o666 & ~mask


@every_writer
def test_the_umask_of_the_process_is_never_changed(tmp_path, writer, monkeypatch):
    def refuse(mask):
        raise AssertionError("every thread would see it")

    monkeypatch.setattr(os, "umask", refuse)
    writer(tmp_path / "out")


@every_writer
def test_what_was_there_is_replaced_as_a_whole(tmp_path, writer):
    wanted = expected(writer, tmp_path)
    (tmp_path / "out").write_bytes(b"old")
    with open(tmp_path / "out", "rb") as reader:
        writer(tmp_path / "out")
        assert reader.read() == b"old"  # a reader still sees all of the old file
    assert (tmp_path / "out").read_bytes() == wanted


def test_a_failure_leaves_what_was_there(tmp_path):
    (tmp_path / "out").write_bytes(b"old")
    with contextlib.suppress(KeyError), open_output(str(tmp_path / "out")) as file:
        file.write(b"half")
        raise KeyError
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"old"


@every_writer
def test_a_missing_directory_is_named(tmp_path, writer):
    with pytest.raises(FileNotFoundError, match="does not exist: create it first") as caught:
        writer(tmp_path / "nosuch" / "out")
    assert caught.value.filename == str(tmp_path / "nosuch")


@every_writer
def test_a_directory_is_no_output(tmp_path, writer):
    with pytest.raises(IsADirectoryError, match="must be a file, not a directory") as caught:
        writer(tmp_path)
    assert caught.value.filename == str(tmp_path)


def test_a_full_disk_is_told_of_the_file_that_the_user_named():
    with pytest.raises(OSError, match="No space left") as caught:
        write("/dev/full")
    assert caught.value.filename == "/dev/full"


@every_writer
@pytest.mark.parametrize("there", [True, False])
def test_a_disk_without_room_leaves_all_as_it_was(tmp_path, writer, there):
    path = tmp_path / "out"
    if there:
        path.write_bytes(b"old")
    with no_file_larger_than(4), pytest.raises(OSError, match="File too large") as caught:
        writer(path)
    assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == (["out"] if there else [])
    assert not there or path.read_bytes() == b"old"
    writer(path)
    no_leftovers(tmp_path)


@pytest.mark.parametrize("full", ["a", "b"])
def test_outputs_that_belong_together_are_all_written_or_none(tmp_path, full):
    paths = {name: str(tmp_path / name) for name in "ab"}
    contents = {path: b"long" * (1 + 9 * (name == full)) for name, path in paths.items()}
    for path in contents:
        write_output(path, b"old")
    with no_file_larger_than(20), pytest.raises(OSError, match="File too large") as caught:
        write_outputs(contents)
    assert caught.value.filename == paths[full]
    assert [(tmp_path / name).read_bytes() for name in sorted(os.listdir(tmp_path))] == [b"old"] * 2
    write_outputs(contents)
    assert [(tmp_path / name).read_bytes() for name in "ab"] == [*contents.values()]


def test_what_cannot_be_replaced_is_not_lost_where_there_is_no_room(tmp_path, monkeypatch):
    """As a file that is a mount of its own, in a container: it is written in place."""
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def refuse(*_):
        raise OSError(errno.EBUSY, "Device or resource busy")

    def full(descriptor, start, size):
        assert os.fstat(descriptor).st_size == start == 3
        os.ftruncate(descriptor, start + size // 2)  # as far as there was room
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "rename", refuse)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match="No space left") as caught:
            write(path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    for content in (b"longer than that", b"x"):
        write_output(str(path), content)
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["out"]


AS_NOBODY = """
import os, sys
import culaunch as cl
image = cl.Image(sys.argv[2].encode())
image.save(os.devnull)  # what this imports may be only root's to read
os.setgid({nobody}); os.setuid({nobody})
try:
    image.save(sys.argv[1])
except OSError as error:
    print(type(error).__name__, error.filename)
else:
    print("written")
"""


def as_nobody(path):
    """Write as a user whom modes bind; root may write everywhere."""
    if os.geteuid() != 0:
        code = AS_NOBODY.replace("os.setgid({nobody}); os.setuid({nobody})", "")
    else:
        code = AS_NOBODY.format(nobody=NOBODY)
    command = [sys.executable, "-c", code, path, PTX.decode()]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        environment = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.split()


@pytest.fixture
def open_directory(tmp_path):
    """A directory that all users can enter; pytest's own are private."""
    with tempfile.TemporaryDirectory(prefix="culaunch-test-") as directory:
        os.chmod(directory, 0o777)
        yield directory


def test_a_read_only_output_is_refused(open_directory):
    path = os.path.join(open_directory, "out")
    with open(path, "wb") as file:
        file.write(b"old")
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    os.chmod(path, 0o444)
    assert as_nobody(path) == ["PermissionError", path]
    with open(path, "rb") as file:
        assert file.read() == b"old"


def test_a_directory_that_takes_no_files_is_told_of_the_output(open_directory):
    path = os.path.join(open_directory, "out")
    os.chmod(open_directory, 0o555)
    assert as_nobody(path) == ["PermissionError", path]


def test_a_file_in_a_read_only_directory_is_written_in_place(open_directory):
    path = os.path.join(open_directory, "out")
    with open(path, "wb") as file:
        file.write(b"the old content")
    os.chmod(path, 0o666)
    os.chmod(open_directory, 0o555)
    assert as_nobody(path) == ["written"]
    with open(path, "rb") as file:
        assert file.read() == PTX


@pytest.mark.needs("root")
def test_a_file_of_another_user_keeps_its_owner(open_directory):
    path = os.path.join(open_directory, "out")
    with open(path, "wb") as file:
        file.write(b"the old content")
    os.chown(path, NOBODY, NOBODY)
    write_output(path, b"new")
    assert os.stat(path).st_uid == NOBODY
    # And one that may be written but not given away is written in place.
    os.chown(path, 0, 0)
    os.chmod(path, 0o666)
    assert as_nobody(path) == ["written"]
    assert os.stat(path).st_uid == 0
    assert mode_of(path) == 0o666


def test_standard_output_that_is_a_file_is_written_in_place(tmp_path):
    code = f"import culaunch as cl; cl.Image({PTX!r}).save('/dev/stdout')"
    with open(tmp_path / "out", "wb") as file:
        subprocess.run([sys.executable, "-c", code], check=True, stdout=file)
        assert os.fstat(file.fileno()).st_ino == os.stat(tmp_path / "out").st_ino
    assert (tmp_path / "out").read_bytes() == PTX


def test_a_durable_output_is_on_the_disk_before_its_name_is(tmp_path, monkeypatch):
    done = []
    fsync, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("fsync"), fsync(handle)))
    monkeypatch.setattr(os, "rename", lambda *paths: (done.append("rename"), rename(*paths)))
    write_output(str(tmp_path / "out"), b"content", durable=True)
    assert done == ["fsync", "rename", "fsync"]  # the file, and then its directory
