"""One image for today's GPUs and those to come: machine code, and PTX beside it.

# needs nvrtc
"""

import culaunch as cl

SOURCE = """
extern "C" __global__ void which(int* out) {
#if __CUDA_ARCH__ >= 900
  *out = 90;  // what only newer ones have is chosen when it is compiled
#else
  *out = 80;
#endif
}
"""
image = cl.compile(SOURCE, arch=["sm_80", "sm_90", "compute_90"])
image.save("which.fatbin")
print(cl.inspect("which.fatbin"))

out = cl.zeros(1, "int32")
cl.load("which.fatbin")["which"][1, 1](out)  # the driver takes what fits its device best
arch = cl.driver.devices()[0].arch
print(f"{arch} ran the code for sm_{out.numpy()[0]}")
assert out.numpy()[0] == (90 if int(arch[3:].rstrip("af")) >= 90 else 80)
