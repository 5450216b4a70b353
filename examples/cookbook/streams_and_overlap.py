"""Copy one part while another is computed: two streams, pinned memory, events.

# needs nvrtc
"""

import numpy as np

import culaunch as cl

SOURCE = """
extern "C" __global__ void square(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= x[i];
}
"""
square = cl.load(cl.compile(SOURCE))["square"]

parts, n = 4, 50_000
host = cl.pinned((parts, n))  # a NumPy array; copies from and to it do not wait
host[:] = np.arange(parts)[:, None]
streams = [cl.Stream() for _ in range(2)]
buffers = [cl.empty(n) for _ in streams]

start = streams[0].record()
for part in range(parts):
    stream, buffer = streams[part % 2], buffers[part % 2]
    # In the order of their stream; the two streams go on side by side.
    buffer.copy_from(host[part], stream)
    square[cl.ceildiv(n, 256), 256, 0, stream](buffer, n)
    buffer.copy_to(host[part], stream)
streams[0].wait(
    streams[1]
)  # later work in the first stream waits for the second; the program does not
end = streams[0].record()

end.synchronize()
assert np.array_equal(host[:, 0], np.arange(parts) ** 2)
print(f"{parts} parts in {end.elapsed(start):.2f} ms")
