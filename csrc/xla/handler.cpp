#include "xla/handler.h"

#include <culaunch/driver.h>
#include <culaunch/guard.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "driver/driver_object.h"
#include "driver/errors.h"
#include "python/small_buffer.h"
#include "python/upcalls.h"
#include "xla/array.h"
#include "xla/element_types.h"
#include "xla/running_call.h"
#include "xla/target.h"

namespace xla_calls {

namespace {

std::atomic<int> g_minor{kMinor};

// XLA calls without the interpreter, on threads of its own, too.
class Gil {
 public:
  Gil() : state_(PyGILState_Ensure()) {}
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;
  ~Gil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

size_t BytesOf(const XlaBuffer& buffer, DLDataType dtype) {
  size_t bytes = dtype.bits / 8;
  for (int64_t i = 0; i < buffer.rank; ++i) bytes *= static_cast<size_t>(buffer.dims[i]);
  return bytes;
}

bool IsDense(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t dense = 1;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != dense) return false;
    dense *= tensor.shape[i];
  }
  return true;
}

// One call: false with a Python error set.
class Invocation {
 public:
  Invocation(const CallFrame& frame, bool is_host)
      : frame_(frame), call_(frame.api, frame.context, is_host) {}

  bool Run() {
    if (!FindCall() || !call_.Open() || !ReadResults() || !ReadArguments()) return false;
    const Ref value(PyObject_Vectorcall(target_->callable.get(), objects_.data() + 1,
                                        positional_ | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                        target_->keyword_names.get()));
    // The emulator's work is done when XLA goes on.
    if (!value || (call_.is_host() && !Synchronize()) || !Collect(value.get())) return false;
    return Check() && CopyResults();
  }

 private:
  bool FindCall() {
    const Attributes& attributes = frame_.attributes;
    for (int64_t i = 0; i < attributes.count; ++i) {
      const ByteSpan& name = *attributes.names[i];
      if (attributes.types[i] == kString && name.size == std::strlen(kAttribute) &&
          std::memcmp(name.data, kAttribute, name.size) == 0) {
        const auto& text = *static_cast<const ByteSpan*>(attributes.values[i]);
        target_ = FindTarget(text.data, text.size);
        return target_ != nullptr;
      }
    }
    PyErr_SetString(PyExc_ValueError, "the custom call does not say which function it calls");
    return false;
  }

  bool ReadResults() {
    const auto count = static_cast<size_t>(frame_.results.count);
    const size_t writes = target_->writes.size();
    if (static_cast<size_t>(frame_.arguments.count) != target_->array_count || count < writes) {
      PyErr_SetString(PyExc_ValueError, "the custom call has other operands than its function");
      return false;
    }
    returned_ = count - writes;
    call_.results.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const XlaBuffer& buffer = *frame_.results.buffers[i];
      const DLDataType dtype = TypeOfXla(buffer.dtype);
      call_.results.push_back({static_cast<char*>(buffer.data), dtype,
                               static_cast<int32_t>(buffer.rank), buffer.dims,
                               BytesOf(buffer, dtype), i >= returned_});
    }
    return true;
  }

  // The memory of an argument: of one that is written, that of its result, which XLA has made the
  // same.
  bool MemoryOf(size_t index, const XlaBuffer& buffer, void** data) {
    *data = buffer.data;
    const std::vector<size_t>& writes = target_->writes;
    const auto found = std::find(writes.begin(), writes.end(), index);
    if (found == writes.end()) return true;
    const Result& result = call_.results[returned_ + static_cast<size_t>(found - writes.begin())];
    *data = result.data;
    return result.data == buffer.data || Copy(result.data, buffer.data, result.bytes);
  }

  Ref ReadArray() {
    const size_t index = arrays_.size();
    const XlaBuffer& buffer = *frame_.arguments.buffers[index];
    const DLDataType dtype = TypeOfXla(buffer.dtype);
    void* data = nullptr;
    if (dtype.bits == 0) {
      PyErr_Format(PyExc_TypeError, "culaunch has no element type of XLA's number %d",
                   buffer.dtype);
      return Ref();
    }
    if (!MemoryOf(index, buffer, &data)) return Ref();
    Ref array =
        MakeArray(data, call_.device(), dtype, static_cast<int32_t>(buffer.rank), buffer.dims);
    if (array) {
      call_.Keep(array.get(), CloseArray);
      arrays_.push_back(array.get());
    }
    return array;
  }

  Ref ReadSequence(long count) {
    const bool is_list = count < 0;
    const Py_ssize_t size = is_list ? -1 - count : count;
    Ref items(is_list ? PyList_New(size) : PyTuple_New(size));
    for (Py_ssize_t i = 0; items && i < size; ++i) {
      Ref array = ReadArray();
      if (!array) return Ref();
      if (is_list) {
        PyList_SetItem(items.get(), i, array.release());
      } else {
        PyTuple_SetItem(items.get(), i, array.release());
      }
    }
    return items;
  }

  bool ReadArguments() {
    const size_t count = target_->arrays.size();
    objects_.assign(count + 1, nullptr);
    for (size_t i = 0; i < count; ++i) {
      const long arrays = target_->arrays[i];
      if (arrays == -1) {
        objects_[i + 1] = PyTuple_GetItem(target_->values.get(), static_cast<Py_ssize_t>(i));
        continue;
      }
      Ref made = arrays == 0 ? ReadArray() : ReadSequence(arrays);
      objects_[i + 1] = made.get();
      if (!made) return false;
      held_.push_back(std::move(made));
    }
    const auto named = target_->keyword_names ? PyTuple_Size(target_->keyword_names.get()) : 0;
    positional_ = count - static_cast<size_t>(named);
    return true;
  }

  // The arrays of what the function gives, in order; an argument as it came is no result.
  bool Collect(PyObject* value) {
    if (IsArray(value)) {
      if (std::find(arrays_.begin(), arrays_.end(), value) == arrays_.end()) {
        given_.push_back(value);
        held_.push_back(Ref::Borrow(value));
      }
      return true;
    }
    if (PyDict_Check(value)) {
      const Ref items(PyDict_Values(value));
      return items && Collect(items.get());
    }
    if (!PyTuple_Check(value) && !PyList_Check(value)) return true;
    const Py_ssize_t count = PySequence_Size(value);
    for (Py_ssize_t i = 0; i < count; ++i) {
      const Ref item(PySequence_GetItem(value, i));
      if (!item || !Collect(item.get())) return false;
    }
    return true;
  }

  bool Check() const {
    bool is_same = given_.size() == returned_;
    for (size_t i = 0; is_same && i < returned_; ++i) {
      const DLTensor tensor = TensorOf(given_[i]);
      const Result& result = call_.results[i];
      is_same = tensor.ndim == result.ndim && IsDense(tensor) &&
                std::memcmp(&tensor.dtype, &result.dtype, sizeof tensor.dtype) == 0 &&
                std::equal(tensor.shape, tensor.shape + tensor.ndim, result.dims);
    }
    if (!is_same) {
      PyErr_SetString(PyExc_TypeError,
                      "the function returned other arrays than when jax.jit traced it: does it "
                      "depend on a global that has changed, or on the device?");
    }
    return is_same;
  }

  // Most arrays were allocated where they belong.
  bool CopyResults() {
    std::vector<const char*> sources;
    for (size_t i = 0; i < returned_; ++i) {
      const DLTensor tensor = TensorOf(given_[i]);
      sources.push_back(static_cast<const char*>(tensor.data) + tensor.byte_offset);
    }
    // What lies in the memory of another result is saved before that is written.
    for (size_t i = 0; i < returned_; ++i) {
      const Result& own = call_.results[i];
      if (sources[i] == own.data || own.bytes == 0) continue;
      const bool is_elsewhere = std::none_of(
          call_.results.begin(), call_.results.begin() + static_cast<std::ptrdiff_t>(returned_),
          [&](const Result& one) {
            return sources[i] >= one.data && sources[i] < one.data + one.bytes;
          });
      if (is_elsewhere) continue;
      void* saved = call_.Allocate(own.bytes);
      if (saved == nullptr) {
        PyErr_SetString(PyExc_RuntimeError, "XLA has no scratch memory for a result");
        return false;
      }
      if (!Copy(saved, sources[i], own.bytes)) return false;
      sources[i] = static_cast<const char*>(saved);
    }
    for (size_t i = 0; i < returned_; ++i) {
      const Result& own = call_.results[i];
      if (sources[i] != own.data && !Copy(own.data, sources[i], own.bytes)) return false;
    }
    return true;
  }

  culaunch::Driver* CurrentDriver() const {
    const Ref current = CallUp(Upcall::kCurrentDriver);
    return current ? DriverOf(current.get()) : nullptr;
  }

  bool Synchronize() const {
    culaunch::Driver* driver = CurrentDriver();
    if (driver == nullptr) return false;
    return Enqueue(*driver, "finishing the work of a function",
                   [&] { return driver->cuStreamSynchronize(nullptr); });
  }

  bool Copy(void* to, const void* from, size_t bytes) const {
    if (bytes == 0) return true;
    if (call_.is_host()) {
      std::memcpy(to, from, bytes);
      return true;
    }
    culaunch::Driver* driver = CurrentDriver();
    if (driver == nullptr) return false;
    return Enqueue(*driver, "copying a result", [&] {
      if (driver->cuMemcpyAsync == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
      return driver->cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                                   reinterpret_cast<CUdeviceptr>(from), bytes,
                                   static_cast<CUstream>(call_.stream()));
    });
  }

  template <class Enqueued>
  bool Enqueue(culaunch::Driver& driver, const char* what, Enqueued&& enqueue) const {
    const CUresult code = WithoutGil([&] {
      const culaunch::DeviceGuard guard(driver, call_.device().device_id);
      return guard.code() != CUDA_SUCCESS ? guard.code() : enqueue();
    });
    return Guarded<bool>("LaunchError", false, [&] {
      driver.Check(code, what);
      return true;
    });
  }

  const CallFrame& frame_;
  RunningCall call_;
  const Target* target_ = nullptr;
  size_t returned_ = 0;
  size_t positional_ = 0;
  std::vector<PyObject*> objects_;  // the first is vectorcall's
  std::vector<PyObject*> arrays_;   // the arguments, one after the other
  std::vector<PyObject*> given_;
  std::vector<Ref> held_;
};

Error* MakeError(const Api* api, const char* message, int code) {
  ErrorArguments arguments = {sizeof(ErrorArguments), nullptr, message, code};
  return api->create_error(&arguments);
}

// The Python error, as XLA's.
Error* TakeError(const Api* api) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref held_type(type), held_value(value), held_trace(trace);
  const Ref name(type != nullptr ? PyObject_GetAttrString(type, "__name__") : nullptr);
  const Ref text(name ? PyUnicode_FromFormat("%U: %S", name.get(), value) : nullptr);
  const char* message = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  const bool is_mistake = PyErr_GivenExceptionMatches(type, PyExc_TypeError) != 0 ||
                          PyErr_GivenExceptionMatches(type, PyExc_ValueError) != 0;
  PyErr_Clear();
  return MakeError(api, message != nullptr ? message : "the function failed",
                   is_mistake ? kInvalidArgument : kInternal);
}

Error* Handle(const CallFrame* frame, bool is_host) {
  if (frame->extensions != nullptr && frame->extensions->type == kMetadataExtension) {
    Metadata& metadata = *reinterpret_cast<MetadataExtension*>(frame->extensions)->metadata;
    metadata.version.major = kMajor;
    metadata.version.minor = g_minor.load(std::memory_order_relaxed);
    metadata.traits = 0;  // what a call allocates is not there when a graph of it runs again
    return nullptr;
  }
  if (frame->stage != kExecute) return nullptr;
  if (Py_IsInitialized() == 0) {
    return MakeError(frame->api, "Python has ended: no function of culaunch can be called",
                     kInternal);
  }
  const Gil gil;
  const bool is_done = Guarded<bool>(nullptr, false, [&] {
    Invocation invocation(*frame, is_host);
    return invocation.Run();
  });
  return is_done ? nullptr : TakeError(frame->api);
}

Error* HandleHost(const CallFrame* frame) { return Handle(frame, true); }
Error* HandleCuda(const CallFrame* frame) { return Handle(frame, false); }

}  // namespace

PyObject* Handler(PyObject*, PyObject* args) {
  const char* platform;
  int minor;
  if (!PyArg_ParseTuple(args, "si:xla_handler", &platform, &minor)) return nullptr;
  g_minor.store(std::min(minor, kMinor), std::memory_order_relaxed);
  auto* handler = std::strcmp(platform, "cpu") == 0 ? HandleHost : HandleCuda;
  return PyCapsule_New(reinterpret_cast<void*>(handler), nullptr, nullptr);
}

}  // namespace xla_calls
