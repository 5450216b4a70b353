// Graphs that allocate and free memory: nodes, captures, and memory that outlives a launch.
#include "program.h"

static CUgraphExec Run(CUgraph graph, unsigned flags) {
  CUgraphExec run;
  CHECK(cuGraphInstantiateWithFlags(&run, graph, flags));
  return run;
}

int main(void) {
  CUcontext context;
  CUmodule module;
  CUfunction add;
  CUstream stream;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, kAdd));
  CHECK(cuModuleGetFunction(&add, module, "add"));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  int host[4] = {1, 2, 3, 4}, back[4] = {0}, four = 4;

  // A capture: the address is known at once, and is memory only while the graph runs.
  CUgraph graph, other;
  CUdeviceptr inner, unknown;
  size_t size;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemAllocAsync(&inner, sizeof host, stream));
  EXPECT(inner != 0);
  CHECK(cuMemcpyHtoDAsync(inner, host, sizeof host, stream));
  void* arguments[] = {&inner, &inner, &four};
  CHECK(cuLaunchKernel(add, 1, 1, 1, 4, 1, 1, 0, stream, arguments, NULL));
  CHECK(cuMemcpyDtoHAsync(back, inner, sizeof back, stream));
  CHECK(cuMemFreeAsync(inner, stream));
  CHECK(cuStreamEndCapture(stream, &graph));
  EXPECT(cuMemGetAddressRange(&unknown, &size, inner) == CUDA_ERROR_NOT_FOUND);
  CUgraphExec run = Run(graph, 0);
  for (int i = 0; i < 2; ++i) {
    host[0] = 1 + i;
    CHECK(cuGraphLaunch(run, stream));
    EXPECT(back[0] == 2 * (1 + i) + 5 && back[3] == 13);
    EXPECT(cuMemGetAddressRange(&unknown, &size, inner) == CUDA_ERROR_NOT_FOUND);
  }
  EXPECT(cuGraphInstantiateWithFlags(&run, graph, 0) == CUDA_ERROR_NOT_SUPPORTED);
  EXPECT(cuGraphClone(&other, graph) == CUDA_ERROR_NOT_SUPPORTED);

  // Nodes: memory that stays allocated after the launch.
  CUDA_MEM_ALLOC_NODE_PARAMS params, shown;
  memset(&params, 0, sizeof params);
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  EXPECT(cuGraphCreate(&other, 0) == CUDA_SUCCESS);
  CUgraphNode made, filled;
  EXPECT(cuGraphAddMemAllocNode(&made, other, NULL, 0, &params) == CUDA_ERROR_INVALID_VALUE);
  params.bytesize = 16;
  CHECK(cuGraphAddMemAllocNode(&made, other, NULL, 0, &params));
  CHECK(cuGraphMemAllocNodeGetParams(made, &shown));
  EXPECT(shown.dptr == params.dptr && shown.bytesize == 16);
  EXPECT(shown.poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
  CUgraphNodeType type;
  CHECK(cuGraphNodeGetType(made, &type));
  EXPECT(type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  CUDA_MEMSET_NODE_PARAMS fill = {params.dptr, 0, 7, 4, 4, 1};
  CHECK(cuGraphAddMemsetNode(&filled, other, &made, 1, &fill, context));
  run = Run(other, 0);
  CHECK(cuGraphLaunch(run, stream));
  CHECK(cuMemcpyDtoH(back, params.dptr, sizeof back));
  EXPECT(back[0] == 7 && back[3] == 7);
  EXPECT(cuGraphLaunch(run, stream) == CUDA_ERROR_INVALID_VALUE);  // it is still allocated
  CHECK(cuMemFreeAsync(params.dptr, stream));
  CHECK(cuGraphLaunch(run, stream));
  CHECK(cuGraphExecDestroy(run));
  run = Run(other, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  CHECK(cuGraphLaunch(run, stream));
  CHECK(cuGraphLaunch(run, stream));

  // A graph of its own frees it, and destroyed graphs leave it as it is.
  CUgraph last;
  CUgraphNode freed;
  CHECK(cuGraphExecDestroy(run));
  CHECK(cuGraphDestroy(other));
  CHECK(cuMemcpyDtoH(back, params.dptr, sizeof back));
  EXPECT(back[2] == 7);
  CHECK(cuGraphCreate(&last, 0));
  CUgraphNodeParams node = {CU_GRAPH_NODE_TYPE_MEM_FREE};
  node.free.dptr = params.dptr;
  CHECK(cuGraphAddNode_v2(&freed, last, NULL, NULL, 0, &node));
  CHECK(cuGraphMemFreeNodeGetParams(freed, &unknown));
  EXPECT(unknown == params.dptr);
  run = Run(last, 0);
  CHECK(cuGraphLaunch(run, stream));
  EXPECT(cuMemcpyDtoH(back, params.dptr, 4) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuGraphLaunch(run, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuDeviceGraphMemTrim(0));
  puts("done");
  return 0;
}
