#include "triton/values/describe.h"

#include <string>

#include "python/upcalls.h"

namespace triton {

namespace {

PyObject* Interned(const char* text) { return PyUnicode_InternFromString(text); }

PyObject* KeyObject(SpecKey key) {
  static PyObject* const divisible = Interned("D");
  static PyObject* const empty = Interned("");
  switch (key) {
    case SpecKey::kDivisible:
      return Ref::Borrow(divisible).release();
    case SpecKey::kEmpty:
      return Ref::Borrow(empty).release();
    case SpecKey::kOne:
      return PyLong_FromLong(1);
    case SpecKey::kNone:
      break;
  }
  return Ref::Borrow(Py_None).release();
}

PyObject* Pair(const char* type, SpecKey key) { return Py_BuildValue("sN", type, KeyObject(key)); }

// The items of a named tuple make a tuple of its type.
Ref MakeTuple(const Ref& items, uint64_t type_number, const Interner& interner) {
  if (type_number == 0) return Ref::Borrow(items.get());
  PyObject* type = interner.Object(type_number - 1);
  if (type == nullptr) return Ref();
  if (PyObject_HasAttrString(type, "_fields") == 0) return Ref::Borrow(items.get());
  return Ref(PyObject_CallObject(type, items.get()));
}

PyObject* DescribeTuple(const Words& key, size_t* position, uint64_t payload,
                        const Interner& interner) {
  static const Parameter item{};  // the items do not take anything from the parameter
  const Recursion recursion(" while the items of a tuple are described");
  if (recursion.is_too_deep()) return nullptr;
  const auto size = static_cast<Py_ssize_t>(payload & 0xffffff);
  const Ref types(PyTuple_New(size));
  const Ref keys(PyTuple_New(size));
  if (!types || !keys) return nullptr;
  for (Py_ssize_t i = 0; i < size; ++i) {
    const Ref pair(DescribeWords(key, position, item, interner));
    if (!pair) return nullptr;
    PyTuple_SetItem(types.get(), i, Ref::Borrow(PyTuple_GetItem(pair.get(), 0)).release());
    PyTuple_SetItem(keys.get(), i, Ref::Borrow(PyTuple_GetItem(pair.get(), 1)).release());
  }
  const Ref made_types = MakeTuple(types, payload >> 24, interner);
  const Ref made_keys = MakeTuple(keys, payload >> 24, interner);
  if (!made_types || !made_keys) return nullptr;
  return PyTuple_Pack(2, made_types.get(), made_keys.get());
}

std::string TensorName(uint64_t word, const Interner& interner) {
  if (KindOf(word) == WordKind::kTensor) {
    const char* name = TypeName(PayloadOf(word));
    if (name != nullptr) return name;
    return "dlpack" + std::to_string(PayloadOf(word) & 0xff) + "_" +
           std::to_string(PayloadOf(word) >> 8 & 0xff);
  }
  Py_ssize_t size = 0;
  PyObject* name = interner.Object(PayloadOf(word));
  const char* text = name != nullptr ? PyUnicode_AsUTF8AndSize(name, &size) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text != nullptr ? std::string(text, static_cast<size_t>(size)) : "?";
}

PyObject* DescribeDescriptor(const Words& key, size_t* position, uint64_t tensor,
                             const Interner& interner) {
  const uint64_t payload = PayloadOf(key[(*position)++]);
  std::string text = "tensordesc<" + TensorName(tensor, interner) + "[";
  for (uint64_t i = 0; i < (payload & 0xff); ++i) {
    text += (i != 0 ? ", " : "") + std::to_string(static_cast<int64_t>(key[(*position)++]));
  }
  text += "]";
  if (payload >> 8 != 0) {
    Py_ssize_t size = 0;
    PyObject* layout = interner.Object((payload >> 8) - 1);
    const char* repr = layout != nullptr ? PyUnicode_AsUTF8AndSize(layout, &size) : nullptr;
    if (repr == nullptr) return nullptr;
    text += "," + std::string(repr, static_cast<size_t>(size));
  }
  return Pair((text + ">").c_str(), SpecKey::kNone);
}

}  // namespace

PyObject* DescribeWords(const Words& key, size_t* position, const Parameter& parameter,
                        const Interner& interner) {
  const uint64_t word = key[(*position)++];
  switch (KindOf(word)) {
    case WordKind::kI32:
      return Pair("i32", KeyOf(word));
    case WordKind::kI64:
      return Pair("i64", KeyOf(word));
    case WordKind::kU64:
      return Pair("u64", KeyOf(word));
    case WordKind::kOne:
      return Pair("constexpr", SpecKey::kOne);
    case WordKind::kU1:
      return Pair("u1", SpecKey::kNone);
    case WordKind::kFp32:
      return Pair("fp32", SpecKey::kNone);
    case WordKind::kNone:
      return Pair("constexpr", SpecKey::kNone);
    case WordKind::kTensor:
    case WordKind::kNamed:
      if (*position < key.size() && KindOf(key[*position]) == WordKind::kDescriptor) {
        return DescribeDescriptor(key, position, word, interner);
      }
      return Pair(((parameter.is_const ? "*k" : "*") + TensorName(word, interner)).c_str(),
                  KeyOf(word));
    case WordKind::kForced:
      return Pair(parameter.annotation.c_str(), KeyOf(word));
    case WordKind::kTuple:
      return DescribeTuple(key, position, PayloadOf(word), interner);
    case WordKind::kConstant: {
      PyObject* object = interner.Object(PayloadOf(word));
      if (object == nullptr) return nullptr;
      return CallUp(Upcall::kDescribeTritonConstant, "(O)", object).release();
    }
    default:
      PyErr_SetString(PyExc_SystemError, "a key of a Triton kernel is malformed");
      return nullptr;
  }
}

}  // namespace triton
