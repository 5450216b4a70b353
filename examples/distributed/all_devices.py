"""One process over all devices: a module is loaded once, and a launch goes where its arrays are."""

import numpy as np

import culaunch as cl

kernel = cl.load(
    cl.compile(
        """
__global__ void scale(float* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}""",
        names=["scale"],
    )
)["scale"]

# [devices]
n, count = 10_000, cl.driver.device_count()
parts = [cl.to_device(np.arange(n, dtype=np.float32), device=device) for device in range(count)]
streams = [cl.Stream(device=device) for device in range(count)]
for number, (part, stream) in enumerate(zip(parts, streams, strict=True), 1):
    # No device has to be made current. All of these run at the same time.
    kernel[cl.ceildiv(n, 256), 256, 0, stream](part, float(number), n)
for stream in streams:
    stream.synchronize()
# [end]
for number, part in enumerate(parts, 1):
    np.testing.assert_array_equal(part.numpy(), np.arange(n, dtype=np.float32) * number)
print(f"{len(parts)} devices, one process, one module")
