// What Kernel::Launch costs over cuLaunchKernelEx called by hand: bursts of both in turn, medians
// in nanoseconds. Usage: launch_cost [ROUNDS]. Runs on whatever driver CULAUNCH_DRIVER names.
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
    "{ ret; }\n";

template <class Launch>
static double Burst(culaunch::Driver& driver, CUstream stream, const Launch& launch) {
  constexpr int kLaunches = 200;  // below the depth of a launch queue
  const auto start = Clock::now();
  for (int i = 0; i < kLaunches; ++i) launch();
  const auto end = Clock::now();
  CULAUNCH_CHECK(driver.cuStreamSynchronize(stream));
  return std::chrono::duration<double, std::nano>(end - start).count() / kLaunches;
}

static double Median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

int main(int count, char** words) try {
  const int rounds = count > 1 ? std::atoi(words[1]) : 500;
  culaunch::Driver& driver = culaunch::Driver::Get();
  const culaunch::DeviceGuard guard(driver, 0);
  CUstream stream = nullptr;
  CULAUNCH_CHECK(driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
  const culaunch::Module module(kPtx, sizeof kPtx - 1);
  const culaunch::Kernel kernel = module.GetKernel("nothing");
  CUdeviceptr a = 0, b = 0, c = 0;
  int d = 1;
  void* arguments[] = {&a, &b, &c, &d};
  CULAUNCH_CHECK(kernel.Launch(arguments, 1, 32, stream));

  std::vector<double> by_hand, launch, said, checked;
  for (int i = 0; i < rounds; ++i) {
    by_hand.push_back(Burst(driver, stream, [&] {
      CUlaunchConfig config = {};
      config.gridDimX = config.gridDimY = config.gridDimZ = 1;
      config.blockDimX = 32;
      config.blockDimY = config.blockDimZ = 1;
      config.hStream = stream;
      CULAUNCH_CHECK(driver.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel.handle()),
                                             arguments, nullptr));
    }));
    launch.push_back(
        Burst(driver, stream, [&] { CULAUNCH_CHECK(kernel.Launch(arguments, 1, 32, stream)); }));
    said.push_back(Burst(driver, stream,
                         [&] { CULAUNCH_CHECK(kernel.Launch(arguments, 1, 32, {stream, 0})); }));
    checked.push_back(Burst(driver, stream, [&] { kernel({1, 32, 0, stream}, a, b, c, d); }));
  }
  std::printf("by hand %.1f\nLaunch %.1f\nLaunch, device said %.1f\nchecked call %.1f\n",
              Median(by_hand), Median(launch), Median(said), Median(checked));
} catch (const culaunch::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
