// Declarations that the parts of the fake driver share.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fake_driver.h"

#ifndef FAKE_DRIVER_LOG
#define FAKE_DRIVER_LOG 1
#endif

struct CUctx_st {
  int device;
};

namespace fake {

constexpr bool kLogs = FAKE_DRIVER_LOG != 0;
// With the log, a handle is not an ordinal, so a test notices if they are confused. The second
// device has less shared memory.
constexpr int kDevices = kLogs ? 2 : 1;
constexpr int kFirstHandle = kLogs ? 100 : 0;
constexpr int kStaticShared = kLogs ? 1024 : 0;
constexpr int kMaxThreads = kLogs ? 512 : 1024;
constexpr size_t kMemoryBytes = size_t{80} << 30;

struct Param {
  size_t offset;
  size_t size;
};

struct KernelInfo {
  std::string name;
  std::vector<Param> params;
};

struct Kernel;

// A CUkernel and a CUfunction point to one of these. With the log, a CUfunction has one context.
struct Handle {
  Kernel* kernel;
  CUcontext context;  // null: a CUkernel, of all of them
};

struct Kernel {
  explicit Kernel(KernelInfo own_info = {}) : info(std::move(own_info)) {}
  Kernel(const Kernel&) = delete;

  Handle handle = {this, nullptr};
  KernelInfo info;
  std::map<std::pair<int, int>, int> attributes;           // (device, attribute)
  void* library = nullptr;                                 // the last that it was loaded with
  std::map<CUcontext, std::unique_ptr<Handle>> functions;  // see Handle
};

extern std::recursive_mutex mutex;

// The kernels of an image; false if it is neither PTX nor a cubin.
bool ReadImage(const void* image, std::vector<KernelInfo>* kernels);

// Append a line to the log, if there is one.
void Write(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Count a call of a function of the table; the failure that a test asked for, once.
CUresult Enter(const char* function, uint64_t* calls);

// Whether the calling thread may load while a stream is under capture.
bool IsCaptureRelaxed();

// How many devices there are: kDevices, or as many as FAKE_DRIVER_DEVICES sets.
int Devices();

// The calling thread's context or null, the primary context of a device, and a stream's context.
CUcontext Current();
CUcontext Primary(int ordinal);
CUcontext ContextOf(CUstream stream);

// Check a launch as a driver does, and write the line for it. The function must belong to the
// context.
CUresult LaunchIn(CUcontext context, const CUlaunchConfig& config, const Handle& function,
                  void** arguments);

// If a stream is under capture: make a launch a node of its graph, give how that went, and true.
bool Capture(CUstream stream, const CUlaunchConfig& config, CUfunction function, void** arguments,
             CUresult* code);
bool IsCapturing(CUstream stream);
// The node for it, after the last one of the stream.
CUresult CaptureKernel(CUgraph graph, CUgraphNode* last, const CUlaunchConfig& config,
                       CUfunction function, void** arguments);

inline Handle& HandleOf(CUfunction function) { return *reinterpret_cast<Handle*>(function); }
inline Kernel& KernelOf(CUkernel kernel) { return *reinterpret_cast<Handle*>(kernel)->kernel; }
inline Kernel& KernelOf(CUfunction function) { return *HandleOf(function).kernel; }
int KernelAttribute(const Kernel& kernel, int attribute, int ordinal);

}  // namespace fake
