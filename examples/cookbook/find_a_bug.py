"""Find what is wrong with a kernel, on the CPU: memory, barriers, races, things never written.

# needs nvrtc
"""

import numpy as np

import culaunch as cl
from culaunch import testing

SOURCE = """
extern "C" __global__ void neighbours(float* y, const float* x, int n) {
  __shared__ float box[66];
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) box[threadIdx.x + 1] = x[i];
  if (threadIdx.x == 0) box[0] = i > 0 ? x[i - 1] : 0;
  if (threadIdx.x == 63) box[65] = x[i + 1];
  SYNC
  if (i < n) y[i] = box[threadIdx.x] + box[threadIdx.x + 2];
}
"""
cl.driver.set_driver("emulator")  # whatever is here: only it looks at every access
n = 128
x, y = np.ones(n, np.float32), np.zeros(n, np.float32)


def run(source, **options):
    """Launch it, and say what was found."""
    # line_info=True: errors name lines of the source, not only of PTX.
    kernel = cl.load(cl.compile(source, line_info=True, name="neighbours.cu"))["neighbours"]
    try:
        with testing.emulator_options(**options):
            kernel[n // 64, 64](y, x, n)
    except cl.DriverError as error:
        testing.reset_emulator()  # a fault is sticky, as on a GPU
        print(f"{error}\n")
        return str(error)
    return ""


# 1. The last thread of all reads past the end of x.
found = run(SOURCE.replace("SYNC", ""))
assert "neighbours.cu:7" in found
assert "block (1, 0, 0), thread (63, 0, 0)" in found

# 2. Without a barrier threads read what others have not written yet.
fixed = SOURCE.replace("box[65] = x[i + 1]", "box[65] = i + 1 < n ? x[i + 1] : 0")
assert "neighbours.cu:9" in run(fixed.replace("SYNC", ""), check_races=True)

# 3. With both bugs fixed.
fixed = fixed.replace("SYNC", "__syncthreads();")
assert run(fixed, check_races=True) == ""
assert y.tolist() == [1.0] + [2.0] * (n - 2) + [1.0]
print("found an access past the end and a race; without them, the result is right")
