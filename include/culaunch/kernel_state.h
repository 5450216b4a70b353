// culaunch::KernelState: all that culaunch knows of one kernel of a module.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "array_argument.h"
#include "driver.h"
#include "kernel_on_devices.h"
#include "lock.h"
#include "parameter.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

class GraphPass;
class GraphSlots;
class ParameterType;

// The module and the handles share it. It outlives the module as long as a handle exists,
// and has no kernel then. Its address is stable.
class KernelState : public KernelOnDevices {
 public:
  // signature: the parameters' types if the image says them (see ImageMetadata).
  KernelState(Driver& own_driver, CUkernel own_handle, std::string own_name,
              const std::vector<std::string>* signature = nullptr);
  KernelState(const KernelState&) = delete;
  KernelState& operator=(const KernelState&) = delete;
  ~KernelState();

  // Count who holds it; the last one deletes it.
  void Enter() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
  void Leave() noexcept {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) Delete();
  }

  // The state of no kernel, for handles that are empty. It launches nothing.
  static KernelState& OfNone() noexcept;
  bool IsOfNone() const noexcept { return name_.empty(); }

  // Launch as KernelOnDevices does, or as a graph of one node if graphs are on. If this thread
  // records, its recorder takes the launch.
  CUresult Launch(const CUlaunchConfig& config, int ordinal, void** arguments) noexcept;

  // Add this launch to a pass, as number `index`. False: launch plainly; the pass is over.
  inline bool AddTo(GraphPass& pass, size_t index, const CUlaunchConfig& config, int ordinal,
                    void** arguments) noexcept;  // in kernel_graphs.h

  // The kernel in the primary context of a launch's device, ready for this launch, and that device.
  CUresult FunctionFor(const CUlaunchConfig& config, int* ordinal, CUfunction* function) noexcept;

  void MarkUnloaded() noexcept;

  // Read the parameter layout: the driver takes it from the code of the current device.
  CUresult ReadParameters();

  // Whether its module is loaded, for those that may outlive this.
  const std::shared_ptr<std::atomic<bool>>& is_loaded() const noexcept { return is_loaded_; }

  const std::string& name() const noexcept { return name_; }
  const std::vector<Parameter>& parameters() const noexcept { return parameters_; }

  size_t ParameterBytes() const noexcept {
    return parameters_.empty() ? 0 : parameters_.back().offset + parameters_.back().size;
  }

  // The type of each parameter: recorded beside the image, else spelled by the mangled name. None
  // if neither has it. Read by the first checked call, because most kernels never have one.
  const std::vector<ParameterType>& Types();

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

  // A device, in the form that its arrays use.
  uint64_t PlaceOf(int ordinal) const noexcept {
    return detail::ArrayFacts::OfDevice(own_device_type_, ordinal);
  }

 private:
  static constexpr unsigned kChecked = 4;

  void Delete() noexcept;

  void MakeArrayRules();

  bool LaunchAsGraph(const CUlaunchConfig& config, int ordinal, void** arguments) noexcept;
  GraphSlots* MakeSlots() noexcept;

  std::atomic<const void*> checked_[kChecked] = {};
  std::atomic<unsigned> next_checked_{0};
  std::vector<detail::ArrayRule> array_rules_;
  int own_device_type_;
  std::atomic<int> holders_{0};
  std::string name_;
  std::vector<Parameter> parameters_;
  Mutex types_mutex_;
  bool has_types_ = false;
  std::vector<ParameterType> types_;
  // Not std::make_shared: its tag is a symbol that keeps a library from being unloaded.
  std::shared_ptr<std::atomic<bool>> is_loaded_{new std::atomic<bool>(true)};
  std::atomic<GraphSlots*> graphs_{nullptr};  // of launches that are not in a graph
};

CULAUNCH_NAMESPACE_END

#if CULAUNCH_HEADER_ONLY
#include "impl/kernel_state.h"
#endif
