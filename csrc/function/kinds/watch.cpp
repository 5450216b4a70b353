#include "function/kinds/watch.h"

#include <algorithm>

namespace function {

namespace {

bool IsOfType(PyObject* object, const char* type) {
  const Ref name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
  PyErr_Clear();
  return name && PyUnicode_Check(name.get()) &&
         PyUnicode_CompareWithASCIIString(name.get(), type) == 0;
}

// A function's part by its name. False if the function has no such part.
bool IsPart(PyObject* name, FunctionPart* part) {
  static constexpr const char* names[] = {"__code__", "__defaults__", "__kwdefaults__"};
  for (size_t i = 0; PyUnicode_Check(name) && i < 3; ++i) {
    *part = static_cast<FunctionPart>(i);
    if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0) return true;
  }
  return false;
}

bool IsRead(PyObject* where, PyObject* name) {
  FunctionPart part;
  if (name == Py_None) return IsOfType(where, "cell");
  if (IsOfType(where, "function")) return IsPart(name, &part);
  return PyDict_Check(where) && PyUnicode_Check(name);
}

}  // namespace

std::unique_ptr<Watch> Watch::Make(const std::vector<Read>& reads) {
  auto watch = std::make_unique<Watch>();
  const Ref entries(PyList_New(0));
  const Ref none(PyTuple_New(0));
  if (!entries || !none) return nullptr;
  for (const Read& read : reads) {
    if (read.name.get() == Py_None) {
      const Ref held = ContentsOf(read.where.get());
      PyErr_Clear();
      const bool is_in_place = held && InPlace(read.where.get()) == held.get();
      watch->cells_.push_back(
          {Ref::Borrow(read.where.get()), Ref::Borrow(read.value.get()), is_in_place});
      continue;
    }
    FunctionPart part;
    if (!PyDict_Check(read.where.get()) && IsPart(read.name.get(), &part)) {
      watch->parts_.push_back({Ref::Borrow(read.where.get()), Ref::Borrow(read.value.get()), part});
      continue;
    }
    const Ref entry(
        Py_BuildValue("(OOOO)", read.where.get(), read.name.get(), Py_True, read.value.get()));
    if (!entry || PyList_Append(entries.get(), entry.get()) < 0) return nullptr;
  }
  const Ref guards(PyList_AsTuple(entries.get()));
  if (!guards || !watch->guards_.Set(guards.get(), none.get(), none.get(), none.get()))
    return nullptr;
  return watch;
}

int Watch::Traverse(visitproc visit, void* arg) const {
  for (const Cell& cell : cells_) {
    Py_VISIT(cell.cell.get());
    Py_VISIT(cell.value.get());
  }
  for (const Part& part : parts_) {
    Py_VISIT(part.function.get());
    Py_VISIT(part.value.get());
  }
  return guards_.Traverse(visit, arg);
}

bool AddReads(PyObject* entries, std::vector<Read>* reads) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(entries); ++i) {
    PyObject *where, *name, *value;
    PyObject* entry = PyTuple_GetItem(entries, i);
    const bool is_read = PyTuple_Check(entry) && PyTuple_Size(entry) == 3;
    if (!is_read || PyArg_ParseTuple(entry, "OOO", &where, &name, &value) == 0 ||
        !IsRead(where, name)) {
      PyErr_Clear();
      PyErr_SetString(PyExc_TypeError,
                      "each value read must be (dict, name, value), (function, name, value) or "
                      "(cell, None, value)");
      return false;
    }
    const auto known = std::find_if(reads->begin(), reads->end(), [&](const Read& one) {
      return one.where.get() == where &&
             (one.name.get() == name || (name != Py_None && one.name.get() != Py_None &&
                                         PyUnicode_Compare(one.name.get(), name) == 0));
    });
    if (known == reads->end()) {
      reads->push_back({Ref::Borrow(where), Ref::Borrow(name), Ref::Borrow(value)});
    } else {
      known->value = Ref::Borrow(value);
    }
  }
  return true;
}

}  // namespace function
