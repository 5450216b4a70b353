"""``compile``: what comes back."""

import os
import subprocess
import sys

import pytest
from sources import PLAIN

import culaunch as cl


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("arch", "form", "archs"),
    [
        ("sm_80", "cubin", ("sm_80",)),
        ("sm_90a", "cubin", ("sm_90a",)),
        ("compute_80", "ptx", ("compute_80",)),
        (["sm_90"], "cubin", ("sm_90",)),
        (["compute_90", "sm_90a", "sm_80"], "fatbin", ("sm_80", "sm_90a", "compute_90")),
    ],
)
def test_architectures(compiled, arch, form, archs):
    image = compiled(PLAIN, arch=arch)
    assert image.format == form
    assert image.arch == archs
    assert [kernel.name for kernel in image.kernels] == ["plain"]


def test_names(compiled, scale):
    names = ["scale<float>", "ns::fill<3, double>", "scale< int >"]
    image = compiled(scale, names=names)
    assert image.names == {
        "scale<float>": "_Z5scaleIfEvPT_PKS0_S0_i",
        "ns::fill<3, double>": "_ZN2ns4fillILi3EdEEvPT0_",
        "scale< int >": "_Z5scaleIiEvPT_PKS0_S0_i",
    }
    assert {kernel.name for kernel in image.kernels} == set(image.names.values())


def test_names_after_a_trip_through_the_cache(compiled, cache, scale):
    first = compiled(scale, names=["scale<float>"])
    second = compiled(scale, names=["scale<float>"])
    assert second is not first
    assert (second, second.names) == (first, first.names)
    assert cache.info().entries == 1


@pytest.mark.parametrize("arch", ["sm_80", "compute_80", ["sm_80", "sm_90a", "compute_90"]])
def test_names_and_signatures_after_a_trip_through_a_file(compiled, scale, tmp_path, arch):
    image = compiled(scale + PLAIN, names=["scale<float>"], arch=arch)
    path = tmp_path / f"kernel.{image.format}"
    image.save(path)
    found = cl.Image.open(path)
    assert found == image
    assert found.names == image.names
    assert found.signatures == image.signatures == {"plain": ("float*", "double", "unsigned char")}
    assert [k.name for k in cl.inspect(path).images[0].kernels] == [k.name for k in image.kernels]


def test_a_file_without_names_is_what_the_compiler_wrote(compiled, scale, tmp_path):
    image = compiled("template <class T> __global__ void unused(T* t) {}\n__global__ void k() {}")
    image.save(tmp_path / "kernel.cubin")
    assert (tmp_path / "kernel.cubin").read_bytes() == image.data


@pytest.mark.slow
def test_extern_c_kernels_have_their_types(compiled):
    source = """
        #include <cuda_fp16.h>
        struct Pair { float a, b; };
        extern "C" __global__ void types(const float* __restrict__ x, half2 h, Pair p, int4* v,
                                         unsigned long long n, const Pair* const* pp, bool b) {}
        namespace hidden {
        struct Own { int a; };
        extern "C" __global__ void inside(double d, Own o) {}
        }
    """
    signatures = compiled(source).signatures
    assert signatures["types"] == (
        "const float*",
        "__half2",
        "Pair",
        "int4*",
        "unsigned long long",
        "const Pair* const*",
        "bool",
    )
    # It cannot be named from the outside: the PTX tells at least what class each parameter is.
    assert signatures["inside"] == ("double", None)


def test_source_from_a_path(compiled, tmp_path):
    (tmp_path / "beside.h").write_text("#define VALUE 7\n")
    path = tmp_path / "kernel.cu"
    path.write_text('#include "beside.h"\n__global__ void k(int* x) { *x = VALUE + oops; }')
    with pytest.raises(cl.CompileError, match=r'^kernel.cu\(2\): error: identifier "oops"'):
        compiled(path)
    path.write_text('#include "beside.h"\n__global__ void k(int* x) { *x = VALUE; }')
    for source in (path, str(path)):
        assert compiled(source, arch="compute_80").data.count(b", 7;") == 1


def test_the_current_directory_is_not_searched(compiled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.h").write_text("")
    with pytest.raises(cl.CompileError, match=r"here\.h"):
        compiled('#include "here.h"\n__global__ void k() {}')


@pytest.mark.slow
def test_options_reach_the_compiler(compiled):
    source = """
        #if __cplusplus < 202002L || N != 4 || TEXT != 5 || !FLAG || OFF
        #error wrong
        #endif
        __global__ void k(float* x) { *x = sinf(*x); }
    """
    defines = {"N": 4, "TEXT": "2 + 3", "FLAG": True, "OFF": False}
    keywords = {"std": "c++20", "defines": defines, "arch": "compute_80"}
    plain = compiled(source, **keywords)
    assert b"sin.approx.ftz" in compiled(source, fast_math=True, **keywords).data
    assert b"sin.approx.ftz" not in plain.data
    assert b"\t.loc\t" in compiled(source, line_info=True, **keywords).data
    assert b".debug_info" in compiled(source, debug=True, **keywords).data
    assert b"\t.loc\t" not in plain.data
    with pytest.raises(cl.CompileError, match=r"options: .*--maxrregcount=16"):
        compiled("oops;", maxrregcount=16)
    host = "int twice(int i) { return 2 * i; } __global__ void k(int* x) { *x = twice(*x); }"
    with pytest.raises(cl.CompileError):
        compiled(host)
    assert compiled(host, device_as_default_execution_space=True)
    assert compiled(source, **keywords, extra_device_vectorization=True)
    assert compiled(source, **keywords, extra_options=["--restrict"])


def test_warnings_are_in_the_log_also_from_the_cache(compiled):
    source = "__global__ void k() {\n  int unused;\n}"
    for _ in range(2):
        log = compiled(source).log
        assert log.startswith('kernel.cu(2): warning #177-D: variable "unused"')
        with pytest.raises(
            cl.CompileError, match=r"1 warning, and warnings are errors here"
        ) as info:
            compiled(source, warnings_as_errors=True)
        assert info.value.log == log
    assert compiled("__global__ void k() {}", warnings_as_errors=True).log == ""


@pytest.mark.slow
def test_a_header_whose_name_is_no_file_name_is_told_to_whom_it_matters(compiled):
    long = "x" * 300 + ".h"
    source = f'#include "{long}"\n__global__ void k(int* x) {{ *x = V; }}'
    compiled(source, headers={long: "#define V 1\n"})
    both = '#include "a"\n#include "a/b"\n'
    for text, headers in ((source, {long: ""}), (both, {"a": "", "a/b": ""})):
        with pytest.raises(ValueError, match="cannot be a file, which nvcc needs"):
            cl.compile(text, arch="sm_80", cache=False, backend="nvcc", headers=headers)


def test_a_file_whose_name_is_no_text_compiles(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"k\xff.cu")
    with open(path, "wb") as file:
        file.write(PLAIN.encode() + b"\n#include <cuda_fp16.h>\n")
    assert cl.compile(os.fsdecode(path), arch="sm_80", cache=False).format == "cubin"
    include = os.path.join(os.fsencode(tmp_path), b"i\xff")
    os.mkdir(include)
    with open(os.path.join(include, b"v.h"), "wb") as file:
        file.write(b"#define V 1\n")
    source = "#include <v.h>\n__global__ void k(int* x) { *x = V; }"
    cl.compile(source, arch="sm_80", cache=False, include_dirs=[os.fsdecode(include)])


def test_relocatable_and_lto_go_together(cache):
    caller = "__device__ int f(); __global__ void k(int* x) { *x = f(); }"
    parts = [
        cl.compile(text, arch="sm_80", cache=cache, lto=True, relocatable=True)
        for text in (caller, "__device__ int f() { return 3; }")
    ]
    assert cl.link(parts, arch="sm_80", cache=cache).format == "cubin"


@pytest.mark.parametrize(("value", "arch"), [("", "compute_80"), ("sm_90", "compute_90")])
def test_an_empty_variable_for_the_emulated_architecture_is_none(monkeypatch, value, arch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    monkeypatch.setenv("CULAUNCH_EMULATOR_ARCH", value)
    assert cl.compile(PLAIN, cache=False).arch == (arch,)
    for wrong in ("hello", "sm_90a", "compute_90", "sm_9"):
        monkeypatch.setenv("CULAUNCH_EMULATOR_ARCH", wrong)
        with pytest.raises(
            ValueError, match="CULAUNCH_EMULATOR_ARCH must be an architecture such as 'sm_80'"
        ):
            cl.compile(PLAIN, cache=False)


def test_failures_are_not_kept(compiled, cache):
    for _ in range(2):
        with pytest.raises(cl.CompileError):
            compiled("__global__ void k() { oops }")
    assert cache.info().entries == 0


def test_without_a_device_and_an_architecture_code_runs_anywhere(compiled, no_device):
    image = compiled(PLAIN, arch=None)
    assert (image.format, image.arch) == ("ptx", ("compute_80",))
    for arch in ("native", ["sm_90", "native"]):
        with pytest.raises(cl.CompileError, match="there is no GPU to take arch from; name one"):
            compiled(PLAIN, arch=arch)
    part = compiled(PLAIN, arch="sm_80", relocatable=True)
    with pytest.raises(cl.CompileError, match="there is no GPU to take arch from; name one"):
        cl.link([part])


def test_the_driver_says_what_the_current_device_is(compiled, no_device, monkeypatch):
    monkeypatch.setattr("culaunch._compile.architectures._ask_driver", lambda _: ("sm_75",))
    assert compiled(PLAIN, arch=None).arch == ("sm_75",)
    assert compiled(PLAIN, arch=["native", "sm_80"]).arch == ("sm_75", "sm_80")


def test_the_emulator_gets_ptx(compiled, monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    assert compiled(PLAIN, arch=None).arch == ("compute_80",)
    monkeypatch.setenv("CULAUNCH_EMULATOR_ARCH", "sm_90")
    image = compiled(PLAIN, arch=None)
    assert (image.format, image.arch) == ("ptx", ("compute_90",))


@pytest.mark.slow
def test_nothing_is_loaded_for_a_hit(tmp_path, scale):
    program = """
        import sys, culaunch as cl
        cache = cl.cache.Cache(sys.argv[2])
        cl.compile(sys.argv[1], arch="sm_80", names=["scale<float>"], cache=cache)
        print([name for name in ("numpy", "torch") if name in sys.modules])
        print("libnvrtc" in open("/proc/self/maps").read())
    """
    lines = [line.strip() for line in program.strip().splitlines()]
    command = [sys.executable, "-c", "\n".join(lines), scale, str(tmp_path / "cache")]
    outputs = [subprocess.check_output(command, text=True).strip() for _ in range(2)]
    assert outputs == ["[]\nTrue", "[]\nFalse"]


def test_fatbin_of_images(scale, tmp_path):
    one = cl.compile(scale, arch="sm_80", names=["scale<int>"])
    two = cl.compile(PLAIN, arch="sm_90")
    both = cl.compiling.fatbin([one, two])
    assert both.arch == ("sm_80", "sm_90")
    assert both.names == one.names
    assert both.signatures == two.signatures
    with pytest.raises(ValueError, match="two images for sm_80"):
        cl.compiling.fatbin([one, one])
    with pytest.raises(ValueError, match="cannot contain another"):
        cl.compiling.fatbin([both])
    with pytest.raises(ValueError, match="images is empty"):
        cl.compiling.fatbin([])


def test_a_warm_hit_takes_at_most_half_a_millisecond(compiled, scale, processor_time):
    names = [f"ns::fill<{number}, float>" for number in range(24)]
    assert len(compiled(scale, names=names).data) > 10_000
    assert processor_time(lambda: compiled(scale, names=names), 50) < 0.5e-3
