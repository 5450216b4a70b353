// libcuda.so.1 and libcudart.so.13 of the emulator: every function of a header, as a jump to the
// function in Python.
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "python.h"

// Each function is a call that pushes its own address, in 8 bytes. Enter saves the registers of the
// arguments, asks for the function, and jumps there. No emulated function takes a floating-point
// number. The function returns to the program, or if the return address was replaced, to Leave.
#if defined(__x86_64__)
#define ENTRY(name) \
  ".globl " #name "\n.type " #name ",@function\n" #name ": call 1f\n.balign 8, 0xcc\n"
#define ENTER                                                                            \
  "1: pop %rax\n push %rdi\n push %rsi\n push %rdx\n push %rcx\n push %r8\n push %r9\n"  \
  "sub $8, %rsp\n lea -5(%rax), %rdi\n lea 56(%rsp), %rsi\n call culaunch_function_of\n" \
  "add $8, %rsp\n pop %r9\n pop %r8\n pop %rcx\n pop %rdx\n pop %rsi\n pop %rdi\n"       \
  "jmp *%rax\n"
#define LEAVE                                                           \
  "culaunch_leave: push %rax\n push %rdx\n call culaunch_raise_again\n" \
  "mov %rax, %rcx\n pop %rdx\n pop %rax\n jmp *%rcx\n"
#elif defined(__aarch64__)
#define ENTRY(name) ".globl " #name "\n.type " #name ",%function\n" #name ": adr x16, .\n b 1f\n"
#define ENTER                                                                          \
  "1: stp x29, x30, [sp, -80]!\n stp x0, x1, [sp, 16]\n stp x2, x3, [sp, 32]\n"        \
  "stp x4, x5, [sp, 48]\n stp x6, x7, [sp, 64]\n mov x0, x16\n add x1, sp, 8\n"        \
  "bl culaunch_function_of\n"                                                          \
  "mov x16, x0\n ldp x0, x1, [sp, 16]\n ldp x2, x3, [sp, 32]\n ldp x4, x5, [sp, 48]\n" \
  "ldp x6, x7, [sp, 64]\n ldp x29, x30, [sp], 80\n br x16\n"
#define LEAVE                                                          \
  "culaunch_leave: stp x0, x1, [sp, -16]!\n bl culaunch_raise_again\n" \
  "mov x16, x0\n ldp x0, x1, [sp], 16\n br x16\n"
#else
#error libcuda.so.1 of the emulator is written for x86-64 and AArch64
#endif

asm(".text\n.balign 16\nculaunch_entries:\n"
#include "exported_names.h"
    "culaunch_entries_end:\n" ENTER LEAVE);

extern "C" {
extern const char culaunch_entries[] __attribute__((visibility("hidden")));
extern const char culaunch_leave[] __attribute__((visibility("hidden")));

__attribute__((visibility("hidden"))) void* culaunch_function_of(const char* entry,
                                                                 const void** return_address);
__attribute__((visibility("hidden"))) const void* culaunch_raise_again();
}

namespace {

using Function = CUresult (*)();
using Find = Function (*)(const char* name);

enum State : int { kNew, kRuns, kFailed };

std::atomic<int> state{kNew};
Find find = nullptr;
constexpr size_t kEntryBytes = 8;
std::atomic<Function> functions[EXPORTED_NAMES];

CUresult NoPython() { return CUDA_ERROR_OPERATING_SYSTEM; }
CUresult NotSupported() { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult Deinitialized() { return CUDA_ERROR_DEINITIALIZED; }
CUresult Success() { return CUDA_SUCCESS; }

const char* NameOf(const char* entry) {
  Dl_info info;
  return dladdr(entry, &info) != 0 ? info.dli_sname : "";
}

// The function for a call after Python's end. Python programs free memory and unload modules then,
// and a GPU's driver still does so.
Function AfterPython(const char* name) {
  constexpr const char* kEnds[] = {"Destroy", "Free", "Release", "Unload"};
  for (const char* word : kEnds) {
    if (std::strstr(name, word) != nullptr) return Success;
  }
  return Deinitialized;
}

Function FunctionOf(const char* entry) {
  std::atomic<Function>& known = functions[(entry - culaunch_entries) / kEntryBytes];
  if (Function function = known.load(std::memory_order_relaxed)) return function;
  Function function = find(NameOf(entry));
  if (function == nullptr) function = NotSupported;
  known.store(function, std::memory_order_relaxed);
  return function;
}

// A call during which a pending exception is put aside, and where it returns to.
struct Interrupted {
  emulator::Exception exception;
  const void* return_address;
  Interrupted* outer;
};
thread_local Interrupted* interrupted = nullptr;

Function Enter(const char* entry, const void** return_address) {
  if (state.load(std::memory_order_acquire) == kNew) {
    state = emulator::StartPython(reinterpret_cast<void**>(&find)) ? kRuns : kFailed;
  }
  if (state == kFailed) return NoPython;
  if (!emulator::IsPythonAlive()) return AfterPython(NameOf(entry));
  emulator::AttachThread();
  emulator::Exception pending;
  if (emulator::TakeException(&pending)) {
    auto* call = static_cast<Interrupted*>(std::malloc(sizeof(Interrupted)));
    *call = {pending, *return_address, interrupted};
    interrupted = call;
    *return_address = culaunch_leave;
  }
  return FunctionOf(entry);
}

}  // namespace

void* culaunch_function_of(const char* entry, const void** return_address) {
  return reinterpret_cast<void*>(Enter(entry, return_address));
}

const void* culaunch_raise_again() {
  Interrupted* ended = interrupted;
  interrupted = ended->outer;
  emulator::RaiseAgain(ended->exception);
  const void* return_address = ended->return_address;
  std::free(ended);
  return return_address;
}
