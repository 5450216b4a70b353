// Arrive at the barrier of the cluster, and wait there. The blocks of a cluster are neighbors.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
// Combine over a cluster of BLOCKS with THREADS each, which has one row. Each warp writes its state
// to all blocks, so one barrier is enough.
template <int THREADS, int BLOCKS, bool ORDERED, class S, class F>
__device__ S across_cluster(S state, S* shared, F combine) {
  constexpr int WARPS = THREADS / 32;
  constexpr int STATES = WARPS * BLOCKS;
  constexpr int LANES = STATES < 32 ? STATES : 32;
  state = across_lanes<32, ORDERED>(state, combine);
  const unsigned lane = threadIdx.x % 32;
  if (lane < BLOCKS) {
    S* const own = shared + blockIdx.x % BLOCKS * WARPS + threadIdx.x / 32;
    unsigned long long place;
    asm("mapa.u64 %0, %1, %2;" : "=l"(place) : "l"(own), "r"(lane));
    *reinterpret_cast<S*>(place) = state;
  }
  cluster_arrive();
  cluster_wait();
  S all = shared[lane % LANES];
#pragma unroll
  for (int i = LANES; i < STATES; i += LANES) all = combine(all, shared[lane + i]);
  return across_lanes<LANES, ORDERED>(all, combine);
}
