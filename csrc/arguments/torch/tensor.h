// Reading a tensor through its framework's exchange API. torch's tensors are checked again, because
// the memory of some differs from the values that they show.
#pragma once

#include <culaunch/version.h>

#include <cstdint>
#include <cstring>

#include "arguments/torch/layout.h"
#include "formats/dlpack.h"
#include "python/python.h"

// The place of the bits that mark a lazy view (a conjugate or a negative that is not computed yet).
// Neither torch's exchange API nor DLPack reports them, and a method call costs as much as the rest
// of an argument. When the first tensor comes, culaunch._launch.torch.bits finds and verifies their
// place. Until then, and if it does not find them, the methods are called.
struct TorchBits {
  const DLPackExchangeAPI* api;        // torch's, while the place is known
  const DLPackExchangeAPI* asked_api;  // torch's, while it is not
  size_t tensor;                       // offset in the Python object of the pointer to the tensor
  size_t keys;                         // offset there of the word
  uint64_t lazy;                       // the bits in it
  size_t gradient;       // offset there of the member that is null without grad; 0: not known
  PyObject* forward_ad;  // the names of torch.autograd.forward_ad, a dict; null: not known
};
extern TorchBits g_torch_bits;

enum class TensorRead : uint8_t {
  kDone,
  kFailed,   // a Python error is set
  kRefused,  // its memory differs from what it shows: culaunch._launch.torch.tensor.problem
};

// Look for the place of torch's bits. `api` is torch's; null if this torch has none.
void FindTorchBits(const DLPackExchangeAPI* api);

// False: ask the tensors, as if the place were not found. The switch of _core.use_shortcut.
void UseTorchBits(bool use);

// Ask a torch tensor whether its memory agrees with what it shows.
TensorRead AskTensor(PyObject* tensor);

// The reaction of ReadTensor to something unusual: the exchange function failed, a bit is set, the
// place of the bits is unknown, or there is no address.
TensorRead FailedTensor(const DLPackExchangeAPI* api);
TensorRead LookTwice(PyObject* object, const DLTensor& tensor, bool is_lazy);

// Set the TypeError for a tensor that was refused; `what` names the argument. The code that catches
// it identifies it by WasRefused(), which clears the mark.
void RaiseRefused(const char* what, PyObject* object);
bool WasRefused();

// Whether a level of forward-mode gradients is open, in any thread, as far as is known.
bool IsForwardMode();

// Whether autograd may track results that are computed from a tensor: 1, 0, or -1 with a Python
// error set.
int MayBeFollowed(PyObject* tensor);

// Refuse this tensor while torch records: the result would have no derivative, and would silently
// be a constant. `what` names the argument. False with a Python error set.
bool CheckGradient(const char* what, PyObject* tensor);

// Whether a tensor that the exchange API `api` has read may require grad or have a tangent. If not,
// it need not be asked, which costs as much as reading it.
inline bool MayRequireGrad(const DLPackExchangeAPI* api, PyObject* object) {
  const TorchBits& bits = g_torch_bits;
  if (api == nullptr || api != bits.api || bits.gradient == 0) return true;
  const char* inner;
  const void* gradient;
  std::memcpy(&inner, reinterpret_cast<const char*>(object) + bits.tensor, sizeof inner);
  std::memcpy(&gradient, inner + bits.gradient, sizeof gradient);
  return gradient != nullptr;
}

inline TensorRead ReadTensor(const DLPackExchangeAPI* api, PyObject* object, DLTensor* tensor) {
  if (api == g_torch_layout.api && ReadInPlace(g_torch_layout, object, tensor)) {
    return TensorRead::kDone;
  }
  if (CULAUNCH_UNLIKELY(api->dltensor_from_py_object_no_sync(object, tensor) != 0)) {
    return FailedTensor(api);
  }
  const TorchBits& bits = g_torch_bits;
  if (CULAUNCH_UNLIKELY(api != bits.api)) {
    if (!CULAUNCH_UNLIKELY(api == bits.asked_api)) return TensorRead::kDone;
    return LookTwice(object, *tensor, false);
  }
  const char* inner;
  uint64_t keys;
  std::memcpy(&inner, reinterpret_cast<const char*>(object) + bits.tensor, sizeof inner);
  std::memcpy(&keys, inner + bits.keys, sizeof keys);
  const bool is_lazy = (keys & bits.lazy) != 0;
  if (CULAUNCH_UNLIKELY(is_lazy | (tensor->data == nullptr))) {
    return LookTwice(object, *tensor, is_lazy);
  }
  LearnTorchDevice(object, *tensor);
  return TensorRead::kDone;
}
