// CUPTI's activities, as a test wants them: the records are those of CUPTI's own header.
#include <cupti.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

CUpti_BuffersCallbackRequestFunc request;
CUpti_BuffersCallbackCompleteFunc complete;
uint8_t* buffer;
size_t room, filled, dropped;
CUptiResult answer = CUPTI_SUCCESS;
bool is_on;

uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000 + uint64_t(now.tv_nsec);
}

}  // namespace

extern "C" {

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc one,
                                           CUpti_BuffersCallbackCompleteFunc two) {
  request = one;
  complete = two;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  is_on = kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  return answer;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind) {
  is_on = false;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (buffer != nullptr && flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) {
    complete(nullptr, 0, buffer, room, filled);
    buffer = nullptr;
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* from, size_t valid, CUpti_Activity** record) {
  uint8_t* const last = reinterpret_cast<uint8_t*>(*record);
  uint8_t* const next = last == nullptr ? from : last + sizeof(CUpti_ActivityKernel9);
  if (next + sizeof(CUpti_ActivityKernel9) > from + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* count) {
  *count = dropped;
  dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t* time) {
  *time = Now();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
  return CUPTI_SUCCESS;
}

// A kernel ran: it began some nanoseconds from now.
void ran(const char* name, int grid, int block, int shared, int registers, int later, int long_) {
  if (!is_on) return;
  if (buffer == nullptr) {
    size_t most = 0;
    request(&buffer, &room, &most);
    filled = 0;
  }
  CUpti_ActivityKernel9 one;
  std::memset(&one, 0, sizeof one);
  one.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  one.registersPerThread = uint16_t(registers);
  one.start = Now() + uint64_t(later);
  one.end = one.start + uint64_t(long_);
  one.streamId = 7;
  one.gridX = grid;
  one.gridY = one.gridZ = 1;
  one.blockX = block;
  one.blockY = one.blockZ = 1;
  one.staticSharedMemory = 48;
  one.dynamicSharedMemory = shared;
  one.localMemoryPerThread = 16;
  one.name = name;
  std::memcpy(buffer + filled, &one, sizeof one);
  filled += sizeof one;
}

void drop(size_t count) { dropped = count; }
void refuse(int code) { answer = CUptiResult(code); }
}
