"""Write a fused function's source and image to files: for embedding, or for another program.

Without a GPU: CULAUNCH_DRIVER=emulator python examples/elementwise_ship.py
"""

import numpy as np

import culaunch as cl
from culaunch import elementwise as ew


@ew.fuse
def scale_and_clip(x, factor):
    return ew.clip(x * factor, -1, 1)


x = cl.to_device(np.linspace(-2, 2, 1000, dtype=np.float32))
lowered = scale_and_clip.lower(x, 0.75)
lowered.image.save("scale_and_clip.image")
with open("scale_and_clip.cu", "w") as file:
    file.write(lowered.source)

# The image is one as any other: outputs, inputs, scalars, the size.
y = cl.empty(1000, np.float32)
kernel = cl.load("scale_and_clip.image")[lowered.name]
kernel[1, 256](y, x, 0.75, 1000)
assert np.array_equal(y.numpy(), np.clip(x.numpy() * np.float32(0.75), -1, 1))
print(f"{lowered.name}: {len(lowered.image.data)} bytes for {', '.join(lowered.image.arch)}")
