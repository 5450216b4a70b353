"""In-memory headers, CUDA's own, and what of them is in the cache key."""

import os
import sys

import pytest

import culaunch as cl

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


def test_headers_of_another_version_are_refused(tmp_path):
    from culaunch._compile.toolkit import find_nvrtc_headers

    include = tmp_path / "include"
    include.mkdir()
    (include / "cuda_runtime_api.h").write_text("#define CUDART_VERSION 12040\n")
    library = tmp_path / "lib" / "libnvrtc.so.12"
    found, notes = find_nvrtc_headers("99.1", str(library), lambda _: "it has none", lambda: "/x")
    assert found == []
    text = "\n".join(notes)
    assert f"{str(include)!r} were not used: it is for CUDA 12.4, but NVRTC is 99.1" in text
    assert "it has none" in text
    assert "pip install 'nvidia-cuda-runtime==99.1.*'" in text


def test_bundled_headers_stand_in(tmp_path):
    from culaunch._compile.toolkit import find_nvrtc_headers

    library = tmp_path / "lib" / "libnvrtc.so.12"
    found, _ = find_nvrtc_headers("99.1", str(library), lambda _: None, lambda: "/bundled")
    assert found == ["/bundled", "/bundled/cccl"]


@pytest.mark.parametrize("little", ["no room", ""])
def test_bundled_headers_go_elsewhere_where_the_cache_is_full(tmp_path, monkeypatch, little):
    from culaunch._compile import toolkit

    monkeypatch.setattr(toolkit, "little_room", lambda _: little)
    library = tmp_path / "lib" / "libnvrtc.so.12"
    found, notes = toolkit.find_nvrtc_headers(
        "99.1", str(library), {"/full": "it failed", "/spare": None}.get,
        lambda: "/full", lambda: "/spare",
    )  # fmt: skip
    if little:
        assert found == ["/spare", "/spare/cccl"]
    else:
        assert "NVRTC's bundled headers were not used: it failed" in notes


@pytest.mark.slow
def test_nvrtcs_bundled_headers_compile(cache):
    from culaunch._compile import nvrtc

    directory = cache.private_directory("headers", "bundled")
    failure = nvrtc.install_bundled_headers(directory)
    if failure is not None:
        pytest.skip(f"needs NVRTC-13.3: {failure}")
    # Once: no process writes existing files again.
    written = os.stat(f"{directory}/cuda_fp16.h").st_mtime_ns
    assert nvrtc.install_bundled_headers(directory) is None
    assert os.stat(f"{directory}/cuda_fp16.h").st_mtime_ns == written
    source = "#include <cuda_fp16.h>\n#include <mma.h>\n__global__ void k(__half* x) {}"
    dirs = [directory, f"{directory}/cccl"]
    assert cl.compile(source, arch="sm_80", include_dirs=dirs, cache=cache)
