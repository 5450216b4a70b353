"""A wait of over two seconds shows a line on a terminal, and on nothing else."""

import os
import subprocess
import sys

import pytest
from terminals import shown_on_a_terminal

# For the programs below: a shorter wait before a line is shown, and between two of them.
SOONER = """
import sys, time
import culaunch as cl
from culaunch._base import waiting
def sooner(delay, every):
    waiting.DELAY, waiting._EVERY = delay, every
"""
PROGRAM = (
    SOONER
    + """
sooner(0.05, 0.02)
with waiting.waiting("compiling a.cu") as show:
    with waiting.waiting("inside") as inner:
        inner("not seen")
    show("compiling a.cu (2 of 3)")
    time.sleep(float(sys.argv[1]))
print("done")
"""
)


def shown(seconds, **variables):
    return shown_on_a_terminal([sys.executable, "-c", PROGRAM, seconds], **variables)


def test_a_long_wait_is_a_line_that_goes():
    text = shown("0.5")
    assert "\r\x1b[Kcompiling a.cu (2 of 3), 0 s" in text
    assert text.endswith("\r\x1b[Kdone\r\n")
    assert "inside" not in text
    assert "not seen" not in text


def test_a_short_wait_shows_nothing():
    assert shown("0") == "done\r\n"


def test_a_terminal_that_cannot_erase_shows_nothing():
    assert shown("0.3", TERM="dumb") == "done\r\n"


def test_a_pipe_gets_nothing():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "0.3"], check=True, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


COMPILING = (
    SOONER
    + """
sooner(0.01, 0.01)
cl.compile(SOURCE, arch=["sm_80", "sm_90"], name="big.cu", cache=False)
"""
)
SOURCE = """#include <cuda/std/complex>
__global__ void k(cuda::std::complex<float>* x) { *x = exp(*x) * pow(*x, *x); }
"""


@pytest.mark.slow
@pytest.mark.needs("nvrtc")
def test_several_architectures_are_counted():
    """The compiler runs without the interpreter's lock, or nothing could be shown."""
    program = COMPILING.replace("SOURCE", repr(SOURCE))
    text = shown_on_a_terminal([sys.executable, "-c", program], CULAUNCH_DRIVER="")
    assert "compiling big.cu for sm_80 (1 of 2), 0 s" in text
    assert "compiling big.cu for sm_90 (2 of 2), " in text


INLINE = (
    SOONER
    + """
sooner(0.01, 0.01)
cl.cpp.build_inline("twice", "int64_t twice(int64_t x) { return 2 * x; }", functions=["twice"],
                flags=["-O0"], build_directory=FOLDER)
"""
)


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_a_build_names_its_compiler(tmp_path):
    program = INLINE.replace("FOLDER", repr(os.fspath(tmp_path)))
    text = shown_on_a_terminal([sys.executable, "-c", program])
    assert "building twice: " in text
    assert " compiles it, " in text


IMPORT = (
    SOONER
    + """
sooner(0.05, 0.02)
sys.path.insert(0, FOLDER)
try:
    cl.cpp.load_inline("none", "")
except ImportError:  # this TVM-FFI has nothing
    pass
print("done")
"""
)


def test_the_import_of_a_framework_is_a_wait(tmp_path):
    (tmp_path / "tvm_ffi.py").write_text("import time\ntime.sleep(0.5)\n")
    program = IMPORT.replace("FOLDER", repr(os.fspath(tmp_path)))
    text = shown_on_a_terminal([sys.executable, "-c", program])
    assert "\r\x1b[Kimporting tvm_ffi, 0 s" in text
    assert text.endswith("\r\x1b[Kdone\r\n")


LINK = (
    SOONER
    + """
parts = [cl.compile(f'extern "C" __global__ void f{i}(int* x) {{ *x += {i}; }}', arch="sm_80",
                    lto=True) for i in range(2)]
sooner(0.001, 0.001)
cl.link(parts, arch=["sm_80", "sm_90"], cache=False)
"""
)


@pytest.mark.slow
@pytest.mark.needs("nvrtc")
def test_linking_counts_its_architectures():
    text = shown_on_a_terminal([sys.executable, "-c", LINK], CULAUNCH_DRIVER="")
    assert "linking 2 images for sm_80 (1 of 2), 0 s" in text
    assert "linking 2 images for sm_90 (2 of 2), " in text
    assert text.endswith("\r\x1b[K")


PACKAGE = (
    SOONER
    + """
sooner(0.001, 0.001)
@cl.function
def twice(n: int): return n * 2
twice(3)
cl.ship.save([twice], FOLDER + "/a.culib")
options = {"name": "my-kernels", "version": "1.0", "output": FOLDER, "with_culaunch": True}
cl.ship.package(FOLDER + "/a.culib", **options)
"""
)


@pytest.mark.slow
def test_a_package_names_its_wheels(tmp_path):
    program = PACKAGE.replace("FOLDER", repr(os.fspath(tmp_path)))
    text = shown_on_a_terminal([sys.executable, "-c", program], CULAUNCH_DRIVER="emulator")
    assert "packaging my-kernels 1.0: the wheel of culaunch, 0 s" in text, text
    assert len(list(tmp_path.glob("*.whl"))) == 2
