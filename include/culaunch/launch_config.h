// culaunch::LaunchConfig: how a kernel is launched, and its form for cuLaunchKernelEx.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "error.h"
#include "launch_options.h"
#include "text.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// A size in up to three dimensions, x fastest.
struct Dim3 {
  constexpr Dim3(uint32_t x_size = 1, uint32_t y_size = 1, uint32_t z_size = 1) noexcept
      : x(x_size), y(y_size), z(z_size) {}

  constexpr uint64_t Volume() const noexcept { return uint64_t{x} * y * z; }
  constexpr bool HasZero() const noexcept { return x == 0 || y == 0 || z == 0; }
  // Whether an option that may be left out is there.
  constexpr bool IsGiven() const noexcept { return (x | y | z) != 0; }
  constexpr bool operator==(const Dim3& other) const noexcept {
    return x == other.x && y == other.y && z == other.z;
  }
  std::string ToString() const {
    return "(" + detail::ToText(x) + ", " + detail::ToText(y) + ", " + detail::ToText(z) + ")";
  }

  uint32_t x, y, z;
};

// The destination of a launch. A stream from cuStreamCreate has a device. Every device has the
// default streams (null, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD), and a bare handle means the
// current device. Pass the device if you know it.
struct Stream {
  constexpr Stream(CUstream stream = nullptr, int ordinal = -1) noexcept
      : handle(stream), device(ordinal) {}

  CUstream handle;
  int device;  // -1: the stream's own; of a default stream, the current one
};

// Attributes of a launch as the driver has them, in the caller's memory, which must outlive the
// launch: the driver writes to some (the handle of a device-updatable node).
struct LaunchAttributes {
  constexpr LaunchAttributes() noexcept = default;
  constexpr LaunchAttributes(CUlaunchAttribute* first, size_t size) noexcept
      : data(first), count(static_cast<unsigned>(size)) {}
  template <size_t kSize>
  constexpr LaunchAttributes(CUlaunchAttribute (&array)[kSize]) noexcept
      : LaunchAttributes(array, kSize) {}

  CUlaunchAttribute* data = nullptr;
  unsigned count = 0;
};

struct LaunchConfig {
  static constexpr unsigned kMostAttributes = 27;

  LaunchConfig() = default;
  LaunchConfig(Dim3 grid_size, Dim3 block_size, uint32_t shared_bytes = 0,
               Stream launch_stream = {})
      : grid(grid_size), block(block_size), shared_memory(shared_bytes), stream(launch_stream) {}

  Dim3 grid;                   // in blocks, with clusters too
  Dim3 block;                  // in threads
  uint32_t shared_memory = 0;  // dynamic shared memory of a block in bytes
  Stream stream;               // a CUstream does as well

  // The options that are attributes; docs/launching.md describes each. Dimensions of zero, false,
  // and a number without its has_ mean that the option is not given.
#define CULAUNCH_DIMS(name, flag, attribute, value, text) Dim3 name{0, 0, 0};
#define CULAUNCH_SWITCH(name, flag, attribute, value, text) bool name = false;
#define CULAUNCH_INT(name, flag, attribute, value, text) \
  bool has_##name = false;                               \
  int name = 0;
  CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_SWITCH, CULAUNCH_INT)
#undef CULAUNCH_DIMS
#undef CULAUNCH_SWITCH
#undef CULAUNCH_INT

  // Further attributes, such as an event or a memory synchronization domain.
  LaunchAttributes attributes;

  bool HasCluster() const noexcept { return cluster.IsGiven(); }

  // Whether it is more than a grid, a block, shared memory and a stream.
  bool HasAttributes() const noexcept {
#define CULAUNCH_DIMS(name, flag, attribute, value, text) name.IsGiven() ||
#define CULAUNCH_SWITCH(name, flag, attribute, value, text) name ||
#define CULAUNCH_INT(name, flag, attribute, value, text) has_##name ||
    return CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_SWITCH, CULAUNCH_INT)
               attributes.count != 0;
#undef CULAUNCH_DIMS
#undef CULAUNCH_SWITCH
#undef CULAUNCH_INT
  }

  // It without attributes, as the driver takes it.
  CUlaunchConfig Plain() const noexcept {
    CUlaunchConfig plain = {};
    plain.gridDimX = grid.x;
    plain.gridDimY = grid.y;
    plain.gridDimZ = grid.z;
    plain.blockDimX = block.x;
    plain.blockDimY = block.y;
    plain.blockDimZ = block.z;
    plain.sharedMemBytes = shared_memory;
    plain.hStream = stream.handle;
    return plain;
  }

  // Whether the parts beyond grid and block can be right: otherwise the driver is not asked.
  bool IsPossible() const noexcept {
    if (HasCluster() && !Divides(cluster)) return false;
    if (preferred_cluster.IsGiven() && !(HasCluster() && Divides(preferred_cluster))) return false;
    return attributes.count <= kMostAttributes && RepeatedAttribute() < 0;
  }

  // An error if the configuration cannot be right on any device.
  Status Check() const {
    std::string problem = NonZeroProblem("grid", grid);
    if (problem.empty()) problem = NonZeroProblem("block", block);
    if (problem.empty() && HasCluster()) problem = MultipleProblem("cluster", cluster);
    if (problem.empty() && preferred_cluster.IsGiven()) {
      problem = MultipleProblem("preferred_cluster", preferred_cluster);
      if (!HasCluster()) problem = "preferred_cluster needs cluster, the smallest acceptable size";
    }
    if (problem.empty() && attributes.count > kMostAttributes) {
      problem = "attributes must be at most " + detail::ToText(kMostAttributes) + " (got " +
                detail::ToText(attributes.count) + ")";
    }
    const int repeated = problem.empty() ? RepeatedAttribute() : -1;
    if (repeated >= 0) {
      problem = "attributes has attribute " + detail::ToText(repeated) +
                " (CUlaunchAttributeID) twice, or a field of the configuration sets it, too: set "
                "it once";
    }
    return problem.empty() ? Status() : Status(Error(problem));
  }
  void Validate() const { Check().OrThrow(); }

 private:
  // The attributes that the fields say: see DriverLaunchConfig.
  bool IsSaid(int id) const noexcept;

  int RepeatedAttribute() const noexcept {
    for (unsigned i = 0; i < attributes.count; ++i) {
      const CUlaunchAttributeID id = attributes.data[i].id;
      if (IsSaid(static_cast<int>(id))) return static_cast<int>(id);
      for (unsigned k = 0; k < i; ++k) {
        if (attributes.data[k].id == id) return static_cast<int>(id);
      }
    }
    return -1;
  }

  bool Divides(const Dim3& dims) const noexcept {
    return !dims.HasZero() && grid.x % dims.x == 0 && grid.y % dims.y == 0 && grid.z % dims.z == 0;
  }

  static std::string NonZeroProblem(const char* name, const Dim3& dims) {
    if (!dims.HasZero()) return "";
    return std::string(name) + " must be at least 1 in every dimension (got " + dims.ToString() +
           "): skip the launch of an empty problem";
  }

  std::string MultipleProblem(const char* name, const Dim3& dims) const {
    if (dims.HasZero() || Divides(dims)) return NonZeroProblem(name, dims);
    return "grid, in blocks, must be a multiple of " + std::string(name) + " (got grid " +
           grid.ToString() + ", " + name + " " + dims.ToString() + ")";
  }
};

// A launch configuration as the driver takes it. It points into itself: not copyable.
class DriverLaunchConfig {
 public:
#define CULAUNCH_ONE(name, flag, attribute, value, text) +1
  static constexpr unsigned kMostOwn =
      0 CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_ONE, CULAUNCH_ONE, CULAUNCH_ONE);
#undef CULAUNCH_ONE

  // What config.attributes has is not in it: see AllAttributes.
  explicit DriverLaunchConfig(const LaunchConfig& config) noexcept : config_(config.Plain()) {
    config_.attrs = attributes_;
#define CULAUNCH_DIMS(name, flag, attribute, value, text) \
  if (config.name.IsGiven()) SetDims(&Add(attribute).value, config.name);
#define CULAUNCH_SWITCH(name, flag, attribute, value, text) \
  if (config.name) SetNumber(&Add(attribute).value, 1);
#define CULAUNCH_INT(name, flag, attribute, value, text) \
  if (config.has_##name) SetNumber(&Add(attribute).value, config.name);
    CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_SWITCH, CULAUNCH_INT)
#undef CULAUNCH_DIMS
#undef CULAUNCH_SWITCH
#undef CULAUNCH_INT
  }
  DriverLaunchConfig(const DriverLaunchConfig&) = delete;
  DriverLaunchConfig& operator=(const DriverLaunchConfig&) = delete;

  const CUlaunchConfig& get() const noexcept { return config_; }
  CUlaunchConfig& get() noexcept { return config_; }

 private:
  CUlaunchAttributeValue& Add(CUlaunchAttributeID id) noexcept {
    CUlaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute = {};
    attribute.id = id;
    return attribute.value;
  }

  template <class Value>
  static void SetNumber(Value* value, int number) noexcept {
    *value = static_cast<Value>(number);  // an int, or an enumeration of the driver's
  }

  template <class Value>
  static void SetDims(Value* value, const Dim3& dims) noexcept {
    value->x = dims.x;
    value->y = dims.y;
    value->z = dims.z;
  }

  CUlaunchConfig config_;
  CUlaunchAttribute attributes_[kMostOwn];
};

inline bool LaunchConfig::IsSaid(int id) const noexcept {
  const DriverLaunchConfig config(*this);
  for (unsigned i = 0; i < config.get().numAttrs; ++i) {
    if (static_cast<int>(config.get().attrs[i].id) == id) return true;
  }
  return false;
}

// A launch configuration with the caller's attributes, and a copy back of the values that the
// driver writes to them.
class AllAttributes {
 public:
  explicit AllAttributes(const LaunchConfig& config) noexcept
      : own_(config), config_(own_.get()), given_(config.attributes) {
    if (given_.count > LaunchConfig::kMostAttributes) given_.count = 0;  // not IsPossible()
    const unsigned own_count = config_.numAttrs;
    for (unsigned i = 0; i < own_count; ++i) all_[i] = own_.get().attrs[i];
    for (unsigned i = 0; i < given_.count; ++i) all_[own_count + i] = given_.data[i];
    config_.attrs = all_;
    config_.numAttrs = own_count + given_.count;
  }
  AllAttributes(const AllAttributes&) = delete;
  AllAttributes& operator=(const AllAttributes&) = delete;

  const CUlaunchConfig& get() const noexcept { return config_; }

  void WriteBack() const noexcept {
    const unsigned own_count = own_.get().numAttrs;
    for (unsigned i = 0; i < given_.count; ++i) given_.data[i].value = all_[own_count + i].value;
  }

 private:
  DriverLaunchConfig own_;
  CUlaunchConfig config_;
  LaunchAttributes given_;
  CUlaunchAttribute all_[DriverLaunchConfig::kMostOwn + LaunchConfig::kMostAttributes];
};

CULAUNCH_NAMESPACE_END
