#include "profile/context_clock.h"

namespace profile {

CUevent ContextClock::Make() const {
  CUevent event = nullptr;
  return driver_.cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS ? event : nullptr;
}

bool ContextClock::IsAlive() const {
  if (driver_.cuCtxGetId == nullptr) return true;
  unsigned long long id = 0;
  return driver_.cuCtxGetId(context_, &id) == CUDA_SUCCESS && id == id_;
}

bool ContextClock::TakeEvents(LaunchRecord* record) {
  for (CUevent* place : {&record->start, &record->end}) {
    if (free_.empty()) {
      *place = Make();
    } else {
      *place = free_.back();
      free_.pop_back();
    }
  }
  if (record->start != nullptr && record->end != nullptr) return true;
  GiveBack(record);
  return false;
}

void ContextClock::GiveBack(LaunchRecord* record) {
  for (CUevent* place : {&record->start, &record->end}) {
    if (*place != nullptr) free_.push_back(*place);
    *place = nullptr;
  }
}

void ContextClock::Begin(CUstream stream) {
  if (first_ != nullptr) return;
  first_ = Make();
  if (first_ != nullptr && driver_.cuEventRecord(first_, stream) != CUDA_SUCCESS) {
    driver_.cuEventDestroy(first_);
    first_ = nullptr;
  }
}

bool ContextClock::Read(LaunchRecord* record) {
  CUresult code = driver_.cuEventQuery(record->end);
  if (code == CUDA_ERROR_NOT_READY) return false;
  float taken = 0;
  float begin = 0;
  if (code == CUDA_SUCCESS) code = driver_.cuEventElapsedTime(&taken, record->start, record->end);
  if (code == CUDA_SUCCESS) {
    record->device_time = static_cast<double>(taken);
    record->time = TimeState::kTimed;
    if (first_ != nullptr &&
        driver_.cuEventElapsedTime(&begin, first_, record->start) == CUDA_SUCCESS) {
      record->device_begin = static_cast<double>(begin);
    }
  } else {
    record->code = code;
    record->time = TimeState::kLost;
  }
  GiveBack(record);
  return true;
}

void ContextClock::Destroy() {
  if (first_ != nullptr) free_.push_back(first_);
  for (const CUevent event : free_) driver_.cuEventDestroy(event);
  first_ = nullptr;
  free_.clear();
}

}  // namespace profile
