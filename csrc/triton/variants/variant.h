// _core.TritonVariant: one compiled form of a Triton kernel, with everything that its launch needs
// except the arguments.
#pragma once

#include <cuda.h>
#include <culaunch/launch_config.h>

#include <vector>

#include "launch/kernel_object.h"
#include "triton/values/specialize.h"

namespace triton {

// The source of a kernel's parameter: a leaf of the arguments, or a part of a tensor descriptor.
struct ParameterSource {
  enum Part : int {
    kValue,
    kTensorMap,
    kBase,
    kShape,
    kStride,
    kFillsNan,
    kRoundsToTf32,
    kGlobalScratch,
    kProfileScratch,
  };
  size_t leaf;
  int part;
  int index;  // of kShape and kStride the dimension; of kTensorMap the layout
};

// How a tensor descriptor is encoded, as the compiler chose it.
struct DescriptorLayout {
  int swizzle;
  uint32_t element_size;
  int element_type;  // CUtensorMapDataType
  int rank;
  uint32_t box[5];
  bool is_fp4_padded;
};

struct alignas(64) VariantState {
  // Members that each quick call reads come first.
  CUlaunchConfig config = {};  // all but the grid and the stream
  uint32_t ctas = 1;
  culaunch::KernelState* kernel = nullptr;  // of the object's kernel
  PyObject* result = nullptr;               // the object's

  std::vector<ParameterSource> sources;
  std::vector<DescriptorLayout> layouts;
  bool has_parts = false;       // it has more than plain values and scratch
  uint64_t global_scratch = 0;  // bytes for each block
  uint64_t profile_scratch = 0;
  uint64_t global_alignment = 1;
  uint64_t profile_alignment = 1;
  CUlaunchAttribute attributes[culaunch::DriverLaunchConfig::kMostOwn];  // of the configuration
};

struct VariantObject {
  PyObject_HEAD KernelObject* kernel;  // owned
  PyObject* result;                    // owned: the result of a call
  PyObject* constants;                 // owned: a dict
  PyObject* description;               // owned: the tuple that it was made from
  VariantState* state;
};

extern PyTypeObject* g_variant_type;

// Fill a tensor map for a descriptor.
CUresult EncodeTensorMap(culaunch::Driver& driver, const DescriptorLayout& layout,
                         const TensorDescriptor& descriptor, CUtensorMap* map);

int AddVariantType(PyObject* module);

}  // namespace triton
