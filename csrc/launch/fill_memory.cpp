#include "launch/fill_memory.h"

#include <culaunch/graph_node.h>
#include <culaunch/guard.h>
#include <culaunch/launch_recorder.h>

#include <cstring>

CUresult FillMemory(culaunch::Driver& driver, DLDevice device, CUstream stream, const void* begin,
                    unsigned char value, size_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  const auto address = reinterpret_cast<CUdeviceptr>(begin);
  if (CULAUNCH_UNLIKELY(driver.graphs.IsRecording())) {
    if (culaunch::LaunchRecorder* recorder = culaunch::LaunchRecorder::Current()) {
      return recorder->TakeNode(
          culaunch::GraphNode::Fill(device.device_id, address, value, 1, bytes));
    }
  }
  const culaunch::DeviceGuard guard(driver, device.device_id);
  if (guard.code() != CUDA_SUCCESS) return guard.code();
  if (driver.note_array != nullptr && device.device_type == culaunch::kDLCPU) {
    // An emulated device's memory is the host's: a framework's array is not one of its allocations.
    const CUresult code = driver.cuStreamSynchronize(stream);
    if (code == CUDA_SUCCESS) std::memset(const_cast<void*>(begin), value, bytes);
    return code;
  }
  return driver.cuMemsetD8Async(address, value, bytes, stream);
}
