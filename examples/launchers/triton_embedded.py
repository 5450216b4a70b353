"""A Triton kernel's image embedded in C++.

# needs triton
# needs tvm_ffi
# needs g++
"""

import numpy as np
from triton_kernel import compile_square

import culaunch as cl

# The cubin is for one architecture; the PTX for that one and later ones, and the emulator.
compiled = compile_square(int(cl.driver.devices()[0].arch.removeprefix("sm_")))
metadata = compiled.metadata
image = compiled.asm["cubin"] if cl.driver.driver_name() == "cuda" else compiled.asm["ptx"].encode()

CODE = """
CULAUNCH_EMBED_CUBIN(triton_kernels);

void square(tvm::ffi::TensorView y, tvm::ffi::TensorView x) {
  CULAUNCH_CHECK_DEVICE(x);
  CULAUNCH_CHECK_DTYPE(x, culaunch::ffi::kFloat32);
  const culaunch::Kernel& kernel = CULAUNCH_GET_KERNEL(triton_kernels, "square");
  void* in = culaunch::ffi::Data(x);
  void* out = culaunch::ffi::Data(y);
  int n = static_cast<int>(x.numel());
  // After the arguments of the source come pointers to scratch memory, in a number that depends
  // on Triton's version. The kernel says how many; this one needs none of it, so they are null.
  void* scratch = nullptr;
  std::vector<void*> arguments = {&in, &out, &n};
  while (arguments.size() < kernel.parameters().size()) {
    TVM_FFI_ICHECK_EQ(kernel.parameters()[arguments.size()].size, sizeof(scratch));
    arguments.push_back(&scratch);
  }
  const culaunch::LaunchConfig config((n + 1023u) / 1024, THREADS, SHARED,
                                      culaunch::ffi::CurrentStream(x));
  const CUresult code = kernel.Launch(arguments.data(), config);
  if (code != CUDA_SUCCESS) kernel.Throw(code, config);
}
"""
library = cl.cpp.load_inline(
    "triton_embedded",
    CODE,
    functions="square",
    embed_cubin={"triton_kernels": image},
    flags=[f"-DTHREADS={metadata.num_warps * 32}", f"-DSHARED={metadata.shared}"],
)

x = cl.to_device(np.arange(1000, dtype=np.float32))
y = cl.empty(1000, np.float32)
library.square(y, x)
assert np.array_equal(y.numpy(), np.arange(1000, dtype=np.float32) ** 2)
print("a Triton kernel from C++:", y.numpy()[:4])
