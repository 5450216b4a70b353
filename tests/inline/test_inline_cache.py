"""load_inline's cache, with a compiler that only counts how often it is called."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from entry_bytes import entry_of, split

import culaunch as cl
from culaunch._cache.libraries import Libraries

pytest.importorskip("tvm_ffi")
pytestmark = pytest.mark.needs("g++")

FUNCTION = """
extern "C" __attribute__((visibility("default")))
int __tvm_ffi_seven(void*, const void*, int, void* result) {
  struct { int type; int zero; long long value; }* out = (decltype(out))result;
  out->type = 1;
  out->zero = 0;
  out->value = 7;
  return 0;
}
"""
EMBEDS = """
extern "C" __attribute__((visibility("hidden"))) const unsigned char culaunch_image_k[];
const void* used = culaunch_image_k;
"""
# Writes what a compiler writes: an object and the headers it read, or a library.
COMPILER = """\
#!/bin/sh
case "$*" in *" -E -v "*) exit 1 ;; esac  # it does not say where it looks
case "$*" in
  *" -c "*/culaunch_implementation.cpp*) echo "$*" >> "$FAKE/implementations" ;;
  *) echo "$*" >> "$FAKE/calls" ;;
esac
while [ $# -gt 0 ]; do
  case "$1" in
    -MF) depfile=$2; shift ;;
    -o) output=$2; shift ;;
  esac
  shift
done
if [ -n "$depfile" ]; then
  [ -n "$FAKE_SLOW" ] && sleep "$FAKE_SLOW"
  printf 'x.o: %s %s\\\\\\n %s\\n' "$FAKE/one.h" "" "$FAKE/with\\\\ space.h" > "$depfile"
  cp "$FAKE/object.o" "$output"
else
  cp "$FAKE/library.so" "$output"
fi
"""


@pytest.fixture(scope="module")
def products(tmp_path_factory, cxx, compile_object):
    folder = tmp_path_factory.mktemp("products")
    compile_object(cxx, FUNCTION + EMBEDS, folder / "object.o")
    plain = compile_object(cxx, FUNCTION, folder / "plain.o")
    subprocess.run([cxx, "-shared", "-o", folder / "library.so", plain], check=True)
    return folder


@pytest.fixture
def fake(tmp_path, monkeypatch, products):
    folder = tmp_path / "fake"
    folder.mkdir()
    for name in ("object.o", "library.so"):
        (folder / name).write_bytes((products / name).read_bytes())
    (folder / "one.h").write_text("1")
    (folder / "with space.h").write_text("2")
    (folder / "c++").write_text(COMPILER)
    (folder / "c++").chmod(0o755)
    monkeypatch.setenv("FAKE", str(folder))
    monkeypatch.setenv("CXX", str(folder / "c++"))
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def load(fake, stand_in_cubin):
    def run(**options):
        call = {"cpp_sources": "int x;", "embed_cubin": {"k": stand_in_cubin()}, **options}
        before = calls(fake)
        module = cl.cpp.load_inline(call.pop("name", "m"), **call)
        assert module.seven() == 7
        return calls(fake) - before  # two: compile and link

    return run


def calls(fake, log="calls"):
    path = fake / log
    return len(path.read_text().splitlines()) if path.exists() else 0


def in_a_new_process(count=1, **environment):
    program = textwrap.dedent("""
        import os, sys, warnings
        sys.modules["torch"] = None  # TVM-FFI imports it where it is, which takes seconds
        import culaunch as cl, tvm_ffi

        def forbid(event, arguments):
            if event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.system"):
                raise AssertionError(f"{event} {arguments}")

        if "FORBID_PROCESSES" in os.environ:
            sys.addaudithook(forbid)
        # Not by -W, which is read before there are site-packages to find the category in.
        warnings.simplefilter("error", cl.CacheWarning)
        header = bytearray(200)
        header[:7] = b"\\x7fELF\\x02\\x01\\x01"
        header[16:20] = b"\\x02\\x00\\xbe\\x00"
        m = cl.cpp.load_inline("m", "int x;", embed_cubin={"k": bytes(header)})
        print(m.seven())
    """)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    for process in running:
        out, err = process.communicate(timeout=300)
        assert (out, err, process.returncode) == ("7\n", "", 0)


def test_the_implementation_is_compiled_once_for_all_libraries(load, fake):
    for number in range(3):
        load(cpp_sources=f"int x = {number};")
    assert calls(fake, "implementations") == 1
    load(flags=["-O1"])
    assert calls(fake, "implementations") == 2
    load(flags=["-DCULAUNCH_HEADER_ONLY=1"])
    assert calls(fake, "implementations") == 2
    load(build_directory=fake / "built")  # has its own
    assert calls(fake, "implementations") == 3
    linked = [line for line in (fake / "calls").read_text().splitlines() if "-shared" in line]
    assert ["culaunch_implementation-" in line for line in linked] == [True] * 4 + [False, True]


def test_a_changed_header_of_the_implementation_builds_both_again(load, fake):
    load()
    (fake / "one.h").write_text("other")
    assert load() == 2
    assert calls(fake, "implementations") == 2


def test_the_same_is_built_once(load, fake):
    assert load() == 2
    assert load() == 0
    assert load(embed_cubin={"k": stand_in()}) == 2


@pytest.mark.slow
def test_what_is_built_is_found_by_another_process_which_starts_none(fake):
    in_a_new_process()
    in_a_new_process(FORBID_PROCESSES="1")


def stand_in():
    header = bytearray(100)
    header[:7] = b"\x7fELF\x02\x01\x01"
    header[16:20] = b"\x02\x00\xbe\x00"
    return bytes(header)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "change",
    [
        {"cpp_sources": "int y;"},
        {"cpp_sources": ["int x;", ""]},
        {"functions": "seven", "cpp_sources": "int seven();"},
        {"headers": {"a.h": ""}},
        {"flags": ["-O3"]},
        {"link_flags": ["-s"]},
        {"include_dirs": ["/"]},
        {"name": "other"},
        {"embed_cubin": {"k": stand_in()}},
    ],
)
def test_whatever_changes_is_built_anew_even_in_one_directory(load, tmp_path, change):
    directory = {"build_directory": tmp_path / "build"}
    assert load(**directory) == 2
    assert load(**directory, **change) == 2
    assert load(**directory) == 0


def test_a_changed_header_is_built_anew_and_the_old_one_found_again(load, fake):
    header = fake / "with space.h"
    assert load() == 2
    facts = header.stat()
    header.write_text("3")
    os.utime(header, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # as if nothing had happened
    assert load() == 2
    header.write_text("2")
    assert load() == 0
    header.unlink()
    header.write_text("2")  # another file, the same content
    assert load() == 0


def test_a_changed_compiler_builds_anew(load, fake):
    assert load() == 2
    (fake / "c++").write_text(COMPILER + "# a new version\n")
    assert load() == 2


@pytest.mark.slow
def test_another_process_finds_it(load, fake):
    in_a_new_process()
    assert calls(fake) == 2
    in_a_new_process()
    assert calls(fake) == 2


@pytest.mark.slow
def test_processes_that_want_the_same_build_it_once(fake):
    in_a_new_process(count=3, FAKE_SLOW="0.5")
    assert calls(fake) == 2


@pytest.mark.slow
def test_a_damaged_library_or_record_is_built_anew(fake, tmp_path):
    in_a_new_process()
    for pattern, damage in (("*.so", b"\x7fELF damaged"), ("*.note", b'{"schema": 1}')):
        (path,) = (tmp_path / "cache" / "inline").glob(f"m-*/{pattern}")
        before = calls(fake)
        path.write_bytes(damage)
        in_a_new_process()
        assert calls(fake) == before + 2
    assert list((tmp_path / "cache").glob("inline/*/.build-*")) == []


def test_a_cache_that_cannot_be_written_costs_a_warning_only(load, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(cl.CacheWarning, match="CULAUNCH_CACHE_DIR or build_directory="):
        assert load() == 2
    assert load() == 0  # this process has it loaded


def test_the_cache_is_the_users_alone_whatever_the_umask(load, tmp_path):
    before = os.umask(0o002)
    try:
        assert load() == 2
    finally:
        os.umask(before)
    for path in (tmp_path / "cache", *(tmp_path / "cache" / "inline").iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_a_cache_that_others_can_write_to_is_not_used(load, tmp_path):
    assert load() == 2
    (tmp_path / "cache").chmod(0o777)
    with pytest.warns(cl.CacheWarning, match=r"cache: other users may write to it \(mode 0777"):
        assert load(flags=["-O3"]) == 2
    assert len(list((tmp_path / "cache" / "inline").glob("m-*/*.so"))) == 1


def test_a_library_that_cannot_be_published_is_used_all_the_same(load, tmp_path, monkeypatch):
    def full(source, target, **directories):
        raise OSError(errno.ENOSPC, "No space left on device", source)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        # Merging the image publishes a file too, but there an error is an error.
        with pytest.warns(cl.CacheWarning, match="No space left on device"):
            assert load(embed_cubin=None, cpp_sources="int y;") == 2
    assert list((tmp_path / "cache" / "inline").iterdir()) == []


def test_a_compiler_without_room_is_no_mistake_in_the_source(load, tmp_path, monkeypatch):
    compiler = tmp_path / "c++"
    compiler.write_text(
        "#!/bin/sh\ncase $* in *-c*) echo $TMPDIR: No space left on device >&2; exit 1;; esac\n"
        'exec c++ "$@"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(OSError, match=r"No space left on device: c\+\+ writes") as caught:
        load()
    assert "culaunch-scratch-" in caught.value.filename
    assert not os.path.exists(caught.value.filename)


@pytest.fixture
def root():
    if os.geteuid() != 0:
        pytest.skip("needs root, to give files to other users")


def plant(directory):
    """Replace every library of a directory; return the old ones."""
    planted = 0
    for path in directory.rglob("m-*.so"):
        evil = b"evil: never loaded"
        path.unlink()  # this process may have it mapped
        path.write_bytes(evil)
        record, key = path.with_suffix(".note"), f"{path.parent.name}/{path.stem}"
        note = json.loads(split(record.read_bytes())[0])
        note["result"] = hashlib.sha256(evil).hexdigest()
        record.write_bytes(entry_of(key, note))
        planted += 1
    return planted


@pytest.mark.sweep(4)
@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o770])
def test_a_build_directory_that_others_can_write_to_is_not_used(load, tmp_path, mode):
    place = tmp_path / "x"
    assert load(build_directory=place) == 2
    assert plant(place) == 1
    place.chmod(mode)
    with pytest.warns(cl.CacheWarning, match=f"x: other users may write to it .mode {mode:04o}"):
        assert load(build_directory=place, flags=["-O3"]) == 2
    assert len(list(place.rglob("m-*.so"))) == 1


def test_an_entry_that_another_user_has_made_is_not_loaded(load, tmp_path, root, monkeypatch):
    # Its name is known from the sources: in a directory such as /tmp/x anybody can make it first.
    place = tmp_path / "x"
    load(build_directory=place)
    plant(place)
    (entry,) = place.glob("m-*")
    os.chown(entry, 12345, 12345)
    monkeypatch.setattr("culaunch._inline.inline.loaded_modules", {})
    with pytest.warns(cl.CacheWarning, match="belongs to user 12345, not 0"):
        assert load(build_directory=place) == 2


@pytest.mark.parametrize("file", ["*.so", "*.note"])
def test_a_file_that_others_can_change_is_built_anew(load, tmp_path, monkeypatch, file):
    load(build_directory=tmp_path / "x")
    (path,) = (tmp_path / "x").rglob(f"m-{file}")
    path.chmod(0o666)
    monkeypatch.setattr("culaunch._inline.inline.loaded_modules", {})
    assert load(build_directory=tmp_path / "x") == 2


def test_a_library_is_loaded_from_the_directory_that_was_checked(load, tmp_path, monkeypatch):
    # A directory above can be changed by others: the path may lead elsewhere by the next moment.
    place = tmp_path / "open" / "x"
    place.mkdir(parents=True, mode=0o700)
    (tmp_path / "open").chmod(0o777)
    assert load(build_directory=place) == 2
    monkeypatch.setattr("culaunch._inline.inline.loaded_modules", {})
    assert load(build_directory=place) == 0


@pytest.mark.slow
def test_a_disk_that_is_full_costs_a_warning_only(fake, tmp_path):
    # In a mount namespace of its own: nothing is left behind, and root is not needed.
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            ["unshare", "--map-root-user", "--mount", "true"], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("needs unshare")
    disk = tmp_path / "disk"
    disk.mkdir()
    program = f"""
        import os, subprocess, sys, warnings
        sys.modules["torch"] = None
        import culaunch as cl
        disk = {str(disk)!r}
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], check=True)
        os.environ["CULAUNCH_CACHE_DIR"] = disk + "/cache"
        with open(disk + "/ballast", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(cl.cpp.load_inline("m", "int x;").seven())
        print([str(one.message) for one in caught])
    """
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-c"]
    done = subprocess.run(
        [*command, textwrap.dedent(program)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("7\n")
    assert "No space left on device" in done.stdout


def test_the_cap_of_the_cache_covers_what_is_built(load, tmp_path, monkeypatch):
    monkeypatch.setenv("CULAUNCH_CACHE_MAX_SIZE", "1K")
    for flag in ("-O1", "-O2", "-O3"):
        assert load(flags=[flag]) == 2
    info = cl.cache.Cache().info()
    assert (info.entries, info.libraries) == (1, 1), "only what was just made"
    assert cl.cache.Cache().clear() == 1
    assert list((tmp_path / "cache").rglob("*.so")) == []


def test_an_entry_that_is_removed_before_it_is_loaded_is_built_anew(load, tmp_path, monkeypatch):
    load()
    monkeypatch.setattr("culaunch._inline.inline.loaded_modules", {})
    find = Libraries.find

    def found_and_gone(self):
        entry = find(self)
        cl.cache.Cache().clear()
        return entry

    monkeypatch.setattr(Libraries, "find", found_and_gone)
    assert load() == 2


@pytest.mark.parametrize(("argument", "value"), [("arch", "sm_90"), ("cuda_flags", ["-G"])])
def test_what_is_for_nvcc_is_refused_without_sources_for_it(load, argument, value):
    with pytest.raises(ValueError, match=f"{argument} applies only to cuda_sources"):
        load(**{argument: value})
