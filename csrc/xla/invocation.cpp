#include "xla/invocation.h"

#include <culaunch/driver.h>
#include <culaunch/guard.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "driver/driver_in_use.h"
#include "driver/errors.h"
#include "xla/array.h"
#include "xla/element_types.h"

namespace xla_calls {

namespace {

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

// Enqueue work on a device. False with a Python error set.
template <class Work>
bool Enqueue(culaunch::Driver& driver, int ordinal, const char* what, Work&& work) {
  const CUresult code = WithoutGil([&] {
    const culaunch::DeviceGuard guard(driver, ordinal);
    return guard.code() != CUDA_SUCCESS ? guard.code() : work();
  });
  return Guarded<bool>("LaunchError", false, [&] {
    driver.Check(code, what);
    return true;
  });
}

}  // namespace

bool Invocation::Run() {
  const bool is_done = Call();
  return call_.GiveBack() && is_done;
}

bool Invocation::Call() {
  if (!FindCall() || !call_.Open() || !ReadResults() || !ReadArguments()) return false;
  const Ref value(PyObject_Vectorcall(target_->callable.get(), lists_.objects.data() + 1,
                                      positional_ | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                      target_->keyword_names.get()));
  // The emulator's work must be done before XLA continues.
  if (!value || (call_.is_host() && !Synchronize()) || !Collect(value.get())) return false;
  return Check() && CopyResults();
}

bool Invocation::FindCall() {
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
  PyErr_SetString(PyExc_ValueError, "the custom call does not name the function to call");
  return false;
}

bool Invocation::ReadResults() {
  const auto count = static_cast<size_t>(frame_.results.count);
  const size_t writes = target_->writes.size();
  if (static_cast<size_t>(frame_.arguments.count) != target_->array_count || count < writes) {
    PyErr_SetString(PyExc_ValueError, "the operands of the custom call do not match its function");
    return false;
  }
  returned_ = count - writes;
  lists_.results.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const XlaBuffer& buffer = *frame_.results.buffers[i];
    const DLDataType dtype = TypeOfXla(buffer.dtype);
    lists_.results.push_back({static_cast<char*>(buffer.data), dtype,
                              static_cast<int32_t>(buffer.rank), buffer.dims,
                              BytesOf(buffer, dtype), i >= returned_});
  }
  return true;
}

bool Invocation::MemoryOf(size_t index, const XlaBuffer& buffer, void** data) {
  *data = buffer.data;
  const std::vector<size_t>& writes = target_->writes;
  const auto found = std::find(writes.begin(), writes.end(), index);
  if (found == writes.end()) return true;
  const Result& result = lists_.results[returned_ + static_cast<size_t>(found - writes.begin())];
  *data = result.data;
  return result.data == buffer.data || Copy(result.data, buffer.data, result.bytes);
}

Ref Invocation::ReadArray() {
  const size_t index = lists_.inputs.size();
  const XlaBuffer& buffer = *frame_.arguments.buffers[index];
  const DLDataType dtype = TypeOfXla(buffer.dtype);
  void* data = nullptr;
  if (dtype.bits == 0) {
    PyErr_Format(PyExc_TypeError, "culaunch has no element type for XLA's type number %d",
                 buffer.dtype);
    return Ref();
  }
  if (!MemoryOf(index, buffer, &data)) return Ref();
  Ref array =
      MakeArray(data, call_.device(), dtype, static_cast<int32_t>(buffer.rank), buffer.dims);
  if (array) {
    call_.Keep(array.get(), CloseArray);
    lists_.inputs.push_back(array.get());
  }
  return array;
}

Ref Invocation::ReadSequence(long count) {
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

bool Invocation::ReadArguments() {
  const size_t count = target_->arrays.size();
  lists_.objects.assign(count + 1, nullptr);
  for (size_t i = 0; i < count; ++i) {
    const long arrays = target_->arrays[i];
    if (arrays == -1) {
      lists_.objects[i + 1] = PyTuple_GetItem(target_->values.get(), static_cast<Py_ssize_t>(i));
      continue;
    }
    Ref made = arrays == 0 ? ReadArray() : ReadSequence(arrays);
    lists_.objects[i + 1] = made.get();
    if (!made) return false;
    lists_.held.push_back(std::move(made));
  }
  const auto named = target_->keyword_names ? PyTuple_Size(target_->keyword_names.get()) : 0;
  positional_ = count - static_cast<size_t>(named);
  return true;
}

bool Invocation::Collect(PyObject* value) {
  if (IsArray(value)) {
    if (std::find(lists_.inputs.begin(), lists_.inputs.end(), value) == lists_.inputs.end()) {
      lists_.given.push_back(value);
      lists_.held.push_back(Ref::Borrow(value));
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

bool Invocation::Check() const {
  bool is_same = lists_.given.size() == returned_;
  for (size_t i = 0; is_same && i < returned_; ++i) {
    const DLTensor tensor = TensorOf(lists_.given[i]);
    const Result& result = lists_.results[i];
    is_same = tensor.ndim == result.ndim && IsDense(tensor) &&
              std::memcmp(&tensor.dtype, &result.dtype, sizeof tensor.dtype) == 0 &&
              std::equal(tensor.shape, tensor.shape + tensor.ndim, result.dims);
  }
  if (!is_same) {
    PyErr_SetString(PyExc_TypeError,
                    "the function returned different arrays than when jax.jit traced it: does it "
                    "depend on a global that has changed, or on the device?");
  }
  return is_same;
}

bool Invocation::CopyResults() {
  std::vector<const char*>& sources = lists_.sources;
  for (size_t i = 0; i < returned_; ++i) {
    const DLTensor tensor = TensorOf(lists_.given[i]);
    sources.push_back(static_cast<const char*>(tensor.data) + tensor.byte_offset);
  }
  // Save a value in the memory of another result before that result is written.
  for (size_t i = 0; i < returned_; ++i) {
    const Result& own = lists_.results[i];
    if (sources[i] == own.data || own.bytes == 0) continue;
    const bool is_elsewhere = std::none_of(
        lists_.results.begin(), lists_.results.begin() + static_cast<std::ptrdiff_t>(returned_),
        [&](const Result& one) {
          return sources[i] >= one.data && sources[i] < one.data + one.bytes;
        });
    if (is_elsewhere) continue;
    std::string why;
    void* saved = call_.Allocate(own.bytes, &why);
    if (saved == nullptr) {
      PyErr_Format(PyExc_RuntimeError,
                   "XLA cannot allocate %zu bytes of scratch memory for a result: %s", own.bytes,
                   why.c_str());
      return false;
    }
    if (!Copy(saved, sources[i], own.bytes)) return false;
    sources[i] = static_cast<const char*>(saved);
  }
  for (size_t i = 0; i < returned_; ++i) {
    const Result& own = lists_.results[i];
    if (sources[i] != own.data && !Copy(own.data, sources[i], own.bytes)) return false;
  }
  return true;
}

// Keep this thread's Python state, which holds the emulator's current context. Releasing only the
// GIL would drop it.
bool Invocation::Synchronize() const {
  culaunch::Driver* driver = CurrentDriver();
  if (driver == nullptr) return false;
  return Enqueue(*driver, call_.device().device_id, "finishing the work of a function",
                 [&] { return driver->cuStreamSynchronize(nullptr); });
}

bool Invocation::Copy(void* to, const void* from, size_t bytes) const {
  if (bytes == 0) return true;
  if (call_.is_host()) {
    std::memcpy(to, from, bytes);
    return true;
  }
  culaunch::Driver* driver = CurrentDriver();
  if (driver == nullptr) return false;
  return Enqueue(*driver, call_.device().device_id, "copying a result", [&] {
    if (driver->cuMemcpyAsync == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return driver->cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                                 reinterpret_cast<CUdeviceptr>(from), bytes,
                                 static_cast<CUstream>(call_.stream()));
  });
}

}  // namespace xla_calls
