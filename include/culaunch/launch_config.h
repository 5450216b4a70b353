// culaunch::LaunchConfig: how a kernel is launched, and its form for cuLaunchKernelEx.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

#include "error.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// A size in up to three dimensions, x fastest.
struct Dim3 {
  constexpr Dim3(uint32_t x_size = 1, uint32_t y_size = 1, uint32_t z_size = 1) noexcept
      : x(x_size), y(y_size), z(z_size) {}

  constexpr uint64_t Volume() const noexcept { return uint64_t{x} * y * z; }
  constexpr bool operator==(const Dim3& other) const noexcept {
    return x == other.x && y == other.y && z == other.z;
  }
  std::string ToString() const {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
  }

  uint32_t x, y, z;
};

// Where a launch goes. A stream made by cuStreamCreate has a device; a default stream (null,
// CU_STREAM_LEGACY, CU_STREAM_PER_THREAD) is one of every device, and the handle alone means the
// device that is current. Who knows the device says it.
struct Stream {
  constexpr Stream(CUstream stream = nullptr, int ordinal = -1) noexcept
      : handle(stream), device(ordinal) {}

  CUstream handle;
  int device;  // -1: the stream's own; of a default stream, the current one
};

struct LaunchConfig {
  LaunchConfig() = default;
  LaunchConfig(Dim3 grid_size, Dim3 block_size, uint32_t shared_bytes = 0,
               Stream launch_stream = {})
      : grid(grid_size), block(block_size), shared_memory(shared_bytes), stream(launch_stream) {}

  Dim3 grid;                        // in blocks, with clusters too
  Dim3 block;                       // in threads
  Dim3 cluster{0, 0, 0};            // in blocks; zero: the kernel's own, or none
  Dim3 preferred_cluster{0, 0, 0};  // in blocks; `cluster` is the smallest that will do then
  uint32_t shared_memory = 0;       // dynamic shared memory of a block in bytes
  Stream stream;                    // a CUstream does as well
  bool cooperative = false;         // all blocks resident at once: grid-wide synchronisation
  bool programmatic = false;        // may start before the previous kernel in the stream ends
  bool has_priority = false;
  int priority = 0;  // smaller is more urgent (driver API, cuCtxGetStreamPriorityRange)

  // Throw where the configuration cannot be right on any device.
  void Validate() const {
    RequireNonZero("grid", grid);
    RequireNonZero("block", block);
    if (HasCluster()) {
      RequireNonZero("cluster", cluster);
      RequireMultiple("cluster", cluster);
    }
    if (preferred_cluster.x != 0) {
      RequireNonZero("preferred_cluster", preferred_cluster);
      RequireMultiple("preferred_cluster", preferred_cluster);
      if (!HasCluster()) throw Error("preferred_cluster needs cluster, the smallest that will do");
    }
  }

  bool HasCluster() const noexcept { return cluster.x != 0 || cluster.y != 0 || cluster.z != 0; }

 private:
  static void RequireNonZero(const char* name, const Dim3& dims) {
    if (dims.Volume() == 0) {
      throw Error(std::string(name) + " must be at least 1 in every dimension (got " +
                  dims.ToString() + "): skip the launch of an empty problem");
    }
  }

  void RequireMultiple(const char* name, const Dim3& dims) const {
    if (grid.x % dims.x != 0 || grid.y % dims.y != 0 || grid.z % dims.z != 0) {
      throw Error("grid, in blocks, must be a multiple of " + std::string(name) + " (got grid " +
                  grid.ToString() + ", " + name + " " + dims.ToString() + ")");
    }
  }
};

// A launch configuration as the driver takes it. It points into itself: not copyable.
class DriverLaunchConfig {
 public:
  explicit DriverLaunchConfig(const LaunchConfig& config) noexcept {
    config_.gridDimX = config.grid.x;
    config_.gridDimY = config.grid.y;
    config_.gridDimZ = config.grid.z;
    config_.blockDimX = config.block.x;
    config_.blockDimY = config.block.y;
    config_.blockDimZ = config.block.z;
    config_.sharedMemBytes = config.shared_memory;
    config_.hStream = config.stream.handle;
    config_.attrs = attributes_;
    config_.numAttrs = 0;
    if (config.HasCluster()) AddCluster(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, config.cluster);
    if (config.preferred_cluster.x != 0) {
      AddCluster(kPreferredCluster, config.preferred_cluster);
    }
    if (config.cooperative) Add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
    if (config.programmatic) {
      Add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
          .programmaticStreamSerializationAllowed = 1;
    }
    if (config.has_priority) Add(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority = config.priority;
  }
  DriverLaunchConfig(const DriverLaunchConfig&) = delete;
  DriverLaunchConfig& operator=(const DriverLaunchConfig&) = delete;

  const CUlaunchConfig& get() const noexcept { return config_; }
  CUlaunchConfig& get() noexcept { return config_; }

 private:
  // CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, which headers before CUDA 12.8 lack.
  static constexpr auto kPreferredCluster = static_cast<CUlaunchAttributeID>(11);

  CUlaunchAttributeValue& Add(CUlaunchAttributeID id) noexcept {
    CUlaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute = {};
    attribute.id = id;
    return attribute.value;
  }

  void AddCluster(CUlaunchAttributeID id, const Dim3& dims) noexcept {
    CUlaunchAttributeValue& value = Add(id);
    // preferredClusterDim has the same layout.
    value.clusterDim.x = dims.x;
    value.clusterDim.y = dims.y;
    value.clusterDim.z = dims.z;
  }

  CUlaunchConfig config_ = {};
  CUlaunchAttribute attributes_[5];
};

CULAUNCH_NAMESPACE_END
