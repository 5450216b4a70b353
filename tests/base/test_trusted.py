"""Whose directories and files are believed."""

import os
import stat

import pytest

from culaunch._base.trusted import TrustedDirectory, UntrustedError, make_private

OTHER = 12345


@pytest.fixture
def root():
    if os.geteuid() != 0:
        pytest.skip("needs root, to give files to other users")


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "place"
    path.mkdir(mode=0o700)
    (path / "file").write_bytes(b"content")
    (path / "file").chmod(0o644)
    return path


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500, 0o711])
def test_what_the_user_alone_can_change_is_believed(place, mode):
    place.chmod(mode)
    with TrustedDirectory.open(str(place)) as directory:
        assert directory.read("file")[0] == b"content"


@pytest.mark.parametrize("mode", [0o770, 0o775, 0o702, 0o777, 0o1777, 0o720])
def test_what_a_group_or_everybody_can_change_is_not(place, mode):
    place.chmod(mode)
    with pytest.raises(
        UntrustedError, match=f"other users may write to it .mode {mode:04o}.: run chmod"
    ):
        TrustedDirectory.open(str(place))
    place.chmod(0o700)
    (place / "file").chmod(0o664)
    (place / "sub").mkdir()
    (place / "sub").chmod(mode)
    with TrustedDirectory.open(str(place)) as directory:
        assert directory.read("file") is None
        with pytest.raises(UntrustedError):
            directory.sub("sub")


def test_what_another_user_has_made_is_not(place, root):
    with TrustedDirectory.open(str(place)) as directory:
        os.chown(place / "file", OTHER, OTHER)
        assert directory.read("file") is None
    os.chown(place, OTHER, OTHER)
    with pytest.raises(UntrustedError, match=f"it belongs to user {OTHER}, not 0"):
        TrustedDirectory.open(str(place))


def test_what_root_has_made_is_believed(tmp_path, monkeypatch, root):
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    with TrustedDirectory.open(str(tmp_path)):
        pass


def test_a_link_of_another_user_is_not_followed(place, tmp_path, root):
    (tmp_path / "link").symlink_to(place)
    with TrustedDirectory.open(str(tmp_path / "link")) as directory:
        assert directory.read("file") is not None
    os.lchown(tmp_path / "link", OTHER, OTHER)
    with pytest.raises(UntrustedError, match=f"symbolic link that belongs to user {OTHER}"):
        TrustedDirectory.open(str(tmp_path / "link"))


def test_links_and_fifos_inside_are_not_read(place, tmp_path):
    (place / "link").symlink_to(place / "file")
    (place / "folder").symlink_to(tmp_path)
    os.mkfifo(place / "fifo")
    with TrustedDirectory.open(str(place)) as directory:
        assert directory.read("link") is None
        assert directory.read("fifo") is None, "and does not wait for a writer"
        with pytest.raises(OSError, match="folder"):
            directory.sub("folder")


def test_what_was_opened_is_read_whatever_takes_its_name(place, tmp_path):
    with TrustedDirectory.open(str(place)) as directory:
        place.rename(tmp_path / "away")
        place.mkdir()
        (place / "file").write_bytes(b"evil")
        assert directory.read("file")[0] == b"content"
        directory.publish("new", b"more")
    assert os.listdir(place) == ["file"]
    assert (tmp_path / "away" / "new").read_bytes() == b"more"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_directories_that_are_made_are_the_users_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        make_private(str(tmp_path / "a" / "b" / "c"))
        with TrustedDirectory.open(str(tmp_path / "d" / "e"), make=True) as directory:
            directory.sub("f", make=True).close()
            directory.publish("file", b"")
    finally:
        os.umask(before)
    for path in ("a", "a/b", "a/b/c", "d", "d/e", "d/e/f"):
        assert mode_of(tmp_path / path) == 0o700
    assert mode_of(tmp_path / "d/e/file") == 0o600


def test_a_published_file_is_on_the_disk_before_its_name_is(place, monkeypatch):
    done = []
    fsync, rename = os.fsync, os.rename
    with TrustedDirectory.open(str(place)) as directory, monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: (done.append("fsync"), fsync(handle)))
        patch.setattr(os, "rename", lambda *a, **k: (done.append("rename"), rename(*a, **k)))
        directory.publish("new", b"content")
    assert done == ["fsync", "rename", "fsync"]  # the file, and then the directory


def test_publishing_that_fails_leaves_nothing(place, monkeypatch):
    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    with TrustedDirectory.open(str(place)) as directory, monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            directory.publish("new", b"content")
    assert os.listdir(place) == ["file"]


def test_a_lasting_path_is_the_usual_one_where_nobody_can_move_it(place):
    with TrustedDirectory.open(str(place)) as directory:
        assert directory.lasting_path("file") == os.path.join(os.path.realpath(place), "file")


def test_a_lasting_path_leads_to_what_was_opened_where_others_can_move_it(place, tmp_path):
    tmp_path.chmod(0o777)
    with TrustedDirectory.open(str(place)) as directory:
        path = directory.lasting_path("file")
    place.rename(tmp_path / "away")
    place.mkdir()
    (place / "file").write_bytes(b"evil")
    with open(path, "rb") as file:
        assert file.read() == b"content"
    tmp_path.chmod(0o700)


def test_no_descriptor_is_left_open(place):
    def count():
        return len(os.listdir("/proc/self/fd"))

    before = count()
    for _ in range(3):
        with TrustedDirectory.open(str(place)) as directory:
            directory.sub("sub", make=True).close()
            directory.read("file")
            directory.publish("new", b"")
            list(directory.files())
        (place / "sub").chmod(0o777)
        with TrustedDirectory.open(str(place)) as directory, pytest.raises(UntrustedError):
            directory.sub("sub")
        (place / "sub").rmdir()
    assert count() <= before  # leftovers of earlier tests may go meanwhile


def test_a_directory_where_none_can_be_made_is_an_error():
    """The place above is there, and still there is "no such file or directory"."""
    with pytest.raises(OSError, match="none"):
        make_private("/proc/none/below")
    with pytest.raises(OSError, match="none"):
        make_private("/proc/none")
