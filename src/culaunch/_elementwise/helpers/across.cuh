// Read the value of another lane of the warp.
template <class S>
__device__ S from_lane(const S& state, int mask) {
  constexpr int WORDS = (sizeof(S) + 3) / 4;
  union {
    S state;
    unsigned words[WORDS];
  } copy;
  copy.words[WORDS - 1] = 0;
  copy.state = state;
#pragma unroll
  for (int i = 0; i < WORDS; ++i) {
    copy.words[i] = __shfl_xor_sync(0xffffffffu, copy.words[i], mask);
  }
  return copy.state;
}
// Combine over LANES neighbors: all of them get the same bits. Some operations give other bits when
// their operands are swapped: those are ORDERED.
template <int LANES, bool ORDERED, class S, class F>
__device__ S across_lanes(S state, F combine) {
#pragma unroll
  for (int mask = 1; mask < LANES; mask *= 2) {
    const S other = from_lane(state, mask);
    const bool is_second = ORDERED && (threadIdx.x & mask) != 0;
    state = combine(is_second ? other : state, is_second ? state : other);
  }
  return state;
}
// Combine over a block of THREADS, which has one row.
template <int THREADS, bool ORDERED, class S, class F>
__device__ S across_block(S state, S* shared, F combine) {
  constexpr int WARPS = THREADS / 32;
  state = across_lanes<32, ORDERED>(state, combine);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = state;
  __syncthreads();
  return across_lanes<WARPS, ORDERED>(shared[threadIdx.x % WARPS], combine);
}
