// culaunch::Kernel: a kernel of a module: its parameter layout, its state on each device, and the
// launch.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "argument.h"
#include "driver.h"
#include "explain.h"
#include "guard.h"
#include "launch_config.h"
#include "parameter_type.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// Where a parameter lies in the kernel's parameter block, in bytes.
struct Parameter {
  size_t offset;
  size_t size;
};

// What culaunch knows of one kernel of a module. The module owns it; its address is stable.
class KernelState {
 public:
  // signature: the parameters' types where the image says them (see ImageMetadata).
  KernelState(Driver& own_driver, CUkernel own_handle, std::string own_name,
              const std::vector<std::string>* signature = nullptr)
      : driver_(own_driver),
        handle_(own_handle),
        devices_(std::make_unique<DeviceState[]>(static_cast<size_t>(own_driver.device_count()))),
        device_count_(own_driver.device_count()),
        name_(std::move(own_name)) {
    if (signature == nullptr) return;
    for (const std::string& type : *signature) types_.emplace_back(type);
  }

  // Read the parameter layout: the driver takes it from the code of the current device.
  CUresult ReadParameters() {
    const DeviceGuard guard(driver_, CurrentDevice(driver_));
    if (guard.code() != CUDA_SUCCESS) return guard.code();
    for (size_t i = 0;; ++i) {
      Parameter parameter{};
      const CUresult code =
          driver_.cuKernelGetParamInfo(handle(), i, &parameter.offset, &parameter.size);
      if (code == CUDA_ERROR_INVALID_VALUE) return CUDA_SUCCESS;  // past the last one
      if (code != CUDA_SUCCESS) return code;
      parameters_.push_back(parameter);
    }
  }

  Driver& driver() const noexcept { return driver_; }
  const std::string& name() const noexcept { return name_; }
  const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
  // Null once the module is unloaded.
  CUkernel handle() const noexcept { return handle_.load(std::memory_order_acquire); }
  void MarkUnloaded() noexcept {
    handle_.store(nullptr, std::memory_order_release);
    for (int i = 0; i < device_count_; ++i) {
      devices_[static_cast<size_t>(i)].function.store(nullptr, std::memory_order_release);
    }
  }

  size_t ParameterBytes() const noexcept {
    return parameters_.empty() ? 0 : parameters_.back().offset + parameters_.back().size;
  }

  // The type of each parameter: recorded beside the image, else spelled by the mangled name. None,
  // where neither says it. Read by the first call that is checked, for most kernels have none.
  const std::vector<ParameterType>& Types() {
    const std::lock_guard<std::mutex> lock(types_mutex_);
    if (!has_types_) {
      if (types_.empty()) types_ = ParameterType::OfMangled(name_);
      if (types_.size() != parameters_.size()) types_.clear();
      has_types_ = true;
    }
    return types_;
  }

  // The list of C++ types that was last found to fit the parameters.
  bool HasChecked(const void* types) const noexcept {
    return checked_.load(std::memory_order_relaxed) == types;
  }
  void SetChecked(const void* types) noexcept { checked_.store(types, std::memory_order_relaxed); }

  // Launch on a device (-1: the current one): its context is made current for the call if it is
  // not, and the kernel is made resident there if this is its first launch.
  CUresult Launch(const CUlaunchConfig& config, int ordinal, void** arguments) noexcept {
    // The usual case: the device's primary context is current and the kernel is resident. The
    // driver launches a CUfunction faster than a CUkernel, which it must look up.
    const CUfunction function = Resident(config, ordinal);
    if (CULAUNCH_UNLIKELY(function == nullptr)) return LaunchPrepared(config, ordinal, arguments);
    const CUresult code = driver_.cuLaunchKernelEx(&config, function, arguments, nullptr);
    if (CULAUNCH_UNLIKELY(code == CUDA_ERROR_INVALID_HANDLE ||
                          code == CUDA_ERROR_INVALID_CONTEXT)) {
      // The stream is of another context of the device: only the CUkernel serves it.
      return LaunchPrepared(config, ordinal, arguments);
    }
    return code;
  }

  // Load the kernel on a device, whose context is current, and opt in to as much dynamic shared
  // memory and as large a cluster as the configuration needs.
  CUresult Prepare(CUkernel kernel, int ordinal, const CUlaunchConfig& config) noexcept {
    DeviceState& device = devices_[static_cast<size_t>(ordinal)];
    const CUdevice handle = driver_.Handle(ordinal);
    CUresult code = CUDA_SUCCESS;
    int64_t allowed = device.allowed_shared.load(std::memory_order_acquire);
    // Contexts of the user's own are not remembered: loading a kernel again costs little.
    const bool is_primary = IsPrimaryCurrent(ordinal);
    if (allowed < 0 || !is_primary || device.function.load(std::memory_order_acquire) == nullptr) {
      const RelaxedCaptureGuard relaxed(driver_);
      CUfunction function = nullptr;
      int initial = 0;
      code = driver_.cuKernelGetFunction(&function, kernel);
      if (code == CUDA_SUCCESS) code = driver_.cuFuncLoad(function);
      if (code == CUDA_SUCCESS) {
        code = driver_.cuKernelGetAttribute(
            &initial, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, handle);
      }
      if (code != CUDA_SUCCESS) return code;
      allowed = initial;
      device.allowed_shared.store(allowed, std::memory_order_release);
      if (is_primary) device.function.store(function, std::memory_order_release);
    }
    if (allowed < static_cast<int64_t>(config.sharedMemBytes)) {
      int largest = 0;
      code = MaxDynamicSharedMemory(ordinal, &largest);
      if (code != CUDA_SUCCESS) return code;
      if (static_cast<int64_t>(config.sharedMemBytes) > largest) return CUDA_ERROR_INVALID_VALUE;
      code = AllowDynamicSharedMemory(ordinal, largest);
      if (code != CUDA_SUCCESS) return code;
    }
    if (ClusterBlocks(config) > kPortableCluster &&
        !device.allows_large_cluster.load(std::memory_order_acquire)) {
      code = driver_.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1,
                                          kernel, handle);
      if (code == CUDA_SUCCESS) device.allows_large_cluster.store(true, std::memory_order_release);
    }
    return code;
  }

  // Opt in to dynamic shared memory on a device; -1 is the most it has.
  CUresult AllowDynamicSharedMemory(int ordinal, int64_t bytes) noexcept {
    int largest = 0;
    const CUresult code = MaxDynamicSharedMemory(ordinal, &largest);
    if (code != CUDA_SUCCESS) return code;
    if (bytes > largest || bytes < -1) return CUDA_ERROR_INVALID_VALUE;
    const int allowed = bytes < 0 ? largest : static_cast<int>(bytes);
    const CUresult set =
        driver_.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, allowed,
                                     handle(), driver_.Handle(ordinal));
    // A launch that needs more than this must opt in again. Before the first launch there the
    // driver is asked.
    std::atomic<int64_t>& known = devices_[static_cast<size_t>(ordinal)].allowed_shared;
    if (set == CUDA_SUCCESS && known.load(std::memory_order_acquire) >= 0) {
      known.store(allowed, std::memory_order_release);
    }
    return set;
  }

  // The most dynamic shared memory that a block of this kernel can have on a device, opted in.
  CUresult MaxDynamicSharedMemory(int ordinal, int* bytes) noexcept {
    int opt_in = 0;
    int fixed = 0;
    const CUdevice handle = driver_.Handle(ordinal);
    CUresult code = driver_.cuDeviceGetAttribute(
        &opt_in, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, handle);
    if (code == CUDA_SUCCESS) {
      code = driver_.cuKernelGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                          this->handle(), handle);
    }
    *bytes = opt_in - fixed;
    return code;
  }

 private:
  struct DeviceState {
    // The kernel in the primary context; null before it is resident there.
    std::atomic<CUfunction> function{nullptr};
    // Dynamic shared memory that a launch may ask for; -1 before the kernel is resident.
    std::atomic<int64_t> allowed_shared{-1};
    std::atomic<bool> allows_large_cluster{false};
  };

  bool IsPrimaryCurrent(int ordinal) const noexcept {
    CUcontext current = nullptr;
    CUcontext primary = nullptr;
    return driver_.PrimaryContext(ordinal, &primary) == CUDA_SUCCESS &&
           driver_.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == primary;
  }

  // The kernel's function in a device's primary context, if nothing is left to do there before
  // this launch. A default stream is the current context's, so that one must be the primary one.
  // Any other stream is launched on in its own context, whatever is current (seen of CUDA 13.0's
  // driver), and is refused if the function is of another.
  CUfunction Resident(const CUlaunchConfig& config, int ordinal) const noexcept {
    if (CULAUNCH_UNLIKELY(ordinal < 0 || IsDefaultStream(config.hStream))) {
      CUcontext current = nullptr;
      if (driver_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return nullptr;
      if (ordinal < 0) ordinal = driver_.PrimaryOrdinal(current);
      if (ordinal < 0 || !driver_.HoldsContext(ordinal, current)) return nullptr;
    }
    if (CULAUNCH_UNLIKELY(ordinal >= device_count_)) return nullptr;
    const DeviceState& device = devices_[static_cast<size_t>(ordinal)];
    if (CULAUNCH_UNLIKELY(device.allowed_shared.load(std::memory_order_acquire) <
                          static_cast<int64_t>(config.sharedMemBytes))) {
      return nullptr;
    }
    if (CULAUNCH_UNLIKELY(config.numAttrs != 0) && ClusterBlocks(config) > kPortableCluster) {
      return nullptr;
    }
    return device.function.load(std::memory_order_acquire);
  }

  CUresult LaunchPrepared(const CUlaunchConfig& config, int ordinal, void** arguments) noexcept {
    if (ordinal < 0) ordinal = CurrentDevice(driver_);
    if (ordinal < 0 || ordinal >= device_count_) return CUDA_ERROR_INVALID_DEVICE;
    const CUkernel kernel = handle();
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const DeviceGuard guard(driver_, ordinal);
    CUresult code = guard.code();
    if (code == CUDA_SUCCESS) code = Prepare(kernel, ordinal, config);
    if (code != CUDA_SUCCESS) return code;
    return driver_.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), arguments,
                                    nullptr);
  }

  static constexpr uint64_t kPortableCluster = 8;  // programming guide, "Thread Block Clusters"

  // The blocks of the largest cluster that the configuration allows; 0 without clusters.
  static uint64_t ClusterBlocks(const CUlaunchConfig& config) noexcept {
    uint64_t most = 0;
    for (unsigned i = 0; i < config.numAttrs; ++i) {
      const CUlaunchAttribute& attribute = config.attrs[i];
      constexpr int kPreferredCluster = 11;
      if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
          static_cast<int>(attribute.id) != kPreferredCluster) {
        continue;
      }
      const auto& dims = attribute.value.clusterDim;
      const uint64_t blocks = uint64_t{dims.x} * dims.y * dims.z;
      if (blocks > most) most = blocks;
    }
    return most;
  }

  // What each launch reads comes first.
  Driver& driver_;
  std::atomic<CUkernel> handle_;
  std::unique_ptr<DeviceState[]> devices_;
  int device_count_;
  std::atomic<const void*> checked_{nullptr};
  std::string name_;
  std::vector<Parameter> parameters_;
  std::mutex types_mutex_;
  bool has_types_ = false;
  std::vector<ParameterType> types_;
};

// A kernel of a module. Cheap to copy; valid as long as its module.
class Kernel {
 public:
  explicit Kernel(KernelState* state) noexcept : state_(state) {}

  const std::string& name() const noexcept { return state_->name(); }
  const std::vector<Parameter>& parameters() const noexcept { return state_->parameters(); }
  CUkernel handle() const noexcept { return state_->handle(); }
  KernelState& state() const noexcept { return *state_; }

  // Launch with a pointer to each argument, on the stream's device (see Stream). Nothing is
  // checked; the driver's code comes back.
  CUresult Launch(void** arguments, Dim3 grid, Dim3 block, Stream stream,
                  uint32_t shared_memory = 0) const noexcept {
    return Launch(arguments, LaunchConfig(grid, block, shared_memory, stream));
  }

  CUresult Launch(void** arguments, const LaunchConfig& config) const noexcept {
    const DriverLaunchConfig driver_config(config);
    int ordinal = config.stream.device;
    if (ordinal < 0 && !IsDefaultStream(config.stream.handle)) {
      const CUresult code = StreamDevice(state_->driver(), config.stream.handle, &ordinal);
      if (code != CUDA_SUCCESS) return code;
    }
    return state_->Launch(driver_config.get(), ordinal, arguments);
  }

  // Launch with the arguments themselves. Their number and sizes must be the kernel's, and their
  // types of the parameters' kinds where the image says them (compared once for each list of
  // types); an error says what is wrong with the call.
  template <class... Arguments>
  void operator()(const LaunchConfig& config, const Arguments&... arguments) const {
    (detail::RequireArgument<Arguments>(), ...);
    // Its address stands for this list of types.
    static constexpr ArgumentType types[] = {detail::TypeOfArgument<Arguments>()...,
                                             ArgumentType{}};
    if (CULAUNCH_UNLIKELY(!state_->HasChecked(types))) {
      CheckArguments(types, sizeof...(Arguments));
      state_->SetChecked(types);
    }
    void* pointers[sizeof...(Arguments) + 1] = {detail::AddressOfArgument(arguments)...};
    const CUresult code = Launch(pointers, config);
    if (code != CUDA_SUCCESS) Throw(code, config);
  }

  // Throw what a failed launch means.
  [[noreturn]] void Throw(CUresult code, const LaunchConfig& config) const {
    config.Validate();
    int ordinal = config.stream.device;
    if (ordinal < 0) StreamDevice(state_->driver(), config.stream.handle, &ordinal);
    throw ExplainLaunch(state_->driver(), handle(), Demangle(name()),
                        DriverLaunchConfig(config).get(), ordinal, code);
  }

 private:
  void CheckArguments(const ArgumentType* given, size_t count) const {
    const std::vector<Parameter>& expected = parameters();
    if (count != expected.size()) {
      throw Error(Demangle(name()) + " takes " + std::to_string(expected.size()) +
                  " arguments (got " + std::to_string(count) + ")");
    }
    const std::vector<ParameterType>& types = state_->Types();
    for (size_t i = 0; i < count; ++i) {
      const std::string type = types.empty() ? "" : types[i].text();
      if (given[i].size != expected[i].size) {
        throw Error(Prefix(i) + " must be " + std::to_string(expected[i].size) + " bytes long" +
                    (type.empty() ? "" : ", for it is " + type) + " (got " +
                    std::to_string(given[i].size) + ", " + ArgumentName(given[i]) +
                    "): pass a value of the parameter's own type");
      }
      if (!types.empty() && !types[i].Takes(given[i].kind)) {
        throw Error(Prefix(i) + " must be " + type + " (got " + ArgumentName(given[i]) +
                    "): pass a value of that type; a struct of that size is passed as it is");
      }
    }
  }

  std::string Prefix(size_t argument) const {
    return "argument " + std::to_string(argument) + " of " + Demangle(name());
  }

  KernelState* state_;
};

CULAUNCH_NAMESPACE_END
