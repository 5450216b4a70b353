"""See what a kernel prints, and what an assertion in it says.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

SOURCE = """
// printf and assert are built in: no header for them.
extern "C" __global__ void look(const int* x, int n) {
  int i = threadIdx.x;
  if (i < n && x[i] < 0) printf("x[%d] is %d\\n", i, x[i]);
}
extern "C" __global__ void check(const int* x) { assert(x[threadIdx.x] >= 0 && "no negatives"); }
"""
module = cl.load(cl.compile(SOURCE, line_info=True))
x = cl.to_device(np.array([3, -1, 4, -1], np.int32))
module["look"][1, 32](x, 4)
cl.synchronize()  # a GPU prints when it is waited for

if (
    cl.driver.driver_name() == "emulator"
):  # on a GPU a fault ends the use of the device in this process
    said = ""
    try:
        module["check"][1, 4](x)
    except cl.DriverError as error:
        said = str(error)
    print(said)
    assert "thread (1, 0, 0)" in said
