"""``culaunch bundle app.culib``: the functions of a program, for a machine without a compiler."""

import os
import subprocess
import sys

import pytest

import culaunch as cl

pytestmark = [pytest.mark.slow, pytest.mark.needs("cuda.bindings", "click", "numpy")]

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
        if name.startswith(("culaunch._compile", "cuda.bindings", "nvidia")):
            raise AssertionError(f"{name} was asked for")

sys.meta_path.insert(0, Nothing())
import numpy as np
import culaunch as cl

lib = cl.load_library(sys.argv[1])
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
    assert line.startswith("culaunch bundle: unshippable is left out: ")
    cache = tmp_path / "fresh"
    run(tmp_path, "-c", FRESH, "app.culib", "float32", CULAUNCH_CACHE_DIR=str(cache))
    assert not cache.exists(), "nothing was compiled"


def test_a_program_of_several_processes(tmp_path):
    program = (
        "import subprocess, sys\n"
        "for kind in ('float32', 'float64', 'float32'):\n"
        "    subprocess.run([sys.executable, 'program.py', kind], check=True)\n"
    )
    said = bundle(tmp_path, "app.culib", sys.executable, "-c", program)
    assert said.stdout == "packed 2 functions into app.culib\n"
    run(tmp_path, "-c", FRESH, "app.culib", "float32", "float64")
    assert len(cl.load_library(tmp_path / "app.culib")["scaled"].kinds) == 2


def test_what_cannot_be_packed(tmp_path):
    said = bundle(tmp_path, "app.culib", sys.executable, "-c", "import culaunch", code=1)
    assert "the program called no cl.function that a library can hold" in said.stderr
    said = bundle(tmp_path, "app.culib", sys.executable, "program.py", "int8", code=1)
    assert "ended with code 1; nothing was packed" in said.stderr
    command = ("-m", "culaunch", "bundle", "app.culib", "--record", "record")
    assert "a record has no functions" in run(tmp_path, *command, code=2).stderr
    assert not (tmp_path / "app.culib").exists()
