// Images, kernels and their attributes. CUlibrary and CUmodule are the same.
#include <cstring>

#include "internal.h"

namespace fake {
namespace {

constexpr size_t kMaxDeclared = 256;
constexpr int kMaxParams = 1024;
constexpr size_t kMaxName = 255;

struct Library {
  std::vector<Kernel*> kernels;
  std::vector<std::unique_ptr<Kernel>> own;
};

// Nothing is ever removed from these, because a program may use any handle that it has.
std::vector<std::unique_ptr<Kernel>> declared;
std::vector<std::unique_ptr<Library>> libraries;

Kernel* FindDeclared(const std::string& name) {
  for (const auto& kernel : declared) {
    if (kernel->info.name == name) return kernel.get();
  }
  return nullptr;
}

template <class Option>
std::string OptionText(Option option, void* value) {
  return std::to_string(static_cast<int>(option)) + "=" +
         std::to_string(reinterpret_cast<uintptr_t>(value));
}

Library& LibraryOf(CUlibrary library) { return *reinterpret_cast<Library*>(library); }

}  // namespace

int KernelAttribute(const Kernel& kernel, int attribute, int ordinal) {
  const auto set = kernel.attributes.find({ordinal, attribute});
  if (set != kernel.attributes.end()) return set->second;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return 49152 - kStaticShared;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return kStaticShared;
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return kMaxThreads;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return 96;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return 90;
    default:
      return 0;
  }
}

}  // namespace fake

using fake::Kernel;
using fake::KernelOf;
using fake::LibraryOf;
using fake::mutex;
using fake::Write;
using Lock = std::lock_guard<std::recursive_mutex>;

extern "C" {

int fake_driver_declare(const char* name, int count, const size_t* sizes) {
  const Lock lock(mutex);
  Kernel* kernel = fake::FindDeclared(name);
  if (count < 0 || count > fake::kMaxParams || std::strlen(name) > fake::kMaxName) return -1;
  if (kernel == nullptr) {
    if (fake::declared.size() == fake::kMaxDeclared) return -1;
    fake::declared.push_back(std::make_unique<Kernel>());
    kernel = fake::declared.back().get();
  }
  kernel->info = {name, {}};
  size_t offset = 0;
  for (int i = 0; i < count; ++i) {
    size_t align = sizes[i] & (~sizes[i] + 1);  // the largest power of two that divides it
    if (align == 0 || align > 8) align = align != 0 ? 8 : 1;
    offset = (offset + align - 1) / align * align;
    kernel->info.params.push_back({offset, sizes[i]});
    offset += sizes[i];
  }
  return 0;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* jit,
                           void** jit_values, unsigned jit_count, CUlibraryOption* options,
                           void** option_values, unsigned option_count) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto loaded = std::make_unique<fake::Library>();
  std::vector<fake::KernelInfo> read;
  const Lock lock(mutex);
  // Without the log an image may be anything: its kernels are those that were declared.
  if (fake::kLogs && !fake::ReadImage(image, &read)) return CUDA_ERROR_INVALID_IMAGE;
  std::string names;
  for (auto& info : read) {
    names += " " + info.name;
    loaded->own.push_back(std::make_unique<Kernel>(std::move(info)));
    loaded->kernels.push_back(loaded->own.back().get());
  }
  for (const auto& kernel : fake::declared) loaded->kernels.push_back(kernel.get());
  for (Kernel* kernel : loaded->kernels) kernel->library = loaded.get();
  for (unsigned i = 0; i < jit_count; ++i) {
    // The place of a log differs from run to run.
    if (jit[i] >= CU_JIT_INFO_LOG_BUFFER && jit[i] <= CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) continue;
    names += " jit" + fake::OptionText(jit[i], jit_values[i]);
  }
  for (unsigned i = 0; i < option_count; ++i) {
    names += " option" + fake::OptionText(options[i], option_values[i]);
  }
  Write("load%s%s", names.c_str(), fake::IsCaptureRelaxed() ? " (relaxed)" : "");
  *library = reinterpret_cast<CUlibrary>(loaded.get());
  fake::libraries.push_back(std::move(loaded));
  return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library) {
  Write("unload");
  const Lock lock(mutex);
  for (auto& loaded : fake::libraries) {
    if (loaded.get() != &LibraryOf(library)) continue;
    loaded = std::move(fake::libraries.back());
    fake::libraries.pop_back();
    break;
  }
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  *module = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  Write("find %s", name);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (Kernel* candidate : LibraryOf(library).kernels) {
    if (candidate->info.name != name) continue;
    *kernel = reinterpret_cast<CUkernel>(&candidate->handle);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  *count = static_cast<unsigned>(LibraryOf(library).kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  const auto& all = LibraryOf(library).kernels;
  for (unsigned i = 0; i < count && i < all.size(); ++i) {
    kernels[i] = reinterpret_cast<CUkernel>(&all[i]->handle);
  }
  return CUDA_SUCCESS;
}

// An image here has kernels and nothing else.
CUresult cuLibraryGetGlobal(CUdeviceptr*, size_t*, CUlibrary, const char*) {
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (fake::Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *function = reinterpret_cast<CUfunction>(kernel);
  if (!fake::kLogs) return CUDA_SUCCESS;
  const Lock lock(mutex);
  std::unique_ptr<fake::Handle>& own = KernelOf(kernel).functions[fake::Current()];
  if (own == nullptr) own.reset(new fake::Handle{&KernelOf(kernel), fake::Current()});
  *function = reinterpret_cast<CUfunction>(own.get());
  return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  *library = static_cast<CUlibrary>(KernelOf(kernel).library);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  *module = static_cast<CUmodule>(KernelOf(function).library);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  *name = KernelOf(kernel).info.name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  return cuKernelGetName(name, reinterpret_cast<CUkernel>(function));
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  const auto& params = KernelOf(kernel).info.params;
  if (index >= params.size()) return CUDA_ERROR_INVALID_VALUE;
  if (offset != nullptr) *offset = params[index].offset;
  if (size != nullptr) *size = params[index].size;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  return cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), index, offset, size);
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device) {
  const Lock lock(mutex);
  *value = fake::KernelAttribute(KernelOf(kernel), attribute, device - fake::kFirstHandle);
  return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
  const Lock lock(mutex);
  Write("set %s attribute=%d value=%d device=%d", KernelOf(kernel).info.name.c_str(), attribute,
        value, device - fake::kFirstHandle);
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
      (value < 0 || value > 232448)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  KernelOf(kernel).attributes[{device - fake::kFirstHandle, attribute}] = value;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  const int ordinal = fake::Current() != nullptr ? fake::Current()->device : 0;
  return cuKernelGetAttribute(value, attribute, reinterpret_cast<CUkernel>(function),
                              fake::kFirstHandle + ordinal);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  const int ordinal = fake::Current() != nullptr ? fake::Current()->device : 0;
  return cuKernelSetAttribute(attribute, value, reinterpret_cast<CUkernel>(function),
                              fake::kFirstHandle + ordinal);
}

CUresult cuFuncLoad(CUfunction function) {
  if (fake::kLogs) {
    if (fake::Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    Write("resident %s device=%d", KernelOf(function).info.name.c_str(), fake::Current()->device);
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction) {
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuLibraryLoadData(reinterpret_cast<CUlibrary*>(module), image, nullptr, nullptr, 0,
                           nullptr, nullptr, 0);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module) {
  return cuLibraryUnload(reinterpret_cast<CUlibrary>(module));
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return cuLibraryGetKernel(reinterpret_cast<CUkernel*>(function),
                            reinterpret_cast<CUlibrary>(module), name);
}

}  // extern "C"
