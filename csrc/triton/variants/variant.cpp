#include "triton/variants/variant.h"

#include <culaunch/launch_config.h>

#include <algorithm>

#include "launch/kernel_type.h"
#include "python/type_builder.h"

namespace triton {

PyTypeObject* g_variant_type = nullptr;

CUresult EncodeTensorMap(culaunch::Driver& driver, const DescriptorLayout& layout,
                         const TensorDescriptor& descriptor, CUtensorMap* map) {
  constexpr int kTf32 = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  if (driver.cuTensorMapEncodeTiled == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (layout.rank != descriptor.rank) return CUDA_ERROR_INVALID_VALUE;
  // The driver lists dimensions from the contiguous one.
  cuuint64_t dims[5];
  cuuint64_t strides[5];
  cuuint32_t box[5];
  cuuint32_t steps[5];
  const int rank = layout.rank;
  for (int i = 0; i < rank; ++i) {
    const int from = rank - 1 - i;
    dims[i] = descriptor.shape[from];
    if (i == 0 && layout.is_fp4_padded) dims[i] *= 2;
    box[i] = layout.box[from];
    steps[i] = 1;
    if (i + 1 < rank) strides[i] = descriptor.strides[from - 1] * layout.element_size;
  }
  const int type = descriptor.rounds_to_tf32 != 0 ? kTf32 : layout.element_type;
  return driver.cuTensorMapEncodeTiled(
      map, static_cast<CUtensorMapDataType>(type), static_cast<cuuint32_t>(rank), descriptor.base,
      dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      static_cast<CUtensorMapSwizzle>(layout.swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      descriptor.fills_nan != 0 ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                                : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

namespace {

VariantObject* VariantOf(PyObject* self) { return reinterpret_cast<VariantObject*>(self); }

// sources: ((leaf, part, index), ...), as many as the kernel has parameters.
bool ReadSources(PyObject* sources, VariantState* state) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(sources); ++i) {
    Py_ssize_t leaf = 0;
    int part = 0;
    int index = 0;
    if (!PyArg_ParseTuple(PyTuple_GetItem(sources, i), "nii", &leaf, &part, &index)) return false;
    if (leaf < 0 || part < 0 || part > ParameterSource::kProfileScratch || index < 0 ||
        index > 255) {
      PyErr_SetString(PyExc_ValueError, "a source is out of range");
      return false;
    }
    const bool is_plain =
        part == ParameterSource::kValue || part >= ParameterSource::kGlobalScratch;
    if (!is_plain) state->has_parts = true;
    state->sources.push_back({static_cast<size_t>(leaf), part, index});
  }
  return true;
}

// layouts: ((swizzle, element size, element type, box, is fp4 padded), ...)
bool ReadLayouts(PyObject* layouts, VariantState* state) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(layouts); ++i) {
    DescriptorLayout layout = {};
    PyObject* box = nullptr;
    int padded = 0;
    if (!PyArg_ParseTuple(PyTuple_GetItem(layouts, i), "iIiO!p", &layout.swizzle,
                          &layout.element_size, &layout.element_type, &PyTuple_Type, &box,
                          &padded)) {
      return false;
    }
    layout.rank = static_cast<int>(PyTuple_Size(box));
    layout.is_fp4_padded = padded != 0;
    if (layout.rank < 1 || layout.rank > 5) {
      PyErr_SetString(PyExc_ValueError, "a tensor descriptor has 1 to 5 dimensions");
      return false;
    }
    for (int k = 0; k < layout.rank; ++k) {
      layout.box[k] = static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GetItem(box, k)));
    }
    if (PyErr_Occurred() != nullptr) return false;
    state->layouts.push_back(layout);
  }
  return true;
}

void SetConfig(const culaunch::LaunchConfig& launch_config, VariantState* state) {
  const culaunch::DriverLaunchConfig config(launch_config);
  state->config = config.get();
  state->config.attrs = state->attributes;
  std::copy(config.get().attrs, config.get().attrs + config.get().numAttrs, state->attributes);
}

// TritonVariant(kernel, sources, layouts, threads, ctas, shared, cooperative, programmatic,
//               global scratch, its alignment, profile scratch, its alignment, constants, result)
PyObject* NewVariant(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* kernel = nullptr;
  PyObject* sources = nullptr;
  PyObject* layouts = nullptr;
  PyObject* constants = nullptr;
  PyObject* result = nullptr;
  unsigned threads = 0;
  unsigned ctas = 0;
  unsigned shared = 0;
  int cooperative = 0;
  int programmatic = 0;
  unsigned long long scratch[4];
  if (!PyArg_ParseTuple(args, "O!O!O!IIIppKKKKO!O:TritonVariant", g_kernel_type, &kernel,
                        &PyTuple_Type, &sources, &PyTuple_Type, &layouts, &threads, &ctas, &shared,
                        &cooperative, &programmatic, &scratch[0], &scratch[1], &scratch[2],
                        &scratch[3], &PyDict_Type, &constants, &result)) {
    return nullptr;
  }
  auto state = std::make_unique<VariantState>();
  state->kernel = reinterpret_cast<KernelObject*>(kernel)->state;
  state->result = result;
  if (!ReadSources(sources, state.get()) || !ReadLayouts(layouts, state.get())) return nullptr;
  auto* kernel_object = reinterpret_cast<KernelObject*>(kernel);
  if (state->sources.size() != kernel_object->count || threads == 0 || ctas == 0) {
    PyErr_SetString(PyExc_ValueError, "sources must be as many as the kernel has parameters");
    return nullptr;
  }
  for (const ParameterSource& source : state->sources) {
    if (source.part == ParameterSource::kTensorMap &&
        static_cast<size_t>(source.index) >= state->layouts.size()) {
      PyErr_SetString(PyExc_ValueError, "a tensor map has no layout");
      return nullptr;
    }
  }
  culaunch::LaunchConfig config({1, 1, 1}, threads, shared);
  config.cooperative = cooperative != 0;
  config.programmatic = programmatic != 0;
  state->ctas = ctas;
  if (ctas > 1) config.cluster = culaunch::Dim3(ctas, 1, 1);
  config.spread_clusters = ctas > 1;  // as Triton does
  state->global_scratch = scratch[0];
  state->global_alignment = scratch[1];
  state->profile_scratch = scratch[2];
  state->profile_alignment = scratch[3];
  SetConfig(config, state.get());
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  // Functions record the launch from these values: from the sources to the constants.
  VariantOf(self)->description = PyTuple_GetSlice(args, 1, 13);
  if (VariantOf(self)->description == nullptr) {
    Py_DECREF(self);
    return nullptr;
  }
  Py_INCREF(kernel);
  Py_INCREF(constants);
  Py_INCREF(result);
  VariantOf(self)->kernel = kernel_object;
  VariantOf(self)->constants = constants;
  VariantOf(self)->result = result;
  VariantOf(self)->state = state.release();
  return self;
}

int TraverseVariant(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<PyObject*>(VariantOf(self)->kernel));
  Py_VISIT(VariantOf(self)->constants);
  Py_VISIT(VariantOf(self)->result);
  Py_VISIT(VariantOf(self)->description);
  return 0;
}

void DeallocVariant(PyObject* self) {
  DeallocCollected(self, [self] {
    Py_XDECREF(reinterpret_cast<PyObject*>(VariantOf(self)->kernel));
    Py_XDECREF(VariantOf(self)->constants);
    Py_XDECREF(VariantOf(self)->result);
    Py_XDECREF(VariantOf(self)->description);
    delete VariantOf(self)->state;
  });
}

PyObject* GetKernel(PyObject* self, void*) {
  return Ref::Borrow(reinterpret_cast<PyObject*>(VariantOf(self)->kernel)).release();
}
PyObject* GetDescription(PyObject* self, void*) {
  return Ref::Borrow(VariantOf(self)->description).release();
}
PyObject* GetResult(PyObject* self, void*) {
  return Ref::Borrow(VariantOf(self)->result).release();
}

}  // namespace

int AddVariantType(PyObject* module) {
  g_variant_type = TypeBuilder("culaunch._core.TritonVariant", sizeof(VariantObject))
                       .Slot(Py_tp_new, NewVariant)
                       .Slot(Py_tp_dealloc, DeallocVariant)
                       .Collected(TraverseVariant)
                       .Property("kernel", GetKernel)
                       .Property("result", GetResult)
                       .Property("_description", GetDescription)
                       .AddTo(module);
  return g_variant_type != nullptr ? 0 : -1;
}

}  // namespace triton
