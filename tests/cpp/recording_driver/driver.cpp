// The driver API over devices that exist on paper.
#include <cuda.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "culaunch/driver_table.h"
#include "recording.h"

// The second device stands for one with less shared memory.
constexpr int kDevices = 2;
constexpr int kSharedOptIn[kDevices] = {232448, 101376};
constexpr int kStaticShared = 1024;

struct CUctx_st {
  int device;
};
struct CUstream_st {
  CUcontext context;
};
struct CUlib_st;
struct CUkern_st {
  recording::KernelInfo info;
  std::map<std::pair<int, int>, int> attributes;  // (device, attribute)
};
struct CUlib_st {
  std::vector<std::unique_ptr<CUkern_st>> kernels;
};

namespace {

CUctx_st primary[kDevices] = {{0}, {1}};
thread_local std::vector<CUcontext> contexts;
std::recursive_mutex mutex;
std::string record;
std::map<std::string, int> failures;
std::vector<std::unique_ptr<CUlib_st>> libraries;

void Write(const char* format, ...) __attribute__((format(printf, 1, 2)));
void Write(const char* format, ...) {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  record.append(line).append("\n");
  if (const char* path = std::getenv("RECORDING_DRIVER_LOG")) {
    if (std::FILE* file = std::fopen(path, "a")) {
      std::fprintf(file, "%s\n", line);
      std::fclose(file);
    }
  }
}

// The failure that a test asked for, once.
CUresult Failure(const char* function) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const auto found = failures.find(function);
  if (found == failures.end()) return CUDA_SUCCESS;
  const int code = found->second;
  failures.erase(found);
  return static_cast<CUresult>(code);
}
#define FAIL_IF_ASKED() \
  if (const CUresult asked = Failure(__func__); asked != CUDA_SUCCESS) return asked

CUkernel Kernel(CUfunction function) { return reinterpret_cast<CUkernel>(function); }
CUcontext Current() { return contexts.empty() ? nullptr : contexts.back(); }

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

__attribute__((visibility("default"))) extern const int culaunch_device_types[] = {1, 2, 13, 3, -1};

const char* recording_log() {
  static std::string copy;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  copy = record;
  return copy.c_str();
}
void recording_clear() {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  record.clear();
  failures.clear();
}
void recording_fail(const char* function, int code) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  failures[function] = code;
}

CUresult cuInit(unsigned) {
  FAIL_IF_ASKED();
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  const char* text = std::getenv("RECORDING_DRIVER_VERSION");
  *version = text != nullptr ? std::atoi(text) : CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult code, const char** text) {
  *text = code == CUDA_ERROR_INVALID_VALUE       ? "CUDA_ERROR_INVALID_VALUE"
          : code == CUDA_ERROR_NOT_FOUND         ? "CUDA_ERROR_NOT_FOUND"
          : code == CUDA_ERROR_INVALID_IMAGE     ? "CUDA_ERROR_INVALID_IMAGE"
          : code == CUDA_ERROR_ILLEGAL_ADDRESS   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == CUDA_ERROR_INVALID_HANDLE    ? "CUDA_ERROR_INVALID_HANDLE"
          : code == CUDA_ERROR_NO_BINARY_FOR_GPU ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : code == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
                                                 : nullptr;
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "as the recording driver was told";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = 100 + ordinal;  // a handle is not an ordinal
  return ordinal < kDevices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetCount(int* count) {
  *count = kDevices;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  std::snprintf(name, static_cast<size_t>(size), "Paper %d", device - 100);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      *value = 64;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = 2147483647;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = 65535;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = kSharedOptIn[device - 100];
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAIL_IF_ASKED();
  Write("retain %d", device - 100);
  *context = &primary[device - 100];
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = Current();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = 100 + Current()->device;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = contexts.back();
  contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
  Write("synchronize");
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  *context = stream->context;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned, int) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = new CUstream_st{Current()};
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  delete stream;
  return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  static thread_local CUstreamCaptureMode kept = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(kept, *mode);
  return CUDA_SUCCESS;
}

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
  Write("load%s", names.c_str());
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
  if (config->hStream != nullptr && config->hStream->context != Current()) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const CUkern_st& kernel = *Kernel(function);
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
        config->sharedMemBytes, config->hStream != nullptr ? "own" : "default",
        Attributes(*config).c_str(), text.c_str());
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
CUresult cuPointerGetAttribute(void*, CUpointer_attribute, CUdeviceptr) {
  return CUDA_ERROR_INVALID_VALUE;
}

// Memory is the host's.
CUresult cuMemAlloc(CUdeviceptr* address, size_t size) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *address = reinterpret_cast<CUdeviceptr>(std::calloc(size, 1));
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr address) {
  std::free(reinterpret_cast<void*>(address));
  return CUDA_SUCCESS;
}
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream) {
  return cuMemAlloc(address, size);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return cuMemFree(address); }
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t size, CUstream) {
  std::memcpy(reinterpret_cast<void*>(to), from, size);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t size, CUstream) {
  std::memcpy(to, reinterpret_cast<void*>(from), size);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, CUstream) {
  std::memset(reinterpret_cast<void*>(to), value, size);
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGetProcAddress(const char* name, void** function, int, cuuint64_t,
                          CUdriverProcAddressQueryResult*) {
#define FIND(candidate, version, required)           \
  if (std::strcmp(name, #candidate) == 0) {          \
    *function = reinterpret_cast<void*>(&candidate); \
    return CUDA_SUCCESS;                             \
  }
  CULAUNCH_DRIVER_FUNCTIONS(FIND)
#undef FIND
  *function = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
