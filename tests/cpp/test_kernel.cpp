// culaunch::Kernel: what arrives at the driver, and what never does.
#include "check.h"

using culaunch::Dim3;
using culaunch::Kernel;
using culaunch::LaunchConfig;
using culaunch::Module;

static Module Load() { return Module(Ptx().data(), Ptx().size()); }

static void RawLaunch(const Module& module) {
  void* x = reinterpret_cast<void*>(uintptr_t{0x1122334455667788});
  void* y = nullptr;
  float factor = 2.0f;
  int n = 10;
  void* arguments[] = {&x, &y, &factor, &n};
  const Kernel kernel = module["scale"];
  static_assert(noexcept(kernel.Launch(arguments, Dim3(4), Dim3(256), nullptr)));
  ClearRecord();
  CHECK(kernel.Launch(arguments, Dim3(4, 2), Dim3(8, 4, 2), nullptr, 128) == CUDA_SUCCESS);
  CHECK(
      Recorded("launch scale device=0 grid=4,2,1 block=8,4,2 shared=128 stream=default args "
               "8877665544332211 0000000000000000 00000040 0a000000\n"));
}

struct Record24 {
  int64_t a;
  double b;
  char c;
};

static void CheckedCall(const Module& module) {
  ClearRecord();
  float* x = nullptr;
  module["scale"](LaunchConfig(1, 32), x, x, 1.5f, 7);
  CHECK(Recorded("args 0000000000000000 0000000000000000 0000c03f 07000000\n"));
  module["with_struct"]({1, 1}, uint8_t{3}, Record24{1, 1.0, 'x'}, 2.0);
  CHECK(Recorded("args 03 0100000000000000000000000000f03f78"));
  module["empty"]({1, 1});

  const Kernel scale = module["scale"];
  ClearRecord();
  CHECK_THROWS(scale({1, 1}, x, x, 1.5f), kType, "scale takes 4 arguments (got 3)");
  CHECK_THROWS(scale({1, 1}, x, x, 1.5, 7), kCall,
               "argument 2 of scale must be 4 bytes long (got 8, double)");
  CHECK_THROWS(module["with_struct"]({1, 1}, 3, Record24{1, 1.0, 'x'}, 2.0), kCall,
               "argument 0 of with_struct must be 1 byte long (got 4, int)");
  CHECK(!Recorded("launch"));
  // Types that fit, after types that do not, after types that do.
  scale({1, 1}, x, x, 1.5f, 7u);
  CHECK_THROWS(scale({1, 1}, x, x, 1.5, 7), kCall, "argument 2");
}

// The types are those of the mangled name, or those that the image carries.
static void TypesOfArguments() {
  static const char kText[] =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry _Z5scaleIfEvPT_S0_i7__half21E(.param .u64 p0, .param .f32 p1,\n"
      "  .param .u32 p2, .param .b32 p3, .param .b32 p4)\n{ ret; }\n"
      ".visible .entry plain(.param .u64 p0, .param .f64 p1, .param .u32 p2)\n{ ret; }\n"
      "\n// culaunch: {\"future\":[1,{\"a\":null}],\"names\":{\"scale<float>\":"
      "\"_Z5scaleIfEvPT_S0_i7__half21E\"},"
      "\"signatures\":{\"plain\":[\"const float*\",\"double\",null]}}\n";
  const Module module(kText, sizeof kText - 1);
  CHECK(module.HasKernel("scale<float>"));
  const Kernel scale = module["scale<float>"];
  CHECK(scale.name() == "_Z5scaleIfEvPT_S0_i7__half21E");
  CHECK_THROWS(module["scale<int>"], kCall, "plain scale<float>");
  struct Half2 {
    uint32_t bits;
  } pair{1};
  enum Mode : int { kMode = 5 };
  float* x = nullptr;
  ClearRecord();
  scale({1, 1}, x, 1.5f, 7, pair, kMode);
  scale({1, 1}, CUdeviceptr{1}, 1.5f, 7u, pair, 5);
  scale({1, 1}, nullptr, 1.5f, 7u, pair, 5);
  CHECK(Recorded("args 0000000000000000 0000c03f 07000000 01000000 05000000\n"));
  CHECK(CountRecorded("launch") == 3);
  CHECK_THROWS(scale({1, 1}, x, 2, 7, pair, 5), kType,
               "argument 1 of void scale<float>(float*, float, int, __half2, E) must be float "
               "(got int): pass a value of that type");
  CHECK_THROWS(scale({1, 1}, x, 7, 1.5f, pair, 5), kType, "argument 1 of");
  CHECK_THROWS(scale({1, 1}, x, 1.5f, 7.0f, pair, 5), kType, "must be int (got float)");
  CHECK_THROWS(scale({1, 1}, x, 1.5f, 7, 2, 5), kType, "must be __half2 (got int)");
  CHECK_THROWS(scale({1, 1}, int64_t{1}, 1.5f, 7, pair, 5), kType, "must be float* (got long");
  CHECK_THROWS(scale({1, 1}, 1.0, 1.5f, 7, pair, 5), kType, "must be float* (got double)");
  CHECK_THROWS(scale({1, 1}, x, 1.5, 7, pair, 5), kCall,
               "must be 4 bytes long, because it is float (got 8, double)");

  const Kernel plain = module["plain"];
  plain({1, 1}, x, 1.5, 7);
  plain({1, 1}, x, 1.5, 7.5f);  // unknown: its size is all that is compared
  CHECK_THROWS(plain({1, 1}, x, x, 7), kType, "argument 1 of plain must be double (got float*)");
  CHECK_THROWS(plain({1, 1}, 1.5, 1.5, 7), kType, "must be const float* (got double)");
}

static void Attributes(const Module& module) {
  ClearRecord();
  LaunchConfig config(Dim3(8), Dim3(64));
  config.cluster = Dim3(2, 1, 1);
  config.preferred_cluster = Dim3(4, 1, 1);
  config.cooperative = true;
  config.programmatic = true;
  config.has_priority = true;
  config.priority = -3;
  module["empty"](config);
  CHECK(
      Recorded("stream=default cluster=2,1,1 preferred_cluster=4,1,1 cooperative=1 "
               "programmatic=1 priority=-3 args\n"));
  LaunchConfig large(Dim3(16), Dim3(64));
  large.cluster = Dim3(16, 1, 1);
  module["empty"](large);
  CHECK(Recorded("set empty attribute=14 value=1 device=0"));  // non-portable cluster size
}

static void SharedMemory(const Module& module) {
  const Kernel kernel = module["empty"];
  ClearRecord();
  CHECK(kernel.Launch(nullptr, 1, 1, nullptr, 40000) == CUDA_SUCCESS);
  CHECK(!Recorded("set empty"));
  CHECK(kernel.Launch(nullptr, 1, 1, nullptr, 100000) == CUDA_SUCCESS);
  CHECK(kernel.Launch(nullptr, 1, 1, nullptr, 200000) == CUDA_SUCCESS);
  CHECK(CountRecorded("set empty attribute=8 value=231424 device=0") == 1);  // 232448 - 1024, once
  CHECK(kernel.Launch(nullptr, 1, 1, nullptr, 231425) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THROWS(kernel({1, 1, 231425}), kCall, "ask for at most 231424 of dynamic shared memory");

  // The opt-in maximum of each device, not the default 48 KB.
  const Module other = Load();
  ClearRecord();
  other.GetKernelWithMaxDynamicSharedMemory("scale");
  CHECK(Recorded("set scale attribute=8 value=231424 device=0"));
  CHECK(Recorded("set scale attribute=8 value=100352 device=1"));
  CHECK(kernel.Launch(nullptr, 1, 1, nullptr, 200000) == CUDA_SUCCESS);
  module.GetKernelWithMaxDynamicSharedMemory("empty", 60000);
  CHECK(kernel.Launch(nullptr, 1, 1, nullptr, 50000) == CUDA_SUCCESS);
  CHECK(kernel.Launch(nullptr, 1, 1, nullptr, 200000) == CUDA_SUCCESS);  // opts in again
  other.GetKernelWithMaxDynamicSharedMemory("scale", 1000);
  CHECK(Recorded("set scale attribute=8 value=1000 device=1"));
  CHECK_THROWS(other.GetKernelWithMaxDynamicSharedMemory("scale", -2), kDriver, "dynamic shared");
}

static void Explanations(const Module& module) {
  const Kernel kernel = module["empty"];
  CHECK_THROWS(kernel({Dim3(1, 0), 1}), kCall, "grid must be at least 1 in every dimension");
  CHECK_THROWS(kernel({1, 1024}), kCall,
               "the block has 1024 threads; this kernel, with 96 registers");
  FailNext("cuLaunchKernelEx", CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_THROWS(kernel({1, 1}), kDriver, "An earlier kernel on this device failed");
  FailNext("cuFuncLoad", CUDA_ERROR_NO_BINARY_FOR_GPU);
  const Module fresh = Load();
  CHECK_THROWS(fresh["empty"]({1, 1}), kCall, "no code for this device's architecture");
  fresh["empty"]({1, 1});  // and the next try is a new one
}

int main() {
  const Module module = Load();
  RawLaunch(module);
  CheckedCall(module);
  TypesOfArguments();
  Attributes(module);
  SharedMemory(module);
  Explanations(module);
  static_assert(Dim3(2, 3).Volume() == 6 && Dim3() == Dim3(1, 1, 1));
}
