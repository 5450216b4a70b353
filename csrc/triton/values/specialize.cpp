#include "triton/values/specialize.h"

#include <cstring>
#include <utility>

#include "formats/half.h"
#include "python/upcalls.h"
#include "triton/values/forced.h"

namespace triton {

namespace {

uint64_t BitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

// An object of a less common kind, or of a new type.
Mismatch Specializer::AddOther(Parameter& parameter, PyObject* object) {
  const TypeEntry* entry = parameter.last.load(std::memory_order_acquire);
  TypeEntry scratch;
  if (entry == nullptr || entry->type != Py_TYPE(object)) {
    entry = LookUpObject(object, &scratch);
    if (entry == nullptr) return Mismatch::kPython;
    if (entry != &scratch) parameter.last.store(entry, std::memory_order_release);
  }
  const Rules rules{parameter.specialize, parameter.align};
  if (parameter.forced.type_class != ForcedType::kNotForced) {
    return Force(parameter, object, entry, rules);
  }
  return Natural(object, entry, rules);
}

Mismatch Specializer::AddConstant(Parameter* parameter, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (object == Py_None) {
    key.Add(MakeWord(WordKind::kNone));
    return Mismatch::kNone;
  }
  if (type == &PyLong_Type) {
    int64_t value = 0;
    if (ReadInt(object, &value) == IntRange::kSigned) {
      key.Add(MakeWord(WordKind::kInt));
      key.Add(static_cast<uint64_t>(value));
      return Mismatch::kNone;
    }
  } else if (type == &PyBool_Type) {
    key.Add(MakeWord(WordKind::kBool, object == Py_True ? 1 : 0));
    return Mismatch::kNone;
  } else if (type == &PyFloat_Type) {
    key.Add(MakeWord(WordKind::kFloat));
    key.Add(BitsOf(PyFloat_AsDouble(object)));
    return Mismatch::kNone;
  } else if (parameter != nullptr && parameter->last_constant.get() == object) {
    key.Add(MakeWord(WordKind::kConstant, parameter->last_number));
    return Mismatch::kNone;
  }
  uint64_t number = 0;
  bool is_immutable = false;
  if (!interner_.Number(object, &number, &is_immutable)) return Mismatch::kPython;
#ifndef Py_GIL_DISABLED
  if (parameter != nullptr && is_immutable) {
    // Free the previous one last: this may run Python, which may call the kernel.
    const Ref before = std::exchange(parameter->last_constant, Ref::Borrow(object));
    parameter->last_number = number;
  }
#endif
  key.Add(MakeWord(WordKind::kConstant, number));
  return Mismatch::kNone;
}

Mismatch Specializer::Natural(PyObject* object, const TypeEntry* entry, Rules rules) {
  switch (entry->kind) {
    case ArgumentKind::kExchange:
    case ArgumentKind::kCupy:
    case ArgumentKind::kArray:
      return Array(*entry, object, rules);
    case ArgumentKind::kInt:
      return Int(object, rules);
    case ArgumentKind::kFloat:
      key.Add(MakeWord(WordKind::kFp32));
      leaves.Add(SingleBits(PyFloat_AsDouble(object)));
      return Mismatch::kNone;
    case ArgumentKind::kBool:
      key.Add(MakeWord(WordKind::kU1));
      leaves.Add(object == Py_True ? 1 : 0);
      return Mismatch::kNone;
    case ArgumentKind::kNone:
      key.Add(MakeWord(WordKind::kNone));
      leaves.Add(0);
      return Mismatch::kNone;
    default:
      return Other(object, rules);
  }
}

Mismatch Specializer::LargeInt(IntRange range, int64_t value, Rules rules) {
  if (range == IntRange::kTooLarge) return Mismatch::kOverflow;
  const auto bits = static_cast<uint64_t>(value);
  key.Add(MakeWord(WordKind::kU64, 0, KeyOfBits(bits, rules.specialize, rules.align)));
  leaves.Add(bits);
  return Mismatch::kNone;
}

Mismatch Specializer::Array(const TypeEntry& entry, PyObject* object, Rules rules) {
  // Triton asks Python for both values. Do the same for a tensor that overrides them.
  if (CULAUNCH_UNLIKELY(entry.says_otherwise)) return TensorLike(object, rules);
  ArrayData array;
  const Mismatch mismatch = ReadArgumentArray(conversion_, entry, object, &array);
  if (mismatch != Mismatch::kNone) return mismatch;
  if (array.dtype.bits == 0) return TensorLike(object, rules);
  AddTensor(PackType(array.dtype), WordKind::kTensor, array.data, rules);
  return Mismatch::kNone;
}

// An object with only data_ptr() and dtype. If it wraps a tensor, the tensor determines the device.
Mismatch Specializer::TensorLike(PyObject* object, Rules rules) {
  const Ref read = CallUp(Upcall::kReadTritonTensor, "(O)", object);
  if (!read) return Mismatch::kPython;
  unsigned long long address = 0;
  PyObject* name = nullptr;
  PyObject* base = nullptr;
  if (!PyArg_ParseTuple(read.get(), "KOO", &address, &name, &base)) return Mismatch::kPython;
  if (base != Py_None) {
    TypeEntry scratch;
    const TypeEntry* entry = LookUpType(Py_TYPE(base), &scratch);
    if (entry == nullptr) return Mismatch::kPython;
    ArrayData ignored;
    if (entry->kind == ArgumentKind::kExchange) {
      const Mismatch mismatch = ReadArgumentArray(conversion_, *entry, base, &ignored);
      if (mismatch != Mismatch::kNone) return mismatch;
    }
  } else if (conversion_.driver.note_array != nullptr) {
    unsigned long long begin = 0;
    unsigned long long bytes = 0;
    const Ref memory = CallUp(Upcall::kMemoryOfTritonTensor, "(O)", object);
    if (!memory || !PyArg_ParseTuple(memory.get(), "KK", &begin, &bytes)) return Mismatch::kPython;
    conversion_.NoteArray({reinterpret_cast<void*>(static_cast<uintptr_t>(begin)), bytes});
  }
  uint64_t number = 0;
  bool is_immutable = false;
  if (!interner_.Number(name, &number, &is_immutable)) return Mismatch::kPython;
  AddTensor(number, WordKind::kNamed, reinterpret_cast<void*>(static_cast<uintptr_t>(address)),
            rules);
  return Mismatch::kNone;
}

// The items are specialized regardless of the parameter.
Mismatch Specializer::Tuple(PyObject* tuple) {
  const Recursion recursion(" while the items of a tuple are specialized");
  if (recursion.is_too_deep()) return Mismatch::kPython;
  uint64_t type_number = 0;
  bool is_immutable = false;
  if (!PyTuple_CheckExact(tuple)) {
    if (!interner_.Number(reinterpret_cast<PyObject*>(Py_TYPE(tuple)), &type_number,
                          &is_immutable)) {
      return Mismatch::kPython;
    }
    ++type_number;  // 0 is a plain tuple
  }
  const Py_ssize_t size = PyTuple_Size(tuple);
  key.Add(MakeWord(WordKind::kTuple, static_cast<uint64_t>(size) | type_number << 24));
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = PyTuple_GetItem(tuple, i);
    TypeEntry scratch;
    const TypeEntry* entry = LookUpObject(item, &scratch);
    if (entry == nullptr) return Mismatch::kPython;
    const Mismatch mismatch = Natural(item, entry, {true, true});
    if (mismatch != Mismatch::kNone) return mismatch;
  }
  return Mismatch::kNone;
}

Mismatch Specializer::Descriptor(PyObject* object, bool has_layout) {
  TensorDescriptor descriptor;
  const Ref base(PyObject_GetAttrString(object, "base"));
  if (!base) return Mismatch::kPython;
  TypeEntry scratch;
  const TypeEntry* entry = LookUpObject(base.get(), &scratch);
  if (entry == nullptr) return Mismatch::kPython;
  const size_t position = key.size();
  const size_t leaf = leaves.size();
  Mismatch mismatch = Natural(base.get(), entry, {false, false});
  if (mismatch != Mismatch::kNone) return mismatch;
  // Accept only an address: not a folded value, nor several words.
  if (leaves.size() != leaf + 1 || key.size() != position + 1 ||
      (KindOf(key[position]) != WordKind::kTensor && KindOf(key[position]) != WordKind::kNamed)) {
    return Mismatch::kUnsupported;
  }
  descriptor.base = reinterpret_cast<void*>(static_cast<uintptr_t>(leaves[leaf]));
  DescriptorBlock block;
  if (!ReadDescriptor(object, &descriptor, &block)) return Mismatch::kPython;
  uint64_t layout_number = 0;
  if (has_layout) {
    const Ref layout(PyObject_GetAttrString(object, "layout"));
    const Ref text(layout ? PyObject_Repr(layout.get()) : nullptr);
    bool is_immutable = false;
    if (!text || !interner_.Number(text.get(), &layout_number, &is_immutable)) {
      return Mismatch::kPython;
    }
    ++layout_number;
  }
  key.Add(MakeWord(WordKind::kDescriptor, static_cast<uint64_t>(block.rank) | layout_number << 8));
  for (int i = 0; i < block.rank; ++i) key.Add(block.sizes[i]);
  leaves.data()[leaf] = descriptors.size();
  descriptors.push_back(descriptor);
  return Mismatch::kNone;
}

Mismatch Specializer::Other(PyObject* object, Rules rules) {
  if (PyTuple_Check(object)) return Tuple(object);
  const int kind = ClassifyObject(Py_TYPE(object));
  if (kind < 0) return Mismatch::kPython;
  switch (static_cast<ObjectKind>(kind)) {
    case ObjectKind::kTensorLike:
      return TensorLike(object, rules);
    case ObjectKind::kConstexpr:
      leaves.Add(0);
      return AddConstant(nullptr, object);
    case ObjectKind::kDescriptor:
      return Descriptor(object, false);
    case ObjectKind::kLayoutDescriptor:
      return Descriptor(object, true);
    case ObjectKind::kInteger:
      return Int(object, rules);
    case ObjectKind::kFloatNumber:
      key.Add(MakeWord(WordKind::kFp32));
      leaves.Add(SingleBits(PyFloat_AsDouble(object)));
      return Mismatch::kNone;
    case ObjectKind::kUnsupported:
      break;
  }
  return Mismatch::kUnsupported;
}

Mismatch Specializer::Force(const Parameter& parameter, PyObject* object, const TypeEntry* entry,
                            Rules rules) {
  const ForcedType& type = parameter.forced;
  if (type.type_class == ForcedType::kFloatingPoint || type.type_class == ForcedType::kBoolean) {
    uint64_t bits = 0;
    const Mismatch mismatch = type.type_class == ForcedType::kBoolean
                                  ? ForceInt({ForcedType::kUnsigned, 8, false}, object, &bits)
                                  : ForceFloat(type, object, &bits);
    if (mismatch != Mismatch::kNone) return mismatch;
    key.Add(MakeWord(WordKind::kForced));
    leaves.Add(bits);
    return Mismatch::kNone;
  }
  const size_t position = key.size();
  const size_t leaf = leaves.size();
  const Mismatch mismatch = Natural(object, entry, rules);
  if (mismatch != Mismatch::kNone) return mismatch;
  if (key.size() != position + 1 || leaves.size() != leaf + 1) return Mismatch::kKind;
  const uint64_t word = key[position];
  const WordKind kind = KindOf(word);
  const bool is_number = kind == WordKind::kI32 || kind == WordKind::kI64 ||
                         kind == WordKind::kU64 || kind == WordKind::kOne || kind == WordKind::kU1;
  if (type.type_class == ForcedType::kPointer) {
    if (!is_number && kind != WordKind::kTensor && kind != WordKind::kNamed &&
        kind != WordKind::kNone) {
      return Mismatch::kKind;
    }
  } else {
    if (!is_number) return Mismatch::kKind;
    uint64_t value = 0;
    const Mismatch range = ForceInt(type, object, &value);
    if (range != Mismatch::kNone) return range;
    leaves.data()[leaf] = value;
  }
  key.data()[position] = MakeWord(WordKind::kForced, 0, KeyOf(word));
  return Mismatch::kNone;
}

}  // namespace triton
