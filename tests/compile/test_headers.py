"""In-memory headers, CUDA's own, and what of them is in the cache key."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl
from culaunch._compile.nvrtc import loaded_library, loaded_version
from culaunch._core import nvrtc_headers, open_nvrtc

USE = "__global__ void k(int* x) { *x = VALUE; }"


def value(source, **keywords):
    """Compile and give what the kernel stores."""
    data = cl.compile(source, arch="compute_80", **keywords).data
    line = next(line for line in data.splitlines() if b"mov.u32" in line or b"mov.b32" in line)
    return int(line.split()[-1].rstrip(b";"))


def test_from_a_mapping():
    assert value('#include "my/a.h"\n' + USE, headers={"my/a.h": "#define VALUE 3"}) == 3
    assert value("#include <my/a.h>\n" + USE, headers={"my/a.h": "#define VALUE 4"}) == 4


def test_they_find_each_other_as_files_would():
    headers = {
        "my/a.h": '#include "b.h"\n#include "../top.h"\n#include "detail/c.h"\n',
        "my/b.h": "#define B 1\n",
        "b.h": "#error the wrong one\n",
        "top.h": "#define TOP 20\n",
        "my/detail/c.h": '#include "../d.h"\n#define VALUE (B + TOP + D)\n',
        "my/d.h": "#define D 300\n",
    }
    assert value('#include "my/a.h"\n' + USE, headers=headers) == 321


def test_they_win_over_directories(tmp_path):
    (tmp_path / "a.h").write_text("#define VALUE 1\n")
    source = '#include "a.h"\n' + USE
    assert value(source, include_dirs=[tmp_path]) == 1
    assert value(source, include_dirs=[tmp_path], headers={"a.h": "#define VALUE 2\n"}) == 2


def test_from_a_directory(tmp_path):
    for name in ("my/a.h", "my/b.cuh", "my/noextension", "my/.hidden.h", "my/readme.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"// {name}")
    headers = cl.compiling.Headers.from_directory(tmp_path)
    assert sorted(headers) == ["my/a.h", "my/b.cuh", "my/noextension"]
    assert headers["my/b.cuh"] == "// my/b.cuh"
    with pytest.raises(NotADirectoryError):
        cl.compiling.Headers.from_directory(tmp_path / "nothing")
    (tmp_path / "my/a.h").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"my/a.h.* is not UTF-8"):
        cl.compiling.Headers.from_directory(tmp_path)


def test_from_a_package_also_in_a_zip(tmp_path, monkeypatch):
    import zipfile

    archive = tmp_path / "app.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped_kernels/__init__.py", "")
        file.writestr("zipped_kernels/include/my/a.h", '#include "b.h"\n')
        file.writestr("zipped_kernels/include/my/b.h", "#define VALUE 12\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(archive)])
    headers = cl.compiling.Headers.from_package("zipped_kernels", "include")
    assert sorted(headers) == ["my/a.h", "my/b.h"]
    assert value("#include <my/a.h>\n" + USE, headers=headers) == 12
    with pytest.raises(NotADirectoryError, match="zipped_kernels"):
        cl.compiling.Headers.from_package("zipped_kernels", "nothing")


def test_joining():
    joined = cl.compiling.Headers({"a.h": "1", "b.h": "2"}) | {"b.h": "3"}
    assert dict(joined) == {"a.h": "1", "b.h": "3"}
    assert repr(joined) == "<culaunch.compiling.Headers 2 files>"


@pytest.fixture
def misses(cache):
    """Compile; say whether that made an entry."""

    def compile_one(source, **keywords):
        before = cache.info().entries
        cl.compile(source, **{"arch": "compute_80", "cache": cache, **keywords})
        return cache.info().entries > before

    return compile_one


def test_contents_of_transitive_headers_are_in_the_key(misses, tmp_path):
    source = '#include "a.h"\n' + USE
    (tmp_path / "a.h").write_text('#include "b.h"\n')
    for text, expected in (("1", True), ("1", False), ("2", True), ("1", False)):
        (tmp_path / "b.h").write_text(f"#define VALUE {text}\n")
        assert misses(source, include_dirs=[tmp_path]) is expected


def test_paths_and_times_are_not_in_the_key(misses, tmp_path):
    source = '#include "a.h"\n' + USE
    for number, directory in enumerate((tmp_path / "x", tmp_path / "y" / "z")):
        directory.mkdir(parents=True)
        (directory / "a.h").write_text("#define VALUE 1\n")
        os.utime(directory / "a.h", (number, number))
        assert misses(source, include_dirs=[directory]) is (number == 0)
    assert misses(source, headers={"a.h": "#define VALUE 1\n"}) is False


def test_paths_are_in_the_key_where_they_are_in_the_image(misses, tmp_path):
    source = '#include "a.h"\n' + USE
    for directory in (tmp_path / "x", tmp_path / "y"):
        directory.mkdir()
        (directory / "a.h").write_text("#define VALUE 1\n")
        assert misses(source, include_dirs=[directory], line_info=True) is True


def test_equal_headers_in_two_places_that_include_different_ones(misses):
    # Their contents are the same set either way; which one is read first is not.
    source = '#include "x/a.h"\n#include "y/a.h"\n__global__ void k(int* p) { *p = LATE; }'
    late = "#define A\n#ifdef B\n#define LATE 1\n#else\n#define LATE 0\n#endif\n"
    headers = {"x/a.h": '#include "b.h"\n', "y/a.h": '#include "b.h"\n'}
    assert misses(source, headers={**headers, "x/b.h": late, "y/b.h": "#define B\n"}) is True
    assert misses(source, headers={**headers, "x/b.h": "#define B\n", "y/b.h": late}) is True


def test_directories_in_another_order(misses, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for number, directory in enumerate((first, second)):
        directory.mkdir()
        (directory / "a.h").write_text(f"#define VALUE {number}\n")
    for source in ('#include "a.h"\n' + USE, '#define H "a.h"\n#include H\n' + USE):
        assert misses(source, include_dirs=[first, second]) is True
        assert misses(source, include_dirs=[second, first]) is True
        assert misses(source, include_dirs=[first, second]) is False


def test_headers_that_are_not_included_are_not_in_the_key(misses):
    source = '#include "a.h"\n' + USE
    headers = {"a.h": "#define VALUE 1\n", "other.h": "1"}
    assert misses(source, headers=headers) is True
    assert misses(source, headers={**headers, "other.h": "2"}) is False


def test_a_header_that_appears_earlier_on_the_path(misses, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
    (second / "a.h").write_text("#define VALUE 1\n")
    source = '#include "a.h"\n' + USE
    assert misses(source, include_dirs=[first, second]) is True
    (first / "a.h").write_text("#define VALUE 2\n")
    assert misses(source, include_dirs=[first, second]) is True


def test_a_header_that_only_has_include_asks_for(misses, tmp_path):
    source = '#if __has_include("a.h")\n#define VALUE 1\n#else\n#define VALUE 2\n#endif\n' + USE
    assert misses(source, include_dirs=[tmp_path]) is True
    (tmp_path / "a.h").write_text("")
    assert misses(source, include_dirs=[tmp_path]) is True


def test_a_header_that_a_macro_names(misses, tmp_path):
    source = "#include HEADER\n" + USE
    directory = tmp_path / "include"
    directory.mkdir()
    keywords = {"include_dirs": [directory], "defines": {"HEADER": '"a.h"'}}
    for text, expected in (("1", True), ("1", False), ("2", True)):
        (directory / "a.h").write_text(f"#define VALUE {text}\n")
        assert misses(source, **keywords) is expected
    for text, expected in (("1", True), ("2", True), ("2", False)):
        headers = {"a.h": f"#define VALUE {text}//\n"}
        assert misses(source, defines={"HEADER": "<a.h>"}, headers=headers) is expected


@pytest.mark.parametrize("options", [["--pre-include=a.h"], ["-include", "a.h"]])
def test_a_header_that_an_option_names(misses, options):
    for text, expected in (("1", True), ("1", False), ("2", True)):
        headers = {"a.h": f"#define VALUE {text}\n", "b.h": ""}
        assert misses(USE + "\n", headers=headers, extra_options=options) is expected


@pytest.mark.slow
def test_cudas_own_headers_need_no_setup():
    source = """
        #include <cuda_fp16.h>
        #include <cuda_bf16.h>
        #include <mma.h>
        #include <cuda/std/array>
        __global__ void k(__half* x) { *x = __hadd(*x, *x); }
    """
    assert cl.compile(source, arch="sm_80").kernels[0].parameters[0].type == "__half*"


def test_own_copy_of_a_cuda_header_is_followed(misses):
    # A caller's replacement of a CUDA header is in the key, however deep it is included.
    source = "#include <cuda_fp16.h>\n__global__ void k(__half* x) {}"
    assert misses(source) is True
    for text, expected in (("1", True), ("1", False), ("2", True)):
        headers = {"vector_types.h": f"#include <crt/host_defines.h>\n#define MINE {text}\n"}
        try:
            assert misses(source, headers=headers) is expected
        except cl.CompileError:
            pytest.fail("the stand-in broke the header")


def linked_nvrtc(folder):
    """Put NVRTC into a folder of its own."""
    folder.mkdir(parents=True)
    for path in Path(loaded_library()).parent.glob("libnvrtc*"):
        try:
            os.link(path, folder / path.name)
        except OSError:  # another file system
            shutil.copy(path, folder)
    return str(folder)


@pytest.fixture
def headers_of(tmp_path):
    """Return a function that gives the header directories of an NVRTC in a folder of its own."""

    def find(version, *names):
        library = linked_nvrtc(tmp_path / "lib")
        for name in names:
            header = tmp_path / "include" / name
            header.parent.mkdir(parents=True, exist_ok=True)
            header.write_text(f"#define CUDART_VERSION {version}\n")
        return nvrtc_headers(open_nvrtc(library, lambda *_: "", pytest.fail))

    return find


def version_number():
    major, minor = map(int, loaded_version()[0].split("."))
    return 1000 * major + 10 * minor


def test_headers_of_another_version_are_refused(headers_of, tmp_path):
    dirs, notes = headers_of(12040, "cuda_runtime_api.h")
    include = str(tmp_path / "include")
    assert include not in dirs
    assert (
        f"headers in {include} were not used: it is for CUDA 12.4, but NVRTC is "
        f"{loaded_version()[0]}" in notes
    )


def test_headers_beside_the_library_come_first(headers_of, tmp_path):
    dirs, _ = headers_of(version_number(), "cuda_runtime_api.h", "cccl/nv/target")
    include = str(tmp_path / "include")
    # They lack the others, which a second place of the same version adds.
    assert dirs[:2] == (include, f"{include}/cccl")
    assert any(Path(one, "cuda_fp16.h").exists() for one in dirs[2:])


# In a process whose extension is in no environment with pip's packages.
ALONE = r"""
import os, sys
sys.path.insert(0, sys.argv[1])
from culaunch._core import nvrtc_headers, open_nvrtc

def private_directory(*names):
    if sys.argv[3] == "full":
        return ""
    os.makedirs(path := os.path.join(sys.argv[3], *names), exist_ok=True)
    return path

dirs, notes = nvrtc_headers(open_nvrtc(sys.argv[2], private_directory, print))
times = [os.stat(os.path.join(one, "cuda_fp16.h")).st_mtime_ns for one in dirs[:1]]
print(*dirs, *notes, *times, sep="\n")
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["cache", "full"])
def test_bundled_headers_stand_in(tmp_path, place):
    if version_number() < 13030:
        pytest.skip("needs NVRTC-13.3")
    shutil.copytree(
        Path(cl.__file__).parent, tmp_path / "site" / "culaunch",
        ignore=shutil.ignore_patterns("__pycache__", "include"),
    )  # fmt: skip
    cache = str(tmp_path / "cache") if place == "cache" else place
    command = [
        sys.executable, "-I", "-S", "-c", ALONE, str(tmp_path / "site"),
        linked_nvrtc(tmp_path / "lib"), cache,
    ]  # fmt: skip
    environment = {"PATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    outputs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    first, second, *_ = outputs[0].splitlines()
    assert second == f"{first}/cccl"
    if place == "cache":
        assert first.startswith(f"{cache}/headers/{loaded_version()[0]}-")
        # Once: no process writes existing files again.
        assert outputs[1] == outputs[0]
    else:
        # A folder that goes with the process.
        assert first.startswith(f"{tmp_path}/culaunch-pch-")
        assert not os.path.exists(first)
