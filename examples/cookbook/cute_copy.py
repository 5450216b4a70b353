"""Transpose with CuTe's layouts: CUTLASS_PATH names a checkout of CUTLASS.

# needs nvrtc
# needs CUTLASS_PATH
"""

import os
import sys

import numpy as np

import culaunch as cl

SOURCE = """
#include <cute/tensor.hpp>
using namespace cute;

extern "C" __global__ void transpose(float* y, const float* x, int rows, int columns) {
  auto from = make_tensor(make_gmem_ptr(x), make_shape(rows, columns), make_stride(columns, 1));
  auto to = make_tensor(make_gmem_ptr(y), make_shape(rows, columns), make_stride(1, rows));
  auto tile = make_shape(Int<16>{}, Int<16>{});
  auto at = make_coord(blockIdx.x, blockIdx.y);
  auto threads = make_layout(make_shape(Int<16>{}, Int<8>{}));
  auto mine = local_partition(local_tile(from, tile, at), threads, threadIdx.x);
  auto out = local_partition(local_tile(to, tile, at), threads, threadIdx.x);
  copy(mine, out);
}
"""
cutlass = os.environ.get("CUTLASS_PATH") or sys.exit("set CUTLASS_PATH to a checkout of CUTLASS")
image = cl.compile(
    SOURCE,
    include_dirs=[f"{cutlass}/include"],
    device_as_default_execution_space=True,  # CuTe has constexpr functions without __device__
)
rows, columns = 64, 32
x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
y = cl.empty((columns, rows))
cl.load(image)["transpose"][(rows // 16, columns // 16), 128](y, cl.to_device(x), rows, columns)
assert np.array_equal(y.numpy(), x.T)
print(f"{rows} x {columns} transposed")
