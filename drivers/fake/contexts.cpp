// The primary contexts, which context is current in a thread, and streams.
#include <chrono>
#include <utility>

#include "internal.h"

struct CUstream_st {
  CUcontext context;
  unsigned long long id;
  CUgraph graph;  // under capture; else null
  CUgraphNode last;
};

struct CUevent_st {
  std::chrono::steady_clock::time_point time;
};

namespace fake {
namespace {

constexpr int kDepth = 64;  // a program that pushes more has lost count

CUctx_st primary[kDevices] = {};
thread_local CUcontext stack[kDepth];
thread_local int depth = 0;
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
// The next stream of any context reuses the handle of a destroyed stream.
auto& destroyed = *new std::vector<CUstream>;

}  // namespace

CUcontext Current() { return depth == 0 ? nullptr : stack[depth - 1]; }

CUcontext Primary(int ordinal) {
  primary[ordinal].device = ordinal;
  return &primary[ordinal];
}

CUcontext ContextOf(CUstream stream) {
  const bool is_default =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  // Without the log any handle will do.
  if (!kLogs) return Primary(0);
  return is_default ? Current() : stream->context;
}

static CUstream UnderCapture(CUstream stream) {
  const bool is_default =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  return kLogs && !is_default && stream->graph != nullptr ? stream : nullptr;
}

bool Capture(CUstream stream, const CUlaunchConfig& config, CUfunction function, void** arguments,
             CUresult* code) {
  if (UnderCapture(stream) == nullptr) return false;
  *code = CaptureKernel(stream->graph, &stream->last, config, function, arguments);
  return true;
}

bool IsCapturing(CUstream stream) { return UnderCapture(stream) != nullptr; }

bool IsCaptureRelaxed() { return capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED; }

}  // namespace fake

using fake::Current;

extern "C" {

void* fake_driver_own_context(int ordinal) {
  static CUctx_st own[fake::kDevices];
  own[ordinal].device = ordinal;
  return &own[ordinal];
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  fake::Write("retain %d", device - fake::kFirstHandle);
  *context = fake::Primary(device - fake::kFirstHandle);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  fake::Write("release %d", device - fake::kFirstHandle);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = Current();
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  if (fake::depth == fake::kDepth) return CUDA_ERROR_INVALID_CONTEXT;
  fake::stack[fake::depth++] = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  if (fake::depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --fake::depth;
  if (context != nullptr) *context = fake::stack[fake::depth];
  return CUDA_SUCCESS;
}

// It takes the place of the one on top; null takes that away.
CUresult cuCtxSetCurrent(CUcontext context) {
  if (fake::depth > 0) --fake::depth;
  return context == nullptr ? CUDA_SUCCESS : cuCtxPushCurrent(context);
}

CUresult cuCtxGetDevice(CUdevice* device) {
  *device = fake::kFirstHandle;
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device += Current()->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  *id = 1 + static_cast<unsigned long long>(context != nullptr ? context->device : 0);
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  fake::Write("synchronize");
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer) {
  *can_access = device != peer;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
  return peer != Current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  *context = fake::ContextOf(stream);
  return *context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  const CUcontext context = fake::ContextOf(stream);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = fake::kFirstHandle + context->device;
  return CUDA_SUCCESS;
}

// The key of a default stream: the context, or the context and the thread.
CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  thread_local char thread;
  const CUcontext context = fake::ContextOf(stream);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const auto number = reinterpret_cast<uintptr_t>(context);
  if (stream == CU_STREAM_PER_THREAD) {
    *id = number ^ reinterpret_cast<uintptr_t>(&thread);
  } else if (stream == nullptr || stream == CU_STREAM_LEGACY) {
    *id = number;
  } else {
    *id = fake::kLogs ? stream->id : reinterpret_cast<uintptr_t>(stream);
  }
  return CUDA_SUCCESS;
}

CUresult cuStreamGetGreenCtx(CUstream, CUgreenCtx* context) {
  *context = nullptr;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream, unsigned* flags) {
  *flags = CU_STREAM_NON_BLOCKING;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream, int* priority) {
  *priority = 0;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard<std::recursive_mutex> lock(fake::mutex);
  if (fake::destroyed.empty()) fake::destroyed.push_back(new CUstream_st);
  *stream = fake::destroyed.back();
  fake::destroyed.pop_back();
  static unsigned long long count = 0;
  **stream = {Current(), ++count, nullptr, nullptr};
  return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}

CUresult cuStreamDestroy(CUstream stream) {
  const std::lock_guard<std::recursive_mutex> lock(fake::mutex);
  fake::destroyed.push_back(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamQuery(CUstream) { return CUDA_SUCCESS; }

// All work is done when it is asked for.
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }

CUresult cuEventCreate(CUevent* event, unsigned) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *event = new CUevent_st{std::chrono::steady_clock::now()};
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
  delete event;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream) {
  event->time = std::chrono::steady_clock::now();
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent) { return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(fake::capture_mode, *mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = fake::UnderCapture(stream) != nullptr ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                  : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  stream->last = nullptr;
  return cuGraphCreate(&stream->graph, 0);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  if (fake::UnderCapture(stream) == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  *graph = stream->graph;
  stream->graph = nullptr;
  return CUDA_SUCCESS;
}

}  // extern "C"
