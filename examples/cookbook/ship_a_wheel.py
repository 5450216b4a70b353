"""Ship kernels: a library with code for several GPUs, a wheel of it, and what its users do.

# needs nvrtc
"""

import subprocess
import sys
import zipfile

import numpy as np

import culaunch as cl

SOURCE = """
template <typename T> __global__ void clip(T* y, const T* x, T low, T high, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = min(max(x[i], low), high);
}
"""
# For the GPUs to support, and PTX for newer ones and the emulator. Compiling needs no GPU. Loading
# and recording need a driver: on a machine without one, set CULAUNCH_DRIVER=emulator.
image = cl.compile(
    SOURCE, arch=["sm_80", "sm_90", "compute_80"], names=["clip<float>", "clip<double>"]
)
kernels = cl.load(image)


@cl.function
def clip(x: cl.Array("float32 | float64", "n"), low: float, high: float):
    """Return x, held between low and high."""
    cl.check(x.is_contiguous(), "x must be contiguous")
    y = cl.empty_like(x)
    kernels[f"clip<{x.dtype}>"][cl.ceildiv(x.size, 256), 256](y, x, low, high, x.size)
    return y


clip.specialize()  # both element types are recorded: nothing is launched
cl.ship.save([clip], "clip.culib")
wheel = cl.ship.package("clip.culib", name="clip-kernels", version="1.0")
print(wheel, *sorted(zipfile.ZipFile(wheel).namelist()), sep="\n  ")

# On the user's machine, `pip install` of the wheel puts the files here.
zipfile.ZipFile(wheel).extractall("site")
USER = """
import sys
sys.path.insert(0, "site")
import numpy as np, culaunch as cl, clip_kernels
x = cl.to_device(np.arange(5, dtype=np.float32))
print(clip_kernels.clip(x, 1.0, 3.0).numpy())
assert "culaunch._compile" not in sys.modules
"""
said = subprocess.run([sys.executable, "-c", USER], check=True, capture_output=True, text=True)
print(said.stdout.strip())
assert np.array_equal(np.fromstring(said.stdout.strip()[1:-1], sep=" "), [1, 1, 2, 3, 3])
