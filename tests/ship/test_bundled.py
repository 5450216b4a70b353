"""``culaunch bundle app.culib``: what a program calls, for a machine without a compiler."""

import os
import subprocess
import sys

import pytest

import culaunch as cl

pytestmark = [pytest.mark.slow, pytest.mark.needs("nvrtc", "click", "numpy")]

PROGRAM = '''
import sys
import numpy as np
import culaunch as cl

SOURCE = """
template <class T> __global__ void scale(T* y, const T* x, T factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}"""
module = cl.load(cl.compile(SOURCE, names=["scale<float>", "scale<double>"]))


@cl.function
def scaled(x: cl.Array("float32 | float64", "n"), factor: float):
    """y = factor * x."""
    kind = "float" if x.dtype == "float32" else "double"
    y = cl.empty_like(x)
    module[f"scale<{kind}>"][cl.ceildiv(x.size, 128), 128](y, x, factor, x.size)
    return y


@cl.function
def twice_scaled(x: cl.Array("float32", "n")):
    return scaled(scaled(x, 2.0), 2.0)


@cl.function
def never(x: cl.Array("float32", "n")):
    return scaled(x, 3.0)


table = cl.to_device(np.ones(300, np.float32))


@cl.function
def unshippable(x: cl.Array("float32", "n")):
    y = cl.empty_like(x)
    module["scale<float>"][cl.ceildiv(x.size, 128), 128](y, table, 5.0, x.size)
    return y


kind = sys.argv[1] if len(sys.argv) > 1 else "float32"
x = cl.to_device(np.arange(300, dtype=kind))
assert (scaled(x, 4.0).numpy() == 4 * np.arange(300)).all()
if kind == "float32":
    assert (twice_scaled(x).numpy() == 4 * np.arange(300)).all()
if "odd" in sys.argv:
    unshippable(x)
'''

# The same work on another machine, where nothing that compiles is there.
FRESH = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("culaunch._compile", "nvidia")):
            raise AssertionError(f"{name} was asked for")

sys.meta_path.insert(0, Nothing())
import numpy as np
import culaunch as cl

lib = cl.ship.load_library(sys.argv[1])
assert sorted(lib.functions) == ["scaled", "twice_scaled"]
for kind in sys.argv[2:]:
    x = cl.to_device(np.arange(300, dtype=kind))
    assert (lib.scaled(x, 4.0).numpy() == 4 * np.arange(300)).all()
x = cl.to_device(np.arange(300, dtype="float32"))
assert (lib.twice_scaled(x).numpy() == 4 * np.arange(300)).all()
"""


def run(tmp_path, *command, code=0, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "CULAUNCH_DRIVER": "emulator", **environment},
    )
    assert done.returncode == code, done.stderr
    return done


def bundle(tmp_path, output, *program, **more):
    (tmp_path / "program.py").write_text(PROGRAM)
    return run(tmp_path, "-m", "culaunch", "bundle", output, "--", *program, **more)


def test_the_second_start_needs_no_compiler(tmp_path):
    said = bundle(tmp_path, "app.culib", sys.executable, "program.py", "float32", "odd")
    assert said.stdout == "packed 2 functions into app.culib\n"
    (line,) = said.stderr.splitlines()
    assert line.startswith("culaunch bundle: unshippable is not saved: ")
    cache = tmp_path / "fresh"
    run(tmp_path, "-c", FRESH, "app.culib", "float32", CULAUNCH_CACHE_DIR=str(cache))
    assert not cache.exists(), "nothing was compiled"


# All that this program makes is gone at its end.
KERNELS = '''
import sys
import numpy as np
import culaunch as cl

cl.driver.set_driver("emulator")
SOURCE = """
template <class T> __global__ void add(T* x, T value) { x[threadIdx.x] += value; }
extern "C" __global__ void triple(int* x) { x[threadIdx.x] *= FACTOR; }
extern "C" __global__ void idle(int* x) { x[threadIdx.x] = 0; }
"""


def kernels(factor):
    try:
        found = cl.ship.load_library("app.culib").kernels
    except FileNotFoundError:
        names = ["add<float>", "triple", "idle"]
        found = cl.load(cl.compile(SOURCE, names=names, defines={"FACTOR": factor}))
        found["idle"]
    return found["add<float>"], found["triple"]


def main(factor):
    add, triple = kernels(factor)
    x = cl.to_device(np.ones(4, np.float32))
    add[1, 4](x, 2.0)
    assert (x.numpy() == 3).all()
    y = cl.to_device(np.ones(4, np.int32))
    triple.launch(y, grid=1, block=4)
    assert (y.numpy() == factor).all()

    @cl.function(mutates=["x"])
    def inside(x: cl.Array("float32", "n")):
        add[1, x.size](x, 1.0)

    if "function" in sys.argv:
        inside(x)
        assert (x.numpy() == 4).all()


for text in sys.argv[1].split(","):
    main(int(text))
'''


def bundle_kernels(tmp_path, *arguments, **more):
    (tmp_path / "kernels.py").write_text(KERNELS)
    command = ("-m", "culaunch", "bundle", "app.culib", "--", sys.executable)
    return run(tmp_path, *command, *(arguments or ("kernels.py", "3")), **more)


def start_again(tmp_path):
    """Start the program on a machine without a compiler, whose cache is empty."""
    (tmp_path / "fresh.py").write_text(FRESH.partition("import numpy")[0] + KERNELS)
    cache = tmp_path / "fresh"
    run(tmp_path, "fresh.py", "3", CULAUNCH_CACHE_DIR=str(cache))
    assert not cache.exists(), "nothing was compiled"


def test_kernels_that_are_launched_by_themselves(tmp_path):
    # The command needs no driver, whatever the program has.
    said = bundle_kernels(tmp_path, CULAUNCH_DRIVER="cuda")
    assert said.stdout == "packed 2 kernels into app.culib\n"
    assert said.stderr == ""
    assert "idle" not in cl.ship.load_library(tmp_path / "app.culib").kernels
    start_again(tmp_path)


def test_kernels_and_functions_that_are_gone_at_the_end(tmp_path):
    said = bundle_kernels(tmp_path, "kernels.py", "3", "function")
    assert said.stdout == "packed 1 function and 2 kernels into app.culib\n"
    start_again(tmp_path)


@pytest.mark.parametrize("processes", [1, 2])
def test_kernels_of_one_name(tmp_path, processes):
    program = "import os\nfor one in {FACTORS}: assert os.system(f'{PYTHON} kernels.py {one}') == 0"
    factors = ["3,4,3"] if processes == 1 else ["3", "4", "3"]
    program = program.replace("{PYTHON}", sys.executable).replace("{FACTORS}", str(factors))
    said = bundle_kernels(tmp_path, "-c", program, code=1)
    assert not (tmp_path / "app.culib").exists()
    *left_out, error = said.stderr.splitlines()
    assert len(left_out) == 2
    for line in left_out:
        assert "is left out: 2 images have a kernel of that name" in line
    assert "launched no kernel, that a library can hold" in error


FUSED = """
import sys
import numpy as np
import culaunch as cl
from culaunch import elementwise as ew


@ew.fuse
def doubled(x):
    return x * 2


@cl.function
def inside(x: cl.Array("float32", "n")):
    return doubled(x)


x = cl.to_device(np.ones(4, np.float32))
if "inside" in sys.argv:
    assert (inside(x).numpy() == 2).all()
if "alone" in sys.argv:
    assert (doubled(x).numpy() == 2).all()
"""


@pytest.mark.parametrize("how", ["inside", "alone"])
def test_fused_functions(tmp_path, how):
    (tmp_path / "fused.py").write_text(FUSED)
    command = ("-m", "culaunch", "bundle", "app.culib", "--", sys.executable, "fused.py", how)
    said = run(tmp_path, *command, code=how == "alone")
    assert (tmp_path / "app.culib").exists() == (how == "inside")
    line = "doubled is not saved, because it was called outside a cl.function: call it in one"
    assert (line in said.stderr) == (how == "alone")


def test_a_program_of_several_processes(tmp_path):
    program = (
        "import subprocess, sys\n"
        "for kind in ('float32', 'float64', 'float32'):\n"
        "    subprocess.run([sys.executable, 'program.py', kind], check=True)\n"
    )
    said = bundle(tmp_path, "app.culib", sys.executable, "-c", program)
    assert said.stdout == "packed 2 functions into app.culib\n"
    run(tmp_path, "-c", FRESH, "app.culib", "float32", "float64")
    assert len(cl.ship.load_library(tmp_path / "app.culib")["scaled"].kinds) == 2


def test_what_cannot_be_packed(tmp_path):
    said = bundle(tmp_path, "app.culib", sys.executable, "-c", "import culaunch", code=1)
    assert "called no cl.function, and launched no kernel, that a library can hold" in said.stderr
    said = bundle(tmp_path, "app.culib", sys.executable, "program.py", "int8", code=1)
    assert "exited with code 1; nothing was packed" in said.stderr
    command = ("-m", "culaunch", "bundle", "app.culib", "--record", "record")
    assert "a record has no functions" in run(tmp_path, *command, code=2).stderr
    assert not (tmp_path / "app.culib").exists()
