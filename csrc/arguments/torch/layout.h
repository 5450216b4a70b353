// Reading a tensor of torch in place. Its exchange function costs 40 ns, more than all other work
// for an argument, and only returns the contents of eight words of memory.
// culaunch._launch.torch.layout finds these words. They are used only if every sample, read this
// way, equals the result of the function.
#pragma once

#include <culaunch/version.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "formats/dlpack.h"
#include "python/python.h"

// Offsets in bytes: of the Python object, of the C++ tensor, of its storage.
struct TorchLayout {
  static constexpr int kMostDimensions = 5;  // a tensor stores this many inline
  static constexpr uint16_t kTypes = 64;
  static constexpr uint32_t kWords = 8;

  // Null: the layout is not known, and the other members are invalid.
  const DLPackExchangeAPI* api = nullptr;
  size_t tensor = 0;  // in the Python object: the pointer to the tensor
  size_t keys = 0;    // the word that tells what kind of tensor it is
  size_t storage = 0;
  size_t storage_offset = 0;  // in elements
  size_t size = 0;            // how many elements
  size_t shape = 0;           // after the number of dimensions
  size_t strides = 0;
  size_t dtype = 0;               // two bytes, an index of `types`
  size_t device = 0;              // two bytes: its kind, and its index or -1
  size_t data = 0;                // in the storage
  size_t is_special = 0;          // in the storage: a byte, set if its address must be asked for
  DLDataType types[kTypes] = {};  // bits 0: not known

  // The words of plain tensors, which consist only of their memory. A tensor with another word may
  // be a lazy view, a tensor of a transformation, or a subclass with its own sizes.
  struct Plain {
    uint64_t keys;
    uint8_t device;
    int32_t device_type;  // of DLPack
  };
  Plain plain[kWords] = {};
  std::atomic<uint32_t> n_plain{0};

  // The word of a plain tensor on another device, according to torch's own names of its bits. The
  // first tensor with this word is compared with the result of the exchange function. From then on,
  // the word counts as plain.
  struct Elsewhere {
    uint64_t here;
    uint64_t there;
  };
  Elsewhere elsewhere[kWords] = {};
  uint32_t n_elsewhere = 0;
};
extern TorchLayout g_torch_layout;

template <class T>
inline T LoadAt(const void* object, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof value);
  return value;
}

// Read a C++ tensor that has the word of `plain`. False: something else about it is unusual.
inline bool ReadPlain(const TorchLayout& layout, const TorchLayout::Plain& plain,
                      const char* tensor, DLTensor* read) {
  const auto device = LoadAt<uint16_t>(tensor, layout.device);
  const auto dtype = LoadAt<uint16_t>(tensor, layout.dtype);
  const auto n_dims = LoadAt<uint64_t>(tensor, layout.shape - sizeof(uint64_t));
  const auto* storage = LoadAt<const char*>(tensor, layout.storage);
  const auto is_special = LoadAt<uint8_t>(storage, layout.is_special);
  char* data = LoadAt<char*>(storage, layout.data);
  const auto size = LoadAt<int64_t>(tensor, layout.size);
  const bool is_unusual = (dtype >= TorchLayout::kTypes) | ((device & 0xFF) != plain.device) |
                          (n_dims > TorchLayout::kMostDimensions) | (is_special != 0) |
                          (data == nullptr) | (size == 0);
  if (CULAUNCH_UNLIKELY(is_unusual)) return false;
  const DLDataType type = layout.types[dtype];
  if (CULAUNCH_UNLIKELY(type.bits == 0)) return false;
  const auto index = static_cast<int8_t>(device >> 8);
  read->data = data + LoadAt<int64_t>(tensor, layout.storage_offset) * (type.bits / 8);
  read->device = {plain.device_type, index < 0 ? 0 : index};
  read->ndim = static_cast<int32_t>(n_dims);
  read->dtype = type;
  auto* place = const_cast<char*>(tensor);
  read->shape = reinterpret_cast<int64_t*>(place + layout.shape);
  read->strides = reinterpret_cast<int64_t*>(place + layout.strides);
  read->byte_offset = 0;
  return true;
}

// The address of the first element of a plain C++ tensor that starts at the beginning of its
// memory. False: ask the tensor.
inline bool ReadTorchData(const TorchLayout& layout, const char* tensor, void** data) {
  if (layout.api == nullptr) return false;
  const auto* storage = LoadAt<const char*>(tensor, layout.storage);
  *data = LoadAt<void*>(storage, layout.data);
  return *data != nullptr && LoadAt<uint8_t>(storage, layout.is_special) == 0 &&
         LoadAt<int64_t>(tensor, layout.storage_offset) == 0;
}

// The address, type and device of a torch tensor. False if it is not plain: then its exchange
// function must be asked.
inline bool ReadInPlace(const TorchLayout& layout, PyObject* object, DLTensor* read) {
  const auto* tensor = LoadAt<const char*>(object, layout.tensor);
  if (CULAUNCH_UNLIKELY(tensor == nullptr)) return false;
  const auto keys = LoadAt<uint64_t>(tensor, layout.keys);
  const uint32_t n_plain = layout.n_plain.load(std::memory_order_acquire);
  uint32_t i = 0;
  while (i < n_plain && layout.plain[i].keys != keys) ++i;
  if (CULAUNCH_UNLIKELY(i == n_plain)) return false;
  return ReadPlain(layout, layout.plain[i], tensor, read);
}

// Use a layout that was found, a culaunch._launch.torch.layout.Layout, if it reads each of its
// samples as `api` does. `tensor` and `keys` are offsets, as in TorchLayout.
void UseTorchLayout(const DLPackExchangeAPI* api, size_t tensor, size_t keys, PyObject* found);

// Look at a tensor that was not plain, after `api` has read it. If its word equals a sample's on
// its device, later tensors of its kind are read in place.
void LearnTorchDevice(PyObject* object, const DLTensor& read);

// False: read no tensor in place until the next call with true.
void ReadTorchInPlace(bool use);
