"""Pass structures by value, and arrays of structures, from ctypes and from NumPy.

# needs nvrtc
"""

import ctypes

import numpy as np

import culaunch as cl

SOURCE = """
struct Camera { float focal, centre[2]; int is_on; };
struct Point { float x, y, z; };

__global__ void project(float2* out, const Point* points, Camera camera, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || !camera.is_on) return;
  Point p = points[i];
  out[i] = {camera.focal * p.x / p.z + camera.centre[0],
            camera.focal * p.y / p.z + camera.centre[1]};
}
"""
project = cl.load(cl.compile(SOURCE, names=["project"]))["project"]
print(project.signature)


# By value: a ctypes structure with the fields in the order of C++ ...
class Camera(ctypes.Structure):
    _fields_ = [
        ("focal", ctypes.c_float),
        ("centre", ctypes.c_float * 2),
        ("is_on", ctypes.c_int),
    ]


# ... or a NumPy structured scalar. align=True puts the fields where C++ has them.
camera_type = np.dtype([("focal", "f4"), ("centre", "f4", 2), ("is_on", "i4")], align=True)

# An array of structures is an array of their fields: its last dimension counts them.
points = np.array([[1, 2, 2], [4, 4, 4]], np.float32)
n = len(points)
expected = 10 * points[:, :2] / points[:, 2:] + [100, 200]
for camera in (
    Camera(10, (100, 200), 1),
    np.array((10, (100, 200), 1), camera_type)[()],
):
    out = cl.zeros((n, 2), "float32")
    # The pointers are to structures, which no array has as its type: pass addresses.
    there = cl.to_device(points)
    project[1, 32](out.address, there.address, camera, n)
    assert np.array_equal(out.numpy(), expected)
print("projected:", *map(tuple, out.numpy().tolist()))
