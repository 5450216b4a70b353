"""culaunch.cpp.load_inline with a real compiler: what the loaded functions do, and what fails."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl

np = pytest.importorskip("numpy")
pytest.importorskip("tvm_ffi")
pytestmark = pytest.mark.needs("g++")

CODE = """
#include <cstdint>
#include "my/one.h"
using tvm::ffi::TensorView;
CULAUNCH_EMBED_CUBIN(first);
extern "C" const char __tvm_ffi__cubin_second[];
extern "C" const char __tvm_ffi__cubin_second_end[];

int64_t count(TensorView x) { return x.numel() * ONE; }
int64_t byte_of_first(int64_t i) { return culaunch_image_first[i]; }
int64_t size_of_first() { return static_cast<int64_t>(culaunch_size_first); }
int64_t byte_of_second(int64_t i) {
  return static_cast<unsigned char>(__tvm_ffi__cubin_second[i]);
}
void check(TensorView y, TensorView x) {
  CULAUNCH_CHECK_SAME_SHAPE(y, x);
  CULAUNCH_CHECK_DTYPE(y, culaunch::ffi::kFloat32, culaunch::ffi::kInt8);
  CULAUNCH_CHECK_CONTIGUOUS(y);
  CULAUNCH_CHECK_DIMENSIONS(x, 2);
  CULAUNCH_CHECK_SHAPE(x, y.size(0), -1);
  CULAUNCH_CHECK_NOT_EMPTY(x);
  CULAUNCH_CHECK_ALIGNED(x, 8);
}
void exact(TensorView x, int64_t m) { CULAUNCH_CHECK_SHAPE(x, m, 2 * m); }
void launch() { CULAUNCH_GET_KERNEL(first, "k")({1, 1}); }
tvm::ffi::String file() { return __FILE__; }
"""
FUNCTIONS = {
    "count": 'Count the "elements".\nTwice.',
    **dict.fromkeys(
        ("byte_of_first", "size_of_first", "byte_of_second", "check", "exact", "launch", "file"), ""
    ),
}


@pytest.fixture(scope="module")
def load(tmp_path_factory, stand_in_cubin):
    folder = tmp_path_factory.mktemp("with spaces")
    second = folder / "second.cubin"
    second.write_bytes(stand_in_cubin(300, b"second"))

    def run():
        return cl.cpp.load_inline(
            "demo",
            CODE,
            functions=FUNCTIONS,
            headers={"my/one.h": "#define ONE 2\n"},
            embed_cubin={"first": stand_in_cubin(200, b"first"), "second": second},
            extra_cflags=["-O0", "-Wall", "-Wextra", "-Werror"],
            extra_ldflags=None,
            build_directory=folder / "build",
        )

    return run


@pytest.fixture(scope="module")
def module(load):
    return load()


@pytest.mark.slow
def test_functions_take_arrays_of_every_framework(module):
    assert module.count(np.zeros((3, 4), np.float32)) == 24
    torch = pytest.importorskip("torch")
    assert module.count(torch.zeros(5, dtype=torch.bfloat16)) == 10


@pytest.mark.slow
def test_docstrings_arrive(module):
    assert module.get_function_doc("count") == 'Count the "elements".\nTwice.'


@pytest.mark.slow
def test_images_of_both_styles_arrive(module, stand_in_cubin):
    first, second = stand_in_cubin(200, b"first"), stand_in_cubin(300, b"second")
    assert module.size_of_first() == 200
    assert bytes(module.byte_of_first(i) for i in range(200)) == first
    assert bytes(module.byte_of_second(i) for i in range(300)) == second


@pytest.mark.slow
def test_checks_say_what_to_do(module):
    good = np.zeros((4, 6), np.float32)
    module.check(good, good)
    with pytest.raises(ValueError, match=r"y must have the shape of x, \(6,\) \(got \(4, 6\)\)"):
        module.check(good, np.zeros(6, np.float32))
    with pytest.raises(TypeError, match=r"type of y must be one of float32, int8 \(got float64\)"):
        module.check(good.astype(np.float64), good)
    with pytest.raises(ValueError, match=r"y must be contiguous \(got shape \(4, 6\), strides"):
        module.check(np.zeros((6, 4), np.float32).T, good)
    flat = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match=r"x must have 2 dimension\(s\) \(got 1, shape \(3,\)\)"):
        module.check(flat, flat)
    with pytest.raises(
        ValueError, match=r"x must have shape \(m, 2 \* m\), \(3, 6\) \(got \(4, 6\)\)"
    ):
        module.exact(good, 3)
    with pytest.raises(ValueError, match=r"x must have elements \(got shape \(4, 0\)\): skip"):
        module.check(np.zeros((4, 0), np.float32), np.zeros((4, 0), np.float32))
    odd = np.zeros(25, np.float32)[1:].reshape(4, 6)
    with pytest.raises(ValueError, match=r"x must be aligned to 8 bytes .* that leaves 4\)"):
        module.check(odd, odd)


@pytest.mark.slow
def test_a_failure_of_culaunch_is_an_error_of_python(module, monkeypatch):
    monkeypatch.delenv("CULAUNCH_DRIVER_TABLE", raising=False)
    monkeypatch.setenv("CULAUNCH_DRIVER", "nonsense")
    with pytest.raises(RuntimeError, match=r"CULAUNCH_DRIVER must be .* the path of a library"):
        module.launch()


@pytest.mark.slow
def test_the_source_stays_where_messages_say_it_is(module):
    path = Path(str(module.file()))
    assert path.name == "demo.cpp"
    assert path.read_text() == CODE


@pytest.mark.slow
def test_a_warm_call_starts_no_process(module, load, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", forbidden)
    assert load() is module


@pytest.mark.slow
def test_what_the_compiler_says_is_all_there(tmp_path, libraries, stand_in_cubin):
    with pytest.raises(cl.CompileError) as caught:
        cl.cpp.load_inline(
            "broken",
            "int f() {\n  return nonsense;\n}",
            functions="f",
            flags=["-O0"],
            build_directory=tmp_path,
        )
    text = str(caught.value)
    assert "failed with code 1" in text
    assert "\ncommand: " in text
    # The user's own line, by number and by text.
    assert re.search(r"^broken\.cpp:2:10: error: .nonsense. was not declared", text, re.MULTILINE)
    assert "\n    2 |   return nonsense;\n" in text
    assert caught.value.log.rstrip() in text
    assert list(tmp_path.glob("*/.build-*")) == []

    code = "CULAUNCH_EMBED_CUBIN(k); long f() { return culaunch_image_k[0]; }"
    with pytest.raises(cl.CompileError, match="The code embeds 'k', but embed_cubin has no image"):
        cl.cpp.load_inline("asks", code, functions="f", flags=["-O0"], build_directory=libraries)
    with pytest.raises(cl.ImageError, match="embed_cubin has 'k', but no source of 'silent' uses"):
        cl.cpp.load_inline(
            "silent",
            "int x;",
            flags=["-O0"],
            embed_cubin={"k": stand_in_cubin()},
            build_directory=libraries,
        )


USES_AN_IMAGE = """
CULAUNCH_EMBED_CUBIN ( kernels ) ;
void f() { CULAUNCH_GET_KERNEL(kernels, "k")({1, 1}); }
"""


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"cpp_sources": USES_AN_IMAGE, "embed_cubin": {}},
            ValueError,
            "the code embeds 'kernels', .* give embed_cubin={'kernels': image}",
        ),
        (
            {"cpp_sources": "void f() {}  // there", "functions": "nothere"},
            ValueError,
            "functions names 'nothere', but the code has no such function",
        ),
        ({"build_dir": "x"}, TypeError, "no argument build_dir: use build_directory="),
        ({"extra_cflags": "-O0"}, TypeError, "extra_cflags must be a list of str"),
        ({"extra_ldflags": [7]}, TypeError, "link_flags must contain only str"),
        ({"with_cuda": True}, TypeError, "no argument with_cuda; leave it out"),
        ({"flag": ["-O0"]}, TypeError, r"no argument flag: did you mean 'flags'\?$"),
        ({"name": "a-b"}, ValueError, "name must be letters, digits and underscores"),
        ({"cpp_sources": None}, ValueError, "give cpp_sources, cuda_sources or both"),
        ({"cpp_sources": [b"x"]}, TypeError, "cpp_sources must be C.. source text"),
        ({"functions": "a::b"}, ValueError, "functions must be names of C.. functions"),
        ({"headers": {"../x.h": ""}}, ValueError, "a name in headers must be a relative path"),
        ({"flags": "-O0"}, TypeError, "flags must be a list of str"),
        ({"flags": ["-O0", ""]}, ValueError, "^flags has '', which is not an option"),
        ({"link_flags": ["-l\0"]}, ValueError, r"link_flags has '-l\\x00', which is not an option"),
        ({"include_dirs": [""]}, ValueError, "include_dirs"),
        (
            {"cuda_sources": "int y;", "arch": "sm90"},
            ValueError,
            r"arch must be an architecture .*\(got 'sm90'\)",
        ),
        ({"embed_cubin": {"k": b"text"}}, cl.ImageError, "not a cubin"),
    ],
)
def test_wrong_arguments(tmp_path, arguments, error, message):
    call = {"name": "demo", "cpp_sources": "int x;", "build_directory": tmp_path, **arguments}
    with pytest.raises(error, match=message):
        cl.cpp.load_inline(call.pop("name"), **call)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_code_that_may_be_right_is_compiled(libraries):
    """Names under a condition, in a comment or from a macro are left to the compiler."""
    code = """
    #define MAKE(name) int64_t add_##name(int64_t x) { return x + 1; }
    MAKE(one)
    // CULAUNCH_EMBED_CUBIN(a); CULAUNCH_GET_KERNEL(a, "k");
    const char* text = "CULAUNCH_EMBED_CUBIN(b); CULAUNCH_GET_KERNEL(b, )";
    #define EMBED(c) CULAUNCH_EMBED_CUBIN(c); CULAUNCH_GET_KERNEL(c, )
    #if 0
    CULAUNCH_EMBED_CUBIN(d);
    #ifdef X
    #endif
    void f() { CULAUNCH_GET_KERNEL(d, "k")({1, 1}); }
    #endif
    """
    arguments = {"flags": ["-O0"], "build_directory": libraries}
    module = cl.cpp.load_inline("demo", code, functions="add_one", **arguments)
    assert module.add_one(1) == 2
    with pytest.raises(cl.CompileError, match="\nfunctions names 'add_two', and the code has no"):
        cl.cpp.load_inline("demo", code, functions="add_two", **arguments)


def test_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(cl.CompileError, match="'no-such-compiler' that CXX names does not exist"):
        cl.cpp.load_inline("demo", "int x;", build_directory=tmp_path)
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(cl.CompileError, match=r"no C\+\+ compiler .* on PATH: install"):
        cl.cpp.load_inline("demo", "int x;", build_directory=tmp_path)


def test_without_tvm_ffi(monkeypatch):
    monkeypatch.setitem(sys.modules, "tvm_ffi", None)
    with pytest.raises(cl.MissingDependencyError, match=r"pip install 'culaunch\[embed\]'"):
        cl.cpp.load_inline("demo", "int x;")


def test_importing_culaunch_embed_needs_nothing_optional():
    program = (
        "import sys, culaunch as cl; cl.cpp.embed; cl.cpp.load_inline\n"
        "print(*sorted({'numpy', 'torch', 'tvm_ffi', 'click', 'cuda'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"


@pytest.mark.slow
@pytest.mark.needs("nvcc")
def test_cuda_sources(libraries):
    code = """
    __global__ void add_one(float* x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) x[i] += 1;
    }
    void launch(tvm::ffi::TensorView x) {
      add_one<<<1, 32>>>(static_cast<float*>(x.data_ptr()), static_cast<int>(x.numel()));
    }
    int64_t count(tvm::ffi::TensorView x) { return x.numel(); }
    """
    module = cl.cpp.load_inline(
        "cuda",
        cuda_sources=code,
        functions=["launch", "count"],
        flags=["-O0"],
        arch="sm_80",
        build_directory=libraries,
    )
    assert module.count(np.zeros(5, np.float32)) == 5


@pytest.mark.slow
def test_a_static_module_outlives_python(libraries, run_after_torch):
    # Its destructor calls the driver, whose functions are Python's, after Python has ended.
    done = run_after_torch(["-c", AT_EXIT, libraries])
    assert (done.returncode, done.stdout, done.stderr) == (0, "twice\n", "")


AT_EXIT = '''
import sys
import numpy as np
import culaunch as cl

cl.driver.set_driver("emulator")
image = cl.compile('extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }')
library = cl.cpp.load_inline(
    "at_exit",
    """
CULAUNCH_EMBED_CUBIN(kernels);
static void run(tvm::ffi::TensorView x) {
  static culaunch::Module module(culaunch_image_kernels, culaunch_size_kernels);
  module["twice"]({1, 32, 0, culaunch::ffi::CurrentStream(x)}, culaunch::ffi::Data(x));
}
CULAUNCH_EXPORT(run, run);
""",
    embed_cubin={"kernels": image},
    flags=["-O0"],
    build_directory=sys.argv[1],
)
x = np.arange(32, dtype="f4")
library.run(x)
assert (x == 2 * np.arange(32)).all()
print("twice")
'''
