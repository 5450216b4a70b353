// CUB's scan of a whole device: blocks pass on their sums by decoupled look-back.
#include <cub/agent/single_pass_scan_operators.cuh>
#include <cub/block/block_scan.cuh>
struct Wide {
  long long a, b, c;
  __device__ Wide operator+(Wide o) const { return {a + o.a, b + o.b, c + o.c}; }
};
struct Plus {
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
template <class T> __device__ void init(char* storage, int bytes) {
  cub::ScanTileState<T> state;
  state.Init(gridDim.x, storage, bytes);
  state.InitializeStatus(gridDim.x);
}
template <class T> __device__ void scan(T* x, char* storage, int bytes) {
  using State = cub::ScanTileState<T>;
  using Prefix = cub::TilePrefixCallbackOp<T, Plus, State>;
  using Scan = cub::BlockScan<T, 64>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ typename Prefix::TempStorage prefix;
  State state;
  state.Init(gridDim.x, storage, bytes);
  int i = blockIdx.x * 64 + threadIdx.x;
  T v = x[i];
  if (blockIdx.x == 0) {
    T total;
    Scan(scan).InclusiveScan(v, v, Plus(), total);
    if (threadIdx.x == 0) state.SetInclusive(0, total);
  } else {
    Prefix op(state, prefix, Plus(), (int)blockIdx.x);
    Scan(scan).InclusiveScan(v, v, Plus(), op);
  }
  x[i] = v;
}
extern "C" __global__ void init_int(char* s, int b) { init<int>(s, b); }
extern "C" __global__ void scan_int(int* x, char* s, int b) { scan<int>(x, s, b); }
extern "C" __global__ void init_wide(char* s, int b) { init<Wide>(s, b); }
extern "C" __global__ void scan_wide(Wide* x, char* s, int b) { scan<Wide>(x, s, b); }
