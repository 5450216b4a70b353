// What Kernel::Launch costs over cuLaunchKernelEx called by hand: bursts of both in turn, medians
// in nanoseconds. Usage: launch_cost [ROUNDS]. Runs on whatever driver CULAUNCH_DRIVER names.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "culaunch/culaunch.h"

using Clock = std::chrono::steady_clock;

static const char kPtx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d)\n"
    "{ ret; }\n"
    "\n// culaunch: {\"signatures\":{\"nothing\":[\"float*\",\"float*\",\"float*\",\"int\"]}}\n";

// The driver without a log knows only the kernels that are declared to it (drivers/fake).
static void DeclareToFakeDriver() {
  const char* path = std::getenv("CULAUNCH_DRIVER");
  void* library = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
  void* found = library != nullptr ? dlsym(library, "fake_driver_declare") : nullptr;
  if (found == nullptr) return;
  const size_t sizes[] = {8, 8, 8, 4};
  reinterpret_cast<int (*)(const char*, int, const size_t*)>(found)("nothing", 4, sizes);
}

template <class Launch>
static double Burst(culaunch::Driver& driver, CUstream stream, const Launch& launch) {
  constexpr int kLaunches = 200;  // below the depth of a launch queue
  const auto start = Clock::now();
  for (int i = 0; i < kLaunches; ++i) launch();
  const auto end = Clock::now();
  CULAUNCH_CHECK(driver.cuStreamSynchronize(stream));
  return std::chrono::duration<double, std::nano>(end - start).count() / kLaunches;
}

// As in dlpack.h.
struct Tensor {
  void* data;
  struct {
    int device_type, device_id;
  } device;
  int ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

static double Median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

int main(int count, char** words) try {
  const int rounds = count > 1 ? std::atoi(words[1]) : 500;
  culaunch::Driver& driver = culaunch::Driver::Get();
  DeclareToFakeDriver();
  const culaunch::DeviceGuard guard(driver, 0);
  CUstream stream = nullptr;
  CULAUNCH_CHECK(driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
  const culaunch::Module module(kPtx, sizeof kPtx - 1);
  const culaunch::Kernel kernel = module.GetKernel("nothing");
  CUdeviceptr a = 0, b = 0, c = 0;
  int d = 1;
  void* arguments[] = {&a, &b, &c, &d};
  CULAUNCH_CHECK(kernel.Launch(arguments, 1, 32, stream));

  int64_t shape[] = {64};
  Tensor x = {nullptr, {driver.device_types().front(), 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  CUdeviceptr memory = 0;
  if (driver.cuMemAlloc(&memory, 256) == CUDA_SUCCESS) x.data = reinterpret_cast<void*>(memory);
  const Tensor y = x, z = x;
  const auto by_hand_on = [&](CUstream each) {
    CUlaunchConfig config = {};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = each;
    CULAUNCH_CHECK(driver.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel.handle()),
                                           arguments, nullptr));
  };
  std::vector<double> by_hand, launch, said, checked, arrays, default_by_hand, default_launch;
  for (int i = 0; i < rounds; ++i) {
    by_hand.push_back(Burst(driver, stream, [&] { by_hand_on(stream); }));
    launch.push_back(
        Burst(driver, stream, [&] { CULAUNCH_CHECK(kernel.Launch(arguments, 1, 32, stream)); }));
    said.push_back(Burst(driver, stream,
                         [&] { CULAUNCH_CHECK(kernel.Launch(arguments, 1, 32, {stream, 0})); }));
    checked.push_back(Burst(driver, stream, [&] { kernel({1, 32, 0, stream}, a, b, c, d); }));
    using culaunch::ArrayOf;
    arrays.push_back(Burst(driver, stream, [&] {
      kernel({1, 32, 0, {stream, 0}}, ArrayOf(x), ArrayOf(y), ArrayOf(z), d);
    }));
    default_by_hand.push_back(Burst(driver, nullptr, [&] { by_hand_on(nullptr); }));
    default_launch.push_back(
        Burst(driver, nullptr, [&] { CULAUNCH_CHECK(kernel.Launch(arguments, 1, 32, nullptr)); }));
  }
  std::printf(
      "by hand %.1f\nLaunch %.1f\nLaunch, device said %.1f\nchecked call %.1f\n"
      "checked arrays %.1f\n",
      Median(by_hand), Median(launch), Median(said), Median(checked), Median(arrays));
  std::printf("default stream by hand %.1f\ndefault stream Launch %.1f\n", Median(default_by_hand),
              Median(default_launch));
} catch (const culaunch::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
