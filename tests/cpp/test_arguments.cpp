// Errors of launches for pointers and arrays that do not fit the kernel's parameters.
#include <cstdint>

#include "check.h"
#include "culaunch/arguments.h"

using culaunch::ArrayOf;
using culaunch::Kernel;
using culaunch::LaunchConfig;
using culaunch::Module;

namespace {

// As dlpack.h has it: only the names count.
struct Tensor {
  void* data;
  struct {
    int device_type, device_id;
  } device;
  int ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct Half {
  uint16_t bits;
};

float memory[64];
int64_t shape[] = {8, 4};
int64_t strides[] = {8, 1};

// 1 is the memory of the fake driver.
Tensor Of(uint8_t code, uint8_t bits, int device = 0, int type = 1) {
  return {memory, {type, device}, 2, {code, bits, 1}, shape, nullptr, 0};
}

const char kText[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry add(.param .u64 p0, .param .u64 p1, .param .u32 p2)\n{ ret; }\n"
    ".visible .entry untold(.param .u64 p0)\n{ ret; }\n"
    ".visible .entry _Z4halfP6__halfPKm(.param .u64 p0, .param .u64 p1)\n{ ret; }\n"
    "\n// culaunch: {\"signatures\":{\"add\":[\"float*\",\"const float * "
    "__restrict__\",\"int\"]}}\n";

void Pointers(const Module& module) {
  const Kernel add = module["add"];
  float* f = memory;
  const float* cf = memory;
  double* d = nullptr;
  const int* ci = nullptr;
  add({1, 1}, f, cf, 1);
  add({1, 1}, f, f, 1);
  add({1, 1}, static_cast<void*>(f), static_cast<const void*>(f), 1);
  add({1, 1}, reinterpret_cast<char*>(f), nullptr, 1);
  add({1, 1}, CUdeviceptr{1}, size_t{1}, 1);
  add({1, 1}, culaunch::Untyped(d), culaunch::Untyped(ci), 1);
  Half* half = nullptr;
  add({1, 1}, half, half, 1);  // of a type of the program's own nothing is known
  ClearRecord();
  CHECK_THROWS(add({1, 1}, d, cf, 1), kType,
               "argument 0 of add, float* (8 bytes), must be a pointer to float32 (got double*): "
               "convert what it points to, or use a kernel for its type; "
               "culaunch::Untyped(pointer) passes it unchecked");
  CHECK_THROWS(add({1, 1}, ci, cf, 1), kType, "must be a pointer to float32 (got const int*)");
  CHECK_THROWS(add({1, 1}, f, ci, 1), kType, "argument 1 of add, const float * __restrict__ (8");
  CHECK_THROWS(add({1, 1}, cf, cf, 1), kType,
               "argument 0 of add, float* (8 bytes), must point to writable memory (got "
               "const float*)");
  CHECK_THROWS(add({1, 1}, static_cast<const void*>(cf), cf, 1), kType,
               "must point to writable memory (got const v");
  CHECK(!Recorded("launch"));

  const Kernel halves = module["_Z4halfP6__halfPKm"];
  unsigned long long* words = nullptr;  // as large as unsigned long, and as unsigned
  halves({1, 1}, half, words);
  CHECK_THROWS(halves({1, 1}, f, words), kType,
               "argument 0 of half, __half* (8 bytes), must be a pointer to float16 (got float*)");
  CHECK_THROWS(halves({1, 1}, half, reinterpret_cast<int64_t*>(words)), kType,
               "argument 1 of half, unsigned long const* (8 bytes), must be a pointer to uint64 "
               "(got long");
  module["untold"]({1, 1}, d);
}

void Arrays(const Module& module) {
  const Kernel add = module["add"];
  const Tensor x = Of(2, 32);
  add({1, 1}, ArrayOf(x), ArrayOf(x), 1);
  ClearRecord();
  for (int i = 0; i < 2; ++i) {  // the second time the types are known to fit
    CHECK_THROWS(
        add({1, 1}, ArrayOf(Of(2, 64)), ArrayOf(x), 1), kType,
        "argument 0 of add, float* (8 bytes), must be an array of float32 (got an array of "
        "float64): convert the array, or use a kernel for its type");
    CHECK_THROWS(add({1, 1}, ArrayOf(x), ArrayOf(Of(4, 16)), 1), kType,
                 "(got an array of bfloat16");
    CHECK_THROWS(add({1, 1}, ArrayOf(x), ArrayOf(Of(10, 8)), 1), kType,
                 "DLPack type code 10, bits 8");
    CHECK_THROWS(
        add({1, 1}, ArrayOf(x), ArrayOf(Of(2, 32, 1)), 1), kCall,
        "is on device 1, but earlier arguments are on device 0: all arrays of a call must");
    CHECK_THROWS(add({1, 1, 0, {nullptr, 1}}, ArrayOf(x), ArrayOf(x), 1), kCall,
                 "is on device 0, but the stream belongs to device 1: pass a stream of device 0");
    CHECK_THROWS(add({1, 1}, ArrayOf(Of(2, 32, 0, 10)), ArrayOf(x), 1), kCall,
                 "must be in the memory of the driver in use");
    Tensor null = x;
    null.data = nullptr;
    CHECK_THROWS(
        add({1, 1}, ArrayOf(x), ArrayOf(null), 1), kCall,
        "must be an array with memory (got a null pointer for an array that has elements)");
    CHECK_THROWS(add({1, 1}, ArrayOf(x, 33), ArrayOf(x, 32), 1), kCall,
                 "must have at least 33 elements (got an array of 32)");
    CHECK_THROWS(add({1, 1}, ArrayOf(memory, 64, 65), ArrayOf(x), 1), kCall,
                 "must have at least 65 elements (got an array of 64)");
    const float* fixed = memory;
    CHECK_THROWS(add({1, 1}, ArrayOf(fixed, 64), ArrayOf(x), 1), kType, "the array is read-only");
    double* d = nullptr;
    CHECK_THROWS(add({1, 1}, ArrayOf(d, 0), ArrayOf(x), 1), kType, "(got an array of float64)");
    CHECK_THROWS(add({1, 1}, ArrayOf(d, 1), ArrayOf(x), 1), kType, "(got an array of float64)");
  }
  CHECK(!Recorded("launch"));
  CHECK(add.TryLaunch({1, 1}, ArrayOf(Of(2, 64)), ArrayOf(x), 1).code() ==
        CUDA_ERROR_INVALID_VALUE);

  // Pinned and managed memory, and memory of an unknown place, belong to every device.
  add({1, 1, 0, {nullptr, 1}}, ArrayOf(Of(2, 32, 0, 3)), ArrayOf(Of(2, 32, 1)), 1);
  add({1, 1, 0, {nullptr, 1}}, ArrayOf(memory, 64), nullptr, 1);
  Tensor empty = x;
  int64_t none[] = {8, 0};
  empty.data = nullptr;
  empty.shape = none;
  add({1, 1}, ArrayOf(empty), ArrayOf(x), 1);
  Tensor strided = x;
  strided.strides = strides;
  strided.byte_offset = 4;
  add({1, 1}, ArrayOf(strided, 60), ArrayOf(x), 1);
  CHECK(CountRecorded("launch add") == 4);
  char bytes[17];
  std::snprintf(bytes, sizeof bytes, "%02x%02x",
                static_cast<unsigned>(reinterpret_cast<uintptr_t>(memory + 1) & 0xff),
                static_cast<unsigned>(reinterpret_cast<uintptr_t>(memory + 1) >> 8 & 0xff));
  CHECK(Recorded(std::string("args ") + bytes));  // the address, byte offset included
  void* address = ArrayOf(x);
  CHECK(address == memory && static_cast<float*>(ArrayOf(x)) == memory);
  module["untold"]({1, 1}, ArrayOf(Of(2, 64)));

  culaunch::Arguments list;
  list.AddAll(ArrayOf(x), ArrayOf(Of(2, 64)), 1);
  CHECK_THROWS(add.Launch({1, 1}, list), kType, "argument 1 of add, const float * __restrict__");
  list.Clear();
  list.AddAll(ArrayOf(x), ArrayOf(x), 1);
  add.Launch({1, 1}, list);
  CHECK(CountRecorded("launch add") == 5);
}

}  // namespace

int main() {
  const Module module(kText, sizeof kText - 1);
  Pointers(module);
  Arrays(module);
}
