// The driver calls of a launch: in steady state only cuLaunchKernelEx. A launch by guess never goes
// to a wrong place.
#include "check.h"

using culaunch::ContextGuard;
using culaunch::DeviceGuard;
using culaunch::Driver;
using culaunch::Kernel;
using culaunch::Stream;

static CUcontext OwnContext(int ordinal) {
  return static_cast<CUcontext>(
      reinterpret_cast<void* (*)(int)>(Recorder("fake_driver_own_context"))(ordinal));
}

static CUstream NewStream() {
  CUstream stream = nullptr;
  CHECK(Driver::Get().cuStreamCreateWithPriority(&stream, 0, 0) == CUDA_SUCCESS);
  return stream;
}

// A stream on a device whose handle was one of another device before.
static CUstream ReusedHandle(const Kernel& kernel, int before, int now) {
  const DeviceGuard old(Driver::Get(), before);
  CUstream first = NewStream();
  kernel({1, 1, 0, first});
  Driver::Get().cuStreamDestroy(first);
  const DeviceGuard guard(Driver::Get(), now);
  CUstream second = NewStream();
  CHECK(second == first);
  return second;
}

// The calls of the driver by a launch, after some that warmed up.
template <class Launch>
static uint64_t CallsPerLaunch(const Launch& launch) {
  for (int i = 0; i < 100; ++i) launch();
  ClearRecord();
  for (int i = 0; i < 10; ++i) launch();
  CHECK(CallsOf("cuLaunchKernelEx") == 10);
  CHECK(CallsOf(nullptr) % 10 == 0);
  return CallsOf(nullptr) / 10;
}

static void SteadyLaunchesAreOneCallEach(const Kernel& kernel, int devices) {
  Driver& driver = Driver::Get();
  for (int current = 0; current < devices; ++current) {
    const DeviceGuard guard(driver, current);
    CUstream stream = NewStream();
    for (CUstream each : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, stream}) {
      CHECK(CallsPerLaunch([&] { kernel({1, 1, 0, each}); }) == 1);
      CHECK(CallsPerLaunch([&] { kernel.Launch(nullptr, 1, 1, each); }) == 1);
      CHECK(CallsPerLaunch([&] { kernel({1, 1, 0, Stream(each, current)}); }) == 1);
    }
    CHECK(CallsPerLaunch([&] { kernel({1, 1, 100000, stream}); }) == 1);
    culaunch::LaunchConfig clusters(16, 32);
    clusters.cluster = 16;  // larger than what is portable
    CHECK(CallsPerLaunch([&] { kernel(clusters); }) == 1);
    // Whatever is current, a stream of one's own says its device.
    const DeviceGuard other(driver, devices - 1 - current);
    ClearRecord();
    CHECK(CallsPerLaunch([&] { kernel({1, 1, 0, stream}); }) == 1);
    CHECK(CountRecorded("launch empty device=" + std::to_string(current)) == 10);
    driver.cuStreamDestroy(stream);
  }
}

static void AGuessIsNeverTheAnswer(const Kernel& kernel) {
  Driver& driver = Driver::Get();
  // The handle of a stream that was destroyed belongs to one of another device now.
  CUstream reused = ReusedHandle(kernel, 1, 0);
  ClearRecord();
  kernel({1, 1, 0, reused});
  kernel({1, 1, 0, reused});
  CHECK(CountRecorded("launch empty device=0") == 2);
  driver.cuStreamDestroy(reused);

  // The default stream is of what is current: each device in turn, a context of one's own, none.
  for (int i = 0; i < 200; ++i) {
    const DeviceGuard guard(driver, i % 2);
    ClearRecord();
    kernel({1, 1});
    CHECK(CountRecorded("launch empty device=" + std::to_string(i % 2)) == 1);
  }
  for (int device = 0; device < 2; ++device) {
    const DeviceGuard warm(driver, device);
    kernel({1, 1});
    const ContextGuard own(driver, OwnContext(device));
    CUstream stream = NewStream();
    for (CUstream each : {CUstream{nullptr}, stream}) {
      ClearRecord();
      for (int i = 0; i < 3; ++i) kernel({1, 1, 0, each});
      CHECK(CountRecorded("launch empty device=" + std::to_string(device)) == 3);
      // In that context, and not in the primary one: a function of it would have been refused.
      CHECK(CallsOf("cuCtxPushCurrent") == 0);
    }
    driver.cuStreamDestroy(stream);
  }
  ClearRecord();
  for (int i = 0; i < 3; ++i) kernel({1, 1});
  CHECK(CountRecorded("launch empty device=0") == 3);
}

// Where contexts take turns on the default stream, few launches are refused.
static void RefusalsAreFew(const Kernel& kernel) {
  ClearRecord();
  constexpr int kLaunches = 1280;
  for (int i = 0; i < kLaunches; ++i) {
    const DeviceGuard guard(Driver::Get(), i % 2);
    kernel({1, 1});
  }
  const uint64_t refused = CallsOf("cuLaunchKernelEx") - kLaunches;
  CHECK(refused > 0 && refused <= kLaunches / 64);
}

// A failure that is not about the context is not tried again.
static void FailuresAreNotRepeated(const Kernel& kernel) {
  const DeviceGuard guard(Driver::Get(), 0);
  kernel({1, 1});
  ClearRecord();
  FailNext("cuLaunchKernelEx", CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(kernel.Launch(nullptr, 1, 1, nullptr) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(CallsOf("cuLaunchKernelEx") == 1);
}

int main() {
  const culaunch::Module module(Ptx().data(), Ptx().size());
  const Kernel kernel = module["empty"];
  const int devices = Driver::Get().device_count();
  SteadyLaunchesAreOneCallEach(kernel, devices);
  if (devices == 1) return 0;
  AGuessIsNeverTheAnswer(kernel);
  RefusalsAreFew(kernel);
  FailuresAreNotRepeated(kernel);
}
