"""Functions of a library on a GPU: torch's tensors, in a process that has not their source."""

import subprocess
import sys

import pytest

import culaunch as cl

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]

SOURCE = """
template <class T> __global__ void scale(T* y, const T* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * a);
}
"""
USE = """
import sys
import torch
import culaunch as cl
lib = cl.ship.load_library(sys.argv[1])
x = torch.arange(1000, device="cuda", dtype=torch.float32)
assert torch.equal(lib.scale(x, 2.0), x * 2)
assert lib.scale(x[:0], 2.0).shape == (0,)
stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
with torch.cuda.stream(stream):
    lib.scale(x, 3.0)
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    y = lib.scale(x, 3.0)
graph.replay()
torch.cuda.synchronize()
assert torch.equal(y, x * 3)
operator = cl.frameworks.torch_op("shipped::scale", lib.scale)
torch.library.opcheck(operator.overload, (x, 2.0))
compiled = torch.compile(lambda x: torch.ops.shipped.scale(x, 2.0) + 1, fullgraph=True)
assert torch.equal(compiled(x), x * 2 + 1)
print([one for one in ("culaunch._compile",) if one in sys.modules], operator.dispatch)
"""


@pytest.mark.slow
def test_a_library_in_a_fresh_process(tmp_path):
    names = ["scale<float>", "scale<double>"]
    kernels = cl.load(cl.compile(SOURCE, names=names))

    @cl.function
    def scale(x: cl.Array("float32 | float64", "n"), factor: float):
        """Return x * factor."""
        y = cl.empty_like(x)
        n = x.shape[0]
        if n > 0:
            kernels[f"scale<{x.dtype}>"][cl.ceildiv(n, 256), 256](y, x, factor, n)
        return y

    scale.specialize()
    # PTX for what comes after this GPU.
    later = cl.compile(SOURCE, names=names, arch="compute_90")
    cl.ship.save([scale], tmp_path / "k.culib", images={kernels: [later]})
    run = [sys.executable, "-c", USE, str(tmp_path / "k.culib")]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[] native"


@pytest.mark.needs("triton")
@pytest.mark.slow
def test_a_triton_kernel_without_triton(tmp_path):
    (tmp_path / "kernels.py").write_text(
        """
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask),
             mask=mask)
"""
    )
    made = """
import torch
import culaunch as cl
from culaunch.triton import native
from kernels import add
add = native(add)

@cl.function
def added(x, y):
    out = cl.empty_like(x)
    n = x.size
    add[cl.ceildiv(n, 128),](x, y, out, n, BLOCK=128)
    return out

for n in (1024, 1000, 1001):
    x = torch.ones(n, device="cuda")
    assert torch.equal(added(x, x), x + x)
cl.ship.save([added], "k.culib")
"""
    used = """
import sys
sys.modules["triton"] = None
import torch
import culaunch as cl
lib = cl.ship.load_library("k.culib")
for n in (1024, 1000, 1001, 2048, 999):
    x = torch.arange(n, device="cuda", dtype=torch.float32)
    assert torch.equal(lib.added(x, x), x + x)
"""
    for code in (made, used):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


KERNEL_ALONE = """
import sys
import torch
import culaunch as cl
kernel = cl.ship.load_library(sys.argv[1]).kernels["scale<float>"]
x = torch.arange(1000, device="cuda", dtype=torch.float32)
y = torch.empty_like(x)
kernel[4, 256](y, x, 2.0, 1000)
assert torch.equal(y, x * 2)
print([one for one in ("culaunch._compile",) if one in sys.modules])
"""


def test_a_kernel_by_name_in_a_fresh_process(tmp_path):
    names = ["scale<float>", "scale<double>"]
    module = cl.load(cl.compile(SOURCE, names=names, arch="native"))
    cl.ship.save([], tmp_path / "k.culib", kernels=[module[name] for name in names])
    command = [sys.executable, "-c", KERNEL_ALONE, str(tmp_path / "k.culib")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
