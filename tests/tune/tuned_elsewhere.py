"""Imported by workers: a function with one kernel for each configuration."""

import culaunch as cl

SOURCE = """
extern "C" __global__ void fill(float* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = %s;
}"""


@cl.function(mutates=["y"])
def fill(y: cl.Array("float32", "n"), what: str = "1", threads: int = 32):
    kernel = cl.load(cl.compile(SOURCE % what))["fill"]
    kernel[1, threads](y, y.size)
