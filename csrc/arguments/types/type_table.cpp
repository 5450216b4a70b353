#include "arguments/types/type_table.h"

#include <cstring>
#include <mutex>
#include <string>

#include "arguments/torch/tensor.h"
#include "python/upcalls.h"

namespace {

// A type's own attribute; null without an error if it has none.
Ref TypeAttribute(PyTypeObject* type, const char* name) {
  PyObject* value = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), name);
  if (value == nullptr) PyErr_Clear();
  return Ref(value);
}

std::string Text(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = object != nullptr && PyUnicode_Check(object)
                         ? PyUnicode_AsUTF8AndSize(object, &size)
                         : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text != nullptr ? std::string(text, static_cast<size_t>(size)) : std::string();
}

// Whether a class with the given module and name is among the type's bases: this recognizes
// frameworks without importing them.
bool HasBase(PyTypeObject* type, const char* module, const char* name) {
  const Ref mro = TypeAttribute(type, "__mro__");
  const Py_ssize_t size = mro && PyTuple_Check(mro.get()) ? PyTuple_Size(mro.get()) : 0;
  for (Py_ssize_t i = 0; i < size; ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GetItem(mro.get(), i));
    if (Text(TypeAttribute(base, "__name__").get()) == name &&
        Text(TypeAttribute(base, "__module__").get()) == module) {
      return true;
    }
  }
  return false;
}

void SetScalar(TypeEntry* entry, TypeClass scalar_class, uint8_t code, int bytes) {
  entry->kind = ArgumentKind::kScalar;
  entry->scalar_class = scalar_class;
  entry->scalar_type = {code, static_cast<uint8_t>(bytes * 8), 1};
}

// The code of floats that no parameter's type has: they match only by size.
constexpr uint8_t kOtherFloat = 0xff;

// DLPack's codes of the floats that CUDA has types for (__nv_fp8_e4m3 and so on).
uint8_t Float8Code(const std::string& name) {
  if (name == "float8_e4m3fn") return kDLFloat8_e4m3fn;
  if (name == "float8_e5m2") return kDLFloat8_e5m2;
  return name == "float8_e8m0fnu" ? uint8_t{kDLFloat8_e8m0fnu} : kOtherFloat;
}

// By the array interface's kind and the size in bytes: 'i', 4.
void SetScalarOfKind(TypeEntry* entry, char kind, int bytes) {
  switch (kind) {
    case 'i':
      return SetScalar(entry, TypeClass::kSigned, kDLInt, bytes);
    case 'u':
      return SetScalar(entry, TypeClass::kUnsigned, kDLUInt, bytes);
    case 'f':
      return SetScalar(entry, TypeClass::kFloat, kDLFloat, bytes);
    case 'b':
      return SetScalar(entry, TypeClass::kBool, kDLBool, bytes);
    case 'c':
      return SetScalar(entry, TypeClass::kStructure, kDLComplex, bytes);
    case 'V':
      entry->kind = ArgumentKind::kStructure;
      return;
    default:  // text, dates
      return;
  }
}

// A NumPy scalar type: np.dtype(type) tells its kind.
bool ClassifyNumpy(TypeEntry* entry, PyTypeObject* type) {
  const Ref numpy = Import(modules::kNumpy);
  if (!numpy) return false;
  if (HasBase(type, "numpy", "void")) {
    entry->kind = ArgumentKind::kStructure;
    return true;
  }
  const Ref dtype(PyObject_CallMethod(numpy.get(), "dtype", "(O)", type));
  if (!dtype) return false;
  const Ref kind(PyObject_GetAttrString(dtype.get(), "kind"));
  const Ref name(PyObject_GetAttrString(dtype.get(), "name"));
  const Ref size(PyObject_GetAttrString(dtype.get(), "itemsize"));
  if (!kind || !name || !size) return false;
  const int bytes = static_cast<int>(PyLong_AsLong(size.get()));
  const std::string text = Text(name.get());
  // ml_dtypes registers its types with kind 'V' (or 'f'): their names tell.
  if (text == "bfloat16") {
    SetScalar(entry, TypeClass::kFloat, kDLBfloat, bytes);
  } else if (text.rfind("float8", 0) == 0) {
    SetScalar(entry, TypeClass::kFloat, Float8Code(text), bytes);
  } else {
    SetScalarOfKind(entry, Text(kind.get())[0], bytes);
  }
  return true;
}

// A ctypes scalar type: _type_ is its struct-module code.
bool ClassifyCtypes(TypeEntry* entry, PyTypeObject* type) {
  const Ref code = TypeAttribute(type, "_type_");
  const Ref ctypes = Import(modules::kCtypes);
  if (!ctypes) return false;
  const Ref size(PyObject_CallMethod(ctypes.get(), "sizeof", "(O)", type));
  if (!size) return false;
  const int bytes = static_cast<int>(PyLong_AsLong(size.get()));
  const std::string text = Text(code.get());
  const char letter = text.size() == 1 ? text[0] : '\0';
  if (letter == '?') {
    SetScalarOfKind(entry, 'b', bytes);
  } else if (letter != '\0' && std::strchr("fdg", letter) != nullptr) {
    SetScalarOfKind(entry, 'f', bytes);
  } else if (letter != '\0' && std::strchr("bhilqc", letter) != nullptr) {
    SetScalarOfKind(entry, 'i', bytes);
  } else if (letter != '\0' && std::strchr("BHILQu", letter) != nullptr) {
    SetScalarOfKind(entry, 'u', bytes);
  } else if (letter != '\0' && std::strchr("PzZ", letter) != nullptr) {
    SetScalar(entry, TypeClass::kPointer, kDLOpaqueHandle, bytes);
  }  // not a reference to a Python object
  return true;
}

bool ClassifyExchange(TypeEntry* entry, PyTypeObject* type) {
  const Ref capsule = TypeAttribute(type, "__dlpack_c_exchange_api__");
  if (!capsule || !PyCapsule_CheckExact(capsule.get())) return false;
  auto* api = static_cast<const DLPackExchangeAPI*>(
      PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
  if (api == nullptr) PyErr_Clear();
  while (api != nullptr && api->version.major != 1) api = api->previous;
  if (api == nullptr || api->dltensor_from_py_object_no_sync == nullptr) return false;
  entry->kind = ArgumentKind::kExchange;
  entry->api = api;
  return true;
}

// Whether a type has torch's exchange API and is not a tensor of torch. Reading it as a tensor
// would read memory that is not a tensor's.
bool HasBorrowedTorchsApi(PyTypeObject* type, const DLPackExchangeAPI* api) {
  const Ref torch = Imported(modules::kTorch);
  const Ref tensor(torch ? PyObject_GetAttrString(torch.get(), "Tensor") : nullptr);
  PyErr_Clear();
  if (!tensor || !PyType_Check(tensor.get())) return false;
  auto* tensor_type = reinterpret_cast<PyTypeObject*>(tensor.get());
  TypeEntry torchs;
  return PyType_IsSubtype(type, tensor_type) == 0 && ClassifyExchange(&torchs, tensor_type) &&
         torchs.api == api;
}

// The function of a class method, or any other attribute unchanged.
Ref FunctionOf(PyTypeObject* type, const char* name) {
  Ref found = TypeAttribute(type, name);
  PyObject* function = found ? PyObject_GetAttrString(found.get(), "__func__") : nullptr;
  if (function == nullptr) PyErr_Clear();
  return function != nullptr ? Ref(function) : std::move(found);
}

// Whether a subclass of torch.Tensor overrides, in Python, where its memory is, what it contains,
// or how it is written. It overrides single members, or all of torch's through __torch_function__.
bool SaysOtherwise(PyTypeObject* type) {
  const Ref torch = Imported(modules::kTorch);
  const Ref tensor(torch ? PyObject_GetAttrString(torch.get(), "Tensor") : nullptr);
  const Ref core(torch ? PyObject_GetAttrString(torch.get(), "_C") : nullptr);
  // The value that a class sets to disable __torch_function__.
  const Ref disabled(core ? PyObject_GetAttrString(core.get(), "_disabled_torch_function_impl")
                          : nullptr);
  PyErr_Clear();
  if (!tensor || !PyType_Check(tensor.get())) return false;
  for (const char* name :
       {"data_ptr", "dtype", "zero_", "__getattribute__", "__torch_function__"}) {
    const Ref own = FunctionOf(type, name);
    const Ref torchs = FunctionOf(reinterpret_cast<PyTypeObject*>(tensor.get()), name);
    if (own.get() != torchs.get() && own.get() != disabled.get()) return true;
  }
  return false;
}

// New reference to cupy.cuda.get_current_stream, or null.
PyObject* CupyStreamFinder() {
  const Ref cuda = Import(modules::kCupyCuda);
  PyObject* find = cuda ? PyObject_GetAttrString(cuda.get(), "get_current_stream") : nullptr;
  if (find == nullptr) PyErr_Clear();
  return find;
}

bool Classify(TypeEntry* entry, PyTypeObject* type) {
  if (type == &PyLong_Type) {
    entry->kind = ArgumentKind::kInt;
  } else if (type == &PyFloat_Type) {
    entry->kind = ArgumentKind::kFloat;
  } else if (type == &PyBool_Type) {
    entry->kind = ArgumentKind::kBool;
  } else if (type == Py_TYPE(Py_None)) {
    entry->kind = ArgumentKind::kNone;
  } else if (HasBase(type, "numpy", "generic")) {
    return ClassifyNumpy(entry, type);
  } else if (HasBase(type, "_ctypes", "_SimpleCData")) {
    return ClassifyCtypes(entry, type);
  } else if (HasBase(type, "_ctypes", "Structure") || HasBase(type, "_ctypes", "Union") ||
             HasBase(type, "_ctypes", "Array")) {
    entry->kind = ArgumentKind::kStructure;
  } else if (HasBase(type, "_ctypes", "_Pointer")) {
    SetScalar(entry, TypeClass::kPointer, kDLOpaqueHandle, sizeof(void*));
  } else if (HasBase(type, "numpy.ma", "MaskedArray") ||
             HasBase(type, "numpy.ma.core", "MaskedArray")) {
    entry->is_masked = true;
    return true;
  } else if (ClassifyExchange(entry, type)) {
    if (HasBorrowedTorchsApi(type, entry->api)) {
      *entry = TypeEntry{};
      return true;
    }
  } else {
    entry->has_dlpack = static_cast<bool>(TypeAttribute(type, "__dlpack__")) &&
                        static_cast<bool>(TypeAttribute(type, "__dlpack_device__"));
    entry->versioned_dlpack = true;
    entry->has_cuda_interface = static_cast<bool>(TypeAttribute(type, "__cuda_array_interface__"));
    entry->has_interface = static_cast<bool>(TypeAttribute(type, "__array_interface__"));
    if (HasBase(type, "cupy", "ndarray")) {
      entry->kind = ArgumentKind::kCupy;
      entry->find_stream = CupyStreamFinder();
    } else if (entry->has_dlpack || entry->has_cuda_interface || entry->has_interface) {
      entry->kind = ArgumentKind::kArray;
    } else if (PyType_IsSubtype(type, &PyLong_Type) != 0) {
      entry->kind = ArgumentKind::kInt;
      entry->is_enum = HasBase(type, "enum", "Enum");
    } else if (PyType_IsSubtype(type, &PyFloat_Type) != 0) {
      entry->kind = ArgumentKind::kFloat;
    }
  }
  const bool is_array = entry->kind == ArgumentKind::kExchange || entry->has_dlpack;
  entry->is_torch = is_array && HasBase(type, "torch", "Tensor");
  if (entry->is_torch) {
    FindTorchBits(entry->api);
    entry->says_otherwise = SaysOtherwise(type);
  }
  return true;
}

// Types made at run time (a ctypes structure in a loop) must not fill memory: past this many,
// a type is classified again at each use.
constexpr size_t kTypesKept = 512;

}  // namespace

const TypeEntry* LookUpType(PyTypeObject* type, TypeEntry* scratch) {
  static TypeEntry* table[kTypesKept];
  static std::mutex mutex;
  const size_t start = (reinterpret_cast<uintptr_t>(type) >> 4) % kTypesKept;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < 8; ++i) {
      const TypeEntry* entry = table[(start + i) % kTypesKept];
      if (entry != nullptr && entry->type == type) return entry;
    }
  }
  *scratch = TypeEntry{};
  if (!Classify(scratch, type)) return nullptr;  // runs Python: not under the mutex
  // The types of arrays and numbers have more slots to choose from, because other types may fill
  // the table.
  const bool is_common =
      scratch->kind >= ArgumentKind::kInt && scratch->kind <= ArgumentKind::kArray;
  const size_t room = is_common ? 8 : 4;
  const std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < room; ++i) {
    TypeEntry*& slot = table[(start + i) % kTypesKept];
    if (slot != nullptr) continue;
    slot = new TypeEntry(*scratch);
    slot->type = type;
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    return slot;
  }
  return scratch;
}

const TypeEntry* LookUpObject(PyObject* object, TypeEntry* scratch) {
  const TypeEntry* entry = LookUpType(Py_TYPE(object), scratch);
  if (entry == nullptr || entry->kind != ArgumentKind::kUnsupported) return entry;
  const Ref interface(PyObject_GetAttrString(object, "__cuda_array_interface__"));
  if (!interface) {
    PyErr_Clear();
    return entry;
  }
  *scratch = TypeEntry{};
  scratch->kind = ArgumentKind::kArray;
  scratch->has_cuda_interface = true;
  return scratch;
}
