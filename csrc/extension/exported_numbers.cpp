#include "extension/exported_numbers.h"

#include <culaunch/driver_table.h>

#include <initializer_list>
#include <vector>

#include "arguments/operands.h"
#include "arguments/types/type_table.h"
#include "arguments/views/element_types.h"
#include "elementwise/layout.h"
#include "formats/dlpack.h"
#include "triton/values/parameter.h"
#include "triton/values/types.h"
#include "triton/variants/tuning.h"
#include "triton/variants/variant.h"

namespace {

struct Named {
  template <class Number>
  Named(const char* name, Number number) : name(name), number(static_cast<long>(number)) {}

  const char* name;
  long number;
};

struct List {
  const char* name;
  std::initializer_list<Named> numbers;
};

using triton::KeyKind;
using triton::ObjectKind;
using triton::ParameterFlag;
using Part = triton::ParameterSource::Part;

bool AddList(PyObject* all, const char* name, const Named* begin, const Named* end) {
  const Ref list(PyDict_New());
  for (const Named* one = begin; list && one != end; ++one) {
    const Ref number(PyLong_FromLong(one->number));
    if (!number || PyDict_SetItemString(list.get(), one->name, number.get()) < 0) return false;
  }
  return list && PyDict_SetItemString(all, name, list.get()) == 0;
}

// The element types: their numbers, and their DLPack types.
bool AddElementTypes(PyObject* all) {
  std::vector<Named> numbers, codes, bits;
  for (uint8_t i = 0; i < operands::kAllTypes; ++i) {
    numbers.emplace_back(operands::NameOf(i), i);
    codes.emplace_back(operands::NameOf(i), operands::TypeOf(i).code);
    bits.emplace_back(operands::NameOf(i), operands::TypeOf(i).bits);
  }
  const auto add = [all](const char* name, const std::vector<Named>& list) {
    return AddList(all, name, list.data(), list.data() + list.size());
  };
  return add("ElementType", numbers) && add("ElementTypeCode", codes) &&
         add("ElementTypeBits", bits);
}

}  // namespace

int AddNumbers(PyObject* module) {
  const List lists[] = {
      {"TypeClass",
       {{"UNKNOWN", TypeClass::kUnknown},
        {"POINTER", TypeClass::kPointer},
        {"SIGNED", TypeClass::kSigned},
        {"UNSIGNED", TypeClass::kUnsigned},
        {"FLOAT", TypeClass::kFloat},
        {"BOOL", TypeClass::kBool},
        {"STRUCTURE", TypeClass::kStructure},
        {"NAMED", TypeClass::kNamed},
        {"ENUMERATION", TypeClass::kEnumeration},
        {"FLOAT8", TypeClass::kFloat8}}},
      {"DLDeviceType",
       {{"CPU", culaunch::kDLCPU},
        {"EXT_DEV", 12},  // kDLExtDev: memory that no framework accepts
        {"CUDA", culaunch::kDLCUDA},
        {"CUDA_HOST", culaunch::kDLCUDAHost},
        {"ROCM", culaunch::kDLROCM},
        {"CUDA_MANAGED", culaunch::kDLCUDAManaged}}},
      {"DLDataTypeCode",
       {{"INT", kDLInt},
        {"UINT", kDLUInt},
        {"FLOAT", kDLFloat},
        {"BFLOAT", kDLBfloat},
        {"COMPLEX", kDLComplex},
        {"BOOL", kDLBool},
        {"FLOAT8_E4M3FN", kDLFloat8_e4m3fn},
        {"FLOAT8_E5M2", kDLFloat8_e5m2},
        {"FLOAT8_E8M0FNU", kDLFloat8_e8m0fnu}}},
      {"Note",
       {{"ARRAY", culaunch::kNoteArray},
        {"READ_ONLY_ARRAY", culaunch::kNoteReadOnlyArray},
        {"LAUNCH", culaunch::kNoteLaunch},
        {"FUNCTION", culaunch::kNoteFunction},
        {"STORAGE", culaunch::kNoteStorage},
        {"READ_ONLY_STORAGE", culaunch::kNoteReadOnlyStorage}}},
      {"operands",
       {{"MAX_OPERANDS", operands::kMaxOperands},
        {"TYPES", operands::kTypes},
        {"FIRST_SCALAR", operands::kFirstScalar},
        {"FIRST_WEAK", operands::kFirstWeak},
        {"WEAK_BOOL", operands::kWeakBool},
        {"WEAK_INT", operands::kWeakInt},
        {"WEAK_FLOAT", operands::kWeakFloat},
        {"WEAK_COMPLEX", operands::kWeakComplex}}},
      {"elementwise",
       {{"BLOCK", elementwise::kBlock},
        {"TILE", elementwise::kTile},
        {"WIDE", elementwise::kWide},
        {"SMALL", elementwise::kSmall}}},
      {"TritonObjectKind",
       {{"UNSUPPORTED", ObjectKind::kUnsupported},
        {"TENSOR_LIKE", ObjectKind::kTensorLike},
        {"CONSTEXPR", ObjectKind::kConstexpr},
        {"DESCRIPTOR", ObjectKind::kDescriptor},
        {"INTEGER", ObjectKind::kInteger},
        {"FLOAT", ObjectKind::kFloatNumber},
        {"LAYOUT", ObjectKind::kLayoutDescriptor}}},
      {"triton", {{"MOST_DIMENSIONS", triton::kMostDimensions}}},
      {"TritonKeyKind",
       {{"VALUE", KeyKind::kValue},
        {"NUMBER", KeyKind::kNumber},
        {"NONE", KeyKind::kNone},
        {"TYPE", KeyKind::kType},
        {"SIZE", KeyKind::kSize},
        {"STRIDE", KeyKind::kStride},
        {"RANK", KeyKind::kRank},
        {"COUNT", KeyKind::kCount}}},
      {"TritonPart",
       {{"VALUE", Part::kValue},
        {"TENSOR_MAP", Part::kTensorMap},
        {"BASE", Part::kBase},
        {"SHAPE", Part::kShape},
        {"STRIDE", Part::kStride},
        {"FILLS_NAN", Part::kFillsNan},
        {"ROUNDS_TO_TF32", Part::kRoundsToTf32},
        {"GLOBAL", Part::kGlobalScratch},
        {"PROFILE", Part::kProfileScratch}}},
      {"TritonParameterFlag",
       {{"IS_CONSTEXPR", ParameterFlag::kIsConstexpr},
        {"IS_CONST", ParameterFlag::kIsConst},
        {"SPECIALIZE", ParameterFlag::kSpecialize},
        {"ALIGN", ParameterFlag::kAlign},
        {"OPTIONAL", ParameterFlag::kOptional},
        {"HAS_DEFAULT", ParameterFlag::kHasDefault},
        {"SET_TO_ZERO", ParameterFlag::kSetToZero}}},
  };
  const Ref all(PyDict_New());
  if (!all || !AddElementTypes(all.get())) return -1;
  for (const List& list : lists) {
    if (!AddList(all.get(), list.name, list.numbers.begin(), list.numbers.end())) return -1;
  }
  return PyModule_AddObjectRef(module, "NUMBERS", all.get());
}
