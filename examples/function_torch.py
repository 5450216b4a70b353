"""A function as an operator of PyTorch: compiled graphs, gradients and export."""

# needs torch

import torch

import culaunch as cl

image = cl.compile(
    """
template <class T> __global__ void multiply(T* z, const T* x, const T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] * y[i];
}""",
    names=["multiply<float>", "multiply<double>"],
)
kernels = cl.load(image)
device = (
    "cuda" if cl.driver.driver_name() == "cuda" else "cpu"
)  # the emulator's memory is the CPU's


# [function]
@cl.function
def product(x: cl.Array("float32 | float64", "n"), y: cl.Array(cl.dtype_of("x"), "n")):
    """z = x * y."""
    z = cl.empty_like(x)
    kernels[f"multiply<{x.dtype}>"][cl.ceildiv(x.size, 256), 256](z, x, y, x.size)
    return z


@product.backward
@cl.function
def product_backward(grad, x, y):
    return product(grad, y), product(grad, x)


op = cl.frameworks.torch_op("mylib::product", product)
print(op.schema)
print(op.dispatch)
# [end]

x, y = (torch.rand(1000, device=device, requires_grad=True) for _ in range(2))
torch.testing.assert_close(torch.ops.mylib.product(x, y), x * y)


# [compile]
@torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
def loss(x, y):
    return op(x + 1, y).sum()


loss(x, y).backward()
# [end]
torch.testing.assert_close(y.grad, x.detach() + 1)
torch.library.opcheck(op.overload, (x, y))
print("same as torch's own")
