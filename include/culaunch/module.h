// culaunch::Module: an image in the driver, for all devices at once.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "driver.h"
#include "error.h"
#include "kernel.h"
#include "module_options.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// A variable of a module on one device.
struct GlobalVariable {
  CUdeviceptr address;
  size_t size;  // in bytes
};

// Owns a CUlibrary, which belongs to no context: one module serves every device. The destructor
// unloads it; Release() keeps it for the life of the process, as static modules must.
class Module {
 public:
  // An empty module, like one that was moved from.
  Module() noexcept : state_(nullptr) {}
  // Load an image: a cubin, a fatbin or PTX. The driver keeps a copy of its own, unless an option
  // says otherwise.
  Module(const void* bytes, size_t size, Driver& driver = Driver::Get())
      : Module(bytes, size, ModuleOptions(), driver) {}
  Module(const void* bytes, size_t size, ModuleOptions options, Driver& driver = Driver::Get());

  // The same for programs without exceptions; on the process's default driver.
  static Result<Module> TryLoad(const void* bytes, size_t size, ModuleOptions options = {});
  static Result<Module> TryLoad(const void* bytes, size_t size, ModuleOptions options,
                                Driver& driver);

  static Module FromFile(const std::string& path, Driver& driver = Driver::Get());
  static Module FromFile(const std::string& path, ModuleOptions options,
                         Driver& driver = Driver::Get());
  static Result<Module> TryFromFile(const std::string& path, ModuleOptions options = {});
  static Result<Module> TryFromFile(const std::string& path, ModuleOptions options, Driver& driver);

  Module(Module&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Module& operator=(Module&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Module() {
    if (state_ != nullptr) Destroy();
  }

  // Find a kernel by its name in the image (mangled, unless it is extern "C"), or by a name
  // expression that it was compiled for ("scale<float>"). Thread-safe; the driver is asked once.
  Kernel GetKernel(const std::string& asked) const;

  Result<Kernel> TryGetKernel(const std::string& asked) const;

  bool HasKernel(const std::string& asked) const;

  Kernel operator[](const std::string& name) const { return GetKernel(name); }

  // Find a kernel and let its blocks have `bytes` of dynamic shared memory on every device; -1 is
  // the most that each device gives once opted in. (Launch opts in by itself if it must.)
  Kernel GetKernelWithMaxDynamicSharedMemory(const std::string& name, int64_t bytes = -1) const;

  // The names of all kernels, in the driver's order.
  std::vector<std::string> KernelNames() const;

  Result<std::vector<std::string>> TryKernelNames() const;

  // The address and size of a __device__ or __constant__ variable on a device.
  GlobalVariable GetGlobal(const std::string& name, int ordinal) const;

  Result<GlobalVariable> TryGetGlobal(const std::string& name, int ordinal) const;

  // Unload now. Kernels of it that are called later report that; kernels that still run on the
  // GPU must have ended.
  void Unload() noexcept;

  // Never unload: for modules that live as long as the process.
  void Release() noexcept;

  // Whether its image is in the driver. It is not after Unload(), or after the module was moved
  // from.
  bool IsLoaded() const noexcept { return handle() != nullptr; }
  CUlibrary handle() const noexcept;
  Driver& driver() const noexcept;

 private:
  struct State;

  explicit Module(State* state) noexcept : state_(state) {}

  void Destroy() noexcept;
  Status CheckLoaded() const;
  Error NotFound(const std::string& name) const;

  State* state_;
};

CULAUNCH_NAMESPACE_END

#if CULAUNCH_HEADER_ONLY
#include "impl/module.h"
#endif
