#include "triton/values/types.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "python/upcalls.h"

namespace triton {

namespace {

struct NamedType {
  DLDataType type;
  const char* name;
};

// Triton's names of element types.
constexpr NamedType kTypes[] = {
    {{kDLBool, 8, 1}, "u1"},
    {{kDLInt, 8, 1}, "i8"},
    {{kDLInt, 16, 1}, "i16"},
    {{kDLInt, 32, 1}, "i32"},
    {{kDLInt, 64, 1}, "i64"},
    {{kDLUInt, 8, 1}, "u8"},
    {{kDLUInt, 16, 1}, "u16"},
    {{kDLUInt, 32, 1}, "u32"},
    {{kDLUInt, 64, 1}, "u64"},
    {{kDLFloat, 16, 1}, "fp16"},
    {{kDLFloat, 32, 1}, "fp32"},
    {{kDLFloat, 64, 1}, "fp64"},
    {{kDLBfloat, 16, 1}, "bf16"},
    {{kDLFloat8_e4m3fn, 8, 1}, "fp8e4nv"},
    {{kDLFloat8_e4m3fnuz, 8, 1}, "fp8e4b8"},
    {{kDLFloat8_e5m2, 8, 1}, "fp8e5"},
    {{kDLFloat8_e5m2fnuz, 8, 1}, "fp8e5b16"},
};

}  // namespace

const char* TypeName(uint64_t packed) {
  for (const NamedType& known : kTypes) {
    if (PackType(known.type) == packed) return known.name;
  }
  return nullptr;
}

bool ParseForcedType(const char* name, ForcedType* type) {
  *type = {};
  const size_t length = std::strlen(name);
  if (length == 0) return true;
  if (name[0] == '*') {
    type->type_class = ForcedType::kPointer;
    type->bits = 64;
    return true;
  }
  if (std::strcmp(name, "u1") == 0 || std::strcmp(name, "i1") == 0) {
    type->type_class = ForcedType::kBoolean;
    type->bits = 8;
    return true;
  }
  const bool is_float = std::strncmp(name, "fp", 2) == 0;
  type->is_bfloat = std::strncmp(name, "bf", 2) == 0;
  const size_t prefix = is_float || type->is_bfloat ? 2 : 1;
  if (is_float || type->is_bfloat) {
    type->type_class = ForcedType::kFloatingPoint;
  } else if (name[0] == 'i') {
    type->type_class = ForcedType::kSigned;
  } else if (name[0] == 'u') {
    type->type_class = ForcedType::kUnsigned;
  } else {
    return false;
  }
  char* end = nullptr;
  const long bits = std::strtol(name + prefix, &end, 10);
  type->bits = static_cast<uint8_t>(bits);
  const bool is_size = bits == 16 || bits == 32 || bits == 64 || (bits == 8 && prefix == 1);
  return *end == '\0' && is_size && !(type->is_bfloat && bits != 16);
}

int ClassifyObject(PyTypeObject* type) {
  struct Known {
    PyTypeObject* type;  // owned
    int kind;
  };
  static std::vector<Known> known;
  static std::mutex mutex;
  constexpr size_t kMost = 256;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    for (const Known& one : known) {
      if (one.type == type) return one.kind;
    }
  }
  const Ref number = CallUp(Upcall::kClassifyTritonObject, "(O)", type);
  if (!number) return -1;
  const int kind = static_cast<int>(PyLong_AsLong(number.get()));
  if (kind == -1 && PyErr_Occurred() != nullptr) return -1;
  const std::lock_guard<std::mutex> lock(mutex);
  if (known.size() < kMost) {
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    known.push_back({type, kind});
  }
  return kind;
}

}  // namespace triton
