// culaunch::Module: an image in the driver, for all devices at once.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver.h"
#include "guard.h"
#include "image_check.h"
#include "image_metadata.h"
#include "kernel.h"
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
  // Load an image: a cubin, a fatbin or PTX. The driver keeps a copy of its own.
  Module(const void* bytes, size_t size, Driver& driver = Driver::Get())
      : state_(std::make_unique<State>(driver)) {
    const ImageFormat format = CheckImage(bytes, size);
    state_->metadata = ReadMetadata(bytes, size, format);
    std::string text;
    if (format == ImageFormat::kPtx) {  // the driver finds its end by a null
      text.assign(static_cast<const char*>(bytes), size);
      bytes = text.c_str();
    }
    // PTX may be compiled later, when a kernel is asked for: the log must live as long.
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {state_->log, reinterpret_cast<void*>(sizeof state_->log)};
    Check(driver.cuLibraryLoadData(&state_->library, bytes, options, values,
                                   format == ImageFormat::kPtx ? 2 : 0, nullptr, nullptr, 0),
          "loading the image");
  }

  static Module FromFile(const std::string& path, Driver& driver = Driver::Get()) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               &std::fclose);
    if (file == nullptr) throw Error("cannot open the image " + path);
    std::vector<char> bytes;
    char buffer[65536];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file.get())) != 0;) {
      bytes.insert(bytes.end(), buffer, buffer + n);
    }
    if (std::ferror(file.get()) != 0) throw Error("cannot read the image " + path);
    return Module(bytes.data(), bytes.size(), driver);
  }

  Module(Module&&) noexcept = default;
  Module& operator=(Module&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Module() {
    if (state_ != nullptr && !state_->released) Unload();
  }

  // Find a kernel by its name in the image (mangled, unless it is extern "C"), or by a name
  // expression that it was compiled for ("scale<float>"). Thread-safe; the driver is asked once.
  Kernel GetKernel(const std::string& asked) const {
    RequireLoaded();
    const std::lock_guard<std::mutex> lock(state_->mutex);
    RequireLoaded();
    const std::string& name = state_->NameInImage(asked);
    const auto found = state_->kernels.find(name);
    if (found != state_->kernels.end()) return Kernel(found->second.get());
    CUkernel handle = nullptr;
    const CUresult code = driver().cuLibraryGetKernel(&handle, state_->library, name.c_str());
    if (code == CUDA_ERROR_NOT_FOUND) {
      throw Error(ErrorKind::kCall, code, driver().ErrorName(code), NotFound(name));
    }
    Check(code, "finding kernel " + name);
    const auto signature = state_->metadata.signatures.find(name);
    auto kernel = std::make_unique<KernelState>(
        driver(), handle, name,
        signature != state_->metadata.signatures.end() ? &signature->second : nullptr);
    Check(kernel->ReadParameters(), "reading the parameters of kernel " + name);
    return Kernel(state_->kernels.emplace(name, std::move(kernel)).first->second.get());
  }

  bool HasKernel(const std::string& asked) const {
    RequireLoaded();
    const std::lock_guard<std::mutex> lock(state_->mutex);
    RequireLoaded();
    const std::string& name = state_->NameInImage(asked);
    CUkernel handle = nullptr;
    const CUresult code = driver().cuLibraryGetKernel(&handle, state_->library, name.c_str());
    if (code != CUDA_ERROR_NOT_FOUND) Check(code, "finding kernel " + name);
    return code == CUDA_SUCCESS;
  }

  Kernel operator[](const std::string& name) const { return GetKernel(name); }

  // Find a kernel and let its blocks have `bytes` of dynamic shared memory on every device; -1 is
  // the most that each device gives once opted in. (Launch opts in by itself where it must.)
  Kernel GetKernelWithMaxDynamicSharedMemory(const std::string& name, int64_t bytes = -1) const {
    const Kernel kernel = GetKernel(name);
    for (int i = 0; i < driver().device_count(); ++i) {
      const CUresult code = kernel.state().AllowDynamicSharedMemory(i, bytes);
      if (code == CUDA_ERROR_NO_BINARY_FOR_GPU) continue;  // a launch there will say so
      driver().Check(code, "allowing " + name + " " + std::to_string(bytes) +
                               " bytes of dynamic shared memory on device " + std::to_string(i));
    }
    return kernel;
  }

  // The names of all kernels, in the driver's order.
  std::vector<std::string> KernelNames() const {
    RequireLoaded();
    unsigned count = 0;
    Check(driver().cuLibraryGetKernelCount(&count, state_->library),
          "counting the module's kernels");
    std::vector<CUkernel> handles(count);
    Check(driver().cuLibraryEnumerateKernels(handles.data(), count, state_->library),
          "listing the module's kernels");
    std::vector<std::string> names;
    for (const CUkernel handle : handles) {
      const char* name = nullptr;
      Check(driver().cuKernelGetName(&name, handle), "naming a kernel");
      names.emplace_back(name);
    }
    return names;
  }

  // The address and size of a __device__ or __constant__ variable on a device.
  GlobalVariable GetGlobal(const std::string& name, int ordinal) const {
    RequireLoaded();
    driver().Device(ordinal);
    const DeviceGuard guard(driver(), ordinal);
    driver().Check(guard.code(), "making the device current");
    GlobalVariable variable{};
    const CUresult code = driver().cuLibraryGetGlobal(&variable.address, &variable.size,
                                                      state_->library, name.c_str());
    if (code == CUDA_ERROR_NOT_FOUND) {
      throw Error(ErrorKind::kCall, code, driver().ErrorName(code),
                  "the module has no variable \"" + name +
                      "\": give its name in the image (mangled, if it is in a namespace)");
    }
    driver().Check(code, "finding variable " + name);
    return variable;
  }

  // Unload now. Kernels of it that are called later report that; kernels that still run on the
  // GPU must have ended.
  void Unload() noexcept {
    if (state_ == nullptr) return;  // moved from
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->library == nullptr) return;
    for (auto& entry : state_->kernels) entry.second->MarkUnloaded();
    driver().cuLibraryUnload(state_->library);
    state_->library = nullptr;
  }

  // Never unload: for modules that live as long as the process.
  void Release() noexcept {
    if (state_ != nullptr) state_->released = true;
  }

  // Whether its image is in the driver: not after Unload(), nor once it was moved from.
  bool IsLoaded() const noexcept { return state_ != nullptr && state_->library != nullptr; }
  CUlibrary handle() const noexcept { return state_ != nullptr ? state_->library : nullptr; }
  Driver& driver() const noexcept { return state_->driver; }

 private:
  struct State {
    explicit State(Driver& own_driver) noexcept : driver(own_driver) {}

    Driver& driver;
    CUlibrary library = nullptr;
    bool released = false;
    std::mutex mutex;
    std::unordered_map<std::string, std::unique_ptr<KernelState>> kernels;
    ImageMetadata metadata;
    char log[8192] = "";  // of the compiler in the driver

    const std::string& NameInImage(const std::string& asked) const {
      const auto found = metadata.names.find(asked);
      return found != metadata.names.end() ? found->second : asked;
    }
  };

  // Throw when a call failed, with what the compiler in the driver says.
  void Check(CUresult code, const std::string& what) const {
    if (code == CUDA_SUCCESS) return;
    std::string text = what + " failed: " + driver().Describe(code);
    if (state_->log[0] != '\0') text.append("\n").append(state_->log);
    throw Error(ErrorKind::kDriver, code, driver().ErrorName(code), text);
  }

  void RequireLoaded() const {
    if (state_ == nullptr) throw Error("the module was moved from: use the one it was moved to");
    if (state_->library == nullptr) throw Error("the module was unloaded: load it again");
  }

  std::string NotFound(const std::string& name) const {
    std::string text = "the module has no kernel \"" + name + "\"; it has";
    const std::vector<std::string> names = KernelNames();
    for (const std::string& other : names) text.append(" ").append(other);
    for (const auto& [expression, lowered] : state_->metadata.names) {
      text.append(" ").append(expression);
    }
    return names.empty() ? text + " none" : text;
  }

  std::unique_ptr<State> state_;
};

CULAUNCH_NAMESPACE_END
