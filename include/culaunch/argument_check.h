// Describe the problem with the arguments of a call. Each list of types is checked once, and arrays
// again when they differ from valid ones.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "argument.h"
#include "array_argument.h"
#include "demangle.h"
#include "driver.h"
#include "error.h"
#include "kernel_state.h"
#include "launch_config.h"
#include "parameter_type.h"
#include "text.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

// "float32", "bfloat16", "int8x4"
inline std::string ToText(const ElementType& type) {
  static constexpr const char* kNames[] = {"int",    "uint",    "float", nullptr,
                                           "bfloat", "complex", "bool"};
  const char* name = type.code < sizeof kNames / sizeof kNames[0] ? kNames[type.code] : nullptr;
  const std::string text =
      (name != nullptr
           ? std::string(name)
           : "DLPack type code " + ToText(static_cast<unsigned>(type.code)) + ", bits ") +
      ToText(static_cast<unsigned>(type.bits));
  return type.lanes == 1 ? text : text + "x" + ToText(static_cast<unsigned>(type.lanes));
}

inline std::string MemoryName(int device_type) {
  switch (device_type) {
    case kDLCPU:
      return "CPU memory";
    case kDLCUDA:
      return "CUDA memory";
    case kDLCUDAHost:
      return "pinned CUDA host memory";
    case kDLCUDAManaged:
      return "managed CUDA memory";
    default:
      return "memory of DLPack device type " + ToText(device_type);
  }
}

// Checks one call, and keeps the words of the first problem.
class ArgumentCheck {
 public:
  ArgumentCheck(KernelState& kernel, const Stream& stream) : kernel_(kernel), stream_(stream) {}

  // arrays[i] is the i-th argument if that is an array, else null; or `arrays` is null.
  Status Run(const ArgumentType* given, const ArrayArgument* const* arrays, size_t count) {
    const std::vector<Parameter>& expected = kernel_.parameters();
    if (count != expected.size()) {
      return TypeError(Demangle(kernel_.name()) + " takes " + Counted(expected.size(), "argument") +
                       " (got " + ToText(count) + ")");
    }
    const std::vector<ParameterType>& types = kernel_.Types();
    for (size_t i = 0; i < count; ++i) {
      static const ParameterType unknown;
      const ParameterType& type = types.empty() ? unknown : types[i];
      Status status = CheckType(i, type, given[i]);
      if (status && arrays != nullptr && arrays[i] != nullptr) {
        status = CheckArray(i, type, *arrays[i]);
      }
      if (!status) return status;
    }
    return {};
  }

 private:
  Status CheckType(size_t index, const ParameterType& type, const ArgumentType& given) const {
    const size_t size = kernel_.parameters()[index].size;
    const std::string& text = type.text();
    if (given.size != size) {
      return Error(Prefix(index) + " must be " + Counted(size, "byte") + " long" +
                   (text.empty() ? "" : ", because it is " + text) + " (got " + ToText(given.size) +
                   ", " + ArgumentName(given) + "): pass a value of the parameter's own type");
    }
    if (!type.Takes(given.kind)) {
      return TypeError(Prefix(index) + " must be " + text + " (got " + ArgumentName(given) +
                       "): pass a value of that type; a struct of that size is passed unchanged");
    }
    return type.IsPointer() && given.kind == ArgumentKind::kPointer
               ? CheckPointer(index, type, ArgumentName(given))
               : Status();
  }

  Status CheckPointer(size_t index, const ParameterType& type, const std::string& given) const {
    const ParameterType pointer(given);
    if (!pointer.IsPointer()) return {};
    const ElementType expected = type.element();
    if (expected.bits != 0 && pointer.element().bits != 0 && !(expected == pointer.element())) {
      return TypeError(Described(index, type) + ", must be a pointer to " + ToText(expected) +
                       " (got " + given +
                       "): convert what it points to, or use a kernel for its type; "
                       "culaunch::Untyped(pointer) passes it unchecked");
    }
    if (type.PointsToMutable() && pointer.PointsToConst()) {
      return TypeError(Described(index, type) + ", must point to writable memory (got " + given +
                       "): pass a pointer to writable memory, or declare the parameter a pointer "
                       "to const; culaunch::Untyped(pointer) passes it unchecked");
    }
    return {};
  }

  Status CheckArray(size_t index, const ParameterType& type, const ArrayArgument& array) {
    const ElementType expected = type.element();
    const ElementType got = array.type();
    const bool is_typed = (array.known() & ArrayFacts::kElement) != 0;
    if (expected.bits != 0 && is_typed && !(expected == got)) {
      return TypeError(Described(index, type) + ", must be an array of " + ToText(expected) +
                       " (got an array of " + ToText(got) +
                       "): convert the array, or use a kernel for its type");
    }
    if ((array.facts() & ArrayFacts::kConst) != 0 && type.PointsToMutable()) {
      return TypeError(Described(index, type) +
                       ", must be writable, but the array is read-only: pass a writable array, or "
                       "declare the parameter a pointer to const");
    }
    if ((array.facts() & ArrayFacts::kNull) != 0) {
      return Error(
          Described(index, type) +
          ", must be an array with memory (got a null pointer for an array that has "
          "elements): allocate it before the launch, or pass nullptr if the kernel accepts that");
    }
    if ((array.facts() & ArrayFacts::kShort) != 0) {
      return Error(Described(index, type) + ", must have at least " + ToText(array.least()) +
                   " elements (got an array of " + ToText(array.elements()) +
                   "): pass a larger array, or launch the kernel for fewer elements");
    }
    return (array.known() & ArrayFacts::kDevice) != 0 ? CheckDevice(index, type, array) : Status();
  }

  // All arrays of a call live on one device, which is the stream's; pinned and managed memory is
  // every device's.
  Status CheckDevice(size_t index, const ParameterType& type, const ArrayArgument& array) {
    const Driver& driver = kernel_.driver();
    if (!driver.IsDeviceMemory(array.device_type())) {
      return Error(Described(index, type) + ", must be in the memory of the driver in use, \"" +
                   driver.name() + "\" (got an array in " + MemoryName(array.device_type()) +
                   "): " +
                   (driver.IsDeviceMemory(kDLCPU)
                        ? "pass an array in CPU memory, which is the emulated device's"
                        : "move it to a GPU first"));
    }
    if (array.device_type() != driver.device_types().front()) return {};
    const std::string is_on =
        Described(index, type) + ", is on device " + ToText(array.ordinal()) + ", but ";
    if (stream_.device >= 0 && array.ordinal() != stream_.device) {
      return Error(is_on + "the stream belongs to device " + ToText(stream_.device) +
                   ": pass a stream of device " + ToText(array.ordinal()));
    }
    if (ordinal_ >= 0 && array.ordinal() != ordinal_) {
      return Error(is_on + "earlier arguments are on device " + ToText(ordinal_) +
                   ": all arrays of a call must be on one device");
    }
    ordinal_ = array.ordinal();
    return {};
  }

  static Error TypeError(const std::string& what) {
    return Error(ErrorKind::kType, CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", what);
  }

  std::string Prefix(size_t index) const {
    return "argument " + ToText(index) + " of " + Demangle(kernel_.name());
  }

  // "argument 0 of add, float* (8 bytes)", as in Python's messages.
  std::string Described(size_t index, const ParameterType& type) const {
    const std::string size = Counted(kernel_.parameters()[index].size, "byte");
    return "argument " + ToText(index) + " of " + WithoutParameters(Demangle(kernel_.name())) +
           ", " +
           (type.text().empty() ? "a parameter of " + size : type.text() + " (" + size + ")");
  }

  // "void scale<float>(float*, int)" reduced to its name.
  static std::string WithoutParameters(const std::string& text) {
    const size_t open = ParameterType::OpeningOfLastParenthesis(text);
    const std::string name = open == std::string::npos ? text : text.substr(0, open);
    return name.compare(0, 5, "void ") == 0 ? name.substr(5) : name;
  }

  KernelState& kernel_;
  Stream stream_;
  int ordinal_ = -1;  // of the arrays so far
};

}  // namespace detail

CULAUNCH_NAMESPACE_END
