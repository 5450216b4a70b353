// culaunch::Graph: launches, copies and more, recorded or added node by node.
#include "check.h"
#include "culaunch/graph.h"

using culaunch::Graph;
using culaunch::GraphRecording;
using culaunch::LaunchConfig;

static void WhatAThreadLaunchesIsRecorded(const culaunch::Kernel& kernel) {
  Graph graph;
  CUdeviceptr y = 16;
  CUdeviceptr x = 32;
  ClearRecord();
  {
    const GraphRecording recording(graph);
    kernel(LaunchConfig(2, 64), y, x, 1.0f, 7);
    kernel(LaunchConfig(3, 64), x, y, 2.0f, 8);
  }
  CHECK(CountRecorded("launch ") == 0);
  CHECK(graph.size() == 2);
  CHECK(graph.node(1).after == std::vector<size_t>{0});
  graph.Launch({});
  CHECK(CountRecorded("launch scale") == 2);
  CHECK(
      Recorded("grid=2,1,1 block=64,1,1 shared=0 stream=default args 1000000000000000 "
               "2000000000000000 0000803f 07000000"));
  kernel(LaunchConfig(1, 64), y, x, 1.0f, 7);  // a launch is a launch again
  CHECK(CountRecorded("launch scale") == 3);
}

static void ANodeIsUpdatedAndChecked(const culaunch::Kernel& kernel) {
  Graph graph;
  CUdeviceptr y = 16;
  const Graph::Node first = graph.AddKernel(kernel, LaunchConfig(2, 64), {}, y, y, 1.0f, 7);
  graph.Launch({});
  ClearRecord();
  graph.Update(first, kernel, LaunchConfig(2, 64), y, y, 1.0f, 7);
  CHECK(CallsOf("cuGraphExecKernelNodeSetParams") == 0);  // nothing changed
  graph.Update(first, kernel, LaunchConfig(5, 64), y, y, 1.0f, 9);
  graph.Launch({});
  CHECK(CallsOf("cuGraphExecKernelNodeSetParams") == 1);
  CHECK(CallsOf("cuGraphInstantiateWithFlags") == 0);
  CHECK(Recorded("grid=5,1,1"));
  CHECK(Recorded("09000000"));
  CHECK_THROWS(graph.Update(first, kernel, LaunchConfig(1, 1), y, y, 1.0f), kType, "scale");
  CHECK_THROWS(graph.AddKernel(kernel, LaunchConfig(1, 1), {}, y), kType, "scale");
  CHECK(graph.size() == 1);
}

static void ANodeStaysDisabledWhenOthersCome(const culaunch::Kernel& kernel) {
  Graph graph;
  const Graph::Node first =
      graph.AddKernel(kernel, LaunchConfig(2, 64), {}, CUdeviceptr{16}, CUdeviceptr{16}, 1.0f, 7);
  CHECK(graph.SetEnabled(first, false) == CUDA_SUCCESS);
  graph.AddKernel(kernel, LaunchConfig(3, 64), {}, CUdeviceptr{16}, CUdeviceptr{16}, 1.0f, 7);
  ClearRecord();
  graph.Launch({});
  CHECK(CountRecorded("launch scale") == 1);
  CHECK(Recorded("grid=3,1,1"));
  CHECK(graph.SetEnabled(first, true) == CUDA_SUCCESS);
  graph.AddEmpty({first});
  ClearRecord();
  graph.Launch({});
  CHECK(CountRecorded("launch scale") == 2);
}

static int called = 0;

static void OtherNodesRunInTheOrderOfTheirDependencies(const culaunch::Kernel& kernel) {
  unsigned char memory[8] = {};
  unsigned char copy[8] = {};
  const auto to = reinterpret_cast<CUdeviceptr>(memory);
  Graph inner;
  const Graph::Node fill = inner.AddFill(to, 7, sizeof memory, {});
  const Graph::Node copied =
      inner.AddCopy(reinterpret_cast<CUdeviceptr>(copy), to, sizeof copy, {fill});
  inner.AddHost([](void* count) { ++*static_cast<int*>(count); }, &called, {copied});
  Graph graph;
  const Graph::Node child = graph.AddChild(inner, {});
  const Graph::Node empty = graph.AddEmpty({child});
  graph.AddKernel(kernel, LaunchConfig(1, 1), {empty}, to, to, 1.0f, 1);
  graph.Launch({});
  CHECK(copy[7] == 7);
  CHECK(called == 1);
  CHECK(graph.SetEnabled(child, false) == CUDA_ERROR_INVALID_VALUE);
  graph.Launch({});
  CHECK(called == 2);
  const std::unique_ptr<Graph> other = Graph::CopyOf(inner.handle());
  CHECK(other->size() == 3);
  other->Launch({});
  CHECK(called == 3);
}

static void AttributesAreThoseOfTheLaunch(const culaunch::Kernel& kernel) {
  Graph graph;
  LaunchConfig config(8, 64);
  config.cluster = 2;
  config.cooperative = true;
  graph.AddKernel(kernel, config, {}, CUdeviceptr{16}, CUdeviceptr{16}, 1.0f, 7);
  config = LaunchConfig(1, 64);
  config.programmatic = true;  // an edge, and no attribute of the node
  const GraphRecording recording(graph);
  kernel(config, CUdeviceptr{16}, CUdeviceptr{16}, 1.0f, 7);
  ClearRecord();
  graph.Launch({});
  CHECK(Recorded("cluster=2,1,1 cooperative=1"));
  CHECK(CountRecorded("launch scale") == 2);
}

static void AGraphOfAnUnloadedModuleSaysSo() {
  culaunch::Module module(Ptx().data(), Ptx().size());
  Graph graph;
  graph.AddKernel(module["empty"], LaunchConfig(1, 1), {});
  graph.Launch({});
  module.Unload();
  CHECK_THROWS(graph.Launch({}), kCall, "the module of empty was unloaded");
}

static void ABodyRunsAsItsConditionSays(const culaunch::Kernel& kernel) {
  Graph graph;
  const Graph::Condition condition = graph.CreateCondition(1);
  const Graph::Node node = graph.AddConditional(condition, CU_GRAPH_COND_TYPE_IF, 2, {});
  const CUdeviceptr y = 16;
  Graph& then = graph.Body(node, 0);
  const Graph::Node inner = then.AddKernel(kernel, LaunchConfig(2, 64), {}, y, y, 1.0f, 7);
  graph.Body(node, 1).AddKernel(kernel, LaunchConfig(3, 64), {}, y, y, 1.0f, 7);
  ClearRecord();
  graph.Launch({});
  CHECK(CountRecorded("launch scale") == 1);
  CHECK(Recorded("grid=2,1,1"));
  then.Update(inner, kernel, LaunchConfig(5, 64), y, y, 1.0f, 9);
  ClearRecord();
  graph.Launch({});
  CHECK(CallsOf("cuGraphExecUpdate") == 1);
  CHECK(CallsOf("cuGraphInstantiateWithFlags") == 0);
  CHECK(CountRecorded("launch scale") == 1);
  CHECK(Recorded("grid=5,1,1"));
  // A body in a body, after the first launch.
  const Graph::Node loop =
      then.AddConditional(graph.CreateCondition(1), CU_GRAPH_COND_TYPE_WHILE, 1, {inner});
  then.Body(loop, 0).AddKernel(kernel, LaunchConfig(6, 64), {}, y, y, 1.0f, 7);
  ClearRecord();
  graph.Launch({});
  CHECK(CountRecorded("launch scale") == 2);
  CHECK(Recorded("grid=6,1,1"));
}

static void ConditionsAndBodiesHaveRules() {
  Graph graph, other;
  const Graph::Condition condition = graph.CreateCondition();
  CHECK_THROWS(graph.Instantiate(), kCall, "a condition of the graph controls no node");
  CHECK_THROWS(other.AddConditional(condition, CU_GRAPH_COND_TYPE_IF, 1, {}), kCall,
               "the condition is not one of this graph");
  const Graph::Node node = graph.AddConditional(condition, CU_GRAPH_COND_TYPE_IF, 1, {});
  CHECK_THROWS(graph.AddConditional(condition, CU_GRAPH_COND_TYPE_IF, 1, {}), kCall,
               "the condition controls another node");
  Graph& body = graph.Body(node, 0);
  CHECK_THROWS(body.AddHost([](void*) {}, nullptr, {}), kCall, "got a host function");
  CHECK_THROWS(body.Launch({}), kCall, "it is a body of a conditional node");
  CHECK_THROWS(other.AddChild(graph, {}), kCall, "CUDA allows no conditional nodes");
  CHECK_THROWS(other.AddChild(body, {}), kCall, "stays in its graph");
  graph.Instantiate();
}

int main() {
  const culaunch::Module module(Ptx().data(), Ptx().size());
  const culaunch::Kernel kernel = module["scale"];
  WhatAThreadLaunchesIsRecorded(kernel);
  ANodeIsUpdatedAndChecked(kernel);
  ANodeStaysDisabledWhenOthersCome(kernel);
  OtherNodesRunInTheOrderOfTheirDependencies(kernel);
  AttributesAreThoseOfTheLaunch(kernel);
  ABodyRunsAsItsConditionSays(kernel);
  ConditionsAndBodiesHaveRules();
  AGraphOfAnUnloadedModuleSaysSo();
}
