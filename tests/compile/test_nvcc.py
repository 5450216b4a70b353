"""The nvcc backend gives what NVRTC gives."""

import pytest

import culaunch as cl
from culaunch._base import cuda_places
from culaunch._compile import compilation, options
from culaunch._compile import nvcc as nvcc_backend
from culaunch._inline import toolchain

pytestmark = pytest.mark.needs("nvcc", "g++")

SOURCE = """
#include "my/a.h"
#include <cstdint>
#include <vector>
template <class T>
__global__ void scale(T* y, T a, std::uint64_t n) {
  if (threadIdx.x < n) y[threadIdx.x] *= a * ONE;
}
extern "C" __global__ void plain(const half* x, float f) {}
"""
HEADERS = {"my/a.h": '#include "b.h"\n', "my/b.h": "#include <cuda_fp16.h>\n#define ONE 1\n"}


@pytest.fixture
def nvcc(cache):
    return lambda source, **keywords: cl.compile(
        source, **{"arch": "sm_90", "backend": "nvcc", "cache": cache, **keywords}
    )


@pytest.mark.slow
def test_the_same_result(nvcc, cache):
    image = nvcc(SOURCE, names=["scale<float>"], headers=HEADERS, defines={"F(a, b)": "a + b"})
    assert image.arch == ("sm_90",)
    assert image.names == {"scale<float>": "_Z5scaleIfEvPT_S0_m"}
    assert image.signatures == {"plain": ("const __half*", "float")}
    assert {k.name for k in image.kernels} == {"plain", "_Z5scaleIfEvPT_S0_m"}
    found = nvcc(SOURCE, names=["scale<float>"], headers=HEADERS, defines={"F(a, b)": "a + b"})
    assert (found, found.names, found.signatures) == (image, image.names, image.signatures)
    assert cache.info().entries == 1


@pytest.mark.slow
def test_several_architectures(nvcc):
    image = nvcc("__global__ void k(int* x) {}", arch=["sm_80", "compute_90"])
    assert image.arch == ("sm_80", "compute_90")
    assert nvcc("__global__ void k(int* x) {}", arch="compute_80").format == "ptx"


@pytest.mark.slow
def test_contents_of_headers_are_in_the_key(nvcc, cache):
    for number in (1, 2):
        nvcc('#include "a.h"\n__global__ void k() {}', headers={"a.h": f"// {number}"})
    assert cache.info().entries == 2


@pytest.mark.slow
def test_headers_of_the_host_compiler_are_in_the_key(nvcc, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("CPATH", str(tmp_path / "installed"))
    (tmp_path / "installed").mkdir()
    for number in (1, 2):
        (tmp_path / "installed" / "library.h").write_text(f"#define VALUE {number}\n")
        compilation.loaded_backend.cache_clear()  # a new process: they are read once in each
        image = nvcc("#include <library.h>\n__global__ void k(int* x) { *x = VALUE; }")
        assert image.arch == ("sm_90",)
        assert cache.info().entries == number
    compilation.loaded_backend.cache_clear()


@pytest.mark.slow
def test_lto_and_linking(nvcc, cache):
    caller = """
        extern "C" __device__ float twice(float x);
        extern "C" __global__ void k(float* y) { *y = twice(*y); }
    """
    callee = 'extern "C" __device__ float twice(float x) { return 2 * x; }'
    # LTO-IR of an nvcc and of an nvJitLink of one major version work together.
    image = cl.link([nvcc(caller, lto=True), nvcc(callee, lto=True)], arch="sm_90", cache=cache)
    assert [kernel.name for kernel in image.kernels] == ["k"]


@pytest.mark.slow
def test_errors(nvcc):
    with pytest.raises(cl.CompileError) as info:
        nvcc("__global__ void k(int* x) {\n  *x = oops;\n}", name="my.cu")
    text = str(info.value)
    assert text.startswith('my.cu(2): error: identifier "oops" is undefined\n')
    assert "\n      2 |   *x = oops;\n" in text
    assert "nvcc exited with code" in text
    assert "-arch=sm_90" in text
    with pytest.raises(cl.CompileError, match=r"names has 'nope<int>', which names no kernel"):
        nvcc("__global__ void k() {}", names=["nope<int>"])
    with pytest.raises(cl.CompileError, match="Unknown option '--bogus'"):
        nvcc("__global__ void k() {}", extra_options=["--bogus"])
    with pytest.raises(ValueError, match=r"'sm_99' is unknown to nvcc, which supports sm_75"):
        nvcc("__global__ void k() {}", arch="sm_99")
    with pytest.raises(ValueError, match="an option of NVRTC"):
        nvcc("__global__ void k() {}", device_as_default_execution_space=True)
    with pytest.raises(cl.CompileError, match=r"'nothing.h' was not found"):
        nvcc("#include <nothing.h>\n__global__ void k() {}")


@pytest.mark.slow
def test_warnings(nvcc):
    source = "__global__ void k() { int unused; }"
    assert "#177-D" in nvcc(source).log
    with pytest.raises(cl.CompileError, match="warnings_as_errors"):
        nvcc(source, warnings_as_errors=True)


def test_no_nvcc_names_the_pip_command(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr(nvcc_backend, "find_nvcc", lambda: None)
    with pytest.raises(cl.MissingDependencyError, match="pip install nvidia-cuda-nvcc"):
        cl.compile("__global__ void k() {}", arch="sm_80", backend="nvcc")


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """Put an nvcc into each of four places; none of them is chosen yet."""
    for place in ("home", "other", "path", "pip"):
        program = tmp_path / place / "bin" / "nvcc"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    return tmp_path


def test_compile_and_load_inline_use_the_same_nvcc(programs, monkeypatch):
    def chosen():
        found = {nvcc_backend.needed_nvcc(), toolchain.needed_nvcc()}
        assert len(found) == 1
        return found.pop()

    monkeypatch.setattr(cuda_places, "pip_folders", lambda *_: [str(programs / "pip" / "bin")])
    assert chosen() == str(programs / "pip" / "bin" / "nvcc")
    monkeypatch.setenv("PATH", str(programs / "path" / "bin"))
    assert chosen() == str(programs / "path" / "bin" / "nvcc")
    monkeypatch.setenv("CUDA_PATH", str(programs / "other"))
    assert chosen() == str(programs / "other" / "bin" / "nvcc")
    monkeypatch.setenv("CUDA_HOME", str(programs / "home"))
    assert chosen() == str(programs / "home" / "bin" / "nvcc")
    monkeypatch.setenv("CUDA_HOME", str(programs / "nothing"))
    assert chosen() == str(programs / "other" / "bin" / "nvcc")


@pytest.mark.parametrize(
    ("says", "unknown"),
    [
        ("#$ SPACE= ", "nvcc did not print how it calls the host compiler: #$ SPACE="),
        ("#$ /bin/echo -E k.cu", "/bin/echo did not print its header directories: -v"),
    ],
)
def test_headers_are_unknown_if_nvcc_does_not_say_where_they_are(
    programs, monkeypatch, says, unknown
):
    (programs / "home" / "bin" / "nvcc").write_text(f"#!/bin/sh\necho '{says}'\n")
    monkeypatch.setenv("CUDA_HOME", str(programs / "home"))
    search = nvcc_backend.Nvcc().search(options.make_options(), None, {}, [])
    assert search.unknown.startswith(unknown)


def test_load_inline_without_nvcc_names_the_pip_command(monkeypatch):
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    with pytest.raises(cl.MissingDependencyError, match="pip install nvidia-cuda-nvcc"):
        toolchain.needed_nvcc()


@pytest.mark.slow
def test_a_header_of_the_environment_is_noticed_when_it_changes(tmp_path, cache, monkeypatch):
    (tmp_path / "one").mkdir()
    monkeypatch.setenv("CPATH", str(tmp_path / "later"))
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(tmp_path / "one"))
    source = '#include <v.h>\nextern "C" __global__ void k(int* x) { *x = V; }'
    # The last directory was not there when the host compiler was asked where it looks.
    for folder, value in (("one", 7001), ("one", 7002), ("later", 7003)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "v.h").write_text(f"#define V {value}\n")
        image = cl.compile(source, arch="compute_80", backend="nvcc", cache=cache)
        assert str(value).encode() in image.data


@pytest.mark.parametrize("words", [["-Xcompiler=-isystem,{}"], ["-Xcompiler", "-isystem,{}"]])
def test_a_directory_that_an_option_hides_is_searched_for_the_key(tmp_path, words):
    extra = [word.format(tmp_path) for word in words]
    given = options.make_options(extra_options=extra)
    search = nvcc_backend.Nvcc().search(given, None, {}, [])
    assert str(tmp_path) in search.dirs
    assert str(tmp_path) not in search.own
    assert {'"cuda_runtime.h', "<stdc-predef.h"} <= set(search.forced)
    assert not search.unknown
