// A CUDA driver that runs nothing and writes down everything: two devices of sm_90, kernels read
// from PTX or cubins, launches decoded by the kernels' own parameter layout. C++ tests set
// CULAUNCH_DRIVER to it. Where the environment variable RECORDING_DRIVER_LOG names a file, the
// record is appended there as well.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace recording {

struct Param {
  size_t offset;
  size_t size;
};

struct KernelInfo {
  std::string name;
  std::vector<Param> params;
};

// The kernels of an image; false if it is neither PTX nor a cubin.
bool ReadImage(const void* image, std::vector<KernelInfo>* kernels);

}  // namespace recording

extern "C" {
// What was recorded since the last call of recording_clear, a line for each event.
const char* recording_log();
void recording_clear();
// Let the next call of a driver function fail.
void recording_fail(const char* function, int code);
// The flags that cuGetProcAddress was last asked with.
unsigned long long recording_address_flags();
}
