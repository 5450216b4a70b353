// Copy 16 bytes to shared memory while the thread goes on, and wait for all copies of the thread.
template <class T>
__device__ __forceinline__ void copy_async(T* to, const T* from) {
  static_assert(sizeof(T) == 16, "a copy has 16 bytes");
#if __CUDA_ARCH__ >= 800
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place),
               "l"(__cvta_generic_to_global(from))
               : "memory");
#else
  *to = *from;
#endif
}
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
