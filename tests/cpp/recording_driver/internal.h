// What the parts of the recording driver share.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "recording.h"

struct CUctx_st {
  int device;
};
struct CUstream_st {
  CUcontext context;
};
struct CUkern_st {
  recording::KernelInfo info;
  std::map<std::pair<int, int>, int> attributes;  // (device, attribute)
};
struct CUlib_st {
  std::vector<std::unique_ptr<CUkern_st>> kernels;
};

namespace recording {

extern std::recursive_mutex mutex;

// Append a line to the record.
void Write(const char* format, ...) __attribute__((format(printf, 1, 2)));

// The failure that a test asked for, once.
CUresult Failure(const char* function);

// Whether the calling thread may load while a stream is under capture.
bool IsCaptureRelaxed();

// The calling thread's context, or null.
CUcontext Current();

}  // namespace recording

#define FAIL_IF_ASKED() \
  if (const CUresult asked = recording::Failure(__func__); asked != CUDA_SUCCESS) return asked
