// Libraries, kernels and launches.
#include <cuda.h>

#include <cstdio>
#include <cstring>

#include "internal.h"

using recording::Current;
using recording::mutex;
using recording::Write;

constexpr int kStaticShared = 1024;

static std::vector<std::unique_ptr<CUlib_st>> libraries;

namespace {

CUkernel Kernel(CUfunction function) { return reinterpret_cast<CUkernel>(function); }

std::string Hex(const void* bytes, size_t size) {
  std::string text;
  char digits[3];
  for (size_t i = 0; i < size; ++i) {
    std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(bytes)[i]);
    text += digits;
  }
  return text;
}

std::string Attributes(const CUlaunchConfig& config) {
  std::string text;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttributeValue& value = config.attrs[i].value;
    char line[96];
    switch (static_cast<int>(config.attrs[i].id)) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      case 11:  // preferred cluster
        std::snprintf(line, sizeof line, " %s=%u,%u,%u",
                      config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
                          ? "cluster"
                          : "preferred_cluster",
                      value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        std::snprintf(line, sizeof line, " cooperative=%d", value.cooperative);
        break;
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        std::snprintf(line, sizeof line, " priority=%d", value.priority);
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        std::snprintf(line, sizeof line, " programmatic=%d",
                      value.programmaticStreamSerializationAllowed);
        break;
      default:
        std::snprintf(line, sizeof line, " attribute%d", static_cast<int>(config.attrs[i].id));
    }
    text += line;
  }
  return text;
}

}  // namespace

extern "C" {

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
  FAIL_IF_ASKED();
  std::vector<recording::KernelInfo> kernels;
  if (!recording::ReadImage(image, &kernels)) return CUDA_ERROR_INVALID_IMAGE;
  auto loaded = std::make_unique<CUlib_st>();
  std::string names;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  for (auto& kernel : kernels) {
    names += " " + kernel.name;
    loaded->kernels.push_back(std::make_unique<CUkern_st>(CUkern_st{std::move(kernel), {}}));
  }
  Write("load%s%s", names.c_str(), recording::IsCaptureRelaxed() ? " (relaxed)" : "");
  *library = loaded.get();
  libraries.push_back(std::move(loaded));
  return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary library) {
  Write("unload");
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  for (size_t i = 0; i < libraries.size(); ++i) {
    if (libraries[i].get() == library) libraries.erase(libraries.begin() + static_cast<long>(i));
  }
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  FAIL_IF_ASKED();
  Write("find %s", name);
  for (auto& candidate : library->kernels) {
    if (candidate->info.name == name) {
      *kernel = candidate.get();
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  *count = static_cast<unsigned>(library->kernels.size());
  return CUDA_SUCCESS;
}
CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  for (unsigned i = 0; i < count; ++i) kernels[i] = library->kernels[i].get();
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetGlobal(CUdeviceptr*, size_t*, CUlibrary, const char*) {
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  *name = kernel->info.name.c_str();
  return CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  if (index >= kernel->info.params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->info.params[index].offset;
  *size = kernel->info.params[index].size;
  return CUDA_SUCCESS;
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const auto set = kernel->attributes.find({device, attribute});
  *value = set != kernel->attributes.end()                                ? set->second
           : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 49152 - kStaticShared
           : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES             ? kStaticShared
           : attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK         ? 512
           : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS                      ? 96
                                                                          : 0;
  return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  Write("set %s attribute=%d value=%d device=%d", kernel->info.name.c_str(), attribute, value,
        device - 100);
  kernel->attributes[{device, attribute}] = value;
  return CUDA_SUCCESS;
}
CUresult cuFuncLoad(CUfunction function) {
  FAIL_IF_ASKED();
  Write("resident %s device=%d", Kernel(function)->info.name.c_str(), Current()->device);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void**) {
  FAIL_IF_ASKED();
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const bool is_own = config->hStream != nullptr && config->hStream != CU_STREAM_LEGACY &&
                      config->hStream != CU_STREAM_PER_THREAD;
  if (is_own && config->hStream->context != Current()) return CUDA_ERROR_INVALID_HANDLE;
  CUkern_st& kernel = *Kernel(function);
  int allowed = 0;
  cuKernelGetAttribute(&allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &kernel,
                       100 + Current()->device);
  if (config->sharedMemBytes > static_cast<unsigned>(allowed)) return CUDA_ERROR_INVALID_VALUE;
  if (config->gridDimX * config->gridDimY * config->gridDimZ == 0 ||
      config->blockDimX * config->blockDimY * config->blockDimZ > 512) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::string text;
  for (size_t i = 0; i < kernel.info.params.size(); ++i) {
    text += " " + Hex(arguments[i], kernel.info.params[i].size);
  }
  Write("launch %s device=%d grid=%u,%u,%u block=%u,%u,%u shared=%u stream=%s%s args%s",
        kernel.info.name.c_str(), Current()->device, config->gridDimX, config->gridDimY,
        config->gridDimZ, config->blockDimX, config->blockDimY, config->blockDimZ,
        config->sharedMemBytes, is_own ? "own" : "default", Attributes(*config).c_str(),
        text.c_str());
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, size_t) {
  *blocks = 2;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction, CUoccupancyB2DSize,
                                          size_t, int) {
  *grid = 264;
  *block = 512;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction, const CUlaunchConfig*) {
  *size = 8;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int* count, CUfunction, const CUlaunchConfig*) {
  *count = 16;
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // extern "C"
