// Two streams that capture a graph, which runs twice.
#include "program.h"

static void Count(void* calls) { ++*(int*)calls; }

static void Called(CUstream stream, CUresult code, void* data) { abort(); }

int main(void) {
  CUcontext context;
  CUmodule module;
  CUfunction add;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, kAdd));
  CHECK(cuModuleGetFunction(&add, module, "add"));
  CUdeviceptr x, y;
  int host[4] = {1, 2, 3, 4}, back[4] = {0}, calls = 0, two = 2, four = 4;
  CHECK(cuMemAlloc(&x, sizeof host));
  CHECK(cuMemAlloc(&y, sizeof host));
  CHECK(cuMemcpyHtoD(x, host, sizeof host));
  CUstream first, second;
  CUevent fork, join;
  CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&fork, 0));
  CHECK(cuEventCreate(&join, 0));

  EXPECT(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuMemcpyHtoDAsync(y, host, sizeof host, first));
  void* all[] = {&y, &x, &four};
  CHECK(cuLaunchKernel(add, 1, 1, 1, 4, 1, 1, 0, first, all, NULL));
  CHECK(cuEventRecord(fork, first));
  CUstreamCaptureStatus status;
  CHECK(cuStreamIsCapturing(second, &status));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(cuStreamWaitEvent(second, fork, 0));
  CHECK(cuStreamIsCapturing(second, &status));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT(cuStreamEndCapture(second, NULL) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchHostFunc(second, Count, &calls));
  void* some[] = {&y, &x, &two};
  CHECK(cuLaunchKernel(add, 1, 1, 1, 4, 1, 1, 0, first, some, NULL));
  CHECK(cuEventRecord(join, second));
  CHECK(cuStreamWaitEvent(first, join, 0));
  CHECK(cuMemsetD32Async(y + 12, 7, 1, first));
  CHECK(cuMemcpyDtoHAsync(back, y, sizeof back, first));
  EXPECT(cuStreamSynchronize(second) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT(cuStreamQuery(first) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT(cuStreamAddCallback(first, Called, NULL, 0) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  cuuint64_t number = 0;
  const CUgraphNode* before;
  size_t count = 0;
  CUgraph graph, same;
  CHECK(cuStreamGetCaptureInfo_v3(first, &status, &number, &same, &before, NULL, &count));
  CUgraphNodeType type;
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && number > 0 && count == 1);
  CHECK(cuGraphNodeGetType(before[0], &type));
  EXPECT(type == CU_GRAPH_NODE_TYPE_MEMCPY);
  CHECK(cuStreamEndCapture(first, &graph));
  EXPECT(graph == same);
  EXPECT(calls == 0 && back[0] == 0);
  CHECK(cuStreamIsCapturing(second, &status));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_NONE);

  size_t edges = 0;
  CHECK(cuGraphGetNodes(graph, NULL, &count));
  CHECK(cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &edges));
  EXPECT(count == 6 && edges == 6);
  CUgraphExec run;
  CHECK(cuGraphInstantiateWithFlags(&run, graph, 0));
  CHECK(cuGraphLaunch(run, first));
  host[0] = 50;
  CHECK(cuGraphLaunch(run, first));
  // Each launch adds x and 5: to all elements, then to two. The last one is set.
  EXPECT(calls == 2 && back[0] == 50 + 6 + 6 && back[1] == 2 + 7 + 7);
  EXPECT(back[2] == 3 + 8 && back[3] == 7);

  // A graph that is launched in a capture is one node.
  CUgraph outer;
  CHECK(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuGraphLaunch(run, second));
  CHECK(cuStreamEndCapture(second, &outer));
  EXPECT(calls == 2);
  CHECK(cuGraphInstantiateWithFlags(&run, outer, 0));
  CHECK(cuGraphLaunch(run, second));
  EXPECT(calls == 3);

  // Nodes by their parameters: a fill, then a kernel.
  CUgraphNode filled, added;
  CUgraphNodeParams fill = {CU_GRAPH_NODE_TYPE_MEMSET}, kernel = {CU_GRAPH_NODE_TYPE_KERNEL};
  fill.memset.dst = y;
  fill.memset.value = 1;
  fill.memset.elementSize = 4;
  fill.memset.width = 4;
  fill.memset.height = 1;
  kernel.kernel.func = add;
  kernel.kernel.gridDimX = kernel.kernel.gridDimY = kernel.kernel.gridDimZ = 1;
  kernel.kernel.blockDimX = 4;
  kernel.kernel.blockDimY = kernel.kernel.blockDimZ = 1;
  kernel.kernel.kernelParams = all;
  CHECK(cuGraphCreate(&graph, 0));
  CHECK(cuGraphAddNode_v2(&filled, graph, NULL, NULL, 0, &fill));
  CHECK(cuGraphAddNode_v2(&added, graph, &filled, NULL, 1, &kernel));
  // A capture adds to the graph: a copy of another context's memory, after the kernel.
  CHECK(cuStreamBeginCaptureToGraph(second, graph, &added, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyPeerAsync(x, context, y, context, sizeof back, second));
  CHECK(cuStreamUpdateCaptureDependencies_v2(second, &filled, NULL, 1,
                                             CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  CHECK(cuStreamGetCaptureInfo_v3(second, &status, NULL, &same, &before, NULL, &count));
  EXPECT(count == 1 && before[0] == filled && graph == same);
  CHECK(cuStreamEndCapture(second, NULL));
  CHECK(cuGraphInstantiateWithFlags(&run, graph, 0));
  CHECK(cuGraphLaunch(run, NULL));
  CHECK(cuMemcpyDtoH(back, x, sizeof back));
  EXPECT(back[0] == 1 + 1 + 5 && back[3] == 1 + 4 + 5);
  fill.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  EXPECT(cuGraphAddNode_v2(&filled, graph, NULL, NULL, 0, &fill) == CUDA_ERROR_NOT_SUPPORTED);
  puts("done");
  return 0;
}
