// culaunch::KernelState: all that culaunch knows of one kernel of a module.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "array_argument.h"
#include "driver.h"
#include "graph_slots.h"
#include "guard.h"
#include "kernel_on_devices.h"
#include "launch_recorder.h"
#include "lock.h"
#include "parameter.h"
#include "parameter_type.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// The module owns it; its address is stable.
class KernelState : public KernelOnDevices {
 public:
  // signature: the parameters' types where the image says them (see ImageMetadata).
  KernelState(Driver& own_driver, CUkernel own_handle, std::string own_name,
              const std::vector<std::string>* signature = nullptr)
      : KernelOnDevices(own_driver, own_handle),
        own_device_type_(own_driver.device_types().empty() ? 0 : own_driver.device_types().front()),
        name_(std::move(own_name)) {
    if (signature == nullptr) return;
    for (const std::string& type : *signature) types_.emplace_back(type);
  }

  ~KernelState() { delete graphs_.load(std::memory_order_acquire); }

  // Launch as KernelOnDevices does, or as a graph of one node if graphs are on. If this thread
  // records, its recorder takes the launch.
  CUresult Launch(const CUlaunchConfig& config, int ordinal, void** arguments) noexcept {
    if (driver().graphs.HasOtherWays()) {
      if (CULAUNCH_UNLIKELY(driver().graphs.IsRecording())) {
        if (LaunchRecorder* recorder = LaunchRecorder::Current()) {
          return recorder->TakeLaunch(*this, config, ordinal, arguments);
        }
      }
      if (config.numAttrs == 0 && driver().graphs.is_on() &&
          LaunchAsGraph(config, ordinal, arguments)) {
        return CUDA_SUCCESS;
      }
    }
    return KernelOnDevices::Launch(config, ordinal, arguments);
  }

  // The kernel in the primary context of a launch's device, ready for this launch, and that device.
  CUresult FunctionFor(const CUlaunchConfig& config, int* ordinal, CUfunction* function) noexcept {
    CUresult code = CUDA_SUCCESS;
    if (*ordinal < 0) code = StreamDevice(driver(), config.hStream, ordinal);
    if (code == CUDA_SUCCESS) code = MakeReady(config, *ordinal);
    if (code != CUDA_SUCCESS) return code;
    *function = Resident(config, *ordinal);
    // It is prepared in whatever context of the device is current: see Prepare.
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  }

  // Add this launch to a pass, as number `index`. False: launch plainly; the pass is over.
  bool AddTo(GraphPass& pass, size_t index, const CUlaunchConfig& config, int ordinal,
             void** arguments) noexcept {
    const CUfunction function = config.numAttrs == 0 ? Resident(config, ordinal) : nullptr;
    return function != nullptr && pass.Set(index, {static_cast<KernelOnDevices*>(this), function,
                                                   config, parameters_, arguments});
  }

  void MarkUnloaded() noexcept {
    KernelOnDevices::MarkUnloaded();
    driver().graphs.Drop(static_cast<KernelOnDevices*>(this));
    is_loaded_->store(false, std::memory_order_release);
  }

  // Read the parameter layout: the driver takes it from the code of the current device.
  CUresult ReadParameters() {
    const DeviceGuard guard(driver(), CurrentDevice(driver()));
    if (guard.code() != CUDA_SUCCESS) return guard.code();
    for (size_t i = 0;; ++i) {
      Parameter parameter{};
      const CUresult code =
          driver().cuKernelGetParamInfo(handle(), i, &parameter.offset, &parameter.size);
      if (code == CUDA_ERROR_INVALID_VALUE) return CUDA_SUCCESS;  // past the last one
      if (code != CUDA_SUCCESS) return code;
      parameters_.push_back(parameter);
    }
  }

  const std::string& name() const noexcept { return name_; }
  // Whether its module is loaded, for those that may outlive this.
  const std::shared_ptr<std::atomic<bool>>& is_loaded() const noexcept { return is_loaded_; }
  const std::vector<Parameter>& parameters() const noexcept { return parameters_; }

  size_t ParameterBytes() const noexcept {
    return parameters_.empty() ? 0 : parameters_.back().offset + parameters_.back().size;
  }

  // The type of each parameter: recorded beside the image, else spelled by the mangled name. None,
  // where neither says it. Read by the first call that is checked, for most kernels have none.
  const std::vector<ParameterType>& Types() {
    const LockGuard lock(types_mutex_);
    if (!has_types_) {
      if (types_.empty()) types_ = ParameterType::OfMangled(name_);
      if (types_.size() != parameters_.size()) types_.clear();
      has_types_ = true;
      MakeArrayRules();
    }
    return types_;
  }

  // The lists of C++ types that were found to fit the parameters, the last few of them.
  bool HasChecked(const void* types) const noexcept {
    for (const std::atomic<const void*>& checked : checked_) {
      if (checked.load(std::memory_order_acquire) == types) return true;
    }
    return false;
  }
  void SetChecked(const void* types) noexcept {
    const unsigned next = next_checked_.fetch_add(1, std::memory_order_relaxed);
    checked_[next % kChecked].store(types, std::memory_order_release);
  }

  // The rules for array parameters, after a list of types was checked.
  const detail::ArrayRule* array_rules() const noexcept { return array_rules_.data(); }

  // A device, as arrays on it have it.
  uint64_t PlaceOf(int ordinal) const noexcept {
    return detail::ArrayFacts::OfDevice(own_device_type_, ordinal);
  }

 private:
  static constexpr unsigned kChecked = 4;

  void MakeArrayRules() {
    array_rules_.resize(parameters_.size());
    for (size_t i = 0; i < types_.size(); ++i) {
      detail::ArrayRule& rule = array_rules_[i];
      if (types_[i].element().bits != 0) {
        rule.facts = detail::ArrayFacts::OfElement(types_[i].element());
        rule.mask |= detail::ArrayFacts::kElement;
      }
      if (types_[i].PointsToMutable()) rule.mask |= detail::ArrayFacts::kConst;
    }
  }

  CULAUNCH_SEPARATE bool LaunchAsGraph(const CUlaunchConfig& config, int ordinal,
                                       void** arguments) noexcept {
    if (ordinal < 0) ordinal = GuessDevice(config.hStream);
    const CUfunction function = Resident(config, ordinal);
    if (function == nullptr) return false;
    GraphSlots* slots = graphs_.load(std::memory_order_acquire);
    if (CULAUNCH_UNLIKELY(slots == nullptr) && (slots = MakeSlots()) == nullptr) return false;
    GraphPass pass;
    CUresult code;
    return pass.Begin(*slots, config.hStream, ordinal, PathOf(config),
                      driver().graphs.single_after()) &&
           pass.Set(0, {static_cast<KernelOnDevices*>(this), function, config, parameters_,
                        arguments}) &&
           pass.Submit(&code);
  }

  // Graphs are apart by grids and blocks: changing those of a node costs what a launch does.
  static uint64_t PathOf(const CUlaunchConfig& config) noexcept {
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
    uint64_t path = config.gridDimX | uint64_t{config.blockDimX} << 32;
    path = path * kFactor + (config.gridDimY | uint64_t{config.gridDimZ} << 32);
    path = path * kFactor + (config.blockDimY | uint64_t{config.blockDimZ} << 32);
    return path * kFactor + config.sharedMemBytes;
  }

  GraphSlots* MakeSlots() noexcept {
    GraphSlots* slots = nullptr;
    auto* made = new (std::nothrow) GraphSlots(driver());
    if (graphs_.compare_exchange_strong(slots, made, std::memory_order_acq_rel)) return made;
    delete made;  // another thread was first
    return slots;
  }

  std::atomic<const void*> checked_[kChecked] = {};
  std::atomic<unsigned> next_checked_{0};
  std::vector<detail::ArrayRule> array_rules_;
  int own_device_type_;
  std::string name_;
  std::shared_ptr<std::atomic<bool>> is_loaded_ = std::make_shared<std::atomic<bool>>(true);
  std::vector<Parameter> parameters_;
  Mutex types_mutex_;
  bool has_types_ = false;
  std::vector<ParameterType> types_;
  std::atomic<GraphSlots*> graphs_{nullptr};  // of launches that go alone
};

CULAUNCH_NAMESPACE_END
