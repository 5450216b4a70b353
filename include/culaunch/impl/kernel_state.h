// What kernel_state.h declares: the parameters of a kernel, and launches that go as graphs.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "../driver.h"
#include "../graph_slots.h"
#include "../guard.h"
#include "../kernel_state.h"
#include "../launch_observer.h"
#include "../launch_recorder.h"
#include "../lock.h"
#include "../parameter_type.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

CULAUNCH_INLINE CUresult KernelState::Launch(const CUlaunchConfig& config, int ordinal,
                                             void** arguments) noexcept {
  if (driver().graphs.HasOtherWays()) {
    if (CULAUNCH_UNLIKELY(driver().graphs.IsRecording())) {
      if (LaunchRecorder* recorder = LaunchRecorder::Current()) {
        return recorder->TakeLaunch(*this, config, ordinal, arguments);
      }
      if (LaunchObserver* observer = driver().graphs.observer()) {
        return observer->Launch(*this, config, ordinal, arguments);
      }
    }
    if (config.numAttrs == 0 && driver().graphs.is_on() &&
        LaunchAsGraph(config, ordinal, arguments)) {
      return CUDA_SUCCESS;
    }
  }
  return KernelOnDevices::Launch(config, ordinal, arguments);
}

CULAUNCH_INLINE KernelState::KernelState(Driver& own_driver, CUkernel own_handle,
                                         std::string own_name,
                                         const std::vector<std::string>* signature)
    : KernelOnDevices(own_driver, own_handle),
      own_device_type_(own_driver.device_types().empty() ? 0 : own_driver.device_types().front()),
      name_(std::move(own_name)) {
  if (signature == nullptr) return;
  for (const std::string& type : *signature) types_.emplace_back(type);
}

// Never destroyed, for a handle in a static variable may be the last thing there is.
CULAUNCH_INLINE KernelState& KernelState::OfNone() noexcept {
  static KernelState* const none = [] {
    alignas(KernelState) static unsigned char place[sizeof(KernelState)];
    auto* state = new (place) KernelState(Driver::None(), nullptr, {});
    state->Enter();
    return state;
  }();
  return *none;
}

CULAUNCH_INLINE void KernelState::Delete() noexcept { delete this; }

CULAUNCH_INLINE KernelState::~KernelState() { delete graphs_.load(std::memory_order_acquire); }

CULAUNCH_INLINE CUresult KernelState::FunctionFor(const CUlaunchConfig& config, int* ordinal,
                                                  CUfunction* function) noexcept {
  CUresult code = CUDA_SUCCESS;
  if (*ordinal < 0) code = StreamDevice(driver(), config.hStream, ordinal);
  if (code == CUDA_SUCCESS) code = MakeReady(config, *ordinal);
  if (code != CUDA_SUCCESS) return code;
  *function = Resident(config, *ordinal);
  // It is prepared in whatever context of the device is current: see Prepare.
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CULAUNCH_INLINE void KernelState::MarkUnloaded() noexcept {
  KernelOnDevices::MarkUnloaded();
  driver().graphs.Drop(static_cast<KernelOnDevices*>(this));
  is_loaded_->store(false, std::memory_order_release);
}

CULAUNCH_INLINE CUresult KernelState::ReadParameters() {
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

CULAUNCH_INLINE const std::vector<ParameterType>& KernelState::Types() {
  const LockGuard lock(types_mutex_);
  if (!has_types_) {
    if (types_.empty()) types_ = ParameterType::OfMangled(name_);
    if (types_.size() != parameters_.size()) types_.clear();
    has_types_ = true;
    MakeArrayRules();
  }
  return types_;
}

CULAUNCH_INLINE void KernelState::MakeArrayRules() {
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

namespace detail {

// Graphs differ by grids and blocks, because changing those of a node costs as much as a launch.
inline uint64_t PathOf(const CUlaunchConfig& config) noexcept {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  uint64_t path = config.gridDimX | uint64_t{config.blockDimX} << 32;
  path = path * kFactor + (config.gridDimY | uint64_t{config.gridDimZ} << 32);
  path = path * kFactor + (config.blockDimY | uint64_t{config.blockDimZ} << 32);
  return path * kFactor + config.sharedMemBytes;
}

}  // namespace detail

CULAUNCH_INLINE bool KernelState::LaunchAsGraph(const CUlaunchConfig& config, int ordinal,
                                                void** arguments) noexcept {
  const int after = driver().graphs.single_after();
  GraphSlots* slots = graphs_.load(std::memory_order_acquire);
  if (CULAUNCH_UNLIKELY(slots == nullptr) && (slots = MakeSlots()) == nullptr) return false;
  if (slots->IsResting(after)) return false;
  if (ordinal < 0) ordinal = GuessDevice(config.hStream);
  const CUfunction function = Resident(config, ordinal);
  if (function == nullptr) return false;
  GraphPass pass;
  CUresult code;
  return pass.Begin(*slots, config.hStream, ordinal, detail::PathOf(config), after) &&
         pass.Set(
             0, {static_cast<KernelOnDevices*>(this), function, config, parameters_, arguments}) &&
         pass.Submit(&code);
}

CULAUNCH_INLINE GraphSlots* KernelState::MakeSlots() noexcept {
  GraphSlots* slots = nullptr;
  const bool is_forced = driver().graphs.single_after() == 0;
  auto* made = new (std::nothrow) GraphSlots(driver(), is_forced ? 0 : Graphs::kUnseen);
  if (graphs_.compare_exchange_strong(slots, made, std::memory_order_acq_rel)) return made;
  delete made;  // another thread was first
  return slots;
}

CULAUNCH_NAMESPACE_END
