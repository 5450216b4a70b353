#include "function/kind.h"

#include <cstring>
#include <string>

#include "arguments/element_types.h"
#include "arguments/operands.h"

namespace function {

namespace {

constexpr const char* kNames[] = {"array", "int", "float", "none", "static", "tuple", "list"};
constexpr int kMostNesting = 16;
constexpr size_t kMostSteps = 4096;

Ref DescribeStep(const std::vector<Step>& steps, size_t* at) {
  const Step& step = steps[(*at)++];
  const char* name = kNames[step.code];
  switch (step.code) {
    case Step::kArray:
      return Ref(Py_BuildValue("(ssiO)", name, operands::NameOf(step.number), int{step.rank},
                               step.is_read_only ? Py_True : Py_False));
    case Step::kStatic:
      return Ref(Py_BuildValue("(sO)", name, step.value.get()));
    case Step::kTuple:
    case Step::kList: {
      Ref items(PyTuple_New(step.items));
      for (int32_t i = 0; items && i < step.items; ++i) {
        Ref item = DescribeStep(steps, at);
        if (!item) return item;
        PyTuple_SetItem(items.get(), i, item.release());
      }
      return items ? Ref(Py_BuildValue("(sO)", name, items.get())) : Ref();
    }
    default:
      return Ref(Py_BuildValue("(s)", name));
  }
}

bool Refuse(PyObject* entry) {
  if (PyErr_Occurred() == nullptr) {
    PyErr_Format(PyExc_ValueError,
                 "a kind has no entry %R: (\"array\", dtype, rank, read_only), (\"int\",), "
                 "(\"float\",), (\"none\",), (\"static\", value), (\"tuple\", entries) and "
                 "(\"list\", entries) are",
                 entry);
  }
  return false;
}

bool ReadEntry(PyObject* entry, int depth, Kind* kind) {
  const Py_ssize_t size = PyTuple_Check(entry) ? PyTuple_Size(entry) : 0;
  PyObject* first = size > 0 ? PyTuple_GetItem(entry, 0) : nullptr;
  if (first == nullptr || !PyUnicode_Check(first) || depth > kMostNesting ||
      kind->steps.size() >= kMostSteps) {
    return Refuse(entry);
  }
  int code = -1;
  for (int i = 0; i < 7; ++i) {
    if (PyUnicode_CompareWithASCIIString(first, kNames[i]) == 0) code = i;
  }
  switch (code) {
    case Step::kArray: {
      const char* name = nullptr;
      int rank = 0;
      int is_read_only = 0;
      if (PyArg_ParseTuple(entry, "Osip", &first, &name, &rank, &is_read_only) == 0) {
        PyErr_Clear();
        return Refuse(entry);
      }
      uint8_t number = 0;
      while (number < operands::kAllTypes && std::strcmp(operands::NameOf(number), name) != 0) {
        ++number;
      }
      if (number == operands::kAllTypes || rank < 0 || rank > operands::kMaxDims) {
        return Refuse(entry);
      }
      Step& step = kind->Add(Step::kArray);
      step.number = number;
      step.rank = rank;
      step.is_read_only = is_read_only != 0;
      step.type = PackType(operands::TypeOf(number));
      return true;
    }
    case Step::kInt:
    case Step::kFloat:
    case Step::kNone:
      if (size != 1) return Refuse(entry);
      kind->Add(static_cast<Step::Code>(code));
      return true;
    case Step::kStatic:
      if (size != 2) return Refuse(entry);
      kind->Add(Step::kStatic).value = Ref::Borrow(PyTuple_GetItem(entry, 1));
      return true;
    case Step::kTuple:
    case Step::kList: {
      PyObject* items = size == 2 ? PyTuple_GetItem(entry, 1) : nullptr;
      if (items == nullptr || !PyTuple_Check(items)) return Refuse(entry);
      kind->Add(static_cast<Step::Code>(code)).items = static_cast<int32_t>(PyTuple_Size(items));
      for (Py_ssize_t i = 0; i < PyTuple_Size(items); ++i) {
        if (!ReadEntry(PyTuple_GetItem(items, i), depth + 1, kind)) return false;
      }
      return true;
    }
    default:
      return Refuse(entry);
  }
}

}  // namespace

int IsSameStatic(PyObject* known, PyObject* object) {
  if (known == object) return 1;
  if (Py_TYPE(known) != Py_TYPE(object)) return 0;
  return PyObject_RichCompareBool(known, object, Py_EQ);
}

Step& Kind::Add(Step::Code code) {
  steps.emplace_back();
  steps.back().code = code;
  if (code == Step::kTuple || code == Step::kList) {
    has_sequences = true;
  } else {
    ++leaves;
  }
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
    if (!ReadEntry(PyTuple_GetItem(description, i), 0, kind.get())) return nullptr;
  }
  return kind;
}

bool Kind::Takes(const Program& program) const {
  std::string wrong;
  if (program.leaves != leaves) wrong = "has other arguments";
  if (program.argument_arrays != arrays) wrong = "has another number of arrays";
  std::vector<const Step*> of_leaf;
  std::vector<const Step*> of_array;
  for (const Step& step : steps) {
    if (step.code == Step::kArray) of_array.push_back(&step);
    if (step.code != Step::kTuple && step.code != Step::kList) of_leaf.push_back(&step);
  }
  for (size_t i = 0; wrong.empty() && i < program.inputs.size(); ++i) {
    const Input& input = program.inputs[i];
    const auto index = static_cast<size_t>(input.index);
    switch (input.kind) {
      case Input::kInt:
        if (of_leaf[index]->code != Step::kInt) wrong = "reads an int that is none";
        break;
      case Input::kFloat:
        if (of_leaf[index]->code != Step::kFloat) wrong = "reads a float that is none";
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
