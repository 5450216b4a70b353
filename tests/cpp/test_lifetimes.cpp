// Handles that outlive their owners, and handles of nothing: each says what is wrong when it is
// used, and none of them reads freed memory.
#include <optional>
#include <utility>

#include "check.h"
#include "culaunch/arguments.h"
#include "culaunch/graph.h"

using culaunch::Kernel;
using culaunch::Module;

static Module Load() { return Module(Ptx().data(), Ptx().size()); }

static void CheckGone(const Kernel& kernel) {
  const int launches = CountRecorded("launch ");
  float* pointer = nullptr;
  float factor = 1;
  int count = 5;
  void* arguments[] = {&pointer, &pointer, &factor, &count};
  CHECK(!kernel && kernel.handle() == nullptr);
  CHECK(kernel.name() == "scale" && kernel.parameters().size() == 4);
  CHECK(kernel.Launch(arguments, 1, 32, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(kernel.Launch(arguments, 1, 32, {nullptr, 0}) == CUDA_ERROR_INVALID_HANDLE);
  CHECK_THROWS(kernel({1, 32}, pointer, pointer, factor, count), kCall,
               "Its module was unloaded: load it again");
  const culaunch::Status status = kernel.TryLaunch({1, 32}, pointer, pointer, factor, count);
  CHECK(status.code() == CUDA_ERROR_INVALID_HANDLE);
  culaunch::Arguments list;
  list.AddAll(pointer, pointer, factor, count);
  CHECK_THROWS(kernel.Launch({1, 32}, list), kCall, "Its module was unloaded");
  CHECK(CountRecorded("launch ") == launches);
}

static void AKernelOutlivesItsModule() {
  std::optional<Kernel> kept;
  Kernel called;
  Kernel moved;
  {
    Module module = Load();
    kept = module["scale"];
    called = *kept;
    called({1, 32}, nullptr, nullptr, 1.0f, 5);
    const Module other = std::move(module);
    moved = other["scale"];
    called({1, 32}, nullptr, nullptr, 1.0f, 5);  // a module may move
  }
  CheckGone(*kept);
  CheckGone(called);
  CheckGone(moved);
  Module unloaded = Load();
  const Kernel copy = unloaded["scale"];
  unloaded.Unload();
  CheckGone(copy);
  kept = copy;
  kept = Kernel(*kept);
}

static void AKernelOfAReleasedModuleStays() {
  Kernel kernel;
  {
    Module module = Load();
    module.Release();
    kernel = module["scale"];
  }
  kernel({1, 32}, nullptr, nullptr, 1.0f, 5);
}

static void AKernelOutlivesItsGraphs() {
  culaunch::Driver& driver = culaunch::Driver::Get();
  driver.ChooseGraphs("1").OrThrow();
  std::optional<Kernel> kept;
  {
    const Module module = Load();
    kept = module["scale"];
    for (int i = 0; i < 3; ++i) (*kept)({1, 32}, nullptr, nullptr, 1.0f, i);
  }
  CHECK(driver.graphs.count() == 0);
  CheckGone(*kept);
  kept.reset();
  driver.ChooseGraphs("0").OrThrow();
}

static void AnEmptyKernelSaysSo() {
  const Kernel none;
  CHECK(!none && none.name().empty() && none.parameters().empty());
  CHECK(none.Launch(nullptr, 1, 32, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(none.Launch(nullptr, 1, 32, {nullptr, 0}) == CUDA_ERROR_INVALID_HANDLE);
  CHECK_THROWS(none({1, 32}), kCall, "the kernel is empty: assign one of a module first");
  CHECK_THROWS(none({1, 32}, 1, nullptr), kCall, "the kernel is empty");
  CHECK_THROWS(none({1, 32}, culaunch::ArrayOf(static_cast<float*>(nullptr), 0)), kCall,
               "the kernel is empty");
  CHECK_THROWS(none.Throw(CUDA_ERROR_INVALID_HANDLE, {1, 32}), kCall, "the kernel is empty");
  CHECK_THROWS(none.Launch({1, 32}, culaunch::Arguments()), kCall, "the kernel is empty");
  culaunch::LaunchConfig config(2, 32);
  config.cluster = {2};
  CHECK(!none.TryLaunch(config));
  const Kernel copy = none;
  CHECK(!copy);
}

static void AnEmptyModuleSaysSo() {
  Module module;
  CHECK(!module.IsLoaded());
  module.Unload();
  CHECK_THROWS(module["scale"], kCall, "the module was moved from, or is empty");
  module = Load();
  CHECK(module["scale"].name() == "scale");
  culaunch::SharedModule shared;
  CHECK_THROWS((*shared)["scale"], kCall, "the module was moved from, or is empty");
}

static const char kStep[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry step()\n{ ret; }\n";
CULAUNCH_EMBED_CUBIN_FROM_BYTES(lifetimes, kStep);

static void AKernelOutlivesASharedModule() {
  std::optional<culaunch::SharedModule> first = CULAUNCH_SHARE_MODULE(lifetimes);
  const Kernel kernel = (*first)->GetKernel("step");
  culaunch::SharedModule second = std::move(*first);
  CHECK_THROWS((**first)["step"], kCall, "the module was moved from, or is empty");
  kernel({1, 32});
  second = culaunch::SharedModule();
  CHECK_THROWS(kernel({1, 32}), kCall, "Its module was unloaded");  // that was the last user
  first = CULAUNCH_SHARE_MODULE(lifetimes);
  CHECK_THROWS(kernel({1, 32}), kCall,
               "Its module was unloaded");  // a reloaded module is another one
  (**first)["step"]({1, 32});
}

static void AGraphOutlivesItsModule() {
  const auto launch = [](culaunch::Graph& graph, const Kernel& kernel, int count) {
    float* pointer = nullptr;
    return graph.AddKernel(kernel, {1, 32}, {}, pointer, pointer, 1.0f, count);
  };
  culaunch::Graph fresh;
  culaunch::Graph launched;
  culaunch::Graph updated;
  std::optional<Kernel> kept;
  {
    const Module module = Load();
    kept = module["scale"];
    launch(fresh, *kept, 5);
    launch(launched, *kept, 5);
    launched.Launch({});
    const auto node = launch(updated, *kept, 5);
    updated.Launch({});
    float* pointer = nullptr;
    updated.Update(node, *kept, {1, 32}, pointer, pointer, 1.0f, 6);
  }
  const int launches = CountRecorded("launch ");
  const uint64_t made = CallsOf("cuGraphInstantiateWithFlags");
  const uint64_t set = CallsOf("cuGraphKernelNodeSetParams");
  for (culaunch::Graph* graph : {&fresh, &launched, &updated}) {
    CHECK(graph->TryLaunch({}) == CUDA_ERROR_INVALID_HANDLE);
    CHECK_THROWS(graph->Launch({}), kCall, "the module of scale was unloaded. Record the graph");
    CHECK_THROWS(graph->Upload({}), kCall, "the module of scale was unloaded");
    CHECK_THROWS(launch(*graph, *kept, 5), kCall, "Its module was unloaded: load it again");
  }
  CHECK_THROWS(fresh.Instantiate(), kCall, "the module of scale was unloaded");
  CHECK_THROWS(updated.handle(), kCall, "the module of scale was unloaded");
  CHECK(CountRecorded("launch ") == launches);
  CHECK(CallsOf("cuGraphInstantiateWithFlags") == made);
  CHECK(CallsOf("cuGraphKernelNodeSetParams") == set);
}

static void AGraphOutlivesTheModuleOfItsChild() {
  culaunch::Graph added;
  culaunch::Graph replaced;
  culaunch::Graph outermost;
  {
    culaunch::Graph inner;
    culaunch::Graph empty;
    empty.AddEmpty({});
    const Module module = Load();
    float* pointer = nullptr;
    inner.AddKernel(module["scale"], {1, 32}, {}, pointer, pointer, 1.0f, 5);
    added.AddChild(inner, {});
    replaced.AddChild(empty, {});
    culaunch::GraphRecording recording(replaced, 0, 1);
    CHECK(recording.TakeNode(culaunch::Graph::NodeOf(inner)) == CUDA_SUCCESS);
    outermost.AddChild(added, {});
    outermost.Launch({});
  }
  const int launches = CountRecorded("launch ");
  for (culaunch::Graph* graph : {&added, &replaced, &outermost}) {
    CHECK_THROWS(graph->Launch({}), kCall, "the module of scale was unloaded. Record the graph");
  }
  CHECK(CountRecorded("launch ") == launches);
}

static void AGraphOutlivesItsChild() {
  static int calls = 0;
  culaunch::Graph outer;
  {
    culaunch::Graph inner;
    inner.AddHost([](void* count) { ++*static_cast<int*>(count); }, &calls, {});
    outer.AddChild(inner, {});
  }
  outer.Launch({});
  CHECK(calls == 1);

  // A graph that takes the child's place may go, too, whether or not it was launched before.
  static int others = 0;
  const auto replace = [](culaunch::Graph& graph) {
    culaunch::Graph other;
    other.AddHost([](void* count) { ++*static_cast<int*>(count); }, &others, {});
    culaunch::GraphRecording recording(graph, 0, 1);
    CHECK(recording.TakeNode(culaunch::Graph::NodeOf(other)) == CUDA_SUCCESS);
    // The node is a copy: it stays as the graph was when it was taken.
    other.AddHost([](void* count) { *static_cast<int*>(count) += 100; }, &others, {});
  };
  replace(outer);
  culaunch::Graph::CopyOf(outer.handle())->Launch({});
  CHECK(others == 1);
  outer.Launch({});
  CHECK(others == 2);
  replace(outer);
  outer.AddEmpty({});  // the executable graph is made again from the graph
  outer.Launch({});
  CHECK(others == 3);
  CHECK(calls == 1);
}

int main() {
  ClearRecord();
  AKernelOutlivesItsModule();
  AKernelOfAReleasedModuleStays();
  AKernelOutlivesItsGraphs();
  AnEmptyKernelSaysSo();
  AnEmptyModuleSaysSo();
  AKernelOutlivesASharedModule();
  AGraphOutlivesItsModule();
  AGraphOutlivesItsChild();
  AGraphOutlivesTheModuleOfItsChild();
  // The module of a static variable is gone; the variable's destructor runs after this.
  static const Kernel last = CULAUNCH_GET_KERNEL(lifetimes, "step");
  last({1, 32});
  culaunch::UnloadLibrary();
}
