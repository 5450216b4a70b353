"""Use every device: one module, arrays where they belong, launches that follow their arrays.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

SOURCE = """
extern "C" __global__ void add_to(float* x, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += value;
}
"""
# Compiled for the architectures of all devices; the driver takes the one that fits each.
archs = sorted({device.arch for device in cl.driver.devices()})
add_to = cl.load(cl.compile(SOURCE, arch=archs))["add_to"]

n = 1000
streams = [cl.Stream(device.ordinal) for device in cl.driver.devices()]
shards = [cl.to_device(np.zeros(n, np.float32), device=stream.device) for stream in streams]
for value, (stream, shard) in enumerate(zip(streams, shards, strict=True), 1):
    # No device is made current: the launch goes where its array is, and all run side by side.
    add_to[cl.ceildiv(n, 256), 256, 0, stream](shard, float(value), n)
for stream in streams:
    stream.synchronize()

for value, shard in enumerate(shards, 1):
    assert (shard.numpy() == value).all()
print(f"{len(shards)} device(s): {', '.join(device.name for device in cl.driver.devices())}")
