// The functions that module.h declares: loading and lookups.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../by_name.h"
#include "../driver.h"
#include "../error.h"
#include "../guard.h"
#include "../image_check.h"
#include "../image_metadata.h"
#include "../kernel.h"
#include "../kernel_state.h"
#include "../lock.h"
#include "../module.h"
#include "../module_options.h"
#include "../text.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

struct Module::State {
  explicit State(Driver& own_driver) noexcept : driver(own_driver) {}

  Driver& driver;
  CUlibrary library = nullptr;
  bool released = false;
  Mutex mutex;
  ByName<Kernel> kernels;
  ImageMetadata metadata;
  std::string text;     // of PTX: an option may tell the driver not to copy it
  char log[8192] = "";  // of the compiler in the driver

  const std::string& NameInImage(const std::string& asked) const {
    const std::string* name = metadata.names.Find(asked);
    return name != nullptr ? *name : asked;
  }

  // An error when a call failed, with the message of the compiler in the driver.
  Status StatusOf(CUresult code, const std::string& what) const {
    const Status status = driver.StatusOf(code, what);
    if (status || log[0] == '\0') return status ? Status() : Status(status.error());
    return Error(ErrorKind::kDriver, code, driver.ErrorName(code),
                 std::string(status.what()) + "\n" + log);
  }
};

CULAUNCH_INLINE Module::Module(const void* bytes, size_t size, ModuleOptions options,
                               Driver& driver)
    : Module(TryLoad(bytes, size, std::move(options), driver).OrThrow()) {}

CULAUNCH_INLINE Module Module::FromFile(const std::string& path, Driver& driver) {
  return FromFile(path, ModuleOptions(), driver);
}

CULAUNCH_INLINE Module Module::FromFile(const std::string& path, ModuleOptions options,
                                        Driver& driver) {
  return TryFromFile(path, std::move(options), driver).OrThrow();
}

CULAUNCH_INLINE Kernel Module::GetKernel(const std::string& asked) const {
  return TryGetKernel(asked).OrThrow();
}

CULAUNCH_INLINE std::vector<std::string> Module::KernelNames() const {
  return TryKernelNames().OrThrow();
}

CULAUNCH_INLINE GlobalVariable Module::GetGlobal(const std::string& name, int ordinal) const {
  return TryGetGlobal(name, ordinal).OrThrow();
}

CULAUNCH_INLINE Result<Module> Module::TryLoad(const void* bytes, size_t size,
                                               ModuleOptions options) {
  const Result<Driver*> driver = Driver::TryGet();
  return driver ? TryLoad(bytes, size, std::move(options), **driver)
                : Result<Module>(driver.error());
}

CULAUNCH_INLINE Result<Module> Module::TryLoad(const void* bytes, size_t size,
                                               ModuleOptions options, Driver& driver) {
  ImageFormat format{};
  if (Status checked = CheckImage(bytes, size, &format); !checked) return checked;
  Module module(new State(driver));
  State& state = *module.state_;
  if (Status read = ReadMetadata(bytes, size, format, &state.metadata); !read) return read;
  if (format == ImageFormat::kPtx) {  // the driver finds its end by a null
    state.text.assign(static_cast<const char*>(bytes), size);
    bytes = state.text.c_str();
    if (!options.HasJit(CU_JIT_ERROR_LOG_BUFFER)) {
      // PTX may be compiled later, when a kernel is asked for: the log must live as long.
      options.Jit(CU_JIT_ERROR_LOG_BUFFER, state.log);
      options.Jit(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, sizeof state.log);
    }
  }
  const CUresult code = options.Load(&state.library, bytes, driver.cuLibraryLoadData);
  if (code != CUDA_SUCCESS) return state.StatusOf(code, "loading the image");
  return module;
}

CULAUNCH_INLINE Result<Module> Module::TryFromFile(const std::string& path, ModuleOptions options) {
  const Result<Driver*> driver = Driver::TryGet();
  return driver ? TryFromFile(path, std::move(options), **driver) : Result<Module>(driver.error());
}

CULAUNCH_INLINE Result<Module> Module::TryFromFile(const std::string& path, ModuleOptions options,
                                                   Driver& driver) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (file == nullptr) return Error("cannot open the image " + path);
  std::vector<char> bytes;
  char buffer[65536];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file.get())) != 0;) {
    bytes.insert(bytes.end(), buffer, buffer + n);
  }
  if (std::ferror(file.get()) != 0) return Error("cannot read the image " + path);
  return TryLoad(bytes.data(), bytes.size(), std::move(options), driver);
}

CULAUNCH_INLINE void Module::Destroy() noexcept {
  if (!state_->released) Unload();
  delete state_;
}

CULAUNCH_INLINE Result<Kernel> Module::TryGetKernel(const std::string& asked) const {
  if (Status loaded = CheckLoaded(); !loaded) return loaded;
  const LockGuard lock(state_->mutex);
  if (Status loaded = CheckLoaded(); !loaded) return loaded;
  const std::string& name = state_->NameInImage(asked);
  if (const auto* known = state_->kernels.Find(name)) return Kernel(*known);
  CUkernel handle = nullptr;
  CUresult code = driver().cuLibraryGetKernel(&handle, state_->library, name.c_str());
  if (code == CUDA_ERROR_NOT_FOUND) return NotFound(name);
  if (code != CUDA_SUCCESS) return state_->StatusOf(code, "finding kernel " + name);
  const Kernel kernel(
      new KernelState(driver(), handle, name, state_->metadata.signatures.Find(name)));
  code = kernel.state().ReadParameters();
  if (code != CUDA_SUCCESS) {
    return state_->StatusOf(code, "reading the parameters of kernel " + name);
  }
  Kernel own = state_->kernels.Set(name, kernel);
  return own;
}

CULAUNCH_INLINE bool Module::HasKernel(const std::string& asked) const {
  CheckLoaded().OrThrow();
  const LockGuard lock(state_->mutex);
  CheckLoaded().OrThrow();
  const std::string& name = state_->NameInImage(asked);
  CUkernel handle = nullptr;
  const CUresult code = driver().cuLibraryGetKernel(&handle, state_->library, name.c_str());
  if (code != CUDA_ERROR_NOT_FOUND) state_->StatusOf(code, "finding kernel " + name).OrThrow();
  return code == CUDA_SUCCESS;
}

CULAUNCH_INLINE Kernel Module::GetKernelWithMaxDynamicSharedMemory(const std::string& name,
                                                                   int64_t bytes) const {
  const Kernel kernel = GetKernel(name);
  for (int i = 0; i < driver().device_count(); ++i) {
    const CUresult code = kernel.state().AllowDynamicSharedMemory(i, bytes);
    if (code == CUDA_ERROR_NO_BINARY_FOR_GPU) continue;  // a launch there will report it
    driver().Check(code, "allowing " + name + " " + detail::ToText(bytes) +
                             " bytes of dynamic shared memory on device " + detail::ToText(i));
  }
  return kernel;
}

CULAUNCH_INLINE Result<std::vector<std::string>> Module::TryKernelNames() const {
  if (Status loaded = CheckLoaded(); !loaded) return loaded;
  unsigned count = 0;
  CUresult code = driver().cuLibraryGetKernelCount(&count, state_->library);
  if (code != CUDA_SUCCESS) return state_->StatusOf(code, "counting the module's kernels");
  std::vector<CUkernel> handles(count);
  code = driver().cuLibraryEnumerateKernels(handles.data(), count, state_->library);
  if (code != CUDA_SUCCESS) return state_->StatusOf(code, "listing the module's kernels");
  std::vector<std::string> names;
  for (const CUkernel handle : handles) {
    const char* name = nullptr;
    code = driver().cuKernelGetName(&name, handle);
    if (code != CUDA_SUCCESS) return state_->StatusOf(code, "naming a kernel");
    names.emplace_back(name);
  }
  return names;
}

CULAUNCH_INLINE Result<GlobalVariable> Module::TryGetGlobal(const std::string& name,
                                                            int ordinal) const {
  if (Status loaded = CheckLoaded(); !loaded) return loaded;
  if (Status known = driver().CheckDevice(ordinal); !known) return known;
  const DeviceGuard guard(driver(), ordinal);
  if (guard.code() != CUDA_SUCCESS) {
    return driver().StatusOf(guard.code(), "making the device current");
  }
  GlobalVariable variable{};
  const CUresult code =
      driver().cuLibraryGetGlobal(&variable.address, &variable.size, state_->library, name.c_str());
  if (code == CUDA_ERROR_NOT_FOUND) {
    return Error(ErrorKind::kCall, code, driver().ErrorName(code),
                 "the module has no variable \"" + name +
                     "\": give its name in the image (mangled, if it is in a namespace)");
  }
  if (code != CUDA_SUCCESS) return driver().StatusOf(code, "finding variable " + name);
  return variable;
}

CULAUNCH_INLINE void Module::Unload() noexcept {
  if (state_ == nullptr) return;  // moved from
  const LockGuard lock(state_->mutex);
  if (state_->library == nullptr) return;
  for (const Kernel& kernel : state_->kernels.values()) kernel.state().MarkUnloaded();
  driver().cuLibraryUnload(state_->library);
  state_->library = nullptr;
}

CULAUNCH_INLINE void Module::Release() noexcept {
  if (state_ != nullptr) state_->released = true;
}

CULAUNCH_INLINE CUlibrary Module::handle() const noexcept {
  return state_ != nullptr ? state_->library : nullptr;
}

CULAUNCH_INLINE Driver& Module::driver() const noexcept { return state_->driver; }

CULAUNCH_INLINE Status Module::CheckLoaded() const {
  if (state_ == nullptr) {
    return Error(
        "the module was moved from, or is empty: use the one it was moved to, or load one");
  }
  if (state_->library == nullptr) return Error("the module was unloaded: load it again");
  return {};
}

CULAUNCH_INLINE Error Module::NotFound(const std::string& name) const {
  std::string text = "the module has no kernel \"" + name + "\"; it has";
  const Result<std::vector<std::string>> names = TryKernelNames();
  if (!names) return names.error();
  for (const std::string& other : *names) text.append(" ").append(other);
  for (const auto& [expression, place] : state_->metadata.names.numbers()) {
    text.append(" ").append(expression);
  }
  return Error(ErrorKind::kCall, CUDA_ERROR_NOT_FOUND, driver().ErrorName(CUDA_ERROR_NOT_FOUND),
               names->empty() ? text + " none" : text);
}

CULAUNCH_NAMESPACE_END
