#include "triton/variants/launch.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "driver/errors.h"
#include "launch/launch_failure.h"
#include "python/small_buffer.h"
#include "triton/variants/scratch.h"

namespace triton {

namespace {

PyObject* RaiseLayout() {
  PyErr_SetString(PyExc_SystemError, "the variant does not match these arguments");
  return nullptr;
}

// The address of the part of a tensor descriptor for a parameter; null if there is no such part.
void* PartOf(TensorDescriptor& descriptor, const ParameterSource& source) {
  const bool is_dimension = source.index < descriptor.rank;
  switch (source.part) {
    case ParameterSource::kBase:
      return &descriptor.base;
    case ParameterSource::kShape:
      return is_dimension ? &descriptor.shape[source.index] : nullptr;
    case ParameterSource::kStride:
      return is_dimension ? &descriptor.strides[source.index] : nullptr;
    case ParameterSource::kFillsNan:
      return &descriptor.fills_nan;
    case ParameterSource::kRoundsToTf32:
      return &descriptor.rounds_to_tf32;
    default:
      return nullptr;
  }
}

bool Encode(const VariantObject& variant, const DescriptorLayout& layout,
            const TensorDescriptor& descriptor, CUtensorMap* map) {
  culaunch::Driver& driver = variant.state->kernel->driver();
  const CUresult code = EncodeTensorMap(driver, layout, descriptor, map);
  if (code == CUDA_SUCCESS) return true;
  return Guarded<bool>(nullptr, false, [&] {
    driver.Check(code, "encoding a tensor descriptor of " + variant.state->kernel->name());
    return false;
  });
}

// Fill in the parameters that come from tensor descriptors.
bool FillParts(const VariantObject& variant, Specializer& arguments, void** pointers,
               std::vector<CUtensorMap>* maps) {
  const VariantState& state = *variant.state;
  maps->resize(state.layouts.size());
  for (size_t i = 0; i < state.sources.size(); ++i) {
    const ParameterSource& source = state.sources[i];
    if (source.part == ParameterSource::kValue || source.part >= ParameterSource::kGlobalScratch) {
      continue;
    }
    const uint64_t number =
        source.leaf < arguments.leaves.size() ? arguments.leaves[source.leaf] : ~0ull;
    if (number >= arguments.descriptors.size()) return RaiseLayout() != nullptr;
    TensorDescriptor& descriptor = arguments.descriptors[number];
    if (source.part == ParameterSource::kTensorMap) {
      const auto index = static_cast<size_t>(source.index);
      pointers[i] = &(*maps)[index];
      if (!Encode(variant, state.layouts[index], descriptor, &(*maps)[index])) return false;
    } else {
      pointers[i] = PartOf(descriptor, source);
      if (pointers[i] == nullptr) return RaiseLayout() != nullptr;
    }
  }
  return true;
}

}  // namespace

PyObject* LaunchNoGrid(const VariantState& variant, const uint32_t* dims) {
  if (dims[0] == 0 || dims[1] == 0 || dims[2] == 0) return Ref::Borrow(variant.result).release();
  // The driver would refuse this grid, and Triton's own launch leaves it to the driver. Triton
  // cannot pass a number that does not fit a C int.
  const bool is_int = *std::max_element(dims, dims + 3) <= INT32_MAX;
  const char* error = is_int ? "LaunchError" : "GridOverflowError";
  return Guarded<PyObject*>(error, nullptr, [&]() -> PyObject* {
    const std::string got = std::to_string(dims[0]) + ", " + std::to_string(dims[1]) + ", " +
                            std::to_string(dims[2]) + ")";
    const std::string ctas = variant.ctas > 1 ? ", and num_ctas=" + std::to_string(variant.ctas) +
                                                    " multiplies the first"
                                              : "";
    throw culaunch::Error("the grid of " + variant.kernel->name() +
                          " is too large: CUDA allows (2147483647, 65535, 65535) blocks (got (" +
                          got + ctas + ")");
  });
}

PyObject* RaiseLaunch(const VariantState& variant, const CUlaunchConfig& config, int ordinal,
                      CUresult code) {
  RaiseLaunchFailure(*variant.kernel, config, ordinal, code);
  return nullptr;
}

PyObject* LaunchVariant(const VariantObject& variant, const uint32_t* dims,
                        const Conversion& conversion, Specializer& arguments,
                        PyObject* dispatcher) {
  const VariantState& state = *variant.state;
  const uint64_t width = uint64_t{dims[0]} * state.ctas;
  if (width > INT32_MAX || dims[1] > UINT16_MAX || dims[2] > UINT16_MAX) {
    return LaunchNoGrid(state, dims);
  }
  const uint64_t blocks = width * dims[1] * dims[2];
  const size_t count = state.sources.size();
  SmallBuffer<void*, 96> pointers(count);
  const auto bytes = [&](uint64_t for_one) {  // saturates: the allocation then fails
    return for_one != 0 && blocks > UINT64_MAX / for_one ? UINT64_MAX : for_one * blocks;
  };
  Scratch global(dispatcher, conversion, "global", bytes(state.global_scratch),
                 state.global_alignment);
  Scratch profile(dispatcher, conversion, "profile", bytes(state.profile_scratch),
                  state.profile_alignment);
  if (!global.is_good() || !profile.is_good()) return nullptr;
  std::vector<CUtensorMap> maps;
  if (blocks != 0 && state.has_parts && !FillParts(variant, arguments, pointers.data(), &maps)) {
    return nullptr;
  }
  for (size_t i = 0; i < count; ++i) {
    const ParameterSource& source = state.sources[i];
    if (source.part == ParameterSource::kValue) {
      if (source.leaf >= arguments.leaves.size()) return RaiseLayout();
      pointers[i] = arguments.leaves.data() + source.leaf;
    } else if (source.part == ParameterSource::kGlobalScratch) {
      pointers[i] = global.address();
    } else if (source.part == ParameterSource::kProfileScratch) {
      pointers[i] = profile.address();
    }
  }
  conversion.TellDriver();
  return LaunchVariant(state, dims, conversion.ordinal, conversion.stream, pointers.data());
}

}  // namespace triton
