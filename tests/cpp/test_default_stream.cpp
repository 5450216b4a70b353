// Launches use the same default stream as handwritten code in the same file.
#include "check.h"

int main() {
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
  constexpr unsigned long long kFlags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
#else
  constexpr unsigned long long kFlags = CU_GET_PROC_ADDRESS_DEFAULT;
#endif
  const culaunch::Module module(Ptx().data(), Ptx().size());
  module["empty"]({1, 1});
  CHECK(Recorded("launch empty device=0"));
  const auto flags =
      reinterpret_cast<unsigned long long (*)()>(Recorder("fake_driver_address_flags"));
  CHECK(flags() == kFlags);
}
