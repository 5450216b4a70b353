#include "arguments/torch/layout.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "python/free_threaded_lock.h"

TorchLayout g_torch_layout;

namespace {

std::mutex g_mutex;  // of the words, and of the ones that are set aside
const DLPackExchangeAPI* g_put_aside = nullptr;
bool g_is_used = true;

bool IsSame(const DLTensor& a, const DLTensor& b) {
  return a.data == b.data && a.device.device_type == b.device.device_type &&
         a.device.device_id == b.device.device_id && a.ndim == b.ndim &&
         a.dtype.code == b.dtype.code && a.dtype.bits == b.dtype.bits &&
         a.dtype.lanes == b.dtype.lanes && a.shape == b.shape && a.strides == b.strides &&
         a.byte_offset == b.byte_offset;
}

const char* TensorOf(const TorchLayout& layout, PyObject* object) {
  return LoadAt<const char*>(object, layout.tensor);
}

bool IsPlain(const TorchLayout& layout, uint64_t keys) {
  const uint32_t n = layout.n_plain.load(std::memory_order_relaxed);
  return std::any_of(layout.plain, layout.plain + n,
                     [keys](const TorchLayout::Plain& plain) { return plain.keys == keys; });
}

bool IsPlainElsewhere(const TorchLayout& layout, uint64_t keys) {
  return std::any_of(layout.elsewhere, layout.elsewhere + layout.n_elsewhere,
                     [&layout, keys](const TorchLayout::Elsewhere& one) {
                       return one.there == keys && IsPlain(layout, one.here);
                     });
}

// Take the words of a tuple of pairs.
bool TakeElsewhere(TorchLayout& layout, PyObject* words) {
  layout.n_elsewhere = 0;
  for (Py_ssize_t i = 0; i < PyTuple_Size(words); ++i) {
    unsigned long long here, there;
    if (i == TorchLayout::kWords ||
        !PyArg_ParseTuple(PyTuple_GetItem(words, i), "KK", &here, &there)) {
      return false;
    }
    layout.elsewhere[layout.n_elsewhere++] = {here, there};
  }
  return true;
}

// Note the word and the type of a sample that `read` describes.
bool Note(TorchLayout& layout, PyObject* sample, const DLTensor& read) {
  const char* tensor = TensorOf(layout, sample);
  const auto keys = LoadAt<uint64_t>(tensor, layout.keys);
  const auto dtype = LoadAt<uint16_t>(tensor, layout.dtype);
  if (dtype >= TorchLayout::kTypes || read.dtype.lanes != 1 || read.dtype.bits % 8 != 0) {
    return false;
  }
  layout.types[dtype] = read.dtype;
  if (IsPlain(layout, keys)) return true;
  const uint32_t n = layout.n_plain.load(std::memory_order_relaxed);
  if (n == TorchLayout::kWords) return false;
  layout.plain[n] = {keys, LoadAt<uint8_t>(tensor, layout.device), read.device.device_type};
  layout.n_plain.store(n + 1, std::memory_order_release);
  return true;
}

bool IsReadRight(TorchLayout& layout, const DLPackExchangeAPI* api, PyObject* readable) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(readable); ++i) {
    PyObject* sample = PyTuple_GetItem(readable, i);
    DLTensor told = {};
    DLTensor read = {};
    if (api->dltensor_from_py_object_no_sync(sample, &told) != 0 || !Note(layout, sample, told) ||
        !ReadInPlace(layout, sample, &read) || !IsSame(told, read)) {
      return false;
    }
  }
  return true;
}

bool IsNoneRead(const TorchLayout& layout, PyObject* others) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(others); ++i) {
    DLTensor read = {};
    if (ReadInPlace(layout, PyTuple_GetItem(others, i), &read)) return false;
  }
  return true;
}

}  // namespace

void UseTorchLayout(const DLPackExchangeAPI* api, size_t tensor, size_t keys, PyObject* found) {
  TorchLayout& layout = g_torch_layout;
  PyObject *readable, *others, *words;
  const FreeThreadedLock lock(g_mutex);
  if (layout.api != nullptr || g_put_aside != nullptr) return;
  layout.n_plain.store(0, std::memory_order_relaxed);
  layout.tensor = tensor;
  layout.keys = keys;
  if (!PyArg_ParseTuple(found, "nnnnnnnnnO!O!O!", &layout.storage, &layout.storage_offset,
                        &layout.size, &layout.shape, &layout.strides, &layout.dtype, &layout.device,
                        &layout.data, &layout.is_special, &PyTuple_Type, &readable, &PyTuple_Type,
                        &others, &PyTuple_Type, &words) ||
      !TakeElsewhere(layout, words) || !IsReadRight(layout, api, readable) ||
      !IsNoneRead(layout, others)) {
    PyErr_Clear();
    return;
  }
  (g_is_used ? layout.api : g_put_aside) = api;
}

CULAUNCH_RARE void LearnTorchDevice(PyObject* object, const DLTensor& read) {
  TorchLayout& layout = g_torch_layout;
  const FreeThreadedLock lock(g_mutex);
  const uint32_t n = layout.n_plain.load(std::memory_order_relaxed);
  if (layout.api == nullptr || n == TorchLayout::kWords) return;
  const char* tensor = TensorOf(layout, object);
  if (tensor == nullptr) return;
  const auto keys = LoadAt<uint64_t>(tensor, layout.keys);
  if (IsPlain(layout, keys) || !IsPlainElsewhere(layout, keys)) return;
  // Other threads use an entry as soon as it is counted, so check it first.
  const TorchLayout::Plain learned = {keys, LoadAt<uint8_t>(tensor, layout.device),
                                      read.device.device_type};
  DLTensor again = {};
  if (ReadPlain(layout, learned, tensor, &again) && IsSame(read, again)) {
    layout.plain[n] = learned;
    layout.n_plain.store(n + 1, std::memory_order_release);
  }
}

void ReadTorchInPlace(bool use) {
  const FreeThreadedLock lock(g_mutex);
  if (use == std::exchange(g_is_used, use)) return;
  std::swap(g_torch_layout.api, g_put_aside);
}
