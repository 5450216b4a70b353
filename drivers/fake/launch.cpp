// Launches.
#include <cstdio>

#include "culaunch/launch_options.h"
#include "internal.h"

static uint64_t launches;  // not atomic: a lock prefix would be half of the cost

namespace {

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
    const int id = static_cast<int>(config.attrs[i].id);
    std::snprintf(line, sizeof line, " attribute%d=%s", id, Hex(&value, sizeof(int)).c_str());
#define CULAUNCH_DIMS(name, flag, attribute, member, text)                                  \
  if (id == static_cast<int>(attribute)) {                                                  \
    std::snprintf(line, sizeof line, " " #name "=%u,%u,%u", value.member.x, value.member.y, \
                  value.member.z);                                                          \
  }
#define CULAUNCH_NUMBER(name, flag, attribute, member, text)                           \
  if (id == static_cast<int>(attribute)) {                                             \
    std::snprintf(line, sizeof line, " " #name "=%d", static_cast<int>(value.member)); \
  }
    CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_NUMBER, CULAUNCH_NUMBER)
#undef CULAUNCH_DIMS
#undef CULAUNCH_NUMBER
    text += line;
  }
  return text;
}

}  // namespace

// A function belongs to one context only.
CUresult fake::LaunchIn(CUcontext context, const CUlaunchConfig& config,
                        const fake::Handle& function, void** arguments) {
  if (!kLogs) {
    ++launches;
    return CUDA_SUCCESS;
  }
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (function.context != nullptr && function.context != context) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard<std::recursive_mutex> lock(fake::mutex);
  const fake::Kernel& kernel = *function.kernel;
  const int allowed = fake::KernelAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                            context->device);
  if (config.sharedMemBytes > static_cast<unsigned>(allowed) ||
      config.gridDimX * config.gridDimY * config.gridDimZ == 0 ||
      config.blockDimX * config.blockDimY * config.blockDimZ > fake::kMaxThreads) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::string text;
  for (size_t i = 0; i < kernel.info.params.size(); ++i) {
    text += " " + Hex(arguments[i], kernel.info.params[i].size);
  }
  const bool is_own = config.hStream != nullptr && config.hStream != CU_STREAM_LEGACY &&
                      config.hStream != CU_STREAM_PER_THREAD;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) continue;
    config.attrs[i].value.deviceUpdatableKernelNode.devNode =
        reinterpret_cast<CUgraphDeviceNode>(uintptr_t{0xfade});
  }
  fake::Write("launch %s device=%d grid=%u,%u,%u block=%u,%u,%u shared=%u stream=%s%s args%s",
              kernel.info.name.c_str(), context->device, config.gridDimX, config.gridDimY,
              config.gridDimZ, config.blockDimX, config.blockDimY, config.blockDimZ,
              config.sharedMemBytes, is_own ? "own" : "default", Attributes(config).c_str(),
              text.c_str());
  ++launches;
  return CUDA_SUCCESS;
}

extern "C" {

uint64_t fake_driver_launches() { return launches; }

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void**) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!fake::kLogs) {
    ++launches;
    return CUDA_SUCCESS;
  }
  CUresult code;
  if (fake::Capture(config->hStream, *config, function, arguments, &code)) return code;
  // The context is the stream's, whatever is current, and the current one for a default stream.
  return fake::LaunchIn(fake::ContextOf(config->hStream), *config, fake::HandleOf(function),
                        arguments);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void** arguments, void** extra) {
  const CUlaunchConfig config = {grid_x,  grid_y, grid_z, block_x, block_y,
                                 block_z, shared, stream, nullptr, 0};
  return cuLaunchKernelEx(&config, function, arguments, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared, CUstream stream,
                                   void** arguments) {
  return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                        arguments, nullptr);
}

}  // extern "C"
