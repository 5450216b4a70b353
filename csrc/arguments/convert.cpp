#include "arguments/convert.h"

#include <cmath>

#include "arguments/torch/tensor.h"
#include "arguments/types/rules.h"
#include "arguments/views/storage.h"
#include "formats/half.h"
#include "python/numbers.h"

namespace {

bool SameType(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

long long PackedType(DLDataType type) {
  return type.code | static_cast<long long>(type.bits) << 8 |
         static_cast<long long>(type.lanes) << 16;
}

Mismatch StorePointer(Conversion& conversion, const ParameterSlot& slot, void* data,
                      DLDataType type, unsigned char* target) {
  if (CULAUNCH_UNLIKELY(slot.type.bits != 0 && type.bits != 0 && !SameType(slot.type, type))) {
    conversion.detail = PackedType(type);
    return Mismatch::kElement;
  }
  std::memcpy(target, &data, sizeof data);
  return Mismatch::kNone;
}

Mismatch ConvertPointer(Conversion& conversion, const ParameterSlot& slot, const TypeEntry& entry,
                        PyObject* object, unsigned char* target) {
  ArrayData array;
  const Mismatch mismatch = ReadArgumentArray(conversion, entry, object, &array);
  if (CULAUNCH_UNLIKELY(mismatch != Mismatch::kNone)) return mismatch;
  // Only arrays of kind kArray report this.
  if (CULAUNCH_UNLIKELY(entry.kind == ArgumentKind::kArray) && conversion.is_read_only &&
      slot.may_write) {
    return Mismatch::kReadOnly;
  }
  return StorePointer(conversion, slot, array.data, array.dtype, target);
}

// Whether a value, negative or with all 64 bits in use, fits an integer of this many bytes.
bool FitsSigned(long long value, size_t size) {
  if (size == 8) return true;
  const long long limit = 1LL << (size * 8 - 1);
  return value >= -limit && value < limit;
}

bool FitsUnsigned(unsigned long long value, size_t size) {
  return size == 8 || value < 1ULL << (size * 8);
}

Mismatch ConvertInt(const ParameterSlot& slot, PyObject* object, unsigned char* target) {
  const TypeClass type = slot.type_class;
  int64_t value = 0;
  const IntRange range = ReadInt(object, &value);
  if (range == IntRange::kSigned) {
    const bool fits =
        (value < 0 || type == TypeClass::kSigned)
            ? FitsSigned(value, slot.size) &&
                  !(value < 0 && (type == TypeClass::kUnsigned || type == TypeClass::kPointer))
            : FitsUnsigned(static_cast<unsigned long long>(value), slot.size);
    if (!fits) return Mismatch::kOverflow;
    std::memcpy(target, &value, slot.size);  // little-endian: the low bytes
    return Mismatch::kNone;
  }
  if (range == IntRange::kTooLarge || slot.size != 8 || type == TypeClass::kSigned) {
    return Mismatch::kOverflow;
  }
  std::memcpy(target, &value, sizeof value);
  return Mismatch::kNone;
}

template <class T>
Mismatch StoreNarrow(double value, T narrow, bool is_finite, unsigned char* target) {
  if (std::isfinite(value) && !is_finite) return Mismatch::kOverflow;
  std::memcpy(target, &narrow, sizeof narrow);
  return Mismatch::kNone;
}

Mismatch ConvertFloat(const ParameterSlot& slot, PyObject* object, unsigned char* target) {
  const bool is_known = slot.type_class == TypeClass::kFloat;
  const double value = ReadFloat(object);
  if (slot.size == sizeof value) {
    std::memcpy(target, &value, sizeof value);
    return Mismatch::kNone;
  }
  if (slot.size == sizeof(float)) {
    const auto narrow = static_cast<float>(value);
    return StoreNarrow(value, narrow, std::isfinite(narrow), target);
  }
  if (!is_known || slot.type.bits == 0) return Mismatch::kAmbiguous;
  if (slot.type.code == kDLBfloat) {
    const uint16_t bits = Bfloat16Bits(value);
    return StoreNarrow(value, bits, (bits & 0x7f80) != 0x7f80, target);
  }
  const uint16_t bits = Float16Bits(value);
  return StoreNarrow(value, bits, (bits & 0x7c00) != 0x7c00, target);
}

// Whether a typed scalar of the right kind has exactly the parameter's type: float16 is not
// bfloat16.
bool IsOfType(const ParameterSlot& slot, const TypeEntry& entry) {
  const bool is_float =
      slot.type_class == TypeClass::kFloat || slot.type_class == TypeClass::kFloat8;
  return !is_float || slot.type.bits == 0 || slot.type.code == entry.scalar_type.code;
}

// The bytes of a NumPy or ctypes object.
Mismatch ConvertBytes(Conversion& conversion, const ParameterSlot& slot, const TypeEntry& entry,
                      PyObject* object, unsigned char* target) {
  if (!IsOfType(slot, entry)) return Mismatch::kKind;
  Ref bytes;  // some NumPy scalars (ml_dtypes) export no buffer
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) != 0) {
    PyErr_Clear();
    bytes = Ref(PyObject_CallMethod(object, "tobytes", nullptr));
    if (!bytes || PyObject_GetBuffer(bytes.get(), &view, PyBUF_SIMPLE) != 0) {
      return Mismatch::kPython;
    }
  }
  Mismatch mismatch = Mismatch::kNone;
  if (static_cast<size_t>(view.len) != slot.size) {
    conversion.detail = view.len;
    mismatch = Mismatch::kSize;
  } else {
    std::memcpy(target, view.buf, slot.size);
  }
  PyBuffer_Release(&view);
  // A signed number for an unsigned parameter (such as an address), or the reverse: the value must
  // fit both.
  const bool differs =
      entry.scalar_class == TypeClass::kSigned
          ? slot.type_class == TypeClass::kUnsigned || slot.type_class == TypeClass::kPointer
          : entry.scalar_class == TypeClass::kUnsigned && slot.type_class == TypeClass::kSigned;
  if (mismatch == Mismatch::kNone && differs && (target[slot.size - 1] & 0x80) != 0) {
    return Mismatch::kOverflow;
  }
  return mismatch;
}

// Takes() has already accepted the kind of object.
Mismatch Dispatch(Conversion& conversion, const ParameterSlot& slot, const TypeEntry& entry,
                  PyObject* object, unsigned char* target) {
  switch (entry.kind) {
    case ArgumentKind::kExchange:
    case ArgumentKind::kCupy:
    case ArgumentKind::kArray:
      return ConvertPointer(conversion, slot, entry, object, target);
    case ArgumentKind::kInt:
      return ConvertInt(slot, object, target);
    case ArgumentKind::kFloat:
      return ConvertFloat(slot, object, target);
    case ArgumentKind::kScalar:
    case ArgumentKind::kStructure:
      return ConvertBytes(conversion, slot, entry, object, target);
    case ArgumentKind::kBool:
      *target = object == Py_True ? 1 : 0;
      return Mismatch::kNone;
    case ArgumentKind::kNone:
      std::memset(target, 0, sizeof(void*));
      return Mismatch::kNone;
    case ArgumentKind::kUnsupported:
      break;
  }
  return Mismatch::kUnsupported;
}

// The first object of its type for this parameter.
CULAUNCH_RARE Mismatch ConvertNewType(Conversion& conversion, ParameterSlot& slot, PyObject* object,
                                      unsigned char* target) {
  TypeEntry scratch;
  const TypeEntry* entry = LookUpObject(object, &scratch);
  if (entry == nullptr) return Mismatch::kPython;
  if (!Takes(slot.type_class, slot.size, *entry)) {
    return entry->kind == ArgumentKind::kUnsupported ? Mismatch::kUnsupported : Mismatch::kKind;
  }
  // Store only the entry of an accepted type, because its objects are not checked again.
  if (entry != &scratch) slot.last.store(entry, std::memory_order_release);
  return Dispatch(conversion, slot, *entry, object, target);
}

}  // namespace

CULAUNCH_APART void Conversion::TellOfNoted() const {
  driver.note_array(nullptr, 0, culaunch::kNoteLaunch);
  if (noted == nullptr) return;
  for (const auto& [begin, bytes, note] : *noted) driver.note_array(begin, bytes, note);
}

CULAUNCH_APART void Conversion::NoteMemory(const Extent& extent, PyObject* object,
                                           bool is_read_only) {
  using namespace culaunch;
  if (noted == nullptr) noted = std::make_unique<std::vector<NotedMemory>>();
  noted->push_back({extent.begin, extent.bytes, is_read_only ? kNoteReadOnlyArray : kNoteArray});
  const Storage storage = object != nullptr ? StorageOf(object, extent) : Storage();
  if (storage.extent.bytes == 0) return;
  is_read_only = is_read_only || storage.is_read_only;
  noted->push_back({storage.extent.begin, storage.extent.bytes,
                    is_read_only ? kNoteReadOnlyStorage : kNoteStorage});
}

const char* MismatchName(Mismatch mismatch) {
  static const char* const names[] = {"",       "",         "unsupported", "kind",
                                      "size",   "overflow", "ambiguous",   "element",
                                      "memory", "device",   "read_only",   "tensor"};
  return names[static_cast<int>(mismatch)];
}

namespace {

// An argument of a rare kind.
CULAUNCH_APART Mismatch ConvertOne(Conversion& conversion, ParameterSlot& slot, PyObject* object,
                                   unsigned char* target) {
  const TypeEntry* entry = slot.last.load(std::memory_order_acquire);
  if (entry != nullptr && entry->type == Py_TYPE(object)) {
    // Test the most common kinds first: a switch's indirect jump is rarely predicted after a
    // launch.
    if (entry->kind == ArgumentKind::kExchange) {
      return ConvertPointer(conversion, slot, *entry, object, target);
    }
    if (entry->kind == ArgumentKind::kInt) return ConvertInt(slot, object, target);
    return Dispatch(conversion, slot, *entry, object, target);
  }
  return ConvertNewType(conversion, slot, object, target);
}

}  // namespace

// The usual call, whose arguments have the same types as in the last call: tensors of one device,
// ints and floats. A launch leaves the processor's caches and branch predictor to the driver.
// Therefore this path is short and straight, and unusual arguments take another one.
Mismatch ConvertAll(Conversion& conversion, ParameterSlot* slots, PyObject* const* args,
                    size_t count, unsigned char* block, void** pointers, size_t* index) {
  const bool is_noted = conversion.driver.note_array != nullptr;
  for (size_t i = 0; i < count; ++i) {
    ParameterSlot& slot = slots[i];
    PyObject* object = args[i];
    unsigned char* target = block + slot.offset;
    pointers[i] = target;
    const TypeEntry* entry = slot.last.load(std::memory_order_acquire);
    if (!CULAUNCH_UNLIKELY(entry == nullptr || entry->type != Py_TYPE(object))) {
      if (entry->kind == ArgumentKind::kExchange) {
        DLTensor tensor;
        const TensorRead read = ReadTensor(entry->api, object, &tensor);
        if (CULAUNCH_UNLIKELY(read != TensorRead::kDone)) return *index = i, MismatchOf(read);
        const int differs = (tensor.device.device_type ^ conversion.first.device_type) |
                            (tensor.device.device_id ^ conversion.first.device_id) |
                            static_cast<int>(!conversion.has_array);
        if (CULAUNCH_UNLIKELY(differs != 0)) {
          const Mismatch mismatch = SeeTensor(conversion, *entry, tensor.device);
          if (CULAUNCH_UNLIKELY(mismatch != Mismatch::kNone)) return *index = i, mismatch;
        }
        if (CULAUNCH_UNLIKELY(is_noted)) conversion.NoteArray(ExtentOf(tensor), object);
        const Mismatch mismatch =
            StorePointer(conversion, slot, static_cast<char*>(tensor.data) + tensor.byte_offset,
                         tensor.dtype, target);
        if (CULAUNCH_UNLIKELY(mismatch != Mismatch::kNone)) return *index = i, mismatch;
        continue;
      }
      int64_t value;
      if (entry->kind == ArgumentKind::kInt && slot.size == 4 &&
          slot.type_class == TypeClass::kSigned && ReadSmallInt(object, &value)) {
        const auto narrow = static_cast<int32_t>(value);  // 30 bits are read
        std::memcpy(target, &narrow, sizeof narrow);
        continue;
      }
    }
    const Mismatch mismatch = ConvertOne(conversion, slot, object, target);
    if (CULAUNCH_UNLIKELY(mismatch != Mismatch::kNone)) return *index = i, mismatch;
  }
  return Mismatch::kNone;
}
