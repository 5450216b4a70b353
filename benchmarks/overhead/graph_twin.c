/* The raw twin of graphs.py: launches in a row, plainly and as an executable graph, in C.
 *
 * Functions come from one dlopen of the path given. A changing argument has another value at each
 * call. The clock runs inside the loops.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* clang-format off */
#define FUNCTIONS(F)                                                                       \
  F(cuLaunchKernelEx) F(cuStreamSynchronize) F(cuGraphCreate) F(cuGraphAddKernelNode)      \
  F(cuGraphInstantiateWithFlags) F(cuGraphExecKernelNodeSetParams) F(cuGraphLaunch)
/* clang-format on */

#define DECLARE(name) __typeof__(&name) name##_;
static struct {
  FUNCTIONS(DECLARE)
} driver;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int graphs_open(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  CUresult (*resolve)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*) =
      library ? (__typeof__(resolve))dlsym(library, "cuGetProcAddress_v2") : NULL;
  if (!resolve) return -1;
#define RESOLVE(name) \
  if (resolve(#name, (void**)&driver.name##_, 12080, 0, NULL) || !driver.name##_) return -2;
  FUNCTIONS(RESOLVE)
  return 0;
}

#define MOST 64
struct row {
  CUfunction function;
  void** arguments;
  int* changing;
  unsigned grid, block;
  CUstream stream;
  int launches;
  CUgraph graph;
  CUgraphExec executable;
  CUgraphNode nodes[MOST];
};

static CUDA_KERNEL_NODE_PARAMS params_of(const struct row* row) {
  CUDA_KERNEL_NODE_PARAMS params;
  memset(&params, 0, sizeof params);
  params.func = row->function;
  params.gridDimX = row->grid;
  params.blockDimX = row->block;
  params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = row->arguments;
  return params;
}

int graphs_make(struct row* row) {
  CUresult code = driver.cuGraphCreate_(&row->graph, 0);
  const CUDA_KERNEL_NODE_PARAMS params = params_of(row);
  for (int i = 0; i < row->launches && !code; ++i) {
    code = driver.cuGraphAddKernelNode_(&row->nodes[i], row->graph, i ? &row->nodes[i - 1] : NULL,
                                        i > 0, &params);
  }
  return code ? (int)code
              : (int)driver.cuGraphInstantiateWithFlags_(&row->executable, row->graph, 0);
}

int64_t graphs_plain(struct row* row, int waits, int64_t count) {
  CUlaunchConfig config;
  memset(&config, 0, sizeof config);
  config.gridDimX = row->grid;
  config.blockDimX = row->block;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.hStream = row->stream;
  const int64_t start = now();
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < row->launches; ++k) {
      *row->changing ^= 1;
      if (driver.cuLaunchKernelEx_(&config, row->function, row->arguments, NULL)) return -1;
    }
    if (waits) driver.cuStreamSynchronize_(row->stream);
  }
  return now() - start;
}

int64_t graphs_graph(struct row* row, int waits, int64_t count) {
  const CUDA_KERNEL_NODE_PARAMS params = params_of(row);
  const int64_t start = now();
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < row->launches; ++k) {
      *row->changing ^= 1;
      if (driver.cuGraphExecKernelNodeSetParams_(row->executable, row->nodes[k], &params))
        return -1;
    }
    if (driver.cuGraphLaunch_(row->executable, row->stream)) return -1;
    if (waits) driver.cuStreamSynchronize_(row->stream);
  }
  return now() - start;
}
