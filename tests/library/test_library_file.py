"""The library format: what is written, and every file that must be refused."""

import io
import json
import struct
import zipfile

import hypothesis
import pytest
from hypothesis import strategies as st

import culaunch as cl
from culaunch._library import LibraryFile, library_bytes, write_library

FUNCTIONS = [{"name": "k", "kind": "test"}]
MEMBERS = {"images/a.cubin": b"\x7fELF and more", "images/b.ptx": b".version 8.0"}


@pytest.fixture
def data():
    return library_bytes(FUNCTIONS, MEMBERS, "test 1")


def manifest_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return json.loads(archive.read("manifest.json"))


def packed(members, compression=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def with_manifest(data, change):
    """Rewrite the library with another manifest."""
    manifest = manifest_of(data)
    changed = change(manifest)
    text = json.dumps(manifest if changed is None else changed)
    return packed([("manifest.json", text), *MEMBERS.items()])


def refused(data, words):
    """The error is about the contents, and names the library."""
    with pytest.raises(cl.ImageError, match=words) as caught:
        LibraryFile(data)
    assert caught.value.source == f"<{len(data)} bytes>"


def test_round_trip(data, tmp_path):
    library = LibraryFile(data)
    assert library.manifest["functions"] == FUNCTIONS
    assert library.manifest["producer"] == "test 1"
    assert {name: library.read(name) for name in MEMBERS} == MEMBERS
    path = tmp_path / "k.culib"
    write_library(path, FUNCTIONS, MEMBERS, "test 1")
    assert path.read_bytes() == data  # the same content, the same bytes
    assert [one.name for one in tmp_path.iterdir()] == ["k.culib"]
    assert LibraryFile(path).read("images/b.ptx") == MEMBERS["images/b.ptx"]
    assert "k" in repr(LibraryFile(path))


def test_any_zip_program_reads_it(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "manifest.json"
        for one in archive.infolist():
            assert one.compress_type == zipfile.ZIP_STORED
            assert one.date_time == (1980, 1, 1, 0, 0, 0), "the bytes depend on the contents alone"
            assert one.external_attr >> 16 == 0o644


def test_a_replaced_file_does_not_disturb_its_reader(tmp_path):
    path = tmp_path / "k.culib"
    write_library(path, FUNCTIONS, MEMBERS, "test 1")
    library = LibraryFile(path)
    write_library(path, FUNCTIONS, {"images/c.ptx": b"x"}, "test 2")
    assert library.read("images/b.ptx") == MEMBERS["images/b.ptx"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "k.culib"
    write_library(path, FUNCTIONS, MEMBERS, "test 1")
    before = path.read_bytes()

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_library(path, FUNCTIONS, MEMBERS, "test 2")
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["k.culib"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda m: m.update(format="other"),
            "must be a JSON object with the format culaunch-library",
        ),
        (lambda m: [m], "must be a JSON object with the format culaunch-library"),
        (lambda m: m.update(version=5), "this culaunch reads versions up to 4"),
        (lambda m: m.update(version="1"), "version in the manifest must be"),
        (lambda m: m.update(version=True), "version in the manifest must be"),
        (lambda m: m.update(version=0), "version in the manifest must be"),
        (lambda m: m.update(members=[]), "members in the manifest must be"),
        (lambda m: m.update(functions={}), "functions in the manifest must be"),
        (lambda m: m.update(functions=[{}]), "functions in the manifest must be"),
        (lambda m: m.update(functions=[{"name": "k"}]), "functions in the manifest must be"),
        (
            lambda m: m.update(functions=[{"name": "k", "kind": 3}]),
            "functions in the manifest must be",
        ),
        (
            lambda m: m.update(functions=[{"name": "k\x1b[2J", "kind": "t"}]),
            "functions in the manifest must be",
        ),
        (lambda m: m.update(members={}), "members in the manifest must be"),
        (lambda m: m.update(producer=float("nan")), "NaN is not valid JSON"),
        (lambda m: m["members"].pop("images/b.ptx"), "must be those of the manifest"),
        (lambda m: m["members"].update(x={"size": 1, "sha256": "0" * 64}), "must be those of the"),
        (
            lambda m: m["members"]["images/b.ptx"].update(size=3),
            "the length that the manifest gives",
        ),
        (lambda m: m["members"]["images/b.ptx"].update(size=-1), "entry of member"),
        (lambda m: m["members"]["images/b.ptx"].update(size=2**40), "entry of member"),
        (lambda m: m["members"]["images/b.ptx"].update(sha256="x" * 64), "entry of member"),
        (lambda m: m["members"].update({"../x": m["members"].pop("images/b.ptx")}), "entry of"),
        (lambda m: m["members"].update({"manifest.json": {}}), "entry of member"),
    ],
)
def test_a_wrong_manifest(data, change, words):
    def apply(manifest):
        result = change(manifest)
        return result if isinstance(result, list) else None

    refused(with_manifest(data, apply), words)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("images/a", b"x")], "manifest.json is missing"),
        ([("manifest.json", b"not JSON")], "this is not a valid library"),
        ([("manifest.json", b"\xff\xfe")], "this is not a valid library"),
        ([("manifest.json", b"[" * 200_000)], "nested too deeply|no library"),
        ([("../evil", b"x"), ("manifest.json", b"{}")], "'../evil' is not allowed"),
        ([("/etc/passwd", b"x"), ("manifest.json", b"{}")], "is not allowed"),
        ([("a\\b", b"x"), ("manifest.json", b"{}")], "is not allowed"),
        ([(".hidden", b"x"), ("manifest.json", b"{}")], "is not allowed"),
        ([("a/./b", b"x"), ("manifest.json", b"{}")], "is not allowed"),
        ([("x" * 300, b"x"), ("manifest.json", b"{}")], "is not allowed"),
        ([("folder/", b""), ("manifest.json", b"{}")], "is not allowed"),
    ],
)
def test_a_wrong_member(members, words):
    refused(packed(members), words)


@pytest.mark.parametrize("more", [0, 1])
def test_the_number_of_members_is_limited(monkeypatch, more):
    monkeypatch.setattr("culaunch._library.library_file.MAX_MEMBERS", 3)
    members = {f"images/{i}": b"x" for i in range(3 + more)}
    data = library_bytes(FUNCTIONS, members, "test 1")
    if more:
        refused(data, "a library must have 1 to 3 members")
    else:
        assert LibraryFile(data).manifest["members"].keys() == members.keys()


@pytest.mark.parametrize(
    ("limit", "words"),
    [("MAX_FILE", "a library must have at most {0} bytes"),
     ("MAX_MANIFEST", "manifest.json must have at most {0} bytes")],
)  # fmt: skip
def test_its_size_is_limited(monkeypatch, data, limit, words):
    size = {"MAX_FILE": len(data), "MAX_MANIFEST": len(json.dumps(manifest_of(data), indent=1))}
    monkeypatch.setattr(f"culaunch._library.library_file.{limit}", size[limit])
    LibraryFile(data)
    monkeypatch.setattr(f"culaunch._library.library_file.{limit}", size[limit] - 1)
    refused(data, words.format(size[limit] - 1))


def test_two_members_of_one_name():
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = packed([("manifest.json", b"{}"), ("manifest.json", b"{}")])
    refused(data, "appears twice")


def test_compressed_members_are_refused():
    """A bomb must not be unpacked before it is found out."""
    data = packed([("manifest.json", b" " * 100_000)], zipfile.ZIP_DEFLATED)
    refused(data, "must be stored without compression")


def test_encrypted_members_are_refused(data):
    spot = data.index(b"PK\x01\x02") + 8
    refused(data[:spot] + b"\x01\x00" + data[spot + 2 :], "must be stored without compression")


@pytest.mark.parametrize("name", ["images/a.cubin", "images/b.ptx"])
def test_a_damaged_member_is_found_when_it_is_read(data, name):
    spot = data.index(MEMBERS[name])
    library = LibraryFile(data[:spot] + b"X" + data[spot + 1 :])
    with pytest.raises(cl.ImageError, match=f"member {name} is damaged"):
        library.read(name)


def test_a_member_changed_with_its_checksum_of_the_zip(data):
    """The CRC is no protection; the manifest's SHA-256 is."""
    entries = [("manifest.json", json.dumps(manifest_of(data)))]
    entries += [(name, bytes([content[0] ^ 1]) + content[1:]) for name, content in MEMBERS.items()]
    library = LibraryFile(packed(entries))
    with pytest.raises(cl.ImageError, match="its SHA-256 differs from the manifest's"):
        library.read("images/a.cubin")


def test_what_is_no_member(data):
    with pytest.raises(cl.ImageError, match=r"member 'manifest\.json' does not exist"):
        LibraryFile(data).read("manifest.json")


def test_a_directory_that_points_elsewhere(data):
    """Offsets of the central directory are not trusted."""
    spot = data.index(b"PK\x01\x02")
    for offset in (0, 7, 2**31, 2**32 - 2):
        changed = bytearray(data)
        changed[spot + 42 : spot + 46] = struct.pack("<I", offset)
        if offset == 0:
            continue
        refused(bytes(changed), "not a valid library|is damaged")


@pytest.mark.parametrize("size", [0, 1, 21, 22, 100])
def test_truncated(data, size):
    refused(data[:size], "this is not a valid library")


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        LibraryFile(tmp_path / "none.culib")


def test_only_jsons_types_are_written():
    with pytest.raises(TypeError):
        library_bytes([{"name": "k", "kind": "t", "value": object()}], MEMBERS, "test")
    with pytest.raises(ValueError, match="JSON"):
        library_bytes([{"name": "k", "kind": "t", "value": float("nan")}], MEMBERS, "test")
    with pytest.raises(cl.ImageError, match="entry of member"):
        library_bytes(FUNCTIONS, {"../x": b""}, "test")


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=300)
def test_no_change_of_a_byte_does_harm(draw):
    """It is refused with an ImageError, or the written contents are read."""
    data = bytearray(library_bytes(FUNCTIONS, MEMBERS, "test 1"))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        library = LibraryFile(bytes(data))
        for name in library.manifest["members"]:
            if name in MEMBERS:
                assert library.read(name) == MEMBERS[name]
    except cl.ImageError:
        pass


@hypothesis.given(st.binary(max_size=300))
def test_any_bytes(data):
    with pytest.raises(cl.ImageError):
        LibraryFile(data)
