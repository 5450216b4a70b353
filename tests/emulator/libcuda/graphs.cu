// Graphs of CUDA's runtime, node by node.
#include <cstdio>
#include <cstring>

#define CHECK(call)                                                           \
  do {                                                                        \
    if (cudaError_t code = (call)) {                                          \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorName(code)); \
      return 1;                                                               \
    }                                                                         \
  } while (0)

__global__ void add(int* y, int more) { y[threadIdx.x] += more; }
__global__ void keep(cudaGraphConditionalHandle handle) { cudaGraphSetConditional(handle, 0); }

static void CUDART_CB Count(void* calls) { ++*static_cast<int*>(calls); }

static cudaKernelNodeParams Launch(void* kernel, void** arguments, int threads) {
  cudaKernelNodeParams params = {};
  params.func = kernel;
  params.gridDim = dim3(1);
  params.blockDim = dim3(threads);
  params.kernelParams = arguments;
  return params;
}

int main() {
  int host[8] = {0, 1, 2, 3, 4, 5, 6, 7}, back[8] = {0}, part[4] = {0}, calls = 0, more = 10;
  int* y;
  CHECK(cudaMalloc(&y, sizeof host));
  cudaGraph_t graph, copy;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t in, fill, kernel, second, out, sub, call;
  CHECK(cudaGraphAddMemcpyNode1D(&in, graph, nullptr, 0, y, host, sizeof host,
                                 cudaMemcpyHostToDevice));
  cudaMemsetParams zero = {};
  zero.dst = y;
  zero.elementSize = 4;
  zero.width = 2;
  zero.height = 1;
  CHECK(cudaGraphAddMemsetNode(&fill, graph, &in, 1, &zero));
  void* arguments[] = {&y, &more};
  cudaKernelNodeParams launch = Launch((void*)add, arguments, 8);
  CHECK(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &launch));
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeKernel;
  std::memcpy(&params.kernel, &launch, sizeof launch);
  CHECK(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &params));
  CHECK(cudaGraphAddDependencies(graph, &kernel, &second, nullptr, 1));
  CHECK(cudaGraphAddMemcpyNode1D(&out, graph, &second, 1, back, y, sizeof back, cudaMemcpyDefault));
  cudaMemcpy3DParms rows = {};
  rows.srcPtr = make_cudaPitchedPtr(y + 4, 16, 4, 1);
  rows.dstPtr = make_cudaPitchedPtr(part, 16, 4, 1);
  rows.extent = make_cudaExtent(sizeof part, 1, 1);
  rows.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaGraphAddMemcpyNode(&sub, graph, &second, 1, &rows));
  cudaHostNodeParams counts = {Count, &calls};
  CHECK(cudaGraphAddHostNode(&call, graph, &out, 1, &counts));
  cudaGraphExec_t run;
  CHECK(cudaGraphInstantiate(&run, graph, 0));
  CHECK(cudaGraphUpload(run, 0));
  CHECK(cudaGraphLaunch(run, 0));
  CHECK(cudaDeviceSynchronize());
  std::printf("%d %d %d, %d %d, %d\n", back[0], back[2], back[7], part[0], part[3], calls);

  more = 100;
  CHECK(cudaGraphExecKernelNodeSetParams(run, kernel, &launch));
  CHECK(cudaGraphLaunch(run, 0));
  std::printf("%d %d\n", back[0], back[7]);
  CHECK(cudaGraphKernelNodeSetParams(second, &launch));
  CHECK(cudaGraphKernelNodeSetParams(kernel, &launch));
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(run, graph, &info));
  CHECK(cudaGraphLaunch(run, 0));
  std::printf("%d %d\n", back[0], back[7]);

  size_t count = 0;
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(call, &type));
  CHECK(cudaGraphClone(&copy, graph));
  CHECK(cudaGraphGetNodes(copy, nullptr, &count));
  std::printf("%zu nodes, the last of type %d\n", count, int(type));

  // A condition: its body runs once.
  cudaGraph_t looping;
  cudaGraphNode_t loop, first, last;
  cudaGraphConditionalHandle handle;
  CHECK(cudaGraphCreate(&looping, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, looping, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams condition = {};
  condition.type = cudaGraphNodeTypeConditional;
  condition.conditional.handle = handle;
  condition.conditional.type = cudaGraphCondTypeWhile;
  condition.conditional.size = 1;
  CHECK(cudaGraphAddNode(&loop, looping, nullptr, nullptr, 0, &condition));
  cudaGraph_t body = condition.conditional.phGraph_out[0];
  more = 1;
  CHECK(cudaGraphAddKernelNode(&first, body, nullptr, 0, &launch));
  void* given[] = {&handle};
  cudaKernelNodeParams end = Launch((void*)keep, given, 1);
  CHECK(cudaGraphAddKernelNode(&last, body, &first, 1, &end));
  CHECK(cudaGraphInstantiate(&run, looping, 0));
  CHECK(cudaGraphLaunch(run, 0));
  int* z;
  CHECK(cudaMalloc(&z, sizeof back));
  CHECK(cudaMemcpyPeerAsync(z, 0, y, 0, sizeof back, 0));
  CHECK(cudaMemcpy(back, z, sizeof back, cudaMemcpyDefault));
  std::printf("%d %d\n", back[0], back[7]);

  // A host function is no kernel.
  launch.func = (void*)Count;
  std::printf("%s\n",
              cudaGetErrorName(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &launch)));
}
