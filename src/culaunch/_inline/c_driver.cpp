// A libcuda.so.1 whose functions are those of the driver that the process has in use: for C that is
// linked with -lcuda, in tests.
#include <culaunch/driver.h>

#define CULAUNCH_TEXT(name) #name

// Each is a jump to where a pointer says, whatever the function's arguments are.
#if defined(__x86_64__)
#define CULAUNCH_JUMP(target) "  jmpq *" target "(%rip)\n"
#elif defined(__aarch64__)
#define CULAUNCH_JUMP(target) \
  "  adrp x16, " target       \
  "\n"                        \
  "  ldr x16, [x16, :lo12:" target "]\n  br x16\n"
#else
#error "the jumps are written for x86_64 and aarch64"
#endif

// cuda.h has other names for some (cuMemAlloc_v2), which these are, too.
#define CULAUNCH_FORWARD(name, pointer)                                \
  extern "C" {                                                         \
  __attribute__((visibility("hidden"), used)) void* pointer = nullptr; \
  }                                                                    \
  asm(".text\n.globl " name "\n.type " name ", %function\n" name       \
      ":\n" CULAUNCH_JUMP(CULAUNCH_TEXT(pointer)));
#define CULAUNCH_ONE(name, version, required) CULAUNCH_EXPANDED(name)
#define CULAUNCH_EXPANDED(name) CULAUNCH_FORWARD(CULAUNCH_TEXT(name), culaunch_to_##name)

CULAUNCH_DRIVER_FUNCTIONS(CULAUNCH_ONE)

// NVRTC opens whatever the process has under the name libcuda.so.1, and does not expect one without
// this function. The tables are undocumented; each begins with its size, and this one is empty.
extern "C" CUresult cuGetExportTable(const void** table, const CUuuid*) {
  static const size_t empty[1] = {sizeof empty};
  *table = empty;
  return CUDA_ERROR_NOT_FOUND;
}

namespace {

CUresult NotInitialized() { return CUDA_ERROR_NOT_INITIALIZED; }

template <class Function>
void* Address(Function* function) {
  return function != nullptr ? reinterpret_cast<void*>(function)
                             : reinterpret_cast<void*>(&NotInitialized);
}

__attribute__((constructor)) void Fill() {
  const culaunch::DriverTable none{};
  const culaunch::DriverTable* table = &none;
  try {
    table = &culaunch::Driver::Get();
  } catch (const std::exception&) {
    // Every function says that there is no driver.
  }
#define CULAUNCH_FILL(name, version, required) CULAUNCH_SET(name)
#define CULAUNCH_SET(name) culaunch_to_##name = Address(table->name);
  CULAUNCH_DRIVER_FUNCTIONS(CULAUNCH_FILL)
}

}  // namespace
