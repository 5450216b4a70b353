"""Libraries are mapped: processes share their pages, and images are taken from where they are."""

import os
import subprocess
import sys

import pytest

import culaunch as cl
from culaunch._library import LibraryFile, library_bytes, write_library

CUBIN = b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7) + b"\x02\x00\xbe\x00" + bytes(44)
PTX = b".version 8.0\n.target sm_80\n"
MEMBERS = {"images/a.cubin": CUBIN + bytes(9000), "images/b.ptx": PTX}


@pytest.fixture
def path(tmp_path):
    write_library(tmp_path / "k.culib", [{"name": "k", "kind": "t"}], MEMBERS, "test")
    return tmp_path / "k.culib"


def test_an_image_has_the_bytes_of_the_file(path):
    members = LibraryFile(path).members
    image = members.image("images/a.cubin")
    assert type(image) is not cl.Image, "its bytes are read when they are asked for"
    assert (image.format, image.path) == ("cubin", f"{path}:images/a.cubin")
    plain = cl.Image(MEMBERS["images/a.cubin"])
    assert image == plain
    assert plain == image
    assert hash(image) == hash(plain)
    assert image != cl.Image(CUBIN)
    assert image.data == plain.data


def test_ptx_is_copied_as_drivers_want_a_zero_after_it(path):
    image = LibraryFile(path).members.image("images/b.ptx")
    assert type(image) is cl.Image
    assert image.data == PTX


def test_what_is_not_aligned_is_copied(tmp_path):
    """As in a library that something else wrote."""
    data = library_bytes([{"name": "k", "kind": "t"}], MEMBERS, "test")
    # Bytes before a zip are no part of it.
    (tmp_path / "moved.culib").write_bytes(b"#" * 7 + data)
    members = LibraryFile(tmp_path / "moved.culib").members
    image = members.image("images/a.cubin")
    assert type(image) is cl.Image
    assert image.data == MEMBERS["images/a.cubin"]


def test_members_are_aligned(path):
    data = path.read_bytes()
    for content in MEMBERS.values():
        assert data.index(content) % 64 == 0


def test_a_file_that_was_cut_short_is_an_error(path):
    members = LibraryFile(path).members
    os.truncate(path, 100)
    with pytest.raises(cl.ImageError, match="the file was truncated after it was opened"):
        members.image("images/a.cubin")


def test_a_closed_library(path):
    library = LibraryFile(path)
    image = library.members.image("images/a.cubin")
    library.close()
    assert image.data == MEMBERS["images/a.cubin"], "what was given stays"
    with pytest.raises(cl.ImageError, match="the file is closed"):
        library.read("images/a.cubin")


PROGRAM = """
import sys
from culaunch._library import LibraryFile
image = LibraryFile(sys.argv[1]).members.image("images/a.cubin")
facts, here = {}, False
for line in open("/proc/self/smaps"):
    words = line.split()
    if words[0][-1] != ":":
        here = line.rstrip().endswith(sys.argv[1])
    elif here and words[-1] == "kB":
        facts[words[0][:-1]] = facts.get(words[0][:-1], 0) + int(words[1])
print(facts["Rss"], facts["Anonymous"])
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="needs smaps")
def test_no_page_of_it_is_a_processs_own(path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path], check=True, capture_output=True, text=True
    )
    resident, own = map(int, done.stdout.split())
    assert resident > 0
    assert own == 0


@pytest.mark.parametrize("name", ["directory", "empty"])
def test_what_cannot_be_mapped(name, tmp_path):
    (tmp_path / "directory").mkdir()
    (tmp_path / "empty").touch()
    with pytest.raises((cl.ImageError, OSError)):
        LibraryFile(tmp_path / name)
