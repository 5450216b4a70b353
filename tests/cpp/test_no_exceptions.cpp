// A program that is built with -fno-exceptions: every failure is a value.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "culaunch/culaunch.h"

static_assert(!culaunch::kHasExceptions, "the build has -fno-exceptions");

static const char kPtx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry scale(.param .u64 y, .param .f32 factor)\n{ ret; }\n";
static const char kNoImage[] = "this is no image";
CULAUNCH_EMBED_CUBIN_FROM_BYTES(kernels, kPtx);

static void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}
#define REQUIRE(condition) Require(condition, #condition)

template <class Outcome>
static bool Says(const Outcome& outcome, const char* text) {
  return !outcome.ok() && std::strstr(outcome.what(), text) != nullptr;
}

static void Driver() {
  REQUIRE(Says(culaunch::Driver::TryOpen("/nowhere/libcuda.so"), "cannot be loaded"));
  REQUIRE(culaunch::Driver::TryGet().ok());
}

static void Modules() {
  REQUIRE(Says(culaunch::Module::TryLoad(kNoImage, sizeof kNoImage), "the bytes are not an image"));
  REQUIRE(Says(culaunch::Module::TryFromFile("/nowhere/k.cubin"), "cannot open the image"));
  culaunch::Result<culaunch::Module> module = culaunch::Module::TryLoad(kPtx, sizeof kPtx - 1);
  REQUIRE(module.ok() && module.code() == CUDA_SUCCESS && *module.what() == '\0');
  REQUIRE(Says(module->TryGetKernel("none"), "the module has no kernel \"none\"; it has scale"));
  REQUIRE(module->TryGetKernel("none").code() == CUDA_ERROR_NOT_FOUND);
  REQUIRE(Says(module->TryGetGlobal("none", 0), "has no variable"));
  REQUIRE(Says(module->TryGetGlobal("none", 9), "there is no device 9"));
  module->Unload();
  REQUIRE(Says(module->TryGetKernel("scale"), "the module was unloaded"));
}

static void Launches() {
  const auto module = CULAUNCH_TRY_SHARE_MODULE(kernels);
  REQUIRE(module.ok());
  const culaunch::Result<culaunch::Kernel> scale = (*module)->TryGetKernel("scale");
  REQUIRE(scale.ok());
  float* y = nullptr;
  REQUIRE(scale->TryLaunch({1, 32}, y, 2.0f).ok());
  REQUIRE(scale->TryLaunch({1, 32}, y, 2.0f).code() == CUDA_SUCCESS);
  REQUIRE(Says(scale->TryLaunch({1, 32}, y), "scale takes 2 arguments (got 1)"));
  REQUIRE(Says(scale->TryLaunch({1, 32}, y, 2.0), "argument 1 of scale must be 4 bytes long"));
  REQUIRE(Says(scale->TryLaunch({0, 32}, y, 2.0f), "grid must be at least 1"));
  const culaunch::Status status = scale->TryLaunch({1, 1024}, y, 2.0f);
  REQUIRE(Says(status, "the block has 1024 threads"));
  REQUIRE(status.error().kind() == culaunch::ErrorKind::kCall);
  REQUIRE(status.code() == CUDA_ERROR_INVALID_VALUE);
  culaunch::LaunchConfig config(9, 32);
  config.cluster = 2;
  REQUIRE(Says(scale->TryLaunch(config, y, 2.0f), "must be a multiple of cluster"));
}

int main(int count, char**) {
  Driver();
  Modules();
  Launches();
  // An error that throws elsewhere ends the process, with a message.
  if (count > 1) culaunch::Module(kNoImage, sizeof kNoImage);
}
