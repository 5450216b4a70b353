// Guards, streams of other devices, and what is current before and after.
#include "check.h"

using culaunch::DeviceGuard;
using culaunch::Driver;
using culaunch::Module;

static CUcontext Current() {
  CUcontext context = nullptr;
  CHECK(Driver::Get().cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  return context;
}

static CUstream StreamOf(int device) {
  const DeviceGuard guard(Driver::Get(), device);
  CHECK(guard.code() == CUDA_SUCCESS);
  CUstream stream = nullptr;
  CHECK(Driver::Get().cuStreamCreateWithPriority(&stream, 0, 0) == CUDA_SUCCESS);
  return stream;
}

int main() {
  Driver& driver = Driver::Get();
  const Module module(Ptx().data(), Ptx().size());
  const culaunch::Kernel kernel = module["empty"];
  CHECK(driver.device_count() == 2);

  // Nothing current: the first device, and nothing current again.
  CHECK(Current() == nullptr);
  kernel({1, 1});
  CHECK(Recorded("launch empty device=0"));
  CHECK(Current() == nullptr);

  // A stream takes the launch to its device, whatever is current.
  CUstream first = StreamOf(0);
  CUstream second = StreamOf(1);
  {
    const DeviceGuard guard(driver, 0);
    CUcontext before = Current();
    ClearRecord();
    kernel({1, 1, 0, second});
    kernel({1, 1, 0, first});
    CHECK(Record() ==
          "resident empty device=1\n"
          "launch empty device=1 grid=1,1,1 block=1,1,1 shared=0 stream=own args\n"
          "launch empty device=0 grid=1,1,1 block=1,1,1 shared=0 stream=own args\n");
    CHECK(Current() == before);
  }
  // The default stream belongs to the current context.
  {
    const DeviceGuard guard(driver, 1);
    ClearRecord();
    kernel({1, 1});
    CHECK(Recorded("launch empty device=1"));
  }
  // With its device said, a default stream takes the launch there as well, checked or not.
  for (CUstream handle : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, second}) {
    const DeviceGuard guard(driver, 0);
    CUcontext before = Current();
    const culaunch::Stream stream(handle, 1);
    ClearRecord();
    kernel({1, 1, 0, stream});
    culaunch::LaunchConfig config(1, 1);
    config.stream = stream;
    CHECK(kernel.Launch(nullptr, config) == CUDA_SUCCESS);
    CHECK(kernel.Launch(nullptr, 1, 1, stream) == CUDA_SUCCESS);
    CHECK(CountRecorded("launch empty device=1") == 3);
    CHECK(Current() == before);
  }
  CHECK_THROWS(kernel({1, 1, 0, {nullptr, 2}}), kCall, "There is no such device");
  CHECK(Current() == nullptr);

  // A primary context is retained once for the life of the process.
  ClearRecord();
  for (int i = 0; i < 3; ++i) {
    const DeviceGuard outer(driver, 0);
    const DeviceGuard inner(driver, 1);
    const DeviceGuard again(driver, 1);
  }
  CHECK(Current() == nullptr);
  CHECK(!Recorded("retain"));

  const DeviceGuard wrong(driver, 2);
  CHECK(wrong.code() == CUDA_ERROR_INVALID_DEVICE);
  CHECK_THROWS(driver.Device(2), kCall, "there is no device 2: this machine has 2");
  driver.cuStreamDestroy(first);
  driver.cuStreamDestroy(second);
}
