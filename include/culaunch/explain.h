// Why a launch failed. This is found after the fact, so a successful launch pays nothing.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "demangle.h"
#include "driver.h"
#include "guard.h"
#include "launch_config.h"
#include "text.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

// Compares a launch with the limits of its kernel and device, and collects every excess.
class LaunchExplainer {
 public:
  LaunchExplainer(Driver& driver, CUkernel kernel, const CUlaunchConfig& config, int ordinal)
      : driver_(driver), kernel_(kernel), config_(config), device_(driver.Handle(ordinal)) {}

  // Each finding is a sentence with the rule, the value and the next step.
  std::vector<std::string> Find() {
    CheckGrid();
    CheckBlock();
    CheckShared();
    CheckCluster();
    CheckCooperative();
    return findings_;
  }

 private:
  int Device(CUdevice_attribute attribute) const {
    int value = 0;
    return driver_.cuDeviceGetAttribute(&value, attribute, device_) == CUDA_SUCCESS ? value : 0;
  }

  int Kernel(CUfunction_attribute attribute) const {
    int value = 0;
    return driver_.cuKernelGetAttribute(&value, attribute, kernel_, device_) == CUDA_SUCCESS ? value
                                                                                             : 0;
  }

  void CheckDimension(const char* what, uint32_t size, int limit, const char* advice) {
    if (size == 0) findings_.push_back(std::string(what) + " is 0: it must be at least 1");
    if (limit > 0 && size > static_cast<uint32_t>(limit)) {
      findings_.push_back(std::string(what) + " is " + detail::ToText(size) +
                          "; this device allows at most " + detail::ToText(limit) + ": " + advice);
    }
  }

  void CheckGrid() {
    const char* advice = "use another dimension of the grid, or a loop in the kernel";
    CheckDimension("grid x", config_.gridDimX, Device(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), advice);
    CheckDimension("grid y", config_.gridDimY, Device(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y), advice);
    CheckDimension("grid z", config_.gridDimZ, Device(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z), advice);
  }

  void CheckBlock() {
    const char* advice = "use a smaller block";
    CheckDimension("block x", config_.blockDimX, Device(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
                   advice);
    CheckDimension("block y", config_.blockDimY, Device(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                   advice);
    CheckDimension("block z", config_.blockDimZ, Device(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
                   advice);
    const uint64_t threads = Threads();
    const int limit = Kernel(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    const uint64_t blocks = uint64_t{config_.gridDimX} * config_.gridDimY * config_.gridDimZ;
    if (limit > 0 && threads > static_cast<uint64_t>(limit) && blocks > 1 &&
        blocks <= static_cast<uint64_t>(limit) && blocks % 32 == 0) {
      findings_.push_back("a grid of " + detail::ToText(blocks) + " and a block of " +
                          detail::ToText(threads) +
                          " look swapped: the grid comes first, then the block");
    }
    if (limit > 0 && threads > static_cast<uint64_t>(limit)) {
      findings_.push_back(
          "the block has " + detail::ToText(threads) + " threads; this kernel, with " +
          detail::ToText(Kernel(CU_FUNC_ATTRIBUTE_NUM_REGS)) +
          " registers per thread and its launch bounds, allows at most " + detail::ToText(limit) +
          " on this device: use a smaller block, or compile with __launch_bounds__");
    }
  }

  void CheckShared() {
    const int64_t fixed = Kernel(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    const int64_t limit = Device(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    const int64_t dynamic = config_.sharedMemBytes;
    if (limit > 0 && fixed + dynamic > limit) {
      findings_.push_back(
          detail::ToText(dynamic) + " bytes of dynamic shared memory plus " +
          detail::ToText(fixed) + " of static are " + detail::ToText(fixed + dynamic) +
          "; a block on this device has at most " + detail::ToText(limit) + ": ask for at most " +
          detail::ToText(limit - fixed) + " of dynamic shared memory");
    }
  }

  void CheckCluster() {
    for (unsigned i = 0; i < config_.numAttrs; ++i) {
      if (config_.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
      const auto& dims = config_.attrs[i].value.clusterDim;
      const uint64_t blocks = uint64_t{dims.x} * dims.y * dims.z;
      if (Device(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) {
        const bool is_new = Device(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9;
        findings_.push_back(is_new ? "this device cannot launch clusters: leave cluster out"
                                   : "this device has no clusters (they need sm_90 or newer): "
                                     "leave cluster out");
        continue;
      }
      CheckOwnCluster(Dim3(dims.x, dims.y, dims.z));
      int limit = 0;
      const CUresult code = driver_.cuOccupancyMaxPotentialClusterSize(
          &limit, reinterpret_cast<CUfunction>(kernel_), &config_);
      if (code == CUDA_SUCCESS && blocks > static_cast<uint64_t>(limit)) {
        findings_.push_back("the cluster has " + detail::Counted(blocks, "block") +
                            "; with this block and shared memory at most " + detail::ToText(limit) +
                            " can run together: use a smaller cluster");
      }
    }
  }

  // A kernel with __cluster_dims__ accepts no other cluster.
  void CheckOwnCluster(const Dim3& asked) {
    const Dim3 own(static_cast<uint32_t>(Kernel(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)),
                   static_cast<uint32_t>(Kernel(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)),
                   static_cast<uint32_t>(Kernel(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)));
    if (own.Volume() != 0 && !(own == asked)) {
      findings_.push_back("the cluster is " + asked.ToString() + "; this kernel was compiled for " +
                          own.ToString() + ": leave cluster out");
    }
  }

  void CheckCooperative() {
    for (unsigned i = 0; i < config_.numAttrs; ++i) {
      if (config_.attrs[i].id != CU_LAUNCH_ATTRIBUTE_COOPERATIVE) continue;
      if (Device(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) == 0) {
        findings_.push_back(
            "this device does not support cooperative launches: leave cooperative out");
        continue;
      }
      int blocks = 0;
      const CUresult code = driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(
          &blocks, reinterpret_cast<CUfunction>(kernel_), static_cast<int>(Threads()),
          config_.sharedMemBytes);
      const uint64_t limit =
          static_cast<uint64_t>(blocks) *
          static_cast<uint64_t>(Device(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
      const uint64_t grid = uint64_t{config_.gridDimX} * config_.gridDimY * config_.gridDimZ;
      if (code == CUDA_SUCCESS && grid > limit) {
        findings_.push_back("the cooperative grid has " + detail::Counted(grid, "block") +
                            "; at most " + detail::ToText(limit) +
                            " can be resident on this device at once: use a smaller grid");
      }
    }
  }

  uint64_t Threads() const {
    return uint64_t{config_.blockDimX} * config_.blockDimY * config_.blockDimZ;
  }

  Driver& driver_;
  CUkernel kernel_;
  const CUlaunchConfig& config_;
  CUdevice device_;
  std::vector<std::string> findings_;
};

// Whether a code says that an earlier kernel broke the context (driver API, CUresult: "This
// leaves the process in an inconsistent state and any further CUDA work will return the same
// error").
inline bool IsSticky(CUresult code) noexcept {
  switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return true;
    default:
      return false;
  }
}

inline std::string DescribeDevice(Driver& driver, int ordinal) {
  char name[128] = "";
  driver.cuDeviceGetName(name, sizeof name, driver.Handle(ordinal));
  int major = 0;
  int minor = 0;
  driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                              driver.Handle(ordinal));
  driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                              driver.Handle(ordinal));
  return "device " + detail::ToText(ordinal) + " (" + name + ", sm_" + detail::ToText(major) +
         detail::ToText(minor) + ")";
}

}  // namespace detail

// Whether the driver will refuse a launch for its clusters, or for a cooperative grid that is not
// resident at once. The kernel is ready on the device (KernelState::MakeReady).
inline CUresult RefusalOf(Driver& driver, CUkernel kernel, const CUlaunchConfig& config,
                          int ordinal) {
  const DeviceGuard guard(driver, ordinal);
  if (guard.code() != CUDA_SUCCESS) return guard.code();
  const bool is_refused = !detail::LaunchExplainer(driver, kernel, config, ordinal).Find().empty();
  return is_refused ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// The error of a failed launch: the kernel, the configuration, the driver's code and text, and the
// cause that culaunch found. `name` is the demangled name.
inline Error ExplainLaunch(Driver& driver, CUkernel kernel, const std::string& name,
                           const CUlaunchConfig& config, int ordinal, CUresult code) {
  std::string text =
      "cannot launch " + name + " with grid " +
      Dim3(config.gridDimX, config.gridDimY, config.gridDimZ).ToString() + ", block " +
      Dim3(config.blockDimX, config.blockDimY, config.blockDimZ).ToString() + " and " +
      detail::ToText(config.sharedMemBytes) + " bytes of dynamic shared memory";
  if (ordinal < 0 || ordinal >= driver.device_count()) {
    return Error(ErrorKind::kCall, code, driver.ErrorName(code),
                 text + ": " + driver.Describe(code) + ". There is no such device");
  }
  text += " on " + detail::DescribeDevice(driver, ordinal) + ": " + driver.Describe(code);
  if (kernel == nullptr) {
    return Error(ErrorKind::kCall, code, driver.ErrorName(code),
                 text + ". Its module was unloaded: load it again");
  }
  if (detail::IsSticky(code)) {
    // The emulator runs a kernel at once: its text says which one failed, and where.
    const bool is_late = driver.name() != "emulator";
    return Error(ErrorKind::kDriver, code, driver.ErrorName(code),
                 is_late ? text +
                               ". An earlier kernel on this device failed with it; this kernel "
                               "did not run, and nothing more can run in this process on this "
                               "device. Run under compute-sanitizer, or with "
                               "CUDA_LAUNCH_BLOCKING=1, to find that kernel"
                         : text +
                               "\nEvery later launch, copy and allocation fails with it, as on a "
                               "GPU, until culaunch.testing.reset_emulator() is called");
  }
  switch (code) {
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
      return Error(ErrorKind::kCall, code, driver.ErrorName(code),
                   text +
                       ". The image has no code for this device's architecture: compile it "
                       "for this device, or with PTX");
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return Error(ErrorKind::kCall, code, driver.ErrorName(code),
                   text +
                       ". The image's PTX is newer than this driver: compile it to a cubin for "
                       "this device, or with an older compiler, or update the driver");
    default:
      break;
  }
  const DeviceGuard guard(driver, ordinal);
  const std::vector<std::string> findings =
      detail::LaunchExplainer(driver, kernel, config, ordinal).Find();
  for (const std::string& finding : findings) text += ". " + finding;
  return Error(findings.empty() ? ErrorKind::kDriver : ErrorKind::kCall, code,
               driver.ErrorName(code), text);
}

CULAUNCH_NAMESPACE_END
