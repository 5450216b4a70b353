#include "xla/running_call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "xla/xla_errors.h"

namespace xla_calls {

namespace {

constexpr size_t kHostAlignment = 64;  // of scratch memory
constexpr int32_t kHost = 1;           // DLPack's device types
constexpr int32_t kCuda = 2;

thread_local RunningCall* t_call = nullptr;

}  // namespace

RunningCall::RunningCall(const Api* api, ExecutionContext* context, bool is_host)
    : api_(api), context_(context), is_host_(is_host), lists_(TakeLists()), outer_(t_call) {
  t_call = this;
}

RunningCall::~RunningCall() {
  // The call may have ended with a C++ exception.
  if (!lists_->scratch.empty() && !GiveBack()) PyErr_WriteUnraisable(nullptr);
  t_call = outer_;
  for (const auto& [array, close] : lists_->open) close(array.get());
  GiveLists(std::move(lists_));
}

RunningCall* RunningCall::Current() { return t_call; }

bool RunningCall::Open() {
  device_ = {is_host_ ? kHost : kCuda, 0};
  if (is_host_) return true;
  StreamArguments stream = {sizeof(StreamArguments), nullptr, context_, nullptr};
  OrdinalArguments ordinal = {sizeof(OrdinalArguments), nullptr, context_, 0};
  Error* error = api_->stream(&stream);
  if (error != nullptr) {
    PyErr_Format(PyExc_RuntimeError, "XLA does not provide the stream of the call: %s",
                 TakeText(*api_, error).c_str());
    return false;
  }
  if (api_->size < offsetof(Api, ordinal) + sizeof(void*) || api_->ordinal == nullptr) {
    PyErr_SetString(PyExc_RuntimeError,
                    "this version of XLA does not provide the device of the call: use a newer JAX");
    return false;
  }
  error = api_->ordinal(&ordinal);
  if (error != nullptr) {
    PyErr_Format(PyExc_RuntimeError, "XLA does not provide the device of the call: %s",
                 TakeText(*api_, error).c_str());
    return false;
  }
  stream_ = stream.stream;
  device_.device_id = ordinal.ordinal;
  return true;
}

bool RunningCall::GiveBack() {
  if (lists_->scratch.empty()) return true;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  std::string text;
  for (const Scratch& one : lists_->scratch) {
    if (is_host_) {
      std::free(one.data);
      continue;
    }
    // Later work in the stream may use it.
    FreeArguments arguments = {sizeof(FreeArguments), nullptr, context_, one.bytes, one.data};
    Error* error = api_->free(&arguments);
    if (error != nullptr) text = TakeText(*api_, error);
  }
  lists_->scratch.clear();
  if (!text.empty()) {
    PyErr_Format(PyExc_RuntimeError, "XLA cannot free scratch memory: %s", text.c_str());
    if (type != nullptr) PyErr_WriteUnraisable(nullptr);
  }
  if (type != nullptr) PyErr_Restore(type, value, trace);
  return text.empty();
}

void* RunningCall::Allocate(size_t bytes, std::string* why) {
  const size_t alignment = is_host_ ? kHostAlignment : kMostAlignment;
  const size_t wanted = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* data = nullptr;
  if (is_host_) {
    data = std::aligned_alloc(alignment, wanted);
    if (data == nullptr) *why = "the host has no more memory";
  } else {
    AllocateArguments arguments = {
        sizeof(AllocateArguments), nullptr, context_, wanted, alignment, nullptr};
    Error* error = api_->allocate(&arguments);
    if (error != nullptr) {
      *why = TakeText(*api_, error);
      return nullptr;
    }
    data = arguments.data;
    if (data == nullptr) *why = "it gave a null pointer";
  }
  if (data != nullptr) lists_->scratch.push_back({data, wanted});
  return data;
}

char* RunningCall::AllocateArray(DLDataType dtype, int32_t ndim, const int64_t* shape, size_t bytes,
                                 std::string* why) {
  for (Result& result : lists_->results) {
    if (!result.is_taken && result.ndim == ndim &&
        std::memcmp(&result.dtype, &dtype, sizeof dtype) == 0 &&
        std::equal(shape, shape + ndim, result.dims)) {
      result.is_taken = true;
      return result.data;
    }
  }
  return static_cast<char*>(Allocate(bytes, why));
}

}  // namespace xla_calls
