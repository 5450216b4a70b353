"""A cubin that C++ gets as bytes at run time.

# needs tvm_ffi
# needs nvrtc
# needs g++
"""

from pathlib import Path

import numpy as np

import culaunch as cl

CODE = """
// Not destroyed at exit: the driver may be gone by then.
static culaunch::Module* module = nullptr;

void load(tvm::ffi::Bytes image) {
  auto* loaded = new culaunch::Module(image.data(), image.size());
  delete module;
  module = loaded;
}

void launch(tvm::ffi::String name, tvm::ffi::TensorView y, tvm::ffi::TensorView x) {
  TVM_FFI_CHECK(module != nullptr, RuntimeError) << "call load first";
  CULAUNCH_CHECK_DEVICE(x);
  const int n = static_cast<int>(x.numel());
  const unsigned block = 256, grid = (n + block - 1) / block;
  module->GetKernel(name)({grid, block, 0, culaunch::ffi::CurrentStream(x)},
                          culaunch::ffi::Data(y), culaunch::ffi::Data(x), n);
}
"""
library = cl.cpp.load_inline("dynamic", CODE, functions=["load", "launch"])

image = cl.compile(Path(__file__).with_name("add_one.cu"))
library.load(image.data)
x = cl.to_device(np.arange(1000, dtype=np.float32))
y = cl.empty(1000, np.float32)
library.launch("add_one", y, x)
assert np.array_equal(y.numpy(), np.arange(1000) + 1)
print("add_one from bytes:", y.numpy()[:4])

# An invalid image is an error, and the old module stays.
try:
    library.load(b"\x7fELF and nothing more")
except ValueError as error:
    print("an error:", error)
library.launch("add_one", x, y)
