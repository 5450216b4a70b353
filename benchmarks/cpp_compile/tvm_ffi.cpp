// A function of tensors with one launch, with TVM-FFI only.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/cuda/cubin_launcher.h>
#include <tvm/ffi/function.h>

TVM_FFI_EMBED_CUBIN(kernels);

void Scale(tvm::ffi::TensorView y, tvm::ffi::TensorView x, double factor) {
  TVM_FFI_ICHECK(x.IsContiguous()) << "x must be contiguous";
  static auto kernel = TVM_FFI_EMBED_CUBIN_GET_KERNEL(kernels, "scale");
  void* to = y.data_ptr();
  void* from = x.data_ptr();
  float by = static_cast<float>(factor);
  int n = static_cast<int>(x.numel());
  void* arguments[] = {&to, &from, &by, &n};
  const DLDevice device = x.device();
  auto* stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  const tvm::ffi::dim3 grid(static_cast<unsigned>(n + 255) / 256);
  const tvm::ffi::dim3 block(256);
  TVM_FFI_CHECK_CUBIN_LAUNCHER_CUDA_ERROR(kernel.Launch(arguments, grid, block, stream));
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, Scale);
