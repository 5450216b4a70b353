#include "arguments/torch/allocator.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string>

#include "arguments/torch/layout.h"
#include "arguments/torch/modes.h"
#include "arguments/views/element_types.h"

namespace {

struct Found {
  TorchAllocator allocator = {};
  std::array<int32_t, operands::kAllTypes> dtypes = {};  // -1: this torch has none
  int32_t host = 0;
  int32_t gpu = 0;
  bool is_complete = false;
};

// Libraries that the process has loaded, by the names that torch gives them.
class Libraries {
 public:
  template <class F>
  bool Find(const char* name, F* function) const {
    for (void* library : {cpu_, python_, cuda_}) {
      void* found = library != nullptr ? dlsym(library, name) : nullptr;
      *function = reinterpret_cast<F>(found);
      if (found != nullptr) return true;
    }
    return false;
  }

 private:
  void* cpu_ = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  void* python_ = dlopen("libtorch_python.so", RTLD_LAZY | RTLD_NOLOAD);
  void* cuda_ = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
};

Found Find() {
  Found found;
  const Libraries libraries;
  int32_t (*host)() = nullptr;
  int32_t (*gpu)() = nullptr;
  found.is_complete =
      libraries.Find("aoti_torch_empty_strided", &found.allocator.empty) &&
      libraries.Find("aoti_torch_get_data_ptr", &found.allocator.data) &&
      libraries.Find("aoti_torch_delete_tensor_object", &found.allocator.free) &&
      libraries.Find("_Z16THPVariable_WrapRKN2at10TensorBaseE", &found.allocator.wrap) &&
      libraries.Find("aoti_torch_device_type_cpu", &host) &&
      libraries.Find("aoti_torch_device_type_cuda", &gpu);
  if (!found.is_complete) return found;
  // at::native::empty_strided_cuda.
  libraries.Find(
      "_ZN2at6native18empty_strided_cudaEN3c108ArrayRefIlEES3_St8optionalINS1_10ScalarTypeEES4_"
      "INS1_6LayoutEES4_INS1_6DeviceEES4_IbE",
      &found.allocator.empty_on_gpu);
  found.host = host();
  found.gpu = gpu();
  for (uint8_t number = 0; number < operands::kAllTypes; ++number) {
    int32_t (*dtype)() = nullptr;
    const std::string name = std::string("aoti_torch_dtype_") + operands::NameOf(number);
    found.dtypes[number] = libraries.Find(name.c_str(), &dtype) ? dtype() : -1;
  }
  return found;
}

const Found& TheFound() {
  static const Found found = Find();
  return found;
}

}  // namespace

// Torch's dispatcher takes a sixth of an allocation on a GPU. This code makes its checks instead:
// whether a mode, a trace or a transformation wants to see the operation. On the host, the stable
// interface itself goes this way.
void* TorchAllocator::MakeOnGpu(const DLTensor& like, const int64_t* strides, int32_t dtype) const {
  if (empty_on_gpu == nullptr || TorchKeysOfThread() == nullptr || IsTorchWatching()) {
    return nullptr;
  }
  const auto count = static_cast<size_t>(like.ndim);
  const torch_direct::Device device = {static_cast<int8_t>(TheFound().gpu),
                                       static_cast<int8_t>(like.device.device_id)};
  try {
    return new torch_direct::Tensor(empty_on_gpu({like.shape, count}, {strides, count},
                                                 static_cast<int8_t>(dtype), std::nullopt, device,
                                                 std::nullopt));
  } catch (...) {
    return nullptr;  // the stable interface will report the problem
  }
}

void* TorchAllocator::Make(const DLTensor& like, char** address) const {
  constexpr int32_t kMostDimensions = 8;
  const Found& found = TheFound();
  const uint8_t number = operands::NumberOf(like.dtype);
  const bool is_host = like.device.device_type == kDLCPU;
  if (like.ndim > kMostDimensions || number >= operands::kAllTypes || found.dtypes[number] < 0 ||
      (!is_host && like.device.device_type != kDLCUDA)) {
    return nullptr;
  }
  int64_t strides[kMostDimensions];
  int64_t next = 1;
  for (int32_t i = like.ndim; i-- > 0;) {
    strides[i] = next;
    if (__builtin_mul_overflow(next, std::max<int64_t>(like.shape[i], 1), &next)) return nullptr;
  }
  void* tensor = is_host ? nullptr : MakeOnGpu(like, strides, found.dtypes[number]);
  void* data = nullptr;
  if (tensor == nullptr &&
      empty(like.ndim, like.shape, strides, found.dtypes[number], is_host ? found.host : found.gpu,
            is_host ? 0 : like.device.device_id, &tensor) != 0) {
    PyErr_Clear();  // raised by a mode
    return nullptr;
  }
  if (ReadTorchData(g_torch_layout, *static_cast<const char* const*>(tensor), &data)) {
    // `data` is set: the tensor has the known layout.
  } else if (this->data(tensor, &data) != 0) {
    PyErr_Clear();
    free(tensor);
    return nullptr;
  }
  *address = static_cast<char*>(data);
  return tensor;
}

const TorchAllocator* FindTorchAllocator() {
  return TheFound().is_complete ? &TheFound().allocator : nullptr;
}
