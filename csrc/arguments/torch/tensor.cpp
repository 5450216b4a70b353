#include "arguments/torch/tensor.h"

#include <utility>

#include "python/upcalls.h"

TorchBits g_torch_bits = {};

namespace {

// Some torch modes prevent making the plain tensor that the search for the bits needs. The search
// is then repeated later, at most this many times.
int g_attempts_left = 32;
bool is_used = true;
TorchBits put_aside = {};  // the bits while is_used is false
thread_local bool g_was_refused = false;

}  // namespace

void UseTorchBits(bool use) {
  if (use == std::exchange(is_used, use)) return;
  ReadTorchInPlace(use);
  if (use) {
    g_torch_bits = put_aside;
  } else {
    put_aside = g_torch_bits;
    const DLPackExchangeAPI* api = put_aside.api != nullptr ? put_aside.api : put_aside.asked_api;
    g_torch_bits = {nullptr, api, 0, 0, 0, 0, nullptr};
  }
}

void FindTorchBits(const DLPackExchangeAPI* api) {
  if (api == nullptr || g_torch_bits.api == api || g_attempts_left == 0 || !is_used) return;
  --g_attempts_left;
  g_torch_bits.asked_api = api;
  const Ref found = CallUp(Upcall::kFindTorchBits);
  unsigned long long tensor = 0;
  unsigned long long keys = 0;
  unsigned long long lazy = 0;
  unsigned long long gradient = 0;
  PyObject* forward_ad = nullptr;
  if (!found || found.get() == Py_None ||
      !PyArg_ParseTuple(found.get(), "KKKKO!", &tensor, &keys, &lazy, &gradient, &PyDict_Type,
                        &forward_ad)) {
    PyErr_Clear();
    return;
  }
  g_torch_bits = {api,
                  nullptr,
                  static_cast<size_t>(tensor),
                  static_cast<size_t>(keys),
                  lazy,
                  static_cast<size_t>(gradient),
                  Ref::Borrow(forward_ad).release()};
  const Ref layout = CallUp(Upcall::kFindTorchLayout);
  if (layout && layout.get() != Py_None) {
    UseTorchLayout(api, static_cast<size_t>(tensor), static_cast<size_t>(keys), layout.get());
  }
  PyErr_Clear();
}

TensorRead AskTensor(PyObject* tensor) {
  const Ref is_lazy = CallUp(Upcall::kIsLazy, "(O)", tensor);
  if (!is_lazy) return TensorRead::kFailed;
  return is_lazy.get() == Py_True ? TensorRead::kRefused : TensorRead::kDone;
}

CULAUNCH_RARE TensorRead FailedTensor(const DLPackExchangeAPI* api) {
  if (api != g_torch_bits.api && api != g_torch_bits.asked_api) return TensorRead::kFailed;
  // torch's own message is a C++ trace. An interrupt or a lack of memory is not an error of the
  // tensor.
  if (PyErr_ExceptionMatches(PyExc_RuntimeError) == 0 &&
      PyErr_ExceptionMatches(PyExc_BufferError) == 0 &&
      PyErr_ExceptionMatches(PyExc_TypeError) == 0 &&
      PyErr_ExceptionMatches(PyExc_ValueError) == 0) {
    return TensorRead::kFailed;
  }
  PyErr_Clear();
  return TensorRead::kRefused;
}

CULAUNCH_RARE TensorRead LookTwice(PyObject* object, const DLTensor& tensor, bool is_lazy) {
  if (is_lazy) return TensorRead::kRefused;
  if (tensor.data == nullptr) {  // correct only for an empty tensor
    bool is_empty = false;
    for (int32_t i = 0; i < tensor.ndim; ++i) is_empty = is_empty || tensor.shape[i] == 0;
    if (!is_empty) return TensorRead::kRefused;
  }
  if (g_torch_bits.asked_api == nullptr) return TensorRead::kDone;
  FindTorchBits(g_torch_bits.asked_api);
  return AskTensor(object);
}

bool IsForwardMode() {
  static PyObject* const level = PyUnicode_InternFromString("_current_level");
  if (g_torch_bits.forward_ad == nullptr) return true;
  PyObject* value = PyDict_GetItemWithError(g_torch_bits.forward_ad, level);
  const long number = value != nullptr ? PyLong_AsLong(value) : 0;
  if (PyErr_Occurred() == nullptr) return number >= 0;
  PyErr_Clear();
  return true;
}

int MayBeFollowed(PyObject* tensor) {
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  const Ref requires_grad(PyObject_GetAttr(tensor, name));
  if (!requires_grad) return -1;
  return requires_grad.get() == Py_True || IsForwardMode() ? 1 : 0;
}

bool CheckGradient(const char* what, PyObject* tensor) {
  return static_cast<bool>(CallUp(Upcall::kCheckGradient, "(sO)", what, tensor));
}

CULAUNCH_RARE void RaiseRefused(const char* what, PyObject* object) {
  const Ref text = CallUp(Upcall::kRefusal, "sO", what, object);
  if (text) PyErr_SetObject(PyExc_TypeError, text.get());
  g_was_refused = true;
}

bool WasRefused() { return std::exchange(g_was_refused, false); }
