// The fake driver counts the calls of its functions, and lets any of them fail once.
#include "check.h"

int main() {
  const culaunch::Module module(Ptx().data(), Ptx().size());
  const culaunch::Kernel kernel = module["empty"];
  kernel({1, 1});  // one-time work is done now
  ClearRecord();
  CHECK(CallsOf(nullptr) == 0);
  for (int i = 0; i < 3; ++i) kernel({1, 1});
  CHECK(CallsOf("cuLaunchKernelEx") == 3);
  CHECK(CallsOf("cuLibraryLoadData") == 0);
  CHECK(CallsOf(nullptr) >= 3);

  CHECK(!Recorded("call "));
  setenv("FAKE_DRIVER_CALLS", "1", 1);
  kernel({1, 1});
  CHECK(CountRecorded("call cuLaunchKernelEx\n") == 1);
  unsetenv("FAKE_DRIVER_CALLS");

  FailNext("cuDeviceGetCount", CUDA_ERROR_INVALID_HANDLE);
  int count = 0;
  CHECK(culaunch::Driver::Get().cuDeviceGetCount(&count) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(culaunch::Driver::Get().cuDeviceGetCount(&count) == CUDA_SUCCESS);
}
