"""Temporary files and directories go with their process, however it ends."""

import errno
import os
import signal
import subprocess
import sys
import threading

import pytest
from full_disks import no_file_larger_than

from culaunch._base import alive, compiler_files, outputs, scratch

PROGRAM = """
import os, signal, sys
from culaunch._base import outputs, scratch
kept = scratch.Scratch().remove_at_exit()
open(os.path.join(kept.path, "file"), "w").close()
"""


def run(tmp_path, text):
    """Run a program that has a scratch directory in a folder; return its exit code."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + text],
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ).returncode


def test_it_goes_with_the_block(tmp_path):
    with scratch.Scratch(str(tmp_path)) as path:
        assert os.stat(path).st_mode & 0o777 == 0o700
        open(os.path.join(path, "file"), "w").close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("end", ["", "raise ValueError", "sys.exit(3)"])
def test_it_goes_with_the_process(tmp_path, end):
    run(tmp_path, end)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, end):
    run(tmp_path, end)
    (left,) = os.listdir(tmp_path)
    assert left.startswith(scratch.PREFIX)
    with scratch.Scratch(str(tmp_path)) as path:
        assert os.listdir(tmp_path) == [os.path.basename(path)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of CPython 3.12 and newer
@pytest.mark.filterwarnings("ignore:os.fork.* was called:RuntimeWarning")  # of JAX
def test_a_living_process_keeps_its_own(tmp_path):
    (tmp_path / f"{scratch.PREFIX}of-somebody").mkdir()  # no name that this makes up
    with scratch.Scratch(str(tmp_path)) as first:
        with scratch.Scratch(str(tmp_path)) as second:
            assert os.path.isdir(first)
            assert first != second
        child = os.fork()
        if child == 0:  # its end is not the parent's
            os._exit(
                0 if not scratch.Scratch(str(tmp_path)).remove() and os.path.isdir(first) else 1
            )
        assert os.waitpid(child, 0)[1] == 0
        assert os.path.isdir(first)
    assert os.listdir(tmp_path) == [f"{scratch.PREFIX}of-somebody"]


def test_many_threads_take_nothing_from_each_other(tmp_path):
    wrong = []

    def work():
        for number in range(30):
            with scratch.Scratch(str(tmp_path)) as path:
                open(os.path.join(path, str(number)), "w").close()
                if os.listdir(path) != [str(number)]:
                    wrong.append(path)
                outputs.write_output(str(tmp_path / "out"), b"content")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert os.listdir(tmp_path) == ["out"]


def test_what_is_made_and_what_is_taken_for_dead_exclude_each_other(tmp_path):
    path = str(tmp_path / "file")
    mine = os.open(path, os.O_RDWR | os.O_CREAT)
    other = alive.take_dead(path)
    assert not alive.claim(path, mine), "another process is about to remove it"
    os.unlink(path)
    os.close(other)
    assert not alive.claim(path, mine), "it is gone"
    os.close(mine)
    mine = os.open(path, os.O_RDWR | os.O_CREAT)
    assert alive.claim(path, mine)
    assert alive.take_dead(path) is None
    os.close(mine)


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("culaunch._base.alive.fcntl.flock", refuse)
    with scratch.Scratch(str(tmp_path)) as first, scratch.Scratch(str(tmp_path)):
        assert os.path.isdir(first), "nothing is taken for dead"
    outputs.write_output(str(tmp_path / "out"), b"content")
    assert os.listdir(tmp_path) == ["out"]


def test_what_a_killed_writer_left_goes_with_the_next_output(tmp_path):
    path = str(tmp_path / "out")
    killed = run(
        tmp_path,
        f"kept.remove()\nwith outputs.open_output({path!r}) as file:\n    file.write(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)",
    )
    assert killed == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert left.endswith(".tmp")
    outputs.write_output(path, b"content")
    assert os.listdir(tmp_path) == ["out"]


def test_two_writers_of_one_output(tmp_path):
    path = str(tmp_path / "out")
    with outputs.open_output(path) as first:
        first.write(b"first")
        outputs.write_output(path, b"second")
    assert (tmp_path / "out").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["out"]


def test_a_text_for_a_compiler_that_has_no_room_is_named(tmp_path):
    path = str(tmp_path / "k.cu")
    with no_file_larger_than(4), pytest.raises(OSError, match="File too large") as caught:
        compiler_files.write_text(path, "much text")
    assert caught.value.filename == path


def test_a_compiler_that_found_no_room(tmp_path, monkeypatch):
    assert compiler_files.no_room("c++", "x.cpp:1: error", str(tmp_path)) is None
    error = compiler_files.no_room(
        "c++", "error writing to /tmp/cc.s: No space left on device", str(tmp_path)
    )
    assert error.filename == str(tmp_path)
    assert "No space left on device: c++ writes its files in this directory" in str(error)
    assert compiler_files.little_room(str(tmp_path / "nowhere")) == ""
    space = list(os.statvfs(tmp_path))
    space[4] = 1  # f_bavail
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(space))
    assert "set TMPDIR to another" in compiler_files.little_room(str(tmp_path))
    said = "fatal error: when writing output to x.ii: No such file or directory"
    assert compiler_files.no_room("nvcc", said, str(tmp_path)).errno == errno.ENOSPC
