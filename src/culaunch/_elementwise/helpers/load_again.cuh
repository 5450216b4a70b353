// A read of a row that is read once more (IsLast: that was). The first policy keeps the row in the
// caches. The second one makes room in the L2 cache, which then writes results in longer runs.
template <bool IsLast, class P>
__device__ inline P load_again(const P* pack) {
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(P) == 16) {
    unsigned long long policy;
    uint4 words;
    // Not volatile: no pack is written before it was read, so the compiler may reorder these.
    if (IsLast) {
      asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
      asm("ld.global.L1::evict_first.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
          : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
          : "l"(pack), "l"(policy));
    } else {
      asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
      asm("ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
          : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
          : "l"(pack), "l"(policy));
    }
    return reinterpret_cast<const P&>(words);
  }
#endif
  return *pack;
}
