#include "xla/running_call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace xla_calls {

namespace {

constexpr size_t kAlignment = 64;  // of scratch memory
constexpr int32_t kHost = 1;       // DLPack's device types
constexpr int32_t kCuda = 2;

thread_local RunningCall* t_call = nullptr;

}  // namespace

RunningCall::RunningCall(const Api* api, ExecutionContext* context, bool is_host)
    : api_(api), context_(context), is_host_(is_host), outer_(t_call) {
  t_call = this;
}

RunningCall::~RunningCall() {
  t_call = outer_;
  for (const auto& [array, close] : arrays_) close(array.get());
  for (const Scratch& one : scratch_) {
    if (is_host_) {
      std::free(one.data);
    } else {
      // What comes after in the stream may have it.
      FreeArguments arguments = {sizeof(FreeArguments), nullptr, context_, one.bytes, one.data};
      Destroy(api_->free(&arguments));
    }
  }
}

RunningCall* RunningCall::Current() { return t_call; }

void RunningCall::Destroy(Error* error) const {
  if (error == nullptr) return;
  DestroyArguments arguments = {sizeof(DestroyArguments), nullptr, error};
  api_->destroy_error(&arguments);
}

bool RunningCall::Open() {
  device_ = {is_host_ ? kHost : kCuda, 0};
  if (is_host_) return true;
  StreamArguments stream = {sizeof(StreamArguments), nullptr, context_, nullptr};
  Error* error = api_->stream(&stream);
  OrdinalArguments ordinal = {sizeof(OrdinalArguments), nullptr, context_, 0};
  const bool knows_ordinal =
      api_->size >= offsetof(Api, ordinal) + sizeof(void*) && api_->ordinal != nullptr;
  if (error == nullptr && knows_ordinal) error = api_->ordinal(&ordinal);
  if (error != nullptr || !knows_ordinal) {
    Destroy(error);
    PyErr_SetString(PyExc_RuntimeError,
                    "XLA does not say in which stream of which device it calls");
    return false;
  }
  stream_ = stream.stream;
  device_.device_id = ordinal.ordinal;
  return true;
}

void* RunningCall::Allocate(size_t bytes) {
  const size_t wanted = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  void* data = nullptr;
  if (is_host_) {
    data = std::aligned_alloc(kAlignment, wanted);
  } else {
    AllocateArguments arguments = {
        sizeof(AllocateArguments), nullptr, context_, wanted, kAlignment, nullptr};
    Destroy(api_->allocate(&arguments));
    data = arguments.data;
  }
  if (data != nullptr) scratch_.push_back({data, wanted});
  return data;
}

char* RunningCall::AllocateArray(DLDataType dtype, int32_t ndim, const int64_t* shape,
                                 size_t bytes) {
  for (Result& result : results) {
    if (!result.is_taken && result.ndim == ndim &&
        std::memcmp(&result.dtype, &dtype, sizeof dtype) == 0 &&
        std::equal(shape, shape + ndim, result.dims)) {
      result.is_taken = true;
      return result.data;
    }
  }
  return static_cast<char*>(Allocate(bytes));
}

}  // namespace xla_calls
