#include "function/kinds/kind.h"

#include <string>

#include "arguments/operands.h"
#include "arguments/views/element_types.h"

namespace function {

namespace {

constexpr size_t kMostSteps = 4096;

Ref DescribeArray(const Step& step) {
  return Ref(Py_BuildValue("(siiO)", "array", int{step.number}, int{step.rank},
                           step.is_read_only ? Py_True : Py_False));
}

Ref DescribeStep(const std::vector<Step>& steps, size_t* at) {
  const Step& step = steps[(*at)++];
  switch (step.code) {
    case Step::kArray:
      return DescribeArray(step);
    case Step::kInt:
      return Ref::Borrow(reinterpret_cast<PyObject*>(&PyLong_Type));
    case Step::kFloat:
      return Ref::Borrow(reinterpret_cast<PyObject*>(&PyFloat_Type));
    case Step::kNone:
      return Ref::Borrow(Py_None);
    case Step::kStatic:
      if (PyBool_Check(step.value.get())) return Ref::Borrow(step.value.get());
      return Ref(Py_BuildValue("(sO)", "value", step.value.get()));
    default:
      break;
  }
  Ref items(PyTuple_New(step.items));
  for (int32_t i = 0; items && i < step.items; ++i) {
    Ref item = DescribeArray(steps[(*at)++]);
    if (!item) return item;
    PyTuple_SetItem(items.get(), i, item.release());
  }
  return items
             ? Ref(Py_BuildValue("(sO)", step.code == Step::kList ? "list" : "tuple", items.get()))
             : Ref();
}

bool Refuse(PyObject* entry) {
  PyErr_Clear();
  PyErr_Format(
      PyExc_ValueError,
      "an entry of a kind must be None, int, float, True, False, (\"array\", dtype number, "
      "rank, is read-only), (\"value\", object), (\"list\", arrays) or (\"tuple\", "
      "arrays) (got %R)",
      entry);
  return false;
}

bool IsText(PyObject* object, const char* text) {
  return PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, text) == 0;
}

bool ReadArrayEntry(PyObject* entry, bool is_item, Kind* kind) {
  PyObject* word = nullptr;
  int number = -1;
  int rank = -1;
  int is_read_only = 0;
  if (!PyTuple_Check(entry) || kind->steps.size() >= kMostSteps ||
      PyArg_ParseTuple(entry, "Oiip", &word, &number, &rank, &is_read_only) == 0 ||
      !IsText(word, "array") || number < 0 || number >= operands::kAllTypes || rank < 0 ||
      rank > operands::kMaxDims) {
    return Refuse(entry);
  }
  Step& step = kind->Add(Step::kArray, is_item);
  step.number = static_cast<uint8_t>(number);
  step.rank = rank;
  step.is_read_only = is_read_only != 0;
  step.type = PackType(operands::TypeOf(step.number));
  return true;
}

bool ReadEntry(PyObject* entry, Kind* kind) {
  if (entry == Py_None || entry == reinterpret_cast<PyObject*>(&PyLong_Type) ||
      entry == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    kind->Add(entry == Py_None                                     ? Step::kNone
              : entry == reinterpret_cast<PyObject*>(&PyLong_Type) ? Step::kInt
                                                                   : Step::kFloat);
    return true;
  }
  if (PyBool_Check(entry)) {
    kind->Add(Step::kStatic).value = Ref::Borrow(entry);
    return true;
  }
  const Py_ssize_t size = PyTuple_Check(entry) ? PyTuple_Size(entry) : 0;
  if (size == 4) return ReadArrayEntry(entry, false, kind);
  if (size != 2) return Refuse(entry);
  PyObject* word = PyTuple_GetItem(entry, 0);
  PyObject* value = PyTuple_GetItem(entry, 1);
  if (IsText(word, "value")) {
    kind->Add(Step::kStatic).value = Ref::Borrow(value);
    return true;
  }
  const bool is_list = IsText(word, "list");
  if ((!is_list && !IsText(word, "tuple")) || !PyTuple_Check(value) ||
      (PyTuple_Size(value) == 0 && !is_list)) {
    return Refuse(entry);
  }
  kind->Add(is_list ? Step::kList : Step::kTuple).items = static_cast<int32_t>(PyTuple_Size(value));
  for (Py_ssize_t i = 0; i < PyTuple_Size(value); ++i) {
    if (!ReadArrayEntry(PyTuple_GetItem(value, i), true, kind)) return false;
  }
  return true;
}

}  // namespace

int IsSameStatic(PyObject* known, PyObject* object) {
  if (known == object) return 1;
  // 1, 1.0 and True are equal, but a body may treat each differently.
  if (Py_TYPE(known) != Py_TYPE(object)) return 0;
  if (PyTuple_CheckExact(known)) {
    const Py_ssize_t size = PyTuple_Size(known);
    const Recursion recursion(" in comparing a function's argument");
    if (recursion.is_too_deep()) return -1;
    if (size != PyTuple_Size(object)) return 0;
    for (Py_ssize_t i = 0; i < size; ++i) {
      const int is_same = IsSameStatic(PyTuple_GetItem(known, i), PyTuple_GetItem(object, i));
      if (is_same != 1) return is_same;
    }
    return 1;
  }
  return PyObject_RichCompareBool(known, object, Py_EQ);
}

Step& Kind::Add(Step::Code code, bool is_item) {
  steps.emplace_back();
  steps.back().code = code;
  if (!is_item) ++parameters;
  if (code == Step::kArray) ++arrays;
  return steps.back();
}

int Kind::Equals(const Kind& other) const {
  if (steps.size() != other.steps.size()) return 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& a = steps[i];
    const Step& b = other.steps[i];
    if (a.code != b.code || a.rank != b.rank || a.items != b.items || a.type != b.type ||
        a.is_read_only != b.is_read_only) {
      return 0;
    }
    if (a.code != Step::kStatic) continue;
    const int is_same = IsSameStatic(a.value.get(), b.value.get());
    if (is_same != 1) return is_same;
  }
  return 1;
}

Ref Kind::Describe() const {
  const Ref entries(PyList_New(0));
  for (size_t at = 0; entries && at < steps.size();) {
    const Ref entry = DescribeStep(steps, &at);
    if (!entry || PyList_Append(entries.get(), entry.get()) < 0) return Ref();
  }
  return Ref(entries ? PyList_AsTuple(entries.get()) : nullptr);
}

std::unique_ptr<Kind> Kind::FromDescription(PyObject* description) {
  auto kind = std::make_unique<Kind>();
  for (Py_ssize_t i = 0; i < PyTuple_Size(description); ++i) {
    if (!ReadEntry(PyTuple_GetItem(description, i), kind.get())) return nullptr;
  }
  return kind;
}

// A program and its kind may come from a file, so check that the kind has all that the program
// reads.
bool Kind::Takes(const Program& program) const {
  std::string wrong;
  if (static_cast<size_t>(program.parameters) > parameters) wrong = "has more parameters";
  if (program.argument_arrays != arrays) wrong = "has a different number of arrays";
  std::vector<const Step*> of_parameter;
  std::vector<const Step*> of_array;
  for (size_t i = 0; i < steps.size(); ++i) {
    of_parameter.push_back(&steps[i]);
    if (steps[i].code == Step::kArray) of_array.push_back(&steps[i]);
    if (steps[i].code < Step::kTuple) continue;
    for (int32_t k = 0; k < steps[i].items; ++k) of_array.push_back(&steps[i + 1 + k]);
    i += static_cast<size_t>(steps[i].items);
  }
  for (const auto& [parameter, element] : program.elements) {
    if (!wrong.empty()) break;
    const Step& step = *of_parameter[static_cast<size_t>(parameter)];
    if (step.code < Step::kTuple || element >= step.items) wrong = "returns more elements";
  }
  for (size_t i = 0; wrong.empty() && i < program.inputs.size(); ++i) {
    const Input& input = program.inputs[i];
    const auto index = static_cast<size_t>(input.index);
    switch (input.kind) {
      case Input::kInt:
        if (of_parameter[index]->code != Step::kInt) wrong = "reads an int from another value";
        break;
      case Input::kFloat:
        if (of_parameter[index]->code != Step::kFloat) wrong = "reads a float from another value";
        break;
      case Input::kDim:
      case Input::kStride:
        if (input.axis >= of_array[index]->rank) wrong = "reads an axis that an array lacks";
        break;
      default:
        break;
    }
  }
  if (wrong.empty()) return true;
  const Ref description = Describe();
  if (description) {
    PyErr_Format(PyExc_ValueError, "program: it %s than calls of the kind %R", wrong.c_str(),
                 description.get());
  }
  return false;
}

int Kind::Traverse(visitproc visit, void* arg) const {
  for (const Step& step : steps) Py_VISIT(step.value.get());
  Py_VISIT(reinterpret_cast<PyObject*>(program));
  return 0;
}

}  // namespace function
