// When launches become graphs by themselves: with the choice that a GPU has by default.
#include "check.h"
#include "culaunch/culaunch.h"

using culaunch::Driver;
using culaunch::GraphMode;
using culaunch::Graphs;

static void AKernelIsLookedAtAfterFourCallsAndAGraphAfterEight(const culaunch::Module& module) {
  const culaunch::Kernel kernel = module["scale"];
  const auto launch = [&](unsigned grid) {
    kernel({grid, 32}, CUdeviceptr{16}, CUdeviceptr{16}, 1.0f, 7);
  };
  ClearRecord();
  for (int i = 0; i < Graphs::kUnseen; ++i) launch(1);
  CHECK(CallsOf("cuStreamIsCapturing") == 0);
  for (int i = 0; i < Graphs::kSingleAfter; ++i) launch(1);
  CHECK(CallsOf("cuStreamIsCapturing") == Graphs::kSingleAfter);
  CHECK(CallsOf("cuLaunchKernelEx") == 8);
  CHECK(CallsOf("cuGraphLaunch") == 0);
  for (int i = 0; i < 3; ++i) launch(1);
  CHECK(CallsOf("cuGraphLaunch") == 3);
  CHECK(CallsOf("cuGraphInstantiateWithFlags") == 1);
  // Another grid is another graph, and its own calls count.
  for (int i = 0; i < Graphs::kSingleAfter; ++i) launch(2);
  CHECK(CallsOf("cuLaunchKernelEx") == 8 + Graphs::kSingleAfter);
  launch(2);
  CHECK(CallsOf("cuGraphInstantiateWithFlags") == 2);
  CHECK(CountRecorded("launch scale") == 8 + 3 + Graphs::kSingleAfter + 1);
}

static void AKernelThatWasNotLookedAtIsAGraphAtOnceWhereThatIsForced(
    const culaunch::Module& module) {
  Driver& driver = Driver::Get();
  const culaunch::Kernel kernel = module["empty"];
  kernel({1, 32});  // in the default way: it is not looked at
  driver.graphs.Choose(GraphMode::kOn, driver, true, 13000);
  ClearRecord();
  kernel({1, 32});
  CHECK(CallsOf("cuGraphLaunch") == 1);
}

int main() {
  Driver& driver = Driver::Get();
  const culaunch::DeviceGuard device(driver, 0);  // a default stream belongs to the current context
  const culaunch::Module module(Ptx().data(), Ptx().size());
  driver.graphs.Choose(GraphMode::kAuto, driver, true, Graphs::kMeasuredVersion);
  CHECK(driver.graphs.is_on());
  AKernelIsLookedAtAfterFourCallsAndAGraphAfterEight(module);
  AKernelThatWasNotLookedAtIsAGraphAtOnceWhereThatIsForced(module);
}
