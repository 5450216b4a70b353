#include "arguments/types/rules.h"

namespace {

constexpr const char* kGiven[] = {
    "int",     "IntEnum",  "float", "bool",    "None",    "array",
    "integer", "floating", "bool_", "complex", "address", "structure",
};
constexpr size_t kGivenCount = sizeof kGiven / sizeof kGiven[0];
static_assert(kGivenCount == static_cast<size_t>(Given::kNothing), "every Given has a name");

constexpr uint16_t Bit(Given given) {
  return static_cast<uint16_t>(1 << static_cast<unsigned>(given));
}

template <class... Rest>
constexpr uint16_t Set(Rest... given) {
  return static_cast<uint16_t>((0 | ... | Bit(given)));
}

struct Rule {
  const char* name;
  uint16_t takes;
};

// In the order of TypeClass.
constexpr Rule kRules[] = {
    {"unknown", (1 << kGivenCount) - 1},
    {"pointer", Set(Given::kInt, Given::kIntEnum, Given::kNone, Given::kArray, Given::kInteger,
                    Given::kAddress)},
    {"signed", Set(Given::kInt, Given::kIntEnum, Given::kInteger)},
    {"unsigned", Set(Given::kInt, Given::kIntEnum, Given::kInteger)},
    {"float", Set(Given::kFloat, Given::kFloating)},
    {"bool", Set(Given::kBool, Given::kBoolean)},
    {"structure", Set(Given::kComplex, Given::kStructure)},
    // A structure or an enumeration: the name does not tell which.
    {"named", Set(Given::kIntEnum, Given::kInteger, Given::kComplex, Given::kStructure)},
    {"enumeration", Set(Given::kInt, Given::kIntEnum, Given::kInteger)},
    {"float8", Set(Given::kFloating)},
};
constexpr size_t kClassCount = sizeof kRules / sizeof kRules[0];

// The sizes in bytes, a bit each, of the parameters that accept this kind of object; 0: any,
// because it has a size of its own.
constexpr unsigned SizesOf(Given given) {
  switch (given) {
    case Given::kInt:
    case Given::kIntEnum:
      return 1 | 2 | 4 | 8;
    case Given::kFloat:
      return 2 | 4 | 8;  // 2 is ambiguous, and reported as that
    case Given::kBool:
      return 1;
    case Given::kNone:
    case Given::kArray:
      return 8;
    default:
      return 0;
  }
}

bool FitsSize(Given given, size_t size) {
  const unsigned sizes = SizesOf(given);
  const bool is_power = (size & (size - 1)) == 0;
  return sizes == 0 || (size <= 8 && is_power && (sizes & size) != 0);
}

}  // namespace

Given GivenOf(const TypeEntry& entry) {
  switch (entry.kind) {
    case ArgumentKind::kInt:
      return entry.is_enum ? Given::kIntEnum : Given::kInt;
    case ArgumentKind::kFloat:
      return Given::kFloat;
    case ArgumentKind::kBool:
      return Given::kBool;
    case ArgumentKind::kNone:
      return Given::kNone;
    case ArgumentKind::kExchange:
    case ArgumentKind::kCupy:
    case ArgumentKind::kArray:
      return Given::kArray;
    case ArgumentKind::kStructure:
      return Given::kStructure;
    case ArgumentKind::kScalar:
      break;
    case ArgumentKind::kUnsupported:
      return Given::kNothing;
  }
  switch (entry.scalar_class) {
    case TypeClass::kSigned:
    case TypeClass::kUnsigned:
      return Given::kInteger;
    case TypeClass::kFloat:
      return Given::kFloating;
    case TypeClass::kBool:
      return Given::kBoolean;
    case TypeClass::kPointer:
      return Given::kAddress;
    case TypeClass::kStructure:
      return Given::kComplex;
    default:
      return Given::kNothing;
  }
}

bool Takes(TypeClass type_class, size_t size, const TypeEntry& entry) {
  const Given given = GivenOf(entry);
  const auto index = static_cast<size_t>(type_class);
  if (given == Given::kNothing || index >= kClassCount) return false;
  if ((kRules[index].takes & Bit(given)) == 0 || !FitsSize(given, size)) return false;
  return type_class != TypeClass::kPointer || size == sizeof(void*);
}

PyObject* ArgumentRules(PyObject*, PyObject*) {
  Ref rules(PyDict_New());
  for (size_t i = 0; rules && i < kClassCount; ++i) {
    const Ref row(PyDict_New());
    for (size_t j = 0; row && j < kGivenCount; ++j) {
      const auto given = static_cast<Given>(j);
      if ((kRules[i].takes & Bit(given)) == 0) continue;
      const Ref sizes(PyList_New(0));
      for (unsigned size = 1; sizes && i == 0 && size <= 8; size *= 2) {
        if ((SizesOf(given) & size) == 0) continue;
        const Ref number(PyLong_FromUnsignedLong(size));
        if (!number || PyList_Append(sizes.get(), number.get()) < 0) return nullptr;
      }
      const Ref tuple(sizes ? PyList_AsTuple(sizes.get()) : nullptr);
      if (!tuple || PyDict_SetItemString(row.get(), kGiven[j], tuple.get()) < 0) return nullptr;
    }
    if (!row || PyDict_SetItemString(rules.get(), kRules[i].name, row.get()) < 0) return nullptr;
  }
  return rules.release();
}
