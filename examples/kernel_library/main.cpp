// The library from plain C++: no Python, no framework. Usage: use_scale PATH_OF_LIBSCALE
#include <culaunch/culaunch.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdio>
#include <vector>

namespace ffi = tvm::ffi;
using culaunch::Driver;

// Memory for tvm::ffi::Tensor, of the driver that culaunch uses.
struct DriverMemory {
  void AllocData(DLTensor* tensor) {
    CUdeviceptr address = 0;
    CULAUNCH_CHECK(Driver::Get().cuMemAlloc(&address, ffi::GetDataSize(*tensor)));
    tensor->data = reinterpret_cast<void*>(address);
  }
  void FreeData(DLTensor* tensor) {
    Driver::Get().cuMemFree(reinterpret_cast<CUdeviceptr>(tensor->data));
  }
};

static CUdeviceptr Address(const ffi::Tensor& tensor) {
  return reinterpret_cast<CUdeviceptr>(tensor.data_ptr());
}

int main(int, char** arguments) try {
  const ffi::Module library = ffi::Module::LoadFromFile(arguments[1]);
  const ffi::Function scale_into = library->GetFunction("scale_into").value();

  Driver& driver = Driver::Get();
  const culaunch::DeviceGuard guard(driver, 0);
  const DLDevice device{static_cast<DLDeviceType>(driver.device_types()[0]), 0};
  const int64_t n = 1000;
  const auto x = ffi::Tensor::FromNDAlloc(DriverMemory(), {n}, DLDataType{kDLFloat, 32, 1}, device);
  const auto y = ffi::Tensor::FromNDAlloc(DriverMemory(), {n}, DLDataType{kDLFloat, 32, 1}, device);
  std::vector<float> host(n, 21.0f);
  CULAUNCH_CHECK(driver.cuMemcpyHtoDAsync(Address(x), host.data(), n * sizeof(float), nullptr));
  scale_into(y, x, 2.0);
  CULAUNCH_CHECK(driver.cuMemcpyDtoHAsync(host.data(), Address(y), n * sizeof(float), nullptr));
  CULAUNCH_CHECK(driver.cuCtxSynchronize());
  std::printf("21 * 2 = %g\n", host[n - 1]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
